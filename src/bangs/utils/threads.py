"""How many threads a computation uses, and a mode whose results do not depend on it."""

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

ONE_THREAD_NODES = 150_000  # of all runs together; up to this many, threads wait for each other longer than they work


def thread_count(nodes: int) -> int:
    """The number of threads: 1 for few nodes, else as many as torch has.

    It depends on the graph alone: with another number of threads sums differ in their last digits, and equal seeds
    must give equal results. On a busy machine many threads took ten times as long as one for 18,000 nodes, and two
    threads more than twice as long for 100,000.
    """
    return 1 if nodes <= ONE_THREAD_NODES else torch.get_num_threads()


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Inside, torch and numpy use this number of threads; the old number is restored."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(limits=count, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def deterministic_kernels() -> Iterator[None]:
    """Inside, one thread does all arithmetic and torch uses its deterministic algorithms.

    The order of every sum is then fixed, so that a result does not depend on how many threads there are. On a GPU
    torch warns if it has no such algorithm. The old settings are restored.
    """
    enabled = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read by CUDA when it is first used
    torch.use_deterministic_algorithms(True, warn_only=torch.cuda.is_available())
    try:
        with threads(1), threadpool_limits(1):  # all of numpy and scipy
            yield
    finally:
        torch.use_deterministic_algorithms(enabled, warn_only=warn_only)


@functools.cache
def guard_forks() -> None:
    """From now on, processes forked from this one do arithmetic with one thread.

    OpenMP's threads do not survive a fork, and a child that asks for them hangs.
    """
    os.register_at_fork(after_in_child=_one_thread)


def _one_thread() -> None:
    torch.set_num_threads(1)
    threadpool_limits(1, user_api="openmp")  # of scikit-learn, which has its own OpenMP
