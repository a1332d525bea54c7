"""Engines: run the jobs of a suite in this process or in several, and retry those whose worker died."""

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
from typing import Protocol

import torch

from bangs.errors import InvalidInput
from bangs.experiments.jobs import Job, Outcome, Watcher, perform
from bangs.utils.limits import MAX_JOBS
from bangs.utils.signals import Stopped, check, graceful

RETRIES = 3  # of a job whose worker died
PATIENCE = 15.0  # seconds that the worker of a killed suite may take to end, on a busy machine

Tell = Callable[[Job, Outcome], None]


class Engine(Protocol):
    """Does every job and reports how it ended; a stop by the user goes through, with all folders consistent."""

    def __call__(self, jobs: Sequence[Job], tell: Tell) -> None: ...


@dataclass(frozen=True)
class InProcess:
    """One job after the other, in this process."""

    watchers: tuple[Watcher, ...] = ()

    def __call__(self, jobs: Sequence[Job], tell: Tell) -> None:
        for job in jobs:
            check()
            tell(job, perform(job, self.watchers, PATIENCE))


@dataclass(frozen=True)
class Processes:
    """Several processes on this machine; a job whose process dies is tried again and continues from its checkpoint."""

    count: int

    def __post_init__(self) -> None:
        check_jobs(self.count)

    def __call__(self, jobs: Sequence[Job], tell: Tell) -> None:
        left = {job.name: job for job in jobs}
        deaths = Counter[str]()  # of workers, while the job was under way
        while left:
            with _pool(min(self.count, len(left))) as pool:
                suspects = self._hand_out(pool, left, tell)
            deaths.update(suspects)
            for name in suspects:
                if deaths[name] > RETRIES:
                    why = f"its process died {RETRIES + 1} times, perhaps for want of memory"
                    tell(left.pop(name), Outcome("failed", error=why))

    def _hand_out(self, pool: ProcessPoolExecutor, left: dict[str, Job], tell: Tell) -> list[str]:
        """Hand out jobs until none is left or a worker has died; the jobs under way when it did."""
        waiting, running = list(left), dict[Future[Outcome], str]()
        while waiting or running:
            check()
            while waiting and len(running) < self.count:
                name = waiting.pop(0)
                with _sigint_blocked():
                    future = pool.submit(work, left[name])
                running[future] = name
            for future in wait(running, timeout=0.2, return_when=FIRST_COMPLETED).done:
                try:
                    outcome = future.result()
                except BrokenProcessPool:
                    return list(running.values())
                name = running.pop(future)
                if outcome.kind == "stopped":
                    waiting.append(name)
                else:
                    tell(left.pop(name), outcome)
        return []


def check_jobs(count: int) -> None:
    """Raise if so many runs cannot be done at the same time."""
    if not 1 <= count <= MAX_JOBS:
        raise InvalidInput(f"--jobs must be a whole number from 1 to {MAX_JOBS:,}, got {count}")


@contextmanager
def _pool(count: int) -> Iterator[ProcessPoolExecutor]:
    threads = max(1, (os.cpu_count() or 1) // count)
    # a forked process cannot use a GPU its parent has touched
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _settle, (threads,))
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()  # each stops at its next safe point
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Processes started inside do not receive Ctrl-C, which a terminal sends them too, until they can handle it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _settle(threads: int) -> None:
    # the process that hands out the jobs receives Ctrl-C, and ends its workers at their next safe point
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    torch.set_num_threads(threads)
    threading.Thread(target=_follow, name="follow", daemon=True).start()


def _follow() -> None:
    """End this worker with the process that hands out the jobs, which may be killed at any moment.

    Else it would hold its run's folder when the suite is started again, and never end.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def work(job: Job, patience: float = PATIENCE) -> Outcome:
    """Do a job in a process made for it, which a signal ends at a safe point."""
    try:
        with graceful():
            return perform(job, patience=patience)
    except Stopped:
        return Outcome("stopped")
