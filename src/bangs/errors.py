"""The errors that bangs raises on purpose; each message says what to change."""

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches


class BangsError(Exception):
    """A mistake a user can correct; the command line prints it without a traceback and exits with 2."""


class InvalidInput(BangsError, ValueError):
    """A value breaks a rule; the message names the thing, the rule, what came and the way out."""


class UnknownName(BangsError, LookupError):
    """A name that is not in the list it should come from."""

    def __init__(self, kind: str, name: str, known: Iterable[str]):
        choices, name = sorted(known), str(name)
        near = get_close_matches(name.lower(), choices, n=3, cutoff=0.5)
        # of names that are equally near, the one with the same first letter
        near.sort(key=lambda known: (SequenceMatcher(None, known, name.lower()).ratio(), known[:1] == name[:1].lower()))
        hint = f"; did you mean '{near[-1]}'?" if near else "."
        super().__init__(f"{kind} '{name}' is unknown{hint} Known: {', '.join(choices)}")


class DataUnavailable(BangsError, OSError):
    """A data file is not on this machine and cannot be downloaded; the message says where to put it."""


class Diverged(BangsError):
    """The first model could not be trained, so there is no teacher."""


class OutOfMemory(BangsError, MemoryError):
    """A computation does not fit into memory, even in small pieces."""


def ran_out_of_memory(error: Exception) -> bool:
    """Whether an error of torch, CUDA or numpy says that memory ran out; on a CPU torch has no class for it."""
    messages = ("out of memory", "DefaultCPUAllocator", "bad_alloc", "ALLOC_FAILED", "INSUFFICIENT_RESOURCES")
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(text in str(error) for text in messages)
    )
