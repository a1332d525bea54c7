"""MutableCSR: a sparsity pattern that is written anew in place, so that a captured epoch reads the new one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bangs.graphs.sparse import Flipped, Pattern

if TYPE_CHECKING:
    from bangs.kernels.spmm import Turns

ALONE = 64  # of so many rows one has a program to itself, the longest first


@dataclass(frozen=True, eq=False, kw_only=True)
class MutableCSR(Pattern):
    """A pattern with room for more entries than it has; only our own kernels read it, which go by its row pointers.

    Who has a program to itself depends on the number of rows alone, since the order of sums does on that.
    """

    transpose: Flipped
    turn: Tensor  # int [n], rows by length
    flipped_turn: Tensor  # int [m], those of the transpose

    @classmethod
    def of(cls, pattern: Pattern, room: int) -> "MutableCSR":
        """An empty slate of the pattern's shape."""
        (n, m), device = pattern.shape, pattern.rows.device

        def index(count: int, dtype: torch.dtype = torch.int32) -> Tensor:
            return torch.zeros(count, dtype=dtype, device=device)

        transpose = Flipped(index(m + 1), index(room), index(room, torch.int64))
        rows, cols = index(n + 1), index(room)
        return cls(rows, cols, (n, m), transpose=transpose, turn=index(n), flipped_turn=index(m))

    @property
    def flipped(self) -> Flipped:
        return self.transpose

    @property
    def turns(self) -> "Turns":
        return _turns(self.rows, self.turn)

    @property
    def flipped_turns(self) -> "Turns":
        return _turns(self.transpose.rows, self.flipped_turn)

    def write(self, pattern: Pattern) -> None:
        """Take another pattern of the same shape, with no more entries than there is room for."""
        pairs = zip(
            (self.rows, self.cols, *self.transpose), (pattern.rows, pattern.cols, *pattern.flipped), strict=True
        )
        for mine, other in pairs:
            mine[: len(other)] = other
        self.turn.copy_(_by_length(pattern.rows))
        self.flipped_turn.copy_(_by_length(pattern.flipped.rows))


def _turns(rows: Tensor, turn: Tensor) -> "Turns":
    from bangs.kernels.spmm import Turns

    return Turns(rows, turn, len(turn) // ALONE, None)


def _by_length(rows: Tensor) -> Tensor:
    return rows.diff().argsort(descending=True, stable=True)
