"""Triton kernels for products of all runs at once; sums are taken in a fixed order."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

WIDEST = 64  # columns of a dense factor that one program holds
SHORT = 64  # entries up to which rows are added up side by side; a longer row has a program to itself
LONGEST = 2048  # entries of a row that one program adds up
CHUNK = 256  # nodes whose share of a weight's gradient one program adds up


@triton.jit(do_not_specialize=["long", "n", "m", "entries"])
def _product(
    rows, cols, values, order, dense, out, busy, turn, long, n, m, entries, width,
    ORDERED: tl.constexpr, RESTING: tl.constexpr, L: tl.constexpr, D: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    program, run = tl.program_id(0), tl.program_id(2).to(tl.int64)
    if RESTING and tl.load(busy + run) == 0:
        return
    column = tl.program_id(1) * D + tl.arange(0, D)
    wide = column < width
    values += run * entries
    dense += run * m * width
    out += run * n * width
    if program < long:
        _long(rows, cols, values, order, dense, out, tl.load(turn + program), column, wide, width, ORDERED, D, E)
    else:
        place = long + (program - long) * L + tl.arange(0, L)
        row = tl.load(turn + place, mask=place < n, other=0)
        _short(rows, cols, values, order, dense, out, row, place < n, column, wide, width, ORDERED, L, D)


@triton.jit
def _long(
    rows, cols, values, order, dense, out, row, column, wide, width,
    ORDERED: tl.constexpr, D: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    end = tl.load(rows + row + 1)
    total = tl.zeros([E, D], dtype=tl.float32)
    for start in range(tl.load(rows + row), end, E):
        entry = start + tl.arange(0, E)
        total += _lines(cols, values, order, dense, entry, entry < end, column, wide, width, ORDERED)
    tl.store(out + row.to(tl.int64) * width + column, tl.sum(total, axis=0), mask=wide)


@triton.jit
def _short(
    rows, cols, values, order, dense, out, row, real, column, wide, width,
    ORDERED: tl.constexpr, L: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    begin = tl.load(rows + row)
    length = tl.where(real, tl.load(rows + row + 1) - begin, 0)
    total = tl.zeros([L, D], dtype=tl.float32)
    for start in range(0, tl.max(length, axis=0), 2):
        for ahead in tl.static_range(2):
            inside = start + ahead < length
            total += _lines(cols, values, order, dense, begin + start + ahead, inside, column, wide, width, ORDERED)
    line = out + row.to(tl.int64)[:, None] * width + column[None, :]
    tl.store(line, total, mask=real[:, None] & wide[None, :])


@triton.jit
def _lines(cols, values, order, dense, entry, inside, column, wide, width, ORDERED: tl.constexpr):
    source = tl.load(cols + entry, mask=inside, other=0).to(tl.int64)
    at = tl.load(order + entry, mask=inside, other=0) if ORDERED else entry
    value = tl.load(values + at, mask=inside, other=0.0)
    line = dense + source[:, None] * width + column[None, :]
    return value[:, None] * tl.load(line, mask=inside[:, None] & wide[None, :], other=0.0)


@triton.jit(do_not_specialize=["nodes"])
def _tall(left, right, out, nodes, a, b, chunk, N: tl.constexpr, A: tl.constexpr, B: tl.constexpr):
    part, run = tl.program_id(0), tl.program_id(2).to(tl.int64)
    line = tl.program_id(1) * A + tl.arange(0, A)
    column = tl.arange(0, B)
    total = tl.zeros([A, B], dtype=tl.float32)
    for start in range(part * chunk, tl.minimum((part + 1) * chunk, nodes), N):
        node = start + tl.arange(0, N)
        inside = (node < nodes) & (node < (part + 1) * chunk)
        place = run * nodes + node
        one = tl.load(left + place[:, None] * a + line[None, :], mask=inside[:, None] & (line < a)[None, :], other=0.0)
        two = tl.load(
            right + place[:, None] * b + column[None, :], mask=inside[:, None] & (column < b)[None, :], other=0.0
        )
        total += tl.dot(tl.trans(one), two, input_precision="ieee")
    place = out + ((run * tl.num_programs(0) + part) * a + line[:, None]) * b + column[None, :]
    tl.store(place, total, mask=(line < a)[:, None] & (column < b)[None, :])


class Turns(NamedTuple):
    """How programs share out the rows of a CSR: very long ones in pieces, the longest first.

    So no program works while all others are done.
    """

    rows: Tensor  # int [P + 1], where each of P pieces begins among the entries
    turn: Tensor  # int [P], pieces by length
    long: int  # how many of them have a program to themselves
    merge: "Turns | None"  # the turns of the rows [n + 1] among the pieces, if there are more pieces than rows

    @classmethod
    def of(cls, rows: Tensor, longest: int = LONGEST) -> "Turns":
        """The turns of the rows [n + 1]."""
        count = (rows.diff() + longest - 1).div(longest, rounding_mode="floor").clamp_min(1)
        pieces = torch.cat([torch.zeros_like(rows[:1]), count.cumsum(0).to(rows.dtype)])
        merge = None
        if int(pieces[-1]) > len(count):
            owner = torch.arange(len(count), device=rows.device).repeat_interleave(count)
            within = torch.arange(len(owner), device=rows.device) - pieces[owner]
            rows = torch.cat([(rows[owner] + within * longest).to(rows.dtype), rows[-1:]])
            merge = cls.of(pieces, int(count.max()))
        length = rows.diff()
        turn = length.argsort(descending=True, stable=True).to(rows.dtype)
        return cls(rows, turn, int((length > SHORT).sum()), merge)


def product(
    turns: Turns,
    cols: Tensor,
    values: Tensor,
    dense: Tensor,
    runs: int,
    order: Tensor | None = None,
    busy: Tensor | None = None,
) -> Tensor:
    """The product [R·n, d] of R matrices of one pattern with dense [R·m, d].

    The pattern is a CSR of one run with cols [E]; values [R·E] are each run's own, entry e at order[e] where an
    order is given. Where `busy` bool [R] says no, nothing is done and the lines hold anything.
    """
    out = _multiply(turns, cols, values, dense, runs, order, busy)
    if turns.merge is None:
        return out
    count = len(turns.turn)
    each = torch.arange(count, dtype=cols.dtype, device=cols.device)
    return _multiply(turns.merge, each, torch.ones(runs * count, device=cols.device), out, runs, None, busy)


def _multiply(
    turns: Turns,
    cols: Tensor,
    values: Tensor,
    dense: Tensor,
    runs: int,
    order: Tensor | None,
    busy: Tensor | None,
) -> Tensor:
    n, m, entries, width = len(turns.turn), len(dense) // runs, len(cols), dense.shape[1]
    out = torch.empty(runs * n, width, dtype=dense.dtype, device=dense.device)
    columns = min(WIDEST, triton.next_power_of_2(width))
    lines, warps = (512 // columns, 4) if columns > 32 else (128 // columns, 2)
    programs = turns.long + triton.cdiv(n - turns.long, lines)
    _product[(programs, triton.cdiv(width, columns), runs)](
        turns.rows, cols, values, cols if order is None else order, dense, out, cols if busy is None else busy,
        turns.turn, turns.long, n, m, entries, width,
        ORDERED=order is not None, RESTING=busy is not None,
        L=lines, D=columns, E=max(32, 2048 // columns), num_warps=warps,
    )  # fmt: skip
    return out


def tall(left: Tensor, right: Tensor) -> Tensor:
    """leftᵀ·right [R, a, b] of left [R, n, a] and right [R, n, b] with few columns and many rows."""
    (runs, nodes, a), b = left.shape, right.shape[2]
    parts, lines = triton.cdiv(nodes, CHUNK), min(64, max(16, triton.next_power_of_2(a)))
    out = torch.empty(runs, parts, a, b, dtype=left.dtype, device=left.device)
    _tall[(parts, triton.cdiv(a, lines), runs)](
        left.contiguous(), right.contiguous(), out, nodes, a, b, CHUNK,
        N=32, A=lines, B=max(16, triton.next_power_of_2(b)), num_warps=4,
    )  # fmt: skip
    return out.sum(1)
