"""Terminal: text that a terminal shows and does not obey."""

import re

_COMMANDS = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")


def escape_controls(text: str) -> str:
    """A text in which the characters that command a terminal are spelled out."""
    return _COMMANDS.sub(lambda found: found.group().encode("unicode_escape").decode(), text)
