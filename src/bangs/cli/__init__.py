"""The command line `bangs COMMAND`; each command has its own file, which is imported when the command is called."""

import io
import sys
from typing import Annotated

import typer

from bangs import __version__
from bangs.cli.commands import HELP_OPTIONS, Commands, memory_advice
from bangs.cli.usage_errors import UsageError, tell
from bangs.errors import BangsError, ran_out_of_memory
from bangs.utils.git_version import describe
from bangs.utils.text import escape_controls

app = typer.Typer(
    name="bangs",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings=HELP_OPTIONS,
)


def _print_version(show: bool) -> None:
    if show:
        described = describe("--tags")  # such as v0.2.0-3-g1a2b3c4; only in a checkout
        print(f"bangs {__version__}" + (f" ({described})" if described else ""))
        raise typer.Exit


@app.callback()
def bangs(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Graph self-training: label all nodes of a graph from a few labels, with probabilities and reasons."""


def main() -> None:
    """The console script; an error of the user is printed as one sentence, with exit code 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # an ASCII terminal shows é as \xe9
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
        prefix = f"'{error.filename}': " if error.filename else ""
        print(f"bangs: {escape_controls(prefix)}{error.strerror or error}", file=sys.stderr)
    sys.exit(2)
