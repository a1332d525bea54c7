"""Forks: a forked child of a process that has computed computes with one thread.

OpenMP's threads do not survive a fork, and a child that asks for them hangs.
"""

import functools
import os

import torch
from threadpoolctl import threadpool_limits


@functools.cache
def guard_forks() -> None:
    """From now on, processes forked from this one do arithmetic with one thread."""
    os.register_at_fork(after_in_child=_one_thread)


def _one_thread() -> None:
    torch.set_num_threads(1)
    threadpool_limits(1, user_api="openmp")  # of scikit-learn, which brings an OpenMP of its own
