"""Commands: `bangs` in a process of its own, disturbed, or in this one."""

import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bangs.__main__ import main  # the program itself, with its guard against a Ctrl-C during its start
from tests.cli.invoke import CommandResult, bangs

QUIET = ("--device=cpu", "--quiet")


class Ended(NamedTuple):
    """How a command in a process of its own ended."""

    status: int  # negative where a signal ended it
    err: str
    seconds: float  # of processor time


class Finding(Exception):
    """A promise that did not hold: its kind is lost, silent, tracebacks, hangs or canary."""

    def __init__(self, kind: str, what: str):
        super().__init__(what)
        self.kind, self.what = kind, what


def alone(words: tuple[object, ...], log: Path, disturb: Callable[[], None] | None = None) -> Ended:
    """The command in a fork; `disturb` is called in it first."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, 1)
            os.dup2(file, 2)
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sys.argv = ["bangs", *map(str, words)]
            if disturb is not None:
                disturb()
            main()
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    _, status, used = os.wait4(child, 0)
    err = log.read_text(errors="replace")
    return Ended(os.waitstatus_to_exitcode(status), err, used.ru_utime + used.ru_stime)


def run_bangs(*words: object) -> CommandResult:
    """The command in this process; anything but an exit with words is a finding."""
    try:
        result = bangs(*words)
    except Exception as error:
        raise Finding("tracebacks", describe(error)) from error
    if "Traceback" in result.err:
        raise Finding("tracebacks", result.err.strip().splitlines()[-1])
    if result.code not in (0, 1, 2):
        raise Finding("tracebacks", f"exit code {result.code}: {result.err[-200:]}")
    if result.code == 2 and not result.err.strip():
        raise Finding("tracebacks", "exit code 2 without a word")
    if odd := sorted({char for char in result.out + result.err if not char.isprintable() and char not in "\n\t\r"}):
        raise Finding("tracebacks", f"{odd[0]!r} reaches the terminal by `bangs {words[0]}`")
    return result


def describe(error: BaseException) -> str:
    """An exception and the line of bangs that let it through."""
    calls = traceback.extract_tb(error.__traceback__)
    own = next((call for call in reversed(calls) if "/bangs/" in call.filename), calls[-1])
    return f"{type(error).__name__} at {Path(own.filename).name}:{own.lineno} {own.name}: {str(error)[:120]}"


def strike(
    number: int, seconds: float, again: float | None = None, clock: Callable[[], float] = time.process_time
) -> Callable[[], None]:
    """A signal after so many seconds, of the process's own time by default, and perhaps a second one."""

    def wait() -> None:
        for moment in (seconds, again):
            if moment is not None:
                while clock() < begin + moment:
                    time.sleep(0.002)
                os.kill(os.getpid(), number)

    def disturb() -> None:
        nonlocal begin
        begin = clock()
        threading.Thread(target=wait, daemon=True).start()

    begin = 0.0
    return disturb


def strike_at(number: int, event: str, count: int) -> Callable[[], None]:
    """A signal at the process's `count`th audit event of a kind, such as its third os.rename."""

    def disturb() -> None:
        count_so_far = 0

        def on_event(name: str, _: Any) -> None:
            nonlocal count_so_far
            if name == event:
                count_so_far += 1
                if count_so_far == count:
                    os.kill(os.getpid(), number)

        sys.addaudithook(on_event)

    return disturb


def limited(kind: int, size: int) -> Callable[[], None]:
    """A limit of the system: on the size of a file, or on open files."""
    return lambda: resource.setrlimit(kind, (size, resource.getrlimit(kind)[1]))
