"""Escaping of text for a terminal or a Markdown page, and small formatting helpers."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

_CONTROLS = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_LINK = re.compile(r"\](?=[(\[:])")


def escape_controls(text: str) -> str:
    """The text with terminal control characters escaped."""
    return _CONTROLS.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


def escape_markdown(text: str) -> str:
    """The text on one line of Markdown, without HTML, links or images."""
    line = " ".join(escape_controls(text).split("\n"))
    return _LINK.sub(r"\\]", _TAG.sub("&lt;", line))


def markdown_table(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A Markdown table; cells must not contain line breaks, and bars in them are escaped."""
    rows = [header, ["---"] * len(header), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows)


def plain_name(name: str) -> str:
    """The last part of a path to a graph, since its folders may name people and machines; other names unchanged."""
    path = Path(str(name))
    return path.stem if path.suffix == ".npz" else path.name if len(path.parts) > 1 else str(name)


def percent(share: float, digits: int = 1) -> str:
    """A share as text: `48.8 %`."""
    return f"{100 * share:.{digits}f} %"


def counted(number: int, thing: str, things: str | None = None) -> str:
    """A number with its noun: `1 edge`, `1,234 edges`."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"
