"""Text from outside: made safe to show in a terminal or a Markdown page."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

_COMMANDS = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_LINK = re.compile(r"\](?=[(\[:])")


def escape_controls(text: str) -> str:
    """A text in which the characters that command a terminal are escaped."""
    return _COMMANDS.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def escape_markdown(text: str) -> str:
    """A text on one line of Markdown that holds no HTML, no link and no image of its own."""
    line = " ".join(escape_controls(text).split("\n"))
    return _LINK.sub(r"\\]", _TAG.sub("&lt;", line))


def markdown_table(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A table in Markdown of cells that hold no line break; a bar in one is escaped."""
    rows = [header, ["---"] * len(header), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows)


def plain_name(name: str) -> str:
    """A value without its folders: of a path to a graph only its last part, since folders name people and machines."""
    path = Path(str(name))
    return path.stem if path.suffix == ".npz" else path.name if len(path.parts) > 1 else str(name)


def counted(number: int, thing: str, things: str | None = None) -> str:
    """A number with its noun: `1 edge`, `1,234 edges`."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"
