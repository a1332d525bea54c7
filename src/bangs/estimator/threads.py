"""Threads: how many a fit uses on a processor."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

ALONE = 150_000  # nodes up to which threads wait for each other longer than they work


def thread_count(nodes: int) -> int:
    """One thread for small graphs, else as many as torch has.

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
