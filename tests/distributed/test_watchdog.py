"""A process that waits without running Python still ends after a stop signal, or when its parent has died."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bangs.distributed.watchdog import watchdog
from bangs.utils.signals import Stopped, graceful

# a call that holds the main thread for minutes and lets go of nothing but the interpreter, as one into gloo does
DEAF = "import hashlib; hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)"
CHILD = f"""
from bangs.distributed.watchdog import watchdog
from bangs.utils.signals import graceful
with watchdog(grace=0.3), graceful():
    print("ready", flush=True)
    {DEAF}
"""
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


@contextmanager
def begun(*words: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has printed that it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_no_safe_point_handles_ends_the_process(number: signal.Signals) -> None:
    with begun(CHILD) as process:
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 128 + number
        assert f"rank 0 ends: {number.name} came 0.3 s ago" in errors


def test_a_process_does_not_outlive_its_parent() -> None:
    with begun(PARENT, CHILD) as parent:
        parent.send_signal(signal.SIGKILL)
        _, errors = parent.communicate(timeout=60)  # returns when the child lets go of the pipe, which is at its end
        assert "rank 0 ends: torchrun has died" in errors


def test_a_signal_that_a_safe_point_handles_raises_stopped() -> None:
    with watchdog(grace=60), pytest.raises(Stopped), graceful():
        os.kill(os.getpid(), signal.SIGTERM)


def test_nothing_is_left_behind() -> None:
    threads = threading.active_count()
    with watchdog():
        assert threading.active_count() == threads + 1
    assert threading.active_count() == threads
    assert signal.set_wakeup_fd(-1) == -1
