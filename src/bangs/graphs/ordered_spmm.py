"""Ordered: sparse products on a GPU without kernels of ours, whose sums come in one order every time.

cuSPARSE, by which torch multiplies sparse matrices, promises no order: its sums may round otherwise every time.
"""

from typing import NamedTuple

import torch
from torch import Tensor

LONGEST = 128  # entries of a row that one thread adds up


class RowPieces(NamedTuple):
    """The rows of a CSR in pieces of at most LONGEST entries, so that no thread works while all others are done."""

    starts: Tensor  # int [P + 1], where each of P pieces begins among the entries
    merge: "RowPieces | None"  # the rows [n] among the pieces, cut in the same way; None where every row is one piece

    @classmethod
    def of(cls, rows: Tensor) -> "RowPieces":
        """The pieces of rows by their pointers int [n + 1]."""
        count = (rows.diff() + LONGEST - 1).div(LONGEST, rounding_mode="floor").clamp_min(1)
        owners = torch.cat([torch.zeros_like(rows[:1]), count.cumsum(0).to(rows.dtype)])
        if int(owners[-1]) == len(count):
            return cls(rows, None)
        owner = torch.arange(len(count), device=rows.device).repeat_interleave(count)
        within = torch.arange(len(owner), device=rows.device) - owners[owner]
        starts = torch.cat([(rows[owner] + within * LONGEST).to(rows.dtype), rows[-1:]])
        return cls(starts, cls.of(owners))


def product(pieces: RowPieces, cols: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """The product [n, d] of a CSR with cols int [E] and values [E] and a dense [m, d], in any floating type.

    Weighted sums of lines, as embeddings are summed: a thread adds up one column of one piece, entry by entry.
    """
    out = sums(dense, cols, pieces.starts, values)
    while pieces.merge is not None:
        pieces = pieces.merge
        each = torch.arange(len(out), dtype=cols.dtype, device=cols.device)
        out = sums(out, each, pieces.starts, None)
    return out


def sums(lines: Tensor, cols: Tensor, starts: Tensor, values: Tensor | None) -> Tensor:
    """What the lines [m, d] named in cols between two starts add up to, each times its value if it has one: [P, d]."""
    lines = lines.detach().contiguous()
    summed: Tensor = torch.embedding_bag(lines, cols, starts, False, 0, False, values, True)[0]
    return summed
