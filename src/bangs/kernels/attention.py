"""Triton kernels for sparse attention over one CSR pattern that all runs share; sums have a fixed order."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bangs.kernels.row_schedule import RowSchedule

SHORT_ROWS = 32  # short rows per program
SHORT_ENTRIES = 8  # entries of each that are loaded together
LONG_ENTRIES = 1024  # entries of a long row, which has a program to itself, that are loaded together
TILE = 2048  # numbers of either factor of a sampled product that one program holds


@triton.jit(do_not_specialize=["long", "n", "m", "entries"])
def _softmax(
    rows, cols, row_order, source, target, counts, out, active, long, n, m, entries, slope,
    COUNTED: tl.constexpr, SKIP_INACTIVE: tl.constexpr, L: tl.constexpr, K: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    program, run = tl.program_id(0), tl.program_id(1).to(tl.int64)
    if SKIP_INACTIVE and tl.load(active + run) == 0:
        return
    source, target, out = source + run * m, target + run * n, out + run * entries
    if program < long:
        _row_softmax(rows, cols, row_order, source, target, counts, out, program, n, slope, COUNTED, 1, E)
    else:
        first = long + (program - long) * L
        _row_softmax(rows, cols, row_order, source, target, counts, out, first, n, slope, COUNTED, L, K)


@triton.jit
def _row_softmax(
    rows, cols, row_order, source, target, counts, out, first, n, slope,
    COUNTED: tl.constexpr, L: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    position = first + tl.arange(0, L)
    row = tl.load(row_order + position, mask=position < n, other=0)
    begin = tl.load(rows + row)
    length = tl.where(position < n, tl.load(rows + row + 1) - begin, 0)
    longest = tl.max(length, axis=0)
    row_target = tl.load(target + row)
    top = tl.full([L], -float("inf"), dtype=tl.float32)
    for start in range(0, longest, K):
        entry, inside = _entries(begin, length, start, K)
        score = _score(cols, source, row_target, entry, inside, slope)
        top = tl.maximum(top, tl.max(tl.where(inside, score, -float("inf")), axis=1))
    total = tl.zeros([L], dtype=tl.float32)
    for start in range(0, longest, K):
        entry, inside = _entries(begin, length, start, K)
        score = _score(cols, source, row_target, entry, inside, slope)
        total += tl.sum(_exp_scores(score, top, counts, entry, inside, COUNTED), axis=1)
    for start in range(0, longest, K):
        entry, inside = _entries(begin, length, start, K)
        score = _score(cols, source, row_target, entry, inside, slope)
        weight = _exp_scores(score, top, counts, entry, inside, COUNTED) / total[:, None]
        tl.store(out + entry, weight, mask=inside)


@triton.jit
def _entries(begin, length, start, K: tl.constexpr):
    step = start + tl.arange(0, K)
    return begin[:, None] + step[None, :], step[None, :] < length[:, None]


@triton.jit
def _score(cols, source, row_target, entry, inside, slope):
    col = tl.load(cols + entry, mask=inside, other=0)
    score = tl.load(source + col, mask=inside, other=0.0) + row_target[:, None]
    return tl.where(score > 0, score, score * slope)


@triton.jit
def _exp_scores(score, top, counts, entry, inside, COUNTED: tl.constexpr):
    weight = tl.exp(tl.where(inside, score - top[:, None], -float("inf")))
    if COUNTED:
        weight *= tl.load(counts + entry, mask=inside, other=0.0)
    return weight


@triton.jit(do_not_specialize=["long", "n", "m", "entries"])
def _softmax_back(
    rows, cols, row_order, source, target, weights, gradient, out, sums, active, long, n, m, entries, slope,
    SKIP_INACTIVE: tl.constexpr, L: tl.constexpr, K: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    program, run = tl.program_id(0), tl.program_id(1).to(tl.int64)
    if SKIP_INACTIVE and tl.load(active + run) == 0:
        return
    source, target, sums = source + run * m, target + run * n, sums + run * n
    weights, gradient, out = weights + run * entries, gradient + run * entries, out + run * entries
    if program < long:
        _row_softmax_back(rows, cols, row_order, source, target, weights, gradient, out, sums, program, n, slope, 1, E)
    else:
        first = long + (program - long) * L
        _row_softmax_back(rows, cols, row_order, source, target, weights, gradient, out, sums, first, n, slope, L, K)


@triton.jit
def _row_softmax_back(
    rows, cols, row_order, source, target, weights, gradient, out, sums, first, n, slope,
    L: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    position = first + tl.arange(0, L)
    row = tl.load(row_order + position, mask=position < n, other=0)
    begin = tl.load(rows + row)
    length = tl.where(position < n, tl.load(rows + row + 1) - begin, 0)
    longest = tl.max(length, axis=0)
    row_target = tl.load(target + row)
    mean = tl.zeros([L], dtype=tl.float32)
    for start in range(0, longest, K):
        entry, inside = _entries(begin, length, start, K)
        weight = tl.load(weights + entry, mask=inside, other=0.0)
        mean += tl.sum(weight * tl.load(gradient + entry, mask=inside, other=0.0), axis=1)
    total = tl.zeros([L], dtype=tl.float32)
    for start in range(0, longest, K):
        entry, inside = _entries(begin, length, start, K)
        weight = tl.load(weights + entry, mask=inside, other=0.0)
        change = weight * (tl.load(gradient + entry, mask=inside, other=0.0) - mean[:, None])
        change = tl.where(_score(cols, source, row_target, entry, inside, slope) > 0, change, change * slope)
        tl.store(out + entry, change, mask=inside)
        total += tl.sum(change, axis=1)
    tl.store(sums + row, total, mask=position < n)


@triton.jit(do_not_specialize=["n", "m", "entries"])
def _sddmm(
    row_index, cols, left, right, out, active, n, m, entries, width,
    SKIP_INACTIVE: tl.constexpr, B: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    if SKIP_INACTIVE and tl.load(active + run) == 0:
        return
    entry = tl.program_id(0) * B + tl.arange(0, B)
    inside = entry < entries
    row = run * n + tl.load(row_index + entry, mask=inside, other=0)
    col = run * m + tl.load(cols + entry, mask=inside, other=0)
    total = tl.zeros([B], dtype=tl.float32)
    for start in range(0, width, D):
        column = start + tl.arange(0, D)
        loaded = inside[:, None] & (column < width)[None, :]
        left_part = tl.load(left + row[:, None] * width + column[None, :], mask=loaded, other=0.0)
        right_part = tl.load(right + col[:, None] * width + column[None, :], mask=loaded, other=0.0)
        total += tl.sum(left_part * right_part, axis=1)
    tl.store(out + run * entries + entry, total, mask=inside)


def softmax(
    schedule: RowSchedule,
    cols: Tensor,
    source: Tensor,
    target: Tensor,
    runs: int,
    slope: float,
    counts: Tensor | None = None,
    active: Tensor | None = None,
) -> Tensor:
    """Weights [R·E] of the entries of a CSR with cols [E]: softmax in each row of leaky(source_col + target_row).

    source [R·m] and target [R·n] are those of all runs; counts [E] are the multiplicities of the entries. The schedule
    must not divide rows. Weights of runs that are not `active`, bool [R], are undefined.
    """
    out = torch.empty(runs * len(cols), device=source.device)
    n = len(schedule.row_order)
    _softmax[(_programs(schedule), runs)](
        schedule.rows, cols, schedule.row_order, source, target, cols if counts is None else counts, out,
        cols if active is None else active, schedule.long, n, len(source) // runs, len(cols), slope,
        COUNTED=counts is not None, SKIP_INACTIVE=active is not None,
        L=SHORT_ROWS, K=SHORT_ENTRIES, E=LONG_ENTRIES, num_warps=4,
    )  # fmt: skip
    return out


def softmax_back(
    schedule: RowSchedule,
    cols: Tensor,
    source: Tensor,
    target: Tensor,
    weights: Tensor,
    gradient: Tensor,
    runs: int,
    slope: float,
    active: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The gradient of source_col + target_row at every entry [R·E], and its sum in every row [R·n]."""
    out, sums, n = torch.empty_like(weights), torch.empty_like(target), len(schedule.row_order)
    _softmax_back[(_programs(schedule), runs)](
        schedule.rows, cols, schedule.row_order, source, target, weights, gradient, out, sums,
        cols if active is None else active, schedule.long, n, len(source) // runs, len(cols), slope,
        SKIP_INACTIVE=active is not None, L=SHORT_ROWS, K=SHORT_ENTRIES, E=LONG_ENTRIES, num_warps=4,
    )  # fmt: skip
    return out, sums


def sddmm(
    row_index: Tensor, cols: Tensor, left: Tensor, right: Tensor, runs: int, active: Tensor | None = None
) -> Tensor:
    """left·rightᵀ of each run's left [R·n, d] and right [R·m, d] at the entries (row_index, cols) [E]: [R·E]."""
    width, entries = left.shape[1], len(cols)
    out = torch.empty(runs * entries, device=left.device)
    columns = min(128, triton.next_power_of_2(width))
    block = TILE // columns
    _sddmm[(triton.cdiv(entries, block), runs)](
        row_index, cols, left, right, out, cols if active is None else active, len(left) // runs, len(right) // runs,
        entries, width, SKIP_INACTIVE=active is not None, B=block, D=columns, num_warps=4,
    )  # fmt: skip
    return out


def _programs(schedule: RowSchedule) -> int:
    return schedule.long + int(triton.cdiv(len(schedule.row_order) - schedule.long, SHORT_ROWS))
