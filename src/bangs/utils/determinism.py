"""Determinism: the same bits whatever the number of threads."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def deterministic_kernels() -> Iterator[None]:
    """Inside, one thread does all arithmetic and torch takes the algorithms it calls deterministic.

    The order of every sum is then fixed, so that a result does not depend on how many threads there are. On a GPU
    torch warns where it has no such algorithm. The former settings come back at the end.
    """
    threads = torch.get_num_threads()
    strict = torch.are_deterministic_algorithms_enabled()
    lenient = torch.is_deterministic_algorithms_warn_only_enabled()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read by CUDA when it is first used
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=torch.cuda.is_available())
    try:
        with threadpool_limits(1):  # of numpy and scipy
            yield
    finally:
        torch.use_deterministic_algorithms(strict, warn_only=lenient)
        torch.set_num_threads(threads)
