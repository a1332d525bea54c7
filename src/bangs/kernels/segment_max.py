"""Triton kernels for the maximum over each row's entries of a CSR pattern that all runs share."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bangs.kernels.row_schedule import RowSchedule
from bangs.kernels.spmm import row_programs


@triton.jit(do_not_specialize=["long", "n", "m"])
def _segment_max(
    rows, cols, row_order, x, out, share, active, long, n, m, width,
    SKIP_INACTIVE: tl.constexpr, L: tl.constexpr, D: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    program, run = tl.program_id(0), tl.program_id(2).to(tl.int64)
    if SKIP_INACTIVE and tl.load(active + run) == 0:
        return
    column = tl.program_id(1) * D + tl.arange(0, D)
    in_width = column < width
    x, out, share = x + run * m * width, out + run * n * width, share + run * n * width
    if program < long:
        _long(rows, cols, x, out, share, tl.load(row_order + program), column, in_width, width, D, E)
    else:
        position = long + (program - long) * L + tl.arange(0, L)
        row = tl.load(row_order + position, mask=position < n, other=0)
        _short(rows, cols, x, out, share, row, position < n, column, in_width, width, L, D)


@triton.jit
def _long(rows, cols, x, out, share, row, column, in_width, width, D: tl.constexpr, E: tl.constexpr):
    end = tl.load(rows + row + 1)
    top = tl.full([E, D], -float("inf"), dtype=tl.float32)
    ties = tl.zeros([E, D], dtype=tl.float32)
    for start in range(tl.load(rows + row), end, E):
        entry = start + tl.arange(0, E)
        top, ties = _running_max(cols, x, entry, entry < end, column, in_width, width, top, ties)
    maximum = tl.max(top, axis=0)
    address = row.to(tl.int64) * width + column
    tl.store(out + address, maximum, mask=in_width)
    tl.store(share + address, 1.0 / tl.sum(tl.where(top == maximum[None, :], ties, 0.0), axis=0), mask=in_width)


@triton.jit
def _short(rows, cols, x, out, share, row, real, column, in_width, width, L: tl.constexpr, D: tl.constexpr):
    begin = tl.load(rows + row)
    length = tl.where(real, tl.load(rows + row + 1) - begin, 0)
    top = tl.full([L, D], -float("inf"), dtype=tl.float32)
    ties = tl.zeros([L, D], dtype=tl.float32)
    for step in range(tl.max(length, axis=0)):
        top, ties = _running_max(cols, x, begin + step, step < length, column, in_width, width, top, ties)
    address = row.to(tl.int64)[:, None] * width + column[None, :]
    tl.store(out + address, top, mask=real[:, None] & in_width[None, :])
    tl.store(share + address, 1.0 / ties, mask=real[:, None] & in_width[None, :])


@triton.jit
def _running_max(cols, x, entry, inside, column, in_width, width, top, ties):
    source = tl.load(cols + entry, mask=inside, other=0).to(tl.int64)
    address = x + source[:, None] * width + column[None, :]
    loaded = inside[:, None] & in_width[None, :]
    value = tl.load(address, mask=loaded, other=-float("inf"))
    ties = tl.where(value > top, 1.0, ties + tl.where((value == top) & loaded, 1.0, 0.0))
    return tl.maximum(top, value), ties


@triton.jit(do_not_specialize=["long", "n", "m"])
def _segment_max_back(
    rows, cols, row_order, x, maxima, gradient, out, active, long, n, m, width,
    SKIP_INACTIVE: tl.constexpr, L: tl.constexpr, D: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    program, run = tl.program_id(0), tl.program_id(2).to(tl.int64)
    if SKIP_INACTIVE and tl.load(active + run) == 0:
        return
    column = tl.program_id(1) * D + tl.arange(0, D)
    in_width = column < width
    x, out = x + run * n * width, out + run * n * width
    maxima, gradient = maxima + run * m * width, gradient + run * m * width
    if program < long:
        _long_back(rows, cols, x, maxima, gradient, out, tl.load(row_order + program), column, in_width, width, D, E)
    else:
        position = long + (program - long) * L + tl.arange(0, L)
        row = tl.load(row_order + position, mask=position < n, other=0)
        _short_back(rows, cols, x, maxima, gradient, out, row, position < n, column, in_width, width, L, D)


@triton.jit
def _long_back(
    rows, cols, x, maxima, gradient, out, row, column, in_width, width, D: tl.constexpr, E: tl.constexpr
):  # fmt: skip
    address = row.to(tl.int64) * width + column
    row_value = tl.load(x + address, mask=in_width, other=0.0)[None, :]
    end = tl.load(rows + row + 1)
    total = tl.zeros([E, D], dtype=tl.float32)
    for start in range(tl.load(rows + row), end, E):
        entry = start + tl.arange(0, E)
        total += _matching_gradient(cols, maxima, gradient, entry, entry < end, column, in_width, width, row_value)
    tl.store(out + address, tl.sum(total, axis=0), mask=in_width)


@triton.jit
def _short_back(
    rows, cols, x, maxima, gradient, out, row, real, column, in_width, width, L: tl.constexpr, D: tl.constexpr
):  # fmt: skip
    begin = tl.load(rows + row)
    length = tl.where(real, tl.load(rows + row + 1) - begin, 0)
    address = row.to(tl.int64)[:, None] * width + column[None, :]
    row_value = tl.load(x + address, mask=real[:, None] & in_width[None, :], other=0.0)
    total = tl.zeros([L, D], dtype=tl.float32)
    for step in range(tl.max(length, axis=0)):
        total += _matching_gradient(
            cols, maxima, gradient, begin + step, step < length, column, in_width, width, row_value
        )
    tl.store(out + address, total, mask=real[:, None] & in_width[None, :])


@triton.jit
def _matching_gradient(cols, maxima, gradient, entry, inside, column, in_width, width, row_value):
    source = tl.load(cols + entry, mask=inside, other=0).to(tl.int64)
    address = source[:, None] * width + column[None, :]
    loaded = inside[:, None] & in_width[None, :]
    maximum = tl.load(maxima + address, mask=loaded, other=0.0)
    return tl.where((maximum == row_value) & loaded, tl.load(gradient + address, mask=loaded, other=0.0), 0.0)


def segment_max(
    schedule: RowSchedule, cols: Tensor, x: Tensor, runs: int, active: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The maximum [R·n, d] of x [R·m, d] over the cols [E] of each row, and 1 / the number of ties.

    The schedule must not divide rows, and none may be empty. Results of runs that are not `active`, bool [R], are
    undefined.
    """
    n, width = len(schedule.row_order), x.shape[1]
    out = torch.empty(runs * n, width, device=x.device)
    share = torch.empty_like(out)
    grid, sizes = row_programs(schedule, width, runs)
    _segment_max[grid](
        schedule.rows, cols, schedule.row_order, x, out, share, cols if active is None else active, schedule.long, n,
        len(x) // runs, width, SKIP_INACTIVE=active is not None, **sizes,
    )  # fmt: skip
    return out, share


def segment_max_back(
    schedule: RowSchedule,
    cols: Tensor,
    x: Tensor,
    maxima: Tensor,
    gradient: Tensor,
    runs: int,
    active: Tensor | None = None,
) -> Tensor:
    """The gradient [R·m, d] of x from that of the maxima, already divided among ties: [R·n, d].

    The CSR is the transpose of the one in `segment_max`.
    """
    out, width = torch.empty_like(x), x.shape[1]
    grid, sizes = row_programs(schedule, width, runs)
    _segment_max_back[grid](
        schedule.rows, cols, schedule.row_order, x, maxima, gradient, out, cols if active is None else active,
        schedule.long, len(schedule.row_order), len(maxima) // runs, width, SKIP_INACTIVE=active is not None, **sizes,
    )  # fmt: skip
    return out
