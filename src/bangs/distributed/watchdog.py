"""A thread that ends this rank soon after a stop signal, or after torchrun has died, even while it waits for others."""

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

GRACE = 10.0  # seconds to reach a safe point; torchrun itself waits for 30
POLL_SECONDS = 1.0  # between two checks that the parent lives
_STOPS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def watchdog(grace: float = GRACE) -> Iterator[None]:
    """Inside, a stop signal that has had no effect for `grace` seconds ends the process with status 130 or 143.

    A process that waits inside gloo or nccl runs no Python, so the handler of `signals.graceful` does not run either.
    The thread still reads the signal. It also checks whether the parent process lives, since torchrun starts its ranks
    in sessions of their own, and sends SIGTERM if it does not. Call this from the main thread.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    previous = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reader, os.getppid(), grace), name="watchdog", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous)
        os.close(writer)
        watcher.join()
        os.close(reader)


def _watch(reader: int, parent: int, grace: float) -> None:
    """Wait for a stop signal and end the process if the signal has no effect; return when the block has ended."""
    number, end = 0, float("inf")
    orphaned = False
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, min(POLL_SECONDS, end - time.monotonic())))
        received = os.read(reader, 64) if ready else None  # the numbers of signals
        if received == b"":  # the block has ended
            return
        stops = [received_number for received_number in received or b"" if received_number in _STOPS]
        if stops and not number:
            number, end = stops[0], time.monotonic() + grace
        if time.monotonic() >= end:
            _report(f"{signal.Signals(number).name} came {grace:g} s ago, and no safe point was reached since")
            os._exit(128 + number)
        if not orphaned and os.getppid() != parent:
            orphaned = True
            _report("torchrun has died")
            os.kill(os.getpid(), signal.SIGTERM)


def _report(why: str) -> None:
    with suppress(OSError, ValueError):  # the reader of stderr may be gone too
        print(f"bangs: rank {os.environ.get('RANK', '0')} ends: {why}", file=sys.stderr, flush=True)
