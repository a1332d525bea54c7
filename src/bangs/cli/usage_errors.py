"""Usage: a mistyped command line, told in one sentence."""

import re
import sys
from typing import Any

import typer

from bangs.utils.text import escape_controls

# what Typer raises for anything mistyped; it has no public name
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

# what it says of a value that is none, by its version
_RULES = (
    re.compile(r"Input should be (?P<rule>.*?)(, unable.*)?$"),
    re.compile(r"Invalid value for .*: .* is not (?P<rule>a valid (integer|int|float)|in the range .*?)( range)?$"),
)
_PLAIN = {"a valid integer": "a whole number", "a valid int": "a whole number", "a valid float": "a number"}


def tell(error: Any) -> None:
    """Write the sentence, or the help where nothing was typed, to stderr."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.ctx.get_help(), file=sys.stderr)
        return
    command = error.ctx.command_path if error.ctx else "bangs"
    words = escape_controls(_sentence(error))
    print(f"bangs: {words}{' See' if words.endswith('?') else '; see'} {command} -h", file=sys.stderr)


def _sentence(error: Any) -> str:
    words = str(error.format_message()).rstrip(".")
    broken = next(filter(None, (rule.search(words) for rule in _RULES)), None)
    if broken is not None and getattr(error, "param", None) is not None:
        rule = broken["rule"]
        return f"{error.param.opts[0]} must be {_PLAIN.get(rule, rule)}{_came(error.param.opts)}"
    dash = words.startswith("No such option") and error.ctx.command.name == "explain"
    return words[0].lower() + words[1:] + ("; an id that begins with a dash comes after --" if dash else "")


def _came(options: list[str]) -> str:
    """What was typed for an option, the last time it was."""
    typed = sys.argv[1:]
    came = ""
    for word, after in zip(typed, [*typed[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in options:
            came = f", got '{value if equals else after}'"
    return came
