"""Deterministic sparse products on a GPU without our kernels: sums have a fixed order.

cuSPARSE, which torch uses for sparse products, has no fixed order, so its rounding may differ from call to call.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from bangs.kernels.row_schedule import divide_rows

MAX_PIECE_LENGTH = 128  # entries that one thread sums


class RowPieces(NamedTuple):
    """The rows of a CSR in pieces of at most MAX_PIECE_LENGTH entries, so that threads have about equal work."""

    starts: Tensor  # int [P + 1], row pointers of the P pieces
    merge: "RowPieces | None"  # sums the pieces of every row; None if every row is one piece

    @classmethod
    def of(cls, rows: Tensor) -> "RowPieces":
        """The pieces of rows with these pointers int [n + 1]."""
        divided = divide_rows(rows, MAX_PIECE_LENGTH)
        return cls(rows, None) if divided is None else cls(divided[0], cls.of(divided[1]))


def product(pieces: RowPieces, cols: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """The product [n, d] of a CSR with cols int [E] and values [E] and a dense [m, d] of any floating type.

    Uses `embedding_bag`, a weighted sum of rows: a thread sums one column of one piece, entry by entry.
    """
    out = weighted_row_sums(dense, cols, pieces.starts, values)
    while pieces.merge is not None:
        pieces = pieces.merge
        each = torch.arange(len(out), dtype=cols.dtype, device=cols.device)
        out = weighted_row_sums(out, each, pieces.starts, None)
    return out


def weighted_row_sums(dense: Tensor, cols: Tensor, starts: Tensor, values: Tensor | None) -> Tensor:
    """For every piece the sum of the rows `cols` of dense [m, d], each times its value if there are values: [P, d]."""
    dense = dense.detach().contiguous()
    summed: Tensor = torch.embedding_bag(dense, cols, starts, False, 0, False, values, True)[0]
    return summed
