"""Text from outside: shown by a terminal or a Markdown page, and never obeyed."""

import re

_COMMANDS = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_LINK = re.compile(r"\](?=[(\[:])")


def escape_controls(text: str) -> str:
    """A text in which the characters that command a terminal are spelled out."""
    return _COMMANDS.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def escape_markdown(text: str) -> str:
    """A text on one line of Markdown that holds no HTML, no link and no image of its own."""
    line = " ".join(escape_controls(text).split("\n"))
    return _LINK.sub(r"\\]", _TAG.sub("&lt;", line))
