"""Lifeline: a rank that is told to stop, or whose torchrun is gone, ends soon, whatever it waits for."""

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

GRACE = 10.0  # seconds to a safe point; torchrun itself would wait for thirty
LOOKS = 1.0  # seconds between two looks for the parent
_STOPS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def watchdog(grace: float = GRACE) -> Iterator[None]:
    """Inside, a signal to stop that has had no effect for `grace` seconds ends the process with 130 or 143.

    A process that waits for others inside gloo or nccl runs no Python, and a handler such as that of
    `signals.graceful` waits with it. A thread sees the signal all the same. It also sees when the parent is gone, which
    nobody tells: torchrun gives its ranks sessions of their own. Then it sends SIGTERM itself. For the main thread, as
    signals are.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    former = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reader, os.getppid(), grace), name="watchdog", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(former)
        os.close(writer)
        watcher.join()
        os.close(reader)


def _watch(reader: int, parent: int, grace: float) -> None:
    """Wait for a signal to stop and see that it is heeded; return when the block has ended."""
    number, end = 0, float("inf")
    orphaned = False
    while (heard := _hear(reader, max(0.0, min(LOOKS, end - time.monotonic())))) != b"":
        if not number and (stops := [one for one in heard or b"" if one in _STOPS]):
            number, end = stops[0], time.monotonic() + grace
        if time.monotonic() >= end:
            _say(f"{signal.Signals(number).name} came {grace:g} s ago, and there was no safe point since")
            os._exit(128 + number)
        if not orphaned and os.getppid() != parent:
            orphaned = True
            _say("torchrun is gone")
            os.kill(os.getpid(), signal.SIGTERM)


def _hear(reader: int, seconds: float) -> bytes | None:
    """The numbers of the signals that came; empty where the block has ended, None where nothing happened."""
    ready, _, _ = select.select([reader], [], [], seconds)
    return os.read(reader, 64) if ready else None


def _say(why: str) -> None:
    with suppress(OSError, ValueError):  # who would read it may be gone too
        print(f"bangs: rank {os.environ.get('RANK', '0')} ends: {why}", file=sys.stderr, flush=True)
