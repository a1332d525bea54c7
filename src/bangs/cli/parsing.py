"""Parse option values that are lists, ranges or choices."""

from collections.abc import Sequence

from bangs.errors import InvalidInput
from bangs.utils.limits import MAX_FANOUT, MAX_SEEDS


def parse_seeds(text: str) -> tuple[int, ...]:
    """`10` is 0 … 9; `910,911` and `910-919` are those."""
    seeds: Sequence[int]
    try:
        if "," in text:
            seeds = [int(part) for part in text.split(",")]
        elif "-" in text.lstrip("-"):
            first, last = (int(part) for part in text.split("-"))
            seeds = range(first, min(last, first + MAX_SEEDS) + 1)
        else:
            seeds = range(min(int(text), MAX_SEEDS + 1))
    except ValueError:
        raise InvalidInput(
            f"--seeds must be a number, a list such as 910,911 or a range 910-919, got '{text}'"
        ) from None
    if not 1 <= len(seeds) <= MAX_SEEDS:
        raise InvalidInput(f"--seeds must name from 1 to {MAX_SEEDS:,} seeds, got '{text}'")
    return tuple(seeds)


def parse_fanout(text: str | None) -> tuple[int, ...] | None:
    """`10,5` is 10 at the first hop and 5 at the second; `all` is every neighbour."""
    if text is None:
        return None
    try:
        hops = tuple(-1 if part.strip() == "all" else int(part) for part in text.split(","))
    except ValueError:
        hops = (0,)
    if any(count != -1 and not 1 <= count <= MAX_FANOUT for count in hops):
        raise InvalidInput(f"--fanout must be numbers from 1 to {MAX_FANOUT:,} such as 10,10, or all, got '{text}'")
    return hops


def parse_names(option: str, text: str | None) -> list[str] | None:
    """`cora, pubmed` is those two."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InvalidInput(f"{option} must name something, or be left out, got '{text}'")
    return names
