"""Threads: how many a computation uses, and the same bits for any number of them."""

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

ALONE = 150_000  # nodes, of all runs together, up to which threads wait for each other longer than they work


def thread_count(nodes: int) -> int:
    """One thread for few nodes, else as many as torch has.

    The rule looks at the graph and at no clock: with another number of threads sums differ in their last digits, and
    equal seeds must give equal results. On a busy machine many threads took ten times as long for 18,000 nodes as one,
    and two more than twice as long for 100,000.
    """
    return 1 if nodes <= ALONE else torch.get_num_threads()


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Torch and numpy with so many threads, and as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(limits=count, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def deterministic_kernels() -> Iterator[None]:
    """Inside, one thread does all arithmetic and torch takes the algorithms it calls deterministic.

    The order of every sum is then fixed, so that a result does not depend on how many threads there are. On a GPU
    torch warns where it has no such algorithm. The former settings come back at the end.
    """
    strict = torch.are_deterministic_algorithms_enabled()
    lenient = torch.is_deterministic_algorithms_warn_only_enabled()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read by CUDA when it is first used
    torch.use_deterministic_algorithms(True, warn_only=torch.cuda.is_available())
    try:
        with threads(1), threadpool_limits(1):  # all of numpy and scipy
            yield
    finally:
        torch.use_deterministic_algorithms(strict, warn_only=lenient)


@functools.cache
def guard_forks() -> None:
    """From now on, processes forked from this one do arithmetic with one thread.

    OpenMP's threads do not survive a fork, and a child that asks for them hangs.
    """
    os.register_at_fork(after_in_child=_one_thread)


def _one_thread() -> None:
    torch.set_num_threads(1)
    threadpool_limits(1, user_api="openmp")  # of scikit-learn, which brings an OpenMP of its own
