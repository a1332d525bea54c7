"""Triton kernels for all runs at once: sparse products, dropout masks, and one look at the validation nodes."""

import torch
import triton
import triton.language as tl
from torch import Tensor

WIDEST = 128  # columns of a dense factor that one program holds


@triton.jit
def _product(rows, cols, values, order, dense, out, n, m, entries, width, ORDERED: tl.constexpr, E: tl.constexpr, D: tl.constexpr):  # fmt: skip  # noqa: E501
    row, run = tl.program_id(0), tl.program_id(2).to(tl.int64)
    column = tl.program_id(1) * D + tl.arange(0, D)
    wide = column < width
    begin, end = tl.load(rows + row), tl.load(rows + row + 1)
    total = tl.zeros([D], dtype=tl.float32)
    for start in range(begin, end, E):
        entry = start + tl.arange(0, E)
        inside = entry < end
        source = tl.load(cols + entry, mask=inside, other=0).to(tl.int64)
        place = tl.load(order + entry, mask=inside, other=0) if ORDERED else entry
        value = tl.load(values + run * entries + place, mask=inside, other=0.0)
        line = dense + (run * m + source[:, None]) * width + column[None, :]
        total += tl.sum(value[:, None] * tl.load(line, mask=inside[:, None] & wide[None, :], other=0.0), axis=0)
    tl.store(out + (run * n + row) * width + column, total, mask=wide)


@triton.jit
def _mask(out, seeds, clock, count, quarter, rate, scale, B: tl.constexpr):
    run = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * B + tl.arange(0, B)
    none = place * 0
    a, b, c, d = tl.philox(tl.load(seeds + run), place, none + tl.load(clock).to(tl.int32), none, none)
    _keep(out + run * count, a, place, tl.minimum(quarter, count), rate, scale)
    _keep(out + run * count + quarter, b, place, tl.minimum(quarter, count - quarter), rate, scale)
    _keep(out + run * count + 2 * quarter, c, place, tl.minimum(quarter, count - 2 * quarter), rate, scale)
    _keep(out + run * count + 3 * quarter, d, place, tl.minimum(quarter, count - 3 * quarter), rate, scale)


@triton.jit
def _keep(line, draw, place, count, rate, scale):
    tl.store(line + place, tl.where(tl.uint_to_uniform_float(draw) >= rate, scale, 0.0), mask=place < count)


@triton.jit
def _judge(
    logits, target, counts, accuracy, nll, better, born, clock, active, improved, nodes, classes, patience,
    LOSS: tl.constexpr, B: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, C)
    hits = tl.zeros([B], dtype=tl.int64)
    bits = tl.zeros([B], dtype=tl.float64)
    for start in range(0, nodes, B):
        node = start + tl.arange(0, B)
        want = tl.load(target + run * nodes + node, mask=node < nodes, other=-1)
        known = want >= 0
        seen = known[:, None] & (column < classes)[None, :]
        line = logits + (run * nodes + node[:, None]) * classes + column[None, :]
        score = tl.load(line, mask=seen, other=-float("inf"))
        score = tl.where(known[:, None], score, tl.where(column[None, :] == 0, 0.0, -float("inf")))
        top = tl.max(score, axis=1)
        total = top + tl.log(tl.sum(tl.exp(score - top[:, None]), axis=1))
        own = tl.sum(tl.where(column[None, :] == want[:, None], score, 0.0), axis=1)
        hits += (known & (tl.argmax(score, axis=1) == want)).to(tl.int64)
        bits += tl.where(known, total - own, 0.0).to(tl.float64)
    count = tl.load(counts + run).to(tl.float64)
    share, loss = tl.sum(hits, axis=0).to(tl.float64) / count, tl.sum(bits, axis=0) / count
    best, least, now = tl.load(accuracy + run), tl.load(nll + run), tl.load(clock + run)
    learning = tl.load(active + run) != 0
    sound = learning & (loss < float("inf")) & (loss > -float("inf"))
    lower = sound & (loss < least)
    progress = lower if LOSS else sound & (share > best)
    gain = lower if LOSS else progress | (lower & (share == best))
    since = tl.where(progress, now, tl.load(better + run))
    tl.store(accuracy + run, tl.where(gain, share, best))
    tl.store(nll + run, tl.where(gain, loss, least))
    tl.store(better + run, since)
    tl.store(active + run, learning & (now - since < patience))
    tl.store(born + run, tl.where(gain, now + 1, tl.load(born + run)))
    tl.store(clock + run, now + 1)
    tl.store(improved + run, gain)


def product(
    rows: Tensor, cols: Tensor, values: Tensor, dense: Tensor, runs: int, order: Tensor | None = None
) -> Tensor:
    """The product [R·n, d] of R matrices of one pattern with dense [R·m, d].

    The pattern is a CSR of one run: rows [n + 1], cols [E]; values [R·E] are each run's own, entry e at
    order[e] where an order is given.
    """
    n, m, entries, width = len(rows) - 1, len(dense) // runs, len(cols), dense.shape[1]
    out = torch.empty(runs * n, width, dtype=dense.dtype, device=dense.device)
    columns = min(WIDEST, triton.next_power_of_2(width))
    together = max(4, min(32, triton.next_power_of_2(entries // max(n, 1) + 1)))
    _product[(n, triton.cdiv(width, columns), runs)](
        rows, cols, values, cols if order is None else order, dense, out, n, m, entries, width,
        ORDERED=order is not None, E=together, D=columns, num_warps=max(1, min(4, together * columns // 512)),
    )  # fmt: skip
    return out


def mask(seeds: Tensor, clock: Tensor, count: int, rate: float) -> Tensor:
    """Dropout as a factor [R, count], 0 or 1/(1−rate); a pure function of seeds [R] and clock []."""
    out = torch.empty(len(seeds), count, device=seeds.device)
    quarter = triton.cdiv(count, 4)  # one draw of Philox gives four numbers
    _mask[(triton.cdiv(quarter, 256), len(seeds))](
        out, seeds, clock, count, quarter, rate, 1 / (1 - rate), B=256, num_warps=4
    )
    return out


def judge(
    logits: Tensor, target: Tensor, counts: Tensor, state: tuple[Tensor, ...], patience: int, monitor: str
) -> Tensor:
    """What a session makes of the logits [R, n, C] of its validation nodes; which runs improved: bool [R].

    The state, changed in place, is accuracy, nll (float64), better, born, clock (long), active (bool), each [R].
    """
    runs, nodes, classes = logits.shape
    improved = torch.empty(runs, dtype=torch.bool, device=logits.device)
    columns = triton.next_power_of_2(classes)
    _judge[(runs,)](
        logits.contiguous(), target, counts, *state, improved, nodes, classes, patience,
        LOSS=monitor == "loss", B=max(16, min(512, 8192 // columns)), C=columns, num_warps=8,
    )  # fmt: skip
    return improved
