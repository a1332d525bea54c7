"""Stopping at a safe point: Ctrl-C and SIGTERM wait until a write or an epoch is done."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_caught: list[int] = []  # global, since signals belong to the process


class Stopped(KeyboardInterrupt):
    """The user (SIGINT) or the system (SIGTERM) stopped the program.

    A KeyboardInterrupt, so that `except Exception` around a round cannot swallow it.
    """

    def __init__(self, number: int):
        self.signal = signal.Signals(number)
        super().__init__(f"stopped by {self.signal.name}")

    @property
    def exit_code(self) -> int:
        """The exit code that a shell expects: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.signal


@contextmanager
def graceful() -> Iterator[None]:
    """Inside, a first signal is kept until `check` is called or the block ends; a second one raises at once.

    A signal that the process ignores stays ignored. In a thread other than the main one, which can receive no
    signals, and inside another `graceful`, it changes nothing.
    """
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    if threading.current_thread() is not threading.main_thread() or _catch in handlers.values():
        yield
        return
    _caught.clear()
    previous = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}
    for number in previous:
        signal.signal(number, _catch)
    try:
        yield
    finally:
        for number, handler in previous.items():
            # None means a handler that was not set from Python and cannot be set back
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        check()


@contextmanager
def defer_interrupts_during_imports() -> Iterator[None]:
    """Inside, Ctrl-C waits until no module is being imported; a second one does not wait.

    A KeyboardInterrupt during the import of numpy or torch may be lost, become an ImportError or abort the process.
    If Ctrl-C already has another handler, this changes nothing.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _after_imports)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def check() -> None:
    """A safe point: raises `Stopped` if a signal is waiting, else does nothing."""
    if _caught:
        number = _caught[-1]
        _caught.clear()
        raise Stopped(number)


def _catch(number: int, frame: FrameType | None) -> None:
    _caught.append(number)
    if len(_caught) > 1:
        check()


def _after_imports(number: int, frame: FrameType | None) -> None:
    importer = _importer(frame)
    if importer is None or sys.gettrace() is not None:  # a trace function means that one is already waiting
        sys.settrace(None)
        raise KeyboardInterrupt
    importer.f_trace = _raise_here  # called at the importer's next line, once there is any trace function
    sys.settrace(lambda frame, event, argument: None)


def _raise_here(frame: FrameType, event: str, argument: object) -> None:
    sys.settrace(None)
    raise KeyboardInterrupt


def _importer(frame: FrameType | None) -> FrameType | None:
    """The outermost frame on the stack that is importing a module; None if there is none."""
    importer = None
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib."):
            importer = frame.f_back
        frame = frame.f_back
    return importer
