"""Triton kernels for sparse products of all runs at once; sums have a fixed order."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bangs.kernels.row_schedule import RowSchedule

MAX_COLUMNS = 64  # of a dense factor per program
TALL_CHUNK = 256  # nodes whose contribution to a weight's gradient one program sums


@triton.jit(do_not_specialize=["long", "n", "m", "entries"])
def _spmm(
    rows, cols, values, order, dense, out, active, row_order, long, n, m, entries, width,
    ORDERED: tl.constexpr, SKIP_INACTIVE: tl.constexpr, L: tl.constexpr, D: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    program, run = tl.program_id(0), tl.program_id(2).to(tl.int64)
    if SKIP_INACTIVE and tl.load(active + run) == 0:
        return
    column = tl.program_id(1) * D + tl.arange(0, D)
    in_width = column < width
    values += run * entries
    dense += run * m * width
    out += run * n * width
    if program < long:
        _long(
            rows, cols, values, order, dense, out, tl.load(row_order + program), column, in_width, width, ORDERED, D, E
        )
    else:
        position = long + (program - long) * L + tl.arange(0, L)
        row = tl.load(row_order + position, mask=position < n, other=0)
        _short(rows, cols, values, order, dense, out, row, position < n, column, in_width, width, ORDERED, L, D)


@triton.jit
def _long(
    rows, cols, values, order, dense, out, row, column, in_width, width,
    ORDERED: tl.constexpr, D: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    end = tl.load(rows + row + 1)
    total = tl.zeros([E, D], dtype=tl.float32)
    for start in range(tl.load(rows + row), end, E):
        entry = start + tl.arange(0, E)
        total += _weighted_rows(cols, values, order, dense, entry, entry < end, column, in_width, width, ORDERED)
    tl.store(out + row.to(tl.int64) * width + column, tl.sum(total, axis=0), mask=in_width)


@triton.jit
def _short(
    rows, cols, values, order, dense, out, row, real, column, in_width, width,
    ORDERED: tl.constexpr, L: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    begin = tl.load(rows + row)
    length = tl.where(real, tl.load(rows + row + 1) - begin, 0)
    total = tl.zeros([L, D], dtype=tl.float32)
    for start in range(0, tl.max(length, axis=0), 2):
        for ahead in tl.static_range(2):
            inside = start + ahead < length
            total += _weighted_rows(
                cols, values, order, dense, begin + start + ahead, inside, column, in_width, width, ORDERED
            )
    address = out + row.to(tl.int64)[:, None] * width + column[None, :]
    tl.store(address, total, mask=real[:, None] & in_width[None, :])


@triton.jit
def _weighted_rows(cols, values, order, dense, entry, inside, column, in_width, width, ORDERED: tl.constexpr):
    source = tl.load(cols + entry, mask=inside, other=0).to(tl.int64)
    position = tl.load(order + entry, mask=inside, other=0) if ORDERED else entry
    value = tl.load(values + position, mask=inside, other=0.0)
    address = dense + source[:, None] * width + column[None, :]
    return value[:, None] * tl.load(address, mask=inside[:, None] & in_width[None, :], other=0.0)


@triton.jit(do_not_specialize=["nodes"])
def _tall_matmul(left, right, out, nodes, a, b, chunk, N: tl.constexpr, A: tl.constexpr, B: tl.constexpr):
    part, run = tl.program_id(0), tl.program_id(2).to(tl.int64)
    left_column = tl.program_id(1) * A + tl.arange(0, A)
    right_column = tl.arange(0, B)
    total = tl.zeros([A, B], dtype=tl.float32)
    for start in range(part * chunk, tl.minimum((part + 1) * chunk, nodes), N):
        node = start + tl.arange(0, N)
        inside = (node < nodes) & (node < (part + 1) * chunk)
        row = run * nodes + node
        left_part = tl.load(
            left + row[:, None] * a + left_column[None, :],
            mask=inside[:, None] & (left_column < a)[None, :],
            other=0.0,
        )
        right_part = tl.load(
            right + row[:, None] * b + right_column[None, :],
            mask=inside[:, None] & (right_column < b)[None, :],
            other=0.0,
        )
        total += tl.dot(tl.trans(left_part), right_part, input_precision="ieee")
    address = out + ((run * tl.num_programs(0) + part) * a + left_column[:, None]) * b + right_column[None, :]
    tl.store(address, total, mask=(left_column < a)[:, None] & (right_column < b)[None, :])


def spmm(
    schedule: RowSchedule,
    cols: Tensor,
    values: Tensor,
    dense: Tensor,
    runs: int,
    order: Tensor | None = None,
    active: Tensor | None = None,
) -> Tensor:
    """The product [R·n, d] of R matrices of one pattern with dense [R·m, d].

    The pattern is a CSR of one run with cols [E]; values [R·E] are those of all runs, with entry e at order[e] if
    there is an order. Products of runs that are not `active`, bool [R], are undefined.
    """
    out = _spmm_once(schedule, cols, values, dense, runs, order, active)
    if schedule.merge is None:
        return out
    count = len(schedule.row_order)
    pieces = torch.arange(count, dtype=cols.dtype, device=cols.device)
    return _spmm_once(schedule.merge, pieces, torch.ones(runs * count, device=cols.device), out, runs, None, active)


def _spmm_once(
    schedule: RowSchedule,
    cols: Tensor,
    values: Tensor,
    dense: Tensor,
    runs: int,
    order: Tensor | None,
    active: Tensor | None,
) -> Tensor:
    n, m, entries, width = len(schedule.row_order), len(dense) // runs, len(cols), dense.shape[1]
    out = torch.empty(runs * n, width, dtype=dense.dtype, device=dense.device)
    grid, sizes = row_programs(schedule, width, runs)
    _spmm[grid](
        schedule.rows, cols, values, cols if order is None else order, dense, out, cols if active is None else active,
        schedule.row_order, schedule.long, n, m, entries, width,
        ORDERED=order is not None, SKIP_INACTIVE=active is not None, **sizes,
    )  # fmt: skip
    return out


def row_programs(schedule: RowSchedule, width: int, runs: int) -> tuple[tuple[int, int, int], dict[str, int]]:
    """The grid of programs for the rows of a schedule and dense columns [d], and their block sizes."""
    columns = min(MAX_COLUMNS, triton.next_power_of_2(width))
    rows_per_program, warps = (512 // columns, 4) if columns > 32 else (128 // columns, 2)
    programs = schedule.long + triton.cdiv(len(schedule.row_order) - schedule.long, rows_per_program)
    sizes = {"L": rows_per_program, "D": columns, "E": max(32, 2048 // columns), "num_warps": warps}
    return (programs, triton.cdiv(width, columns), runs), sizes


def tall_matmul(left: Tensor, right: Tensor) -> Tensor:
    """leftᵀ·right [R, a, b] of left [R, n, a] and right [R, n, b] with few columns and many rows."""
    (runs, nodes, a), b = left.shape, right.shape[2]
    parts, rows_per_program = triton.cdiv(nodes, TALL_CHUNK), min(64, max(16, triton.next_power_of_2(a)))
    out = torch.empty(runs, parts, a, b, dtype=left.dtype, device=left.device)
    _tall_matmul[(parts, triton.cdiv(a, rows_per_program), runs)](
        left.contiguous(), right.contiguous(), out, nodes, a, b, TALL_CHUNK,
        N=32, A=rows_per_program, B=max(16, triton.next_power_of_2(b)), num_warps=4,
    )  # fmt: skip
    return out.sum(1)
