"""Run `bangs` in this process, as the console script does."""

import contextlib
import io
import sys
from typing import NamedTuple
from unittest import mock

from bangs.cli import main


class CommandResult(NamedTuple):
    code: int
    out: str
    err: str


def bangs(*words: object) -> CommandResult:
    """`bangs WORDS …`: exit code, stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["bangs", *map(str, words)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    return CommandResult(code, out.getvalue(), err.getvalue())
