"""Triton kernels of an epoch: dropout masks, Adam, early stopping and the copy of the best weights."""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024  # elements per program
BIAS_STEPS = 20_000  # after which Adam's bias corrections are 1 to the last bit


@triton.jit(do_not_specialize=["count"])
def _mask(out, seeds, counter, count, rate, scale, LARGE: tl.constexpr, B: tl.constexpr):
    run, first, a, b, c, d = _random_bits(seeds, counter, LARGE, B)
    out += run * count
    _store_mask(out, a, first, count, rate, scale)
    _store_mask(out, b, first + B, count, rate, scale)
    _store_mask(out, c, first + 2 * B, count, rate, scale)
    _store_mask(out, d, first + 3 * B, count, rate, scale)


@triton.jit(do_not_specialize=["count"])
def _activate(x, bias, out, seeds, counter, count, width, rate, scale, LARGE: tl.constexpr, B: tl.constexpr):
    run, first, a, b, c, d = _random_bits(seeds, counter, LARGE, B)
    x, out, bias = x + run * count, out + run * count, bias + run * width
    _store_activation(x, bias, out, a, first, count, width, rate, scale)
    _store_activation(x, bias, out, b, first + B, count, width, rate, scale)
    _store_activation(x, bias, out, c, first + 2 * B, count, width, rate, scale)
    _store_activation(x, bias, out, d, first + 3 * B, count, width, rate, scale)


@triton.jit
def _random_bits(seeds, counter, LARGE: tl.constexpr, B: tl.constexpr):
    """Random numbers for 4·B positions of a run, and the first B positions; a position always gets the same number.

    The positions of a LARGE run need 64 bits; 32 bits are faster.
    """
    run = tl.program_id(1).to(tl.int64)
    lane = tl.arange(0, B)
    step = tl.program_id(0) * B + lane
    zero = step * 0
    a, b, c, d = tl.philox(tl.load(seeds + run), step, zero + tl.load(counter).to(tl.int32), zero, zero)
    program = tl.program_id(0).to(tl.int64) if LARGE else tl.program_id(0)
    return run, program * 4 * B + lane, a, b, c, d


@triton.jit
def _store_activation(x, bias, out, draw, position, count, width, rate, scale):
    inside = position < count
    h = tl.load(x + position, mask=inside) + tl.load(bias + position % width, mask=inside)
    kept = (tl.uint_to_uniform_float(draw) >= rate) & (h > 0)
    tl.store(out + position, tl.where(kept, h * scale, 0.0), mask=inside)


@triton.jit(do_not_specialize=["nodes"])
def _activate_back(out, gradient, back, sums, nodes, width, scale, N: tl.constexpr, W: tl.constexpr):
    part, run = tl.program_id(0), tl.program_id(1).to(tl.int64)
    column = tl.arange(0, W)
    node = part * N + tl.arange(0, N)
    inside = (node < nodes)[:, None] & (column < width)[None, :]
    position = (run * nodes + node)[:, None] * width + column[None, :]
    kept = tl.load(out + position, mask=inside, other=0.0) > 0
    activate_back = tl.where(kept, tl.load(gradient + position, mask=inside, other=0.0) * scale, 0.0)
    tl.store(back + position, activate_back, mask=inside)
    tl.store(
        sums + (run * tl.num_programs(0) + part) * width + column, tl.sum(activate_back, axis=0), mask=column < width
    )


@triton.jit
def _store_mask(address, draw, position, count, rate, scale):
    tl.store(address + position, tl.where(tl.uint_to_uniform_float(draw) >= rate, scale, 0.0), mask=position < count)


