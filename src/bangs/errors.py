"""The named errors of bangs; each is a sentence a person can act on."""

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
        # of those equally near, the one that begins alike
        near.sort(key=lambda own: (SequenceMatcher(None, own, name.lower()).ratio(), own[:1] == name[:1].lower()))
        hint = f"; did you mean '{near[-1]}'?" if near else "."
        super().__init__(f"{kind} '{name}' is unknown{hint} Known: {', '.join(choices)}")


class DataUnavailable(BangsError, OSError):
    """A data file is neither on this machine nor to be had; the message says what to put where."""


class Diverged(BangsError):
    """A first model could not be trained, so there is no one to teach."""


class OutOfMemory(BangsError, MemoryError):
    """Something does not fit into memory, in however small pieces it is done."""


def ran_out_of_memory(error: Exception) -> bool:
    """Whether an error of torch, CUDA or numpy says that memory ran out; on a CPU torch has no class for it."""
    words = ("out of memory", "DefaultCPUAllocator", "bad_alloc", "ALLOC_FAILED", "INSUFFICIENT_RESOURCES")
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(w in str(error) for w in words))
