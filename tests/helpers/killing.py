"""Killing: forked work that dies at a moment of its own processor time, so that a busy machine changes nothing.

A kill that waits on the clock misses: on a busy machine the measured run takes long, the next one does not, and is over
before its kill comes. A timer of processor time counts what the child itself has done. Its signal has no handler, so
the kernel ends the process wherever it stands, as it does for SIGKILL.
"""

import os
import random
import signal
from collections.abc import Callable

Work = Callable[[], object]


def undisturbed(work: Work) -> float:
    """The seconds of processor time that the work takes in a fork."""
    child = _fork(work, None)
    _, status, used = os.wait4(child, 0)
    assert status == 0, f"the work failed with status {status}"
    return used.ru_utime + used.ru_stime


def killed(work: Work, kills: int, seconds: float, seed: int | None = None) -> int:
    """The work in forks, one after the other, each killed within so many seconds; the last lives. How many died."""
    draw = random.Random(seed)
    moments = [draw.uniform(0.01, 1.0) * seconds for _ in range(kills)]
    died = sum(os.WIFSIGNALED(os.waitpid(_fork(work, moment), 0)[1]) for moment in moments)
    undisturbed(work)
    return died


def in_a_child(work: Callable[[], int]) -> int:
    """The id of a forked process that does the work and ends with its result."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            status = work()
        finally:
            os._exit(status)
    return child


def _fork(work: Work, seconds: float | None) -> int:
    def work_until_killed() -> int:
        if seconds is not None:
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, seconds)
        work()
        return 0

    return in_a_child(work_until_killed)
