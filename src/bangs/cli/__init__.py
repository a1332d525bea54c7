"""The command line: `bangs COMMAND`; each command has a file of its own, read when the command is called."""

import io
import sys
from typing import Annotated

import typer

from bangs import __version__
from bangs.cli.commands import HELP, Commands, memory_advice
from bangs.cli.usage_errors import UsageError, tell
from bangs.errors import BangsError, ran_out_of_memory
from bangs.utils.checkout import describe
from bangs.utils.text import escape_controls

app = typer.Typer(
    name="bangs",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings=HELP,
)


def _tell_version(asked: bool) -> None:
    if asked:
        described = describe("--tags")  # such as v0.2.0-3-g1a2b3c4; only in a checkout
        print(f"bangs {__version__}" + (f" ({described})" if described else ""))
        raise typer.Exit


@app.callback()
def bangs(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Graph self-training: label all nodes of a graph from a few labels, with probabilities and reasons."""


def main() -> None:
    """The console script: a user's mistake is one sentence and exit code 2, never a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that knows no é is told \xe9
    try:
        sys.exit(app(prog_name="bangs", standalone_mode=False))
    except UsageError as error:
        tell(error)
    except BangsError as error:
        print(f"bangs: {escape_controls(str(error))}", file=sys.stderr)
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
        print(f"bangs: memory ran out; {memory_advice()}", file=sys.stderr)
    except OSError as error:
        place = f"'{error.filename}': " if error.filename else ""
        print(f"bangs: {escape_controls(place)}{error.strerror or error}", file=sys.stderr)
    sys.exit(2)
