"""Triton kernels for the largest line among those that the rows of a CSR name, which all runs share."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bangs.kernels.spmm import WIDEST, Turns


@triton.jit(do_not_specialize=["long", "n", "m"])
def _largest(
    rows, cols, turn, x, out, share, busy, long, n, m, width,
    RESTING: tl.constexpr, L: tl.constexpr, D: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    program, run = tl.program_id(0), tl.program_id(2).to(tl.int64)
    if RESTING and tl.load(busy + run) == 0:
        return
    column = tl.program_id(1) * D + tl.arange(0, D)
    wide = column < width
    x, out, share = x + run * m * width, out + run * n * width, share + run * n * width
    if program < long:
        _long(rows, cols, x, out, share, tl.load(turn + program), column, wide, width, D, E)
    else:
        place = long + (program - long) * L + tl.arange(0, L)
        row = tl.load(turn + place, mask=place < n, other=0)
        _short(rows, cols, x, out, share, row, place < n, column, wide, width, L, D)


@triton.jit
def _long(rows, cols, x, out, share, row, column, wide, width, D: tl.constexpr, E: tl.constexpr):
    end = tl.load(rows + row + 1)
    top = tl.full([E, D], -float("inf"), dtype=tl.float32)
    ties = tl.zeros([E, D], dtype=tl.float32)
    for start in range(tl.load(rows + row), end, E):
        entry = start + tl.arange(0, E)
        top, ties = _lifted(cols, x, entry, entry < end, column, wide, width, top, ties)
    most = tl.max(top, axis=0)
    line = row.to(tl.int64) * width + column
    tl.store(out + line, most, mask=wide)
    tl.store(share + line, 1.0 / tl.sum(tl.where(top == most[None, :], ties, 0.0), axis=0), mask=wide)


@triton.jit
def _short(rows, cols, x, out, share, row, real, column, wide, width, L: tl.constexpr, D: tl.constexpr):
    begin = tl.load(rows + row)
    length = tl.where(real, tl.load(rows + row + 1) - begin, 0)
    top = tl.full([L, D], -float("inf"), dtype=tl.float32)
    ties = tl.zeros([L, D], dtype=tl.float32)
    for step in range(tl.max(length, axis=0)):
        top, ties = _lifted(cols, x, begin + step, step < length, column, wide, width, top, ties)
    line = row.to(tl.int64)[:, None] * width + column[None, :]
    tl.store(out + line, top, mask=real[:, None] & wide[None, :])
    tl.store(share + line, 1.0 / ties, mask=real[:, None] & wide[None, :])


@triton.jit
def _lifted(cols, x, entry, inside, column, wide, width, top, ties):
    source = tl.load(cols + entry, mask=inside, other=0).to(tl.int64)
    line = x + source[:, None] * width + column[None, :]
    here = inside[:, None] & wide[None, :]
    value = tl.load(line, mask=here, other=-float("inf"))
    ties = tl.where(value > top, 1.0, ties + tl.where((value == top) & here, 1.0, 0.0))
    return tl.maximum(top, value), ties


@triton.jit(do_not_specialize=["long", "n", "m"])
def _largest_back(
    rows, cols, turn, x, found, gradient, out, busy, long, n, m, width,
    RESTING: tl.constexpr, L: tl.constexpr, D: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    program, run = tl.program_id(0), tl.program_id(2).to(tl.int64)
    if RESTING and tl.load(busy + run) == 0:
        return
    column = tl.program_id(1) * D + tl.arange(0, D)
    wide = column < width
    x, out = x + run * n * width, out + run * n * width
    found, gradient = found + run * m * width, gradient + run * m * width
    if program < long:
        _long_back(rows, cols, x, found, gradient, out, tl.load(turn + program), column, wide, width, D, E)
    else:
        place = long + (program - long) * L + tl.arange(0, L)
        row = tl.load(turn + place, mask=place < n, other=0)
        _short_back(rows, cols, x, found, gradient, out, row, place < n, column, wide, width, L, D)


@triton.jit
def _long_back(
    rows, cols, x, found, gradient, out, row, column, wide, width, D: tl.constexpr, E: tl.constexpr
):  # fmt: skip
    line = row.to(tl.int64) * width + column
    own = tl.load(x + line, mask=wide, other=0.0)[None, :]
    end = tl.load(rows + row + 1)
    total = tl.zeros([E, D], dtype=tl.float32)
    for start in range(tl.load(rows + row), end, E):
        entry = start + tl.arange(0, E)
        total += _returned(cols, found, gradient, entry, entry < end, column, wide, width, own)
    tl.store(out + line, tl.sum(total, axis=0), mask=wide)


@triton.jit
def _short_back(
    rows, cols, x, found, gradient, out, row, real, column, wide, width, L: tl.constexpr, D: tl.constexpr
):  # fmt: skip
    begin = tl.load(rows + row)
    length = tl.where(real, tl.load(rows + row + 1) - begin, 0)
    line = row.to(tl.int64)[:, None] * width + column[None, :]
    own = tl.load(x + line, mask=real[:, None] & wide[None, :], other=0.0)
    total = tl.zeros([L, D], dtype=tl.float32)
    for step in range(tl.max(length, axis=0)):
        total += _returned(cols, found, gradient, begin + step, step < length, column, wide, width, own)
    tl.store(out + line, total, mask=real[:, None] & wide[None, :])


@triton.jit
def _returned(cols, found, gradient, entry, inside, column, wide, width, own):
    source = tl.load(cols + entry, mask=inside, other=0).to(tl.int64)
    line = source[:, None] * width + column[None, :]
    here = inside[:, None] & wide[None, :]
    most = tl.load(found + line, mask=here, other=0.0)
    return tl.where((most == own) & here, tl.load(gradient + line, mask=here, other=0.0), 0.0)


def largest(turns: Turns, cols: Tensor, x: Tensor, runs: int, busy: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The maximum [R·n, d] over the lines of each run's x [R·m, d] that the rows of a CSR name in cols [E].

    Also 1 / how many lines are as large. The turns are those of uncut rows, none empty. Where `busy` bool [R] says no,
    nothing is done and the lines hold anything.
    """
    n, width = len(turns.turn), x.shape[1]
    out = torch.empty(runs * n, width, device=x.device)
    share = torch.empty_like(out)
    grid, sizes = _sizes(turns, width, runs)
    _largest[grid](
        turns.rows, cols, turns.turn, x, out, share, cols if busy is None else busy, turns.long, n, len(x) // runs,
        width, RESTING=busy is not None, **sizes,
    )  # fmt: skip
    return out, share


