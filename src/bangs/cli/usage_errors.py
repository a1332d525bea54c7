"""Print errors of the command line as one sentence."""

import sys
from typing import Any

import typer

from bangs.utils.text import escape_controls

# the base class of Typer's usage errors; it has no public name
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

# by pydantic's name of the error; Typer parses values with pydantic
_RULES = {
    "int_parsing": "a whole number",
    "float_parsing": "a number",
    "bool_parsing": "true or false",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
}


def tell(error: Any) -> None:
    """Print the error, or the help if the command line was empty, to stderr."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.ctx.get_help(), file=sys.stderr)
        return
    command = error.ctx.command_path if error.ctx else "bangs"
    sentence = escape_controls(_sentence(error))
    print(f"bangs: {sentence}{' See' if sentence.endswith('?') else '; see'} {command} -h", file=sys.stderr)


def _sentence(error: Any) -> str:
    problem = error.__cause__.errors()[0] if hasattr(error.__cause__, "errors") else {}
    if problem.get("type") in _RULES and getattr(error, "param", None) is not None:
        rule = _RULES[problem["type"]].format(**problem.get("ctx", {}))
        return f"{error.param.opts[0]} must be {rule}, got '{problem['input']}'"
    message = str(error.format_message()).rstrip(".")
    dash = hasattr(error, "possibilities") and error.ctx.command.name == "explain"  # an unknown option
    return message[0].lower() + message[1:] + ("; an id that begins with a dash comes after --" if dash else "")
