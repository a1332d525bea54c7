"""Ctrl-C and SIGTERM stop a command after the write in progress; it prints how to continue."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from bangs.utils.signals import Stopped, graceful


@contextmanager
def stoppable(continue_command: str | None = None) -> Iterator[None]:
    """Inside, a signal stops the command at its next safe point, with the usual exit code 130 or 143."""
    try:
        with graceful():
            yield
    except Stopped as stop:
        print(f"bangs: {stop}" + (f"; continue with: {continue_command}" if continue_command else ""), file=sys.stderr)
        raise typer.Exit(stop.exit_code) from None


def command_line(*flags: str) -> str:
    """The command line of this process, with these flags."""
    command = ["bangs", *(argument for argument in sys.argv[1:] if argument not in ("--overwrite", *flags))]
    return shlex.join([*command, *flags])