def largest_back(
    turns: Turns, cols: Tensor, x: Tensor, found: Tensor, gradient: Tensor, runs: int, busy: Tensor | None = None
) -> Tensor:
    """The gradient [R·m, d] of x, given that of every largest line shared among those that tie: [R·n, d].

    The CSR is the transpose of the one the maxima were found with.
    """
    out, width = torch.empty_like(x), x.shape[1]
    grid, sizes = _sizes(turns, width, runs)
    _largest_back[grid](
        turns.rows, cols, turns.turn, x, found, gradient, out, cols if busy is None else busy, turns.long,
        len(turns.turn), len(found) // runs, width, RESTING=busy is not None, **sizes,
    )  # fmt: skip
    return out


def _sizes(turns: Turns, width: int, runs: int) -> tuple[tuple[int, int, int], dict[str, int]]:
    """A grid of programs, and what each of them holds."""
    columns = min(WIDEST, triton.next_power_of_2(width))
    lines, warps = (512 // columns, 4) if columns > 32 else (128 // columns, 2)
    programs = turns.long + triton.cdiv(len(turns.turn) - turns.long, lines)
    sizes = {"L": lines, "D": columns, "E": max(32, 2048 // columns), "num_warps": warps}
    return (programs, triton.cdiv(width, columns), runs), sizes
