"""Triton kernels for dense products of every run's own factors, by tensor cores, thrice for float32's digits.

Runs that rest are left out, and so are lines beyond those that a run has.
"""

from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

TALL, WIDE, DEEP = 128, 64, 32  # lines and columns of what one program makes, and how much of the sums it takes at once
TOGETHER = 8  # programs one below the other that follow each other, so that caches still hold what they share
PIECES = 8  # of the lines, over which the gradient of a small weight is summed


@triton.jit(do_not_specialize=["m"])
def _times(
    left, right, plus, out, lines, busy, m, n, k, depth, left_run, left_line, right_run, right_line, right_column,
    ADDED: tl.constexpr, COUNTED: tl.constexpr, RESTING: tl.constexpr, PRECISION: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, G: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    if RESTING and tl.load(busy + run) == 0:
        return
    across = tl.cdiv(n, N)
    first = tl.program_id(0) // (G * across) * G
    high = tl.minimum(tl.cdiv(m, M) - first, G)
    place = tl.program_id(0) % (G * across)
    top = (first + place % high) * M
    line = (top + tl.arange(0, M)).to(tl.int64)
    column = place // high * N + tl.arange(0, N)
    step = tl.arange(0, K)
    count = tl.minimum(tl.load(lines + run), m) if COUNTED else m
    left += run * left_run
    right += run * right_run
    total = tl.zeros([M, N], dtype=tl.float32)
    for start in range(0, k * (top < count).to(tl.int32), K):
        at = start + step
        one = tl.load(left + line[:, None] * left_line + at[None, :], mask=(line < count)[:, None], other=0.0)
        inside = (at < depth)[:, None] & (column < n)[None, :]
        two = tl.load(right + at[:, None] * right_line + column[None, :] * right_column, mask=inside, other=0.0)
        total = tl.dot(one, two, total, input_precision=PRECISION)
    inside = (line < m)[:, None] & (column < n)[None, :]
    place = (run * m + line)[:, None] * n + column[None, :]
    if ADDED:
        total += tl.load(plus + place, mask=inside, other=0.0)
    tl.store(out + place, total, mask=inside)


@triton.jit(do_not_specialize=["m"])
def _gradient(
    left, right, out, lines, busy, m, stored, a, n, left_run, left_line, right_run,
    COUNTED: tl.constexpr, RESTING: tl.constexpr, PRECISION: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    if RESTING and tl.load(busy + run) == 0:
        return
    piece, pieces = tl.program_id(2), tl.num_programs(2)
    across = tl.cdiv(n, N)
    line = tl.program_id(0) // across * M + tl.arange(0, M)
    column = tl.program_id(0) % across * N + tl.arange(0, N)
    step = tl.arange(0, K)
    count = tl.minimum(tl.load(lines + run), m) if COUNTED else m
    share = tl.cdiv(tl.cdiv(count, pieces), K) * K
    left += run * left_run
    right += run * right_run
    total = tl.zeros([M, N], dtype=tl.float32)
    for start in range(piece * share, tl.minimum((piece + 1) * share, count), K):
        at = (start + step).to(tl.int64)
        # whatever stands beyond the a columns is left out when the sums are stored
        one = tl.load(
            left + at[None, :] * left_line + line[:, None],
            mask=(at < count)[None, :] & (line < stored)[:, None],
            other=0.0,
        )
        two = tl.load(
            right + at[:, None] * n + column[None, :], mask=(at < count)[:, None] & (column < n)[None, :], other=0.0
        )
        total = tl.dot(one, two, total, input_precision=PRECISION)
    place = ((run * pieces + piece) * a + line)[:, None] * n + column[None, :]
    tl.store(out + place, total, mask=(line < a)[:, None] & (column < n)[None, :])


def suits(x: Tensor, weight: Tensor) -> bool:
    """Whether lines [R, n, a] lie as the kernels read them, and a weight [R, a, b] is not too narrow for them."""
    return len(x) == len(weight) and x.stride(2) == 1 and x.shape[2] % DEEP == 0 and weight.shape[2] >= WIDE


def product(
    x: Tensor,
    weight: Tensor,
    *,
    lines: Tensor | None = None,
    busy: Tensor | None = None,
    plus: Tensor | None = None,
) -> Tensor:
    """The product [R, n, b] of x [R, n, a] and weight [R, a, b], plus [R, n, b].

    x may have more columns than the weight has lines, if they are zeros. Where `lines` int [R] say how many lines of x
    a run has, the others are taken as zeros. Where `busy` bool [R] says no, nothing is done, the product is anything.
    """
    (runs, m, k), (depth, n) = x.shape, weight.shape[1:]
    out = torch.empty(runs, m, n, device=x.device)
    plus = None if plus is None else plus.contiguous()
    _times[(triton.cdiv(m, TALL) * triton.cdiv(n, WIDE), runs)](
        x, weight, x if plus is None else plus, out, x if lines is None else lines, x if busy is None else busy,
        m, n, k, depth, x.stride(0), x.stride(1), *weight.stride(),
        ADDED=plus is not None, COUNTED=lines is not None, RESTING=busy is not None, PRECISION=_precision(),
        M=TALL, N=WIDE, K=DEEP, G=TOGETHER, num_warps=4, num_stages=3,
    )  # fmt: skip
    return out


def gradient(x: Tensor, pull: Tensor, width: int, *, lines: Tensor | None = None, busy: Tensor | None = None) -> Tensor:
    """The sum [R, width, b] of xᵀ·pull over the lines of x [R, n, ≥ width] and pull [R, n, b]; see `product`."""
    (runs, m, stored), n = x.shape, pull.shape[2]
    pull = pull.contiguous()
    tiles = triton.cdiv(width, TALL) * triton.cdiv(n, WIDE)
    pieces = PIECES if tiles * runs < 1024 else 1
    out = torch.empty(runs, pieces, width, n, device=x.device)
    _gradient[(tiles, runs, pieces)](
        x, pull, out, x if lines is None else lines, x if busy is None else busy,
        m, stored, width, n, x.stride(0), x.stride(1), pull.stride(0),
        COUNTED=lines is not None, RESTING=busy is not None, PRECISION=_precision(),
        M=TALL, N=WIDE, K=DEEP, num_warps=4, num_stages=3,
    )  # fmt: skip
    return out.sum(1) if pieces > 1 else out.squeeze(1)


@cache
def _precision() -> str:
    """Three passes of tensor cores where there are some, else plain products."""
    return "tf32x3" if not torch.cuda.is_available() or torch.cuda.get_device_capability() >= (8, 0) else "ieee"
