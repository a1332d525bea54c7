"""Triton kernels around an epoch: dropout masks, Adam, one look at the validation nodes, the best weights kept."""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024  # elements that one program changes
SETTLED = 20_000  # steps after which Adam's corrections are one to the last bit


@triton.jit(do_not_specialize=["count"])
def _mask(out, seeds, clock, count, rate, scale, LARGE: tl.constexpr, B: tl.constexpr):
    run, first, a, b, c, d = _drawn(seeds, clock, LARGE, B)
    out += run * count
    _keep(out, a, first, count, rate, scale)
    _keep(out, b, first + B, count, rate, scale)
    _keep(out, c, first + 2 * B, count, rate, scale)
    _keep(out, d, first + 3 * B, count, rate, scale)


@triton.jit(do_not_specialize=["count"])
def _activate(x, bias, out, seeds, clock, count, width, rate, scale, LARGE: tl.constexpr, B: tl.constexpr):
    run, first, a, b, c, d = _drawn(seeds, clock, LARGE, B)
    x, out, bias = x + run * count, out + run * count, bias + run * width
    _activated(x, bias, out, a, first, count, width, rate, scale)
    _activated(x, bias, out, b, first + B, count, width, rate, scale)
    _activated(x, bias, out, c, first + 2 * B, count, width, rate, scale)
    _activated(x, bias, out, d, first + 3 * B, count, width, rate, scale)


@triton.jit
def _drawn(seeds, clock, LARGE: tl.constexpr, B: tl.constexpr):
    """Numbers for 4·B places of a run, the first B of which are given; a place has its own whatever comes after.

    Places of a LARGE run do not fit into 32 bits, in which the others are counted faster.
    """
    run = tl.program_id(1).to(tl.int64)
    lane = tl.arange(0, B)
    turn = tl.program_id(0) * B + lane
    none = turn * 0
    a, b, c, d = tl.philox(tl.load(seeds + run), turn, none + tl.load(clock).to(tl.int32), none, none)
    program = tl.program_id(0).to(tl.int64) if LARGE else tl.program_id(0)
    return run, program * 4 * B + lane, a, b, c, d


@triton.jit
def _activated(x, bias, out, draw, place, count, width, rate, scale):
    inside = place < count
    h = tl.load(x + place, mask=inside) + tl.load(bias + place % width, mask=inside)
    kept = (tl.uint_to_uniform_float(draw) >= rate) & (h > 0)
    tl.store(out + place, tl.where(kept, h * scale, 0.0), mask=inside)


@triton.jit(do_not_specialize=["nodes"])
def _passed(out, gradient, back, sums, nodes, width, scale, N: tl.constexpr, W: tl.constexpr):
    part, run = tl.program_id(0), tl.program_id(1).to(tl.int64)
    column = tl.arange(0, W)
    node = part * N + tl.arange(0, N)
    inside = (node < nodes)[:, None] & (column < width)[None, :]
    place = (run * nodes + node)[:, None] * width + column[None, :]
    kept = tl.load(out + place, mask=inside, other=0.0) > 0
    passed = tl.where(kept, tl.load(gradient + place, mask=inside, other=0.0) * scale, 0.0)
    tl.store(back + place, passed, mask=inside)
    tl.store(sums + (run * tl.num_programs(0) + part) * width + column, tl.sum(passed, axis=0), mask=column < width)


@triton.jit
def _keep(line, draw, place, count, rate, scale):
    tl.store(line + place, tl.where(tl.uint_to_uniform_float(draw) >= rate, scale, 0.0), mask=place < count)


