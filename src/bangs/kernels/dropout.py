"""Triton kernels for dropout: masks, and dropout of relu(x + bias) with its gradient."""

import torch
import triton
import triton.language as tl
from torch import Tensor


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


@triton.jit
def _store_mask(address, draw, position, count, rate, scale):
    tl.store(address + position, tl.where(tl.uint_to_uniform_float(draw) >= rate, scale, 0.0), mask=position < count)


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