@triton.jit(do_not_specialize=["nodes", "classes", "patience"])
def _update_best(
    logits, target, counts, accuracy, nll, last_progress, best_epoch, epoch_count, unfinished, improved,
    nodes, classes, patience, LOSS: tl.constexpr, B: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, C)
    hits = tl.zeros([B], dtype=tl.int64)
    nll_sum = tl.zeros([B], dtype=tl.float64)
    for start in range(0, nodes, B):
        node = start + tl.arange(0, B)
        label = tl.load(target + run * nodes + node, mask=node < nodes, other=-1)
        known = label >= 0
        loaded = known[:, None] & (column < classes)[None, :]
        address = logits + (run * nodes + node[:, None]) * classes + column[None, :]
        score = tl.load(address, mask=loaded, other=-float("inf"))
        score = tl.where(known[:, None], score, tl.where(column[None, :] == 0, 0.0, -float("inf")))
        top = tl.max(score, axis=1)
        total = top + tl.log(tl.sum(tl.exp(score - top[:, None]), axis=1))
        target_score = tl.sum(tl.where(column[None, :] == label[:, None], score, 0.0), axis=1)
        hits += (known & (tl.argmax(score, axis=1) == label)).to(tl.int64)
        nll_sum += tl.where(known, total - target_score, 0.0).to(tl.float64)
    count = tl.load(counts + run).to(tl.float64)
    share, loss = tl.sum(hits, axis=0).to(tl.float64) / count, tl.sum(nll_sum, axis=0) / count
    best, least, now = tl.load(accuracy + run), tl.load(nll + run), tl.load(epoch_count + run)
    learning = tl.load(unfinished + run) != 0
    sound = learning & (loss < float("inf")) & (loss > -float("inf"))
    lower = sound & (loss < least)
    progress = lower if LOSS else sound & (share > best)
    gain = lower if LOSS else progress | (lower & (share == best))
    since = tl.where(progress, now, tl.load(last_progress + run))
    tl.store(accuracy + run, tl.where(gain, share, best))
    tl.store(nll + run, tl.where(gain, loss, least))
    tl.store(last_progress + run, since)
    tl.store(unfinished + run, learning & (now - since < patience))
    tl.store(best_epoch + run, tl.where(gain, now + 1, tl.load(best_epoch + run)))
    tl.store(epoch_count + run, now + 1)
    tl.store(improved + run, gain)


@triton.jit(do_not_specialize=["last", "count"])
def _adam(weight, gradient, first, second, step, scales, active, last, count, decay, B: tl.constexpr):
    run, position = tl.program_id(1).to(tl.int64), tl.program_id(0) * B + tl.arange(0, B)
    if tl.load(active + run) == 0:
        return
    inside = position < count
    position = run * count + position
    address = scales + 2 * tl.minimum(tl.load(step), last)
    rate, root = tl.load(address), tl.load(address + 1)
    old = tl.load(weight + position, mask=inside)
    change = tl.load(gradient + position, mask=inside) + decay * old
    mean = tl.load(first + position, mask=inside)
    mean += 0.1 * (change - mean)
    spread = 0.999 * tl.load(second + position, mask=inside) + 0.001 * change * change
    tl.store(first + position, mean, mask=inside)
    tl.store(second + position, spread, mask=inside)
    tl.store(weight + position, old - rate * mean / (tl.sqrt(spread) / root + 1e-8), mask=inside)


@triton.jit(do_not_specialize=["count"])
def _copy_improved(improved, weight, best, count, B: tl.constexpr):
    run = tl.program_id(1).to(tl.int64)
    if tl.load(improved + run) != 0:
        position = tl.program_id(0) * B + tl.arange(0, B)
        inside = position < count
        tl.store(best + run * count + position, tl.load(weight + run * count + position, mask=inside), mask=inside)


def mask(seeds: Tensor, counter: Tensor, count: int, rate: float) -> Tensor:
    """Dropout as a factor [R, count], 0 or 1/(1−rate); a pure function of seeds [R], counter [] and position."""
    out = torch.empty(len(seeds), count, device=seeds.device)
    _mask[(triton.cdiv(count, 4 * 256), len(seeds))](
        out, seeds, counter, count, rate, 1 / (1 - rate), LARGE=_large(count), B=256, num_warps=4
    )
    return out


