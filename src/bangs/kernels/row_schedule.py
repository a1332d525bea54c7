"""RowSchedule: which program of a GPU computes which rows of a sparse matrix; needs no Triton."""

from typing import NamedTuple

import torch
from torch import Tensor

SHORT_ROW = 64  # entries up to which rows share a program; a longer row has one to itself
MAX_ENTRIES = 2048  # of a row that one program sums
WHOLE = 2**30  # entries that no row has: none is divided


class RowSchedule(NamedTuple):
    """The assignment of a CSR's rows to GPU programs: the longest rows first, very long ones in pieces.

    So all programs finish at about the same time.
    """

    rows: Tensor  # int [P + 1], row pointers of the P pieces
    row_order: Tensor  # int [P], pieces by falling length
    long: int  # the number of pieces with a program to themselves
    merge: "RowSchedule | None"  # sums the pieces of every row, if there are more pieces than rows

    @classmethod
    def of(cls, rows: Tensor, max_entries: int = MAX_ENTRIES) -> "RowSchedule":
        """The schedule of rows with these pointers [n + 1]."""
        merge = None
        if (divided := divide_rows(rows, max_entries)) is not None:
            rows, owners = divided
            merge = cls.of(owners, int(owners.diff().max()))
        length = rows.diff()
        row_order = length.argsort(descending=True, stable=True).to(rows.dtype)
        return cls(rows, row_order, int((length > SHORT_ROW).sum()), merge)


def divide_rows(rows: Tensor, max_entries: int) -> tuple[Tensor, Tensor] | None:
    """The rows with these pointers [n + 1] in pieces of at most `max_entries`; None if no row needs to be divided.

    The pointers of the P pieces, int [P + 1], and those of the pieces of every row, int [n + 1].
    """
    count = (rows.diff() + max_entries - 1).div(max_entries, rounding_mode="floor").clamp_min(1)
    owners = torch.cat([torch.zeros_like(rows[:1]), count.cumsum(0).to(rows.dtype)])
    if int(owners[-1]) == len(count):
        return None
    owner = torch.arange(len(count), device=rows.device).repeat_interleave(count)
    within = torch.arange(len(owner), device=rows.device) - owners[owner]
    return torch.cat([(rows[owner] + within * max_entries).to(rows.dtype), rows[-1:]]), owners
