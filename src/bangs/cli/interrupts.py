"""Ctrl-C and SIGTERM end a command after the write in progress, and it prints how to continue."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from bangs.utils.signals import Stopped, graceful


@contextmanager
def stoppable(way_on: str | None = None) -> Iterator[None]:
    """Inside, a signal ends the command at its next safe point, with the exit code shells expect: 130 or 143."""
    try:
        with graceful():
            yield
    except Stopped as stop:
        print(f"bangs: {stop}" + (f"; continue with: {way_on}" if way_on else ""), file=sys.stderr)
        raise typer.Exit(stop.exit_code) from None


def again(*flags: str) -> str:
    """The command line of this process as one would type it, with these flags."""
    words = ["bangs", *(word for word in sys.argv[1:] if word not in ("--overwrite", *flags))]
    return shlex.join([*words, *flags])