def activate(x: Tensor, bias: Tensor, seeds: Tensor, counter: Tensor, rate: float) -> Tensor:
    """Dropout of relu(x + bias) for x [R, n, h] and bias [R, 1, h]; the mask is that of `mask`."""
    out, count = torch.empty_like(x), x[0].numel()
    _activate[(triton.cdiv(count, 4 * 256), len(x))](
        x, bias, out, seeds, counter, count, x.shape[-1], rate, 1 / (1 - rate), LARGE=_large(count), B=256, num_warps=4
    )
    return out


def _large(count: int) -> bool:
    """Whether the positions of a run, including those of its last program, need more than 32 bits."""
    return count > 2**31 - 2**12


def activate_back(out: Tensor, gradient: Tensor, rate: float) -> tuple[Tensor, Tensor]:
    """The gradients of x [R, n, h] and of bias [R, 1, h] where `activate` returned `out`."""
    runs, nodes, width = out.shape
    columns = triton.next_power_of_2(width)
    nodes_per_program = max(1, 8192 // columns)
    parts = triton.cdiv(nodes, nodes_per_program)
    back, sums = torch.empty_like(out), torch.empty(runs, parts, width, device=out.device)
    _activate_back[(parts, runs)](
        out, gradient.contiguous(), back, sums, nodes, width, 1 / (1 - rate),
        N=nodes_per_program, W=columns, num_warps=8,
    )  # fmt: skip
    return back, sums.sum(1, keepdim=True)


def update_best(
    logits: Tensor, target: Tensor, counts: Tensor, state: tuple[Tensor, ...], patience: int, monitor: str
) -> Tensor:
    """Update early stopping by the validation logits [R, n, C]; returns which runs improved: bool [R].

    The state, changed in place, is accuracy, nll (float64), last_progress, best_epoch, epoch_count (long) and
    unfinished (bool), each [R].
    """
    runs, nodes, classes = logits.shape
    improved = torch.empty(runs, dtype=torch.bool, device=logits.device)
    columns = triton.next_power_of_2(classes)
    _update_best[(runs,)](
        logits.contiguous(), target, counts, *state, improved, nodes, classes, patience,
        LOSS=monitor == "loss", B=max(16, min(512, 8192 // columns)), C=columns, num_warps=8,
    )  # fmt: skip
    return improved


class Adam:
    """`torch.optim.Adam` with default betas for the weights [R, …] of active runs [R], each with its own decay."""

    def __init__(self, weights: Sequence[Tensor], lr: float, decays: Sequence[float], active: Tensor):
        self.weights, self.decays, self.active = weights, decays, active
        self.moments = [(torch.zeros_like(weight), torch.zeros_like(weight)) for weight in weights]
        device = weights[0].device
        step = torch.arange(1, BIAS_STEPS + 1, dtype=torch.float64)
        self.scales = torch.stack([lr / (1 - 0.9**step), (1 - 0.999**step).sqrt()], dim=1).float().to(device)
        self.step_count = torch.zeros((), dtype=torch.int64, device=device)

    def restart(self) -> None:
        """Reset the moments and the number of steps."""
        for pair in self.moments:
            for moment in pair:
                moment.zero_()
        self.step_count.zero_()

    def zero_grad(self) -> None:
        for weight in self.weights:
            weight.grad = None

    def step(self) -> None:
        """One step of Adam."""
        for weight, decay, (first, second) in zip(self.weights, self.decays, self.moments, strict=True):
            if weight.grad is not None:
                count = weight.numel() // len(weight)
                _adam[(triton.cdiv(count, BLOCK), len(weight))](
                    weight, weight.grad.contiguous(), first, second, self.step_count, self.scales, self.active,
                    BIAS_STEPS - 1, count, decay, B=BLOCK, num_warps=4,
                )  # fmt: skip
        self.step_count.add_(1)


def copy_improved(improved: Tensor, weight: Tensor, best: Tensor) -> None:
    """Copy a weight [R, …] to the best one, in place, for the runs that improved."""
    count = weight.numel() // len(weight)
    _copy_improved[(triton.cdiv(count, BLOCK), len(weight))](improved, weight, best, count, B=BLOCK, num_warps=4)
