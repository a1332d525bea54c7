"""Run the jobs of a suite in this process or in several; retry a job if its worker dies."""

import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from bangs.errors import InvalidInput
from bangs.experiments.jobs import Job, Outcome, Watcher, perform
from bangs.utils.limits import MAX_JOBS
from bangs.utils.signals import Stopped, check, graceful

RETRIES = 3  # of a job whose worker died
LOCK_TIMEOUT = 15.0  # seconds; on a busy machine, the worker of a killed suite may still hold the lock of its folder

Tell = Callable[[Job, Outcome], None]
# runs every job and reports its outcome; a stop by the user is raised and leaves all folders consistent
Engine = Callable[[Sequence[Job], Tell], None]


@dataclass(frozen=True)
class InProcess:
    """One job after the other, in this process."""

    watchers: tuple[Watcher, ...] = ()

    def __call__(self, jobs: Sequence[Job], tell: Tell) -> None:
        for job in jobs:
            check()
            tell(job, perform(job, self.watchers, LOCK_TIMEOUT))


@dataclass(frozen=True)
class Processes:
    """Several processes on this machine; a job whose process dies is retried and continues from its checkpoint."""

    count: int

    def __post_init__(self) -> None:
        check_jobs(self.count)

    def __call__(self, jobs: Sequence[Job], tell: Tell) -> None:
        remaining = {job.name: job for job in jobs}
        crashes = Counter[str]()  # of workers, while the job was under way
        while remaining:
            with _pool(min(self.count, len(remaining))) as pool:
                suspects = self._hand_out(pool, remaining, tell)
            crashes.update(suspects)
            for name in suspects:
                if crashes[name] > RETRIES:
                    reason = f"its process died {RETRIES + 1} times, perhaps for want of memory"
                    tell(remaining.pop(name), Outcome("failed", error=reason))

    def _hand_out(self, pool: ProcessPoolExecutor, remaining: dict[str, Job], tell: Tell) -> list[str]:
        """Submit jobs until none is left or a worker dies; returns the names of the jobs that ran when it died."""
        waiting, running = list(remaining), dict[Future[Outcome], str]()
        while waiting or running:
            check()
            while waiting and len(running) < self.count:
                name = waiting.pop(0)
                # a new process must not receive Ctrl-C before it has set its handler
                earlier = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
                try:
                    running[pool.submit(work, remaining[name])] = name
                finally:
                    signal.pthread_sigmask(signal.SIG_SETMASK, earlier)
            for future in wait(running, timeout=0.2, return_when=FIRST_COMPLETED).done:
                try:
                    outcome = future.result()
                except BrokenProcessPool:
                    return list(running.values())
                name = running.pop(future)
                if outcome.kind == "stopped":
                    waiting.append(name)
                else:
                    tell(remaining.pop(name), outcome)
        return []


def check_jobs(count: int) -> None:
    """Raise if the number of parallel runs is out of range."""
    if not 1 <= count <= MAX_JOBS:
        raise InvalidInput(f"--jobs must be a whole number from 1 to {MAX_JOBS:,}, got {count}")


@contextmanager
def _pool(count: int) -> Iterator[ProcessPoolExecutor]:
    threads = max(1, (os.cpu_count() or 1) // count)
    # a forked process cannot use a GPU that its parent has used
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _start_worker, (threads,))
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()  # each stops at its next safe point
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start_worker(threads: int) -> None:
    # the parent process receives Ctrl-C and stops its workers at their next safe point
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    torch.set_num_threads(threads)
    threading.Thread(target=_exit_with_parent, name="exit-with-parent", daemon=True).start()


def _exit_with_parent() -> None:
    """Exit when the parent process ends, even if it was killed.

    Otherwise this worker would still hold the lock of its run folder when the suite is started again.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def work(job: Job, patience: float = LOCK_TIMEOUT) -> Outcome:
    """Run a job in a worker process; a signal stops it at a safe point."""
    try:
        with graceful():
            return perform(job, patience=patience)
    except Stopped:
        return Outcome("stopped")
