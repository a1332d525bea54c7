"""Stopping at a safe point: Ctrl-C and SIGTERM wait until a write or an epoch is done."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_caught: list[int] = []  # signals are the process's, so is this


class Stopped(KeyboardInterrupt):
    """The user (SIGINT) or the system (SIGTERM) asked the work to end.

    A KeyboardInterrupt, so that `except Exception` around a round cannot swallow it.
    """

    def __init__(self, number: int):
        self.signal = signal.Signals(number)
        super().__init__(f"stopped by {self.signal.name}")

    @property
    def exit_code(self) -> int:
        """What a shell expects of a process so ended: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.signal


@contextmanager
def graceful() -> Iterator[None]:
    """Inside, a first signal is kept until `check` is called or the block ends; a second one raises at once.

    A signal the process was told to ignore stays ignored. In a thread other than the main one, which can receive no
    signals, and inside another `graceful`, it changes nothing.
    """
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    if threading.current_thread() is not threading.main_thread() or _catch in handlers.values():
        yield
        return
    _caught.clear()
    former = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}
    for number in former:
        signal.signal(number, _catch)
    try:
        yield
    finally:
        for number, handler in former.items():
            # None stands for a handler that was not set from Python and cannot be set back
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        check()


def check() -> None:
    """A safe point: raises `Stopped` if a signal is waiting, else does nothing."""
    if _caught:
        _raise()


def _catch(number: int, frame: FrameType | None) -> None:
    _caught.append(number)
    if len(_caught) > 1:
        _raise()


def _raise() -> None:
    number = _caught[-1]
    _caught.clear()
    raise Stopped(number)
