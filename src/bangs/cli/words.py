"""Words of the command line that stand for more than they say: lists, ranges and choices."""

from typing import Literal

from bangs.errors import InvalidInput


def parse_seeds(text: str) -> tuple[int, ...]:
    """`10` is 0 … 9; `910,911` and `910-919` are those."""
    try:
        if "," in text:
            return tuple(int(part) for part in text.split(","))
        if "-" in text.lstrip("-"):
            first, last = (int(part) for part in text.split("-"))
            return tuple(range(first, last + 1))
        count = int(text)
    except ValueError:
        raise InvalidInput(
            f"--seeds must be a number, a list such as 910,911 or a range 910-919, got '{text}'"
        ) from None
    if count < 1:
        raise InvalidInput(f"--seeds must be at least 1, got {count}")
    return tuple(range(count))


def parse_fanout(text: str | None) -> tuple[int, ...] | None:
    """`10,5` is 10 at the first hop and 5 at the second; `all` is every neighbour."""
    if text is None:
        return None
    try:
        return tuple(-1 if part.strip() == "all" else int(part) for part in text.split(","))
    except ValueError:
        raise InvalidInput(f"--fanout must be numbers such as 10,10, or all, got '{text}'") from None


def parse_names(text: str | None) -> list[str] | None:
    """`cora, pubmed` is those two."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def parse_fill(word: str | None) -> Literal["mean"] | None:
    """What --fill asks for."""
    if word not in (None, "mean"):
        raise InvalidInput(f"--fill knows one way, 'mean', got '{word}'")
    return "mean" if word else None
