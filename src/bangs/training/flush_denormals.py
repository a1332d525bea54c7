"""Tiny: numbers below a float's normal range count as zero while weights are learned.

Weight decay drives weights that no label reaches towards zero. After some 1,400 steps of Adam they are below 10⁻³⁸,
where a processor needs many times as long for a product.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def flush_denormals() -> Iterator[None]:
    """Inside, this thread and those it starts take subnormal numbers as zero; the former setting comes back."""
    before = _is_zero()
    torch.set_flush_denormal(True)  # does nothing where a processor cannot
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def _is_zero() -> bool:
    smallest = torch.tensor(torch.finfo(torch.float32).tiny)
    return not smallest.div(2).is_nonzero()
