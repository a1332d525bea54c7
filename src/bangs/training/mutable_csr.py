"""A sparsity pattern that can be overwritten in place, so that a captured CUDA graph reads the new one."""

from dataclasses import dataclass

import torch
from torch import Tensor

from bangs.graphs.sparse import Pattern, Transposed
from bangs.kernels.row_schedule import RowSchedule

LONG_SHARE = 64  # one row in so many, the longest first, has a program to itself


@dataclass(frozen=True, eq=False, kw_only=True)
class MutableCSR(Pattern):
    """A pattern with spare capacity for entries; only our own kernels can read it, since they use its row pointers.

    Which rows have a program to themselves depends on the number of rows alone, so that sums have a fixed order.
    """

    transpose: Transposed
    row_order: Tensor  # int [n], rows by falling length
    transposed_row_order: Tensor  # int [m], those of the transpose

    @classmethod
    def of(cls, pattern: Pattern, capacity: int) -> "MutableCSR":
        """An empty pattern of the same shape with this capacity."""
        (n, m), device = pattern.shape, pattern.rows.device

        def index(count: int, dtype: torch.dtype = torch.int32) -> Tensor:
            return torch.zeros(count, dtype=dtype, device=device)

        transpose = Transposed(index(m + 1), index(capacity), index(capacity, torch.int64))
        rows, cols = index(n + 1), index(capacity)
        return cls(rows, cols, (n, m), transpose=transpose, row_order=index(n), transposed_row_order=index(m))

    @property
    def transposed(self) -> Transposed:
        return self.transpose

    @property
    def schedule(self) -> RowSchedule:
        return _schedule(self.rows, self.row_order)

    @property
    def transposed_schedule(self) -> RowSchedule:
        return _schedule(self.transpose.rows, self.transposed_row_order)

    def write(self, pattern: Pattern) -> None:
        """Overwrite with a pattern of the same shape that has no more entries than the capacity."""
        pairs = zip(
            (self.rows, self.cols, *self.transpose), (pattern.rows, pattern.cols, *pattern.transposed), strict=True
        )
        for mine, other in pairs:
            mine[: len(other)] = other
        self.row_order.copy_(_by_length(pattern.rows))
        self.transposed_row_order.copy_(_by_length(pattern.transposed.rows))


def _schedule(rows: Tensor, row_order: Tensor) -> RowSchedule:
    return RowSchedule(rows, row_order, len(row_order) // LONG_SHARE, None)


def _by_length(rows: Tensor) -> Tensor:
    return rows.diff().argsort(descending=True, stable=True)