@triton.jit(do_not_specialize=["nodes", "classes", "patience"])
def _judge(
    logits, target, counts, accuracy, nll, better, best_epoch, clock, active, improved, nodes, classes, patience,
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
    tl.store(best_epoch + run, tl.where(gain, now + 1, tl.load(best_epoch + run)))
    tl.store(clock + run, now + 1)
    tl.store(improved + run, gain)


@triton.jit(do_not_specialize=["last", "count"])
def _adam(weight, gradient, first, second, turn, scales, busy, last, count, decay, B: tl.constexpr):
    run, place = tl.program_id(1).to(tl.int64), tl.program_id(0) * B + tl.arange(0, B)
    if tl.load(busy + run) == 0:
        return
    inside = place < count
    place = run * count + place
    line = scales + 2 * tl.minimum(tl.load(turn), last)
    rate, root = tl.load(line), tl.load(line + 1)
    old = tl.load(weight + place, mask=inside)
    change = tl.load(gradient + place, mask=inside) + decay * old
    mean = tl.load(first + place, mask=inside)
    mean += 0.1 * (change - mean)
    spread = 0.999 * tl.load(second + place, mask=inside) + 0.001 * change * change
    tl.store(first + place, mean, mask=inside)
    tl.store(second + place, spread, mask=inside)
    tl.store(weight + place, old - rate * mean / (tl.sqrt(spread) / root + 1e-8), mask=inside)


@triton.jit(do_not_specialize=["count"])
def _keep_best(improved, weight, kept, count, B: tl.constexpr):
    run = tl.program_id(1).to(tl.int64)
    if tl.load(improved + run) != 0:
        place = tl.program_id(0) * B + tl.arange(0, B)
        inside = place < count
        tl.store(kept + run * count + place, tl.load(weight + run * count + place, mask=inside), mask=inside)


def mask(seeds: Tensor, clock: Tensor, count: int, rate: float) -> Tensor:
    """Dropout as a factor [R, count], 0 or 1/(1−rate); a pure function of seeds [R], clock [] and place."""
    out = torch.empty(len(seeds), count, device=seeds.device)
    _mask[(triton.cdiv(count, 4 * 256), len(seeds))](
        out, seeds, clock, count, rate, 1 / (1 - rate), LARGE=_large(count), B=256, num_warps=4
    )
    return out


def activate(x: Tensor, bias: Tensor, seeds: Tensor, clock: Tensor, rate: float) -> Tensor:
    """Dropout of relu(x + bias) for x [R, n, h] and bias [R, 1, h]; the mask is that of `mask`."""
    out, count = torch.empty_like(x), x[0].numel()
    _activate[(triton.cdiv(count, 4 * 256), len(x))](
        x, bias, out, seeds, clock, count, x.shape[-1], rate, 1 / (1 - rate), LARGE=_large(count), B=256, num_warps=4
    )
    return out


def _large(count: int) -> bool:
    """Whether the places of a run, with those of its last program, need more than 32 bits."""
    return count > 2**31 - 2**12


def passed(out: Tensor, gradient: Tensor, rate: float) -> tuple[Tensor, Tensor]:
    """The gradients of x [R, n, h] and of bias [R, 1, h] where `activate` gave `out`."""
    runs, nodes, width = out.shape
    columns = triton.next_power_of_2(width)
    lines = max(1, 8192 // columns)
    parts = triton.cdiv(nodes, lines)
    back, sums = torch.empty_like(out), torch.empty(runs, parts, width, device=out.device)
    _passed[(parts, runs)](
        out, gradient.contiguous(), back, sums, nodes, width, 1 / (1 - rate), N=lines, W=columns, num_warps=8
    )
    return back, sums.sum(1, keepdim=True)


def judge(
    logits: Tensor, target: Tensor, counts: Tensor, state: tuple[Tensor, ...], patience: int, monitor: str
) -> Tensor:
    """What a session makes of the logits [R, n, C] of its validation nodes; which runs improved: bool [R].

    The state, changed in place, is accuracy, nll (float64), better, best_epoch, clock (long), active (bool), each [R].
    """
    runs, nodes, classes = logits.shape
    improved = torch.empty(runs, dtype=torch.bool, device=logits.device)
    columns = triton.next_power_of_2(classes)
    _judge[(runs,)](
        logits.contiguous(), target, counts, *state, improved, nodes, classes, patience,
        LOSS=monitor == "loss", B=max(16, min(512, 8192 // columns)), C=columns, num_warps=8,
    )  # fmt: skip
    return improved


class Adam:
    """`torch.optim.Adam` with its usual betas for the weights [R, …] of the runs that are busy [R], on a GPU.

    Every weight has a decay of its own.
    """

    def __init__(self, weights: Sequence[Tensor], lr: float, decays: Sequence[float], busy: Tensor):
        self.weights, self.decays, self.busy = weights, decays, busy
        self.moments = [(torch.zeros_like(weight), torch.zeros_like(weight)) for weight in weights]
        device = weights[0].device
        turn = torch.arange(1, SETTLED + 1, dtype=torch.float64)
        self.scales = torch.stack([lr / (1 - 0.9**turn), (1 - 0.999**turn).sqrt()], dim=1).float().to(device)
        self.turn = torch.zeros((), dtype=torch.int64, device=device)

    def restart(self) -> None:
        """Forget every step."""
        for pair in self.moments:
            for moment in pair:
                moment.zero_()
        self.turn.zero_()

    def zero_grad(self) -> None:
        for weight in self.weights:
            weight.grad = None

    def step(self) -> None:
        """One step along the gradients."""
        for weight, decay, (first, second) in zip(self.weights, self.decays, self.moments, strict=True):
            if weight.grad is not None:
                count = weight.numel() // len(weight)
                _adam[(triton.cdiv(count, BLOCK), len(weight))](
                    weight, weight.grad.contiguous(), first, second, self.turn, self.scales, self.busy, SETTLED - 1,
                    count, decay, B=BLOCK, num_warps=4,
                )  # fmt: skip
        self.turn.add_(1)


def keep(improved: Tensor, weight: Tensor, kept: Tensor) -> None:
    """Copy a weight [R, …] to the kept one, in place, for the runs that improved."""
    count = weight.numel() // len(weight)
    _keep_best[(triton.cdiv(count, BLOCK), len(weight))](improved, weight, kept, count, B=BLOCK, num_warps=4)
