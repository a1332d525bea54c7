"""Triton kernels for batched dense products by tensor cores, in three passes for float32 precision.

Inactive runs are skipped.
"""

from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

TILE_ROWS, TILE_COLUMNS, TILE_DEPTH = 128, 64, 32  # of one program's output, and the length of a partial sum
GROUP = 8  # programs of one column that run in succession, to share the cache
PIECES = 8  # in which the gradient of a small weight is summed over the rows


@triton.jit(do_not_specialize=["m"])
def _matmul(
    left, right, plus, out, active, m, n, k, left_run, left_line, right_run, right_line, right_column,
    ADDED: tl.constexpr, SKIP_INACTIVE: tl.constexpr, PRECISION: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, G: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    if SKIP_INACTIVE and tl.load(active + run) == 0:
        return
    column_tiles = tl.cdiv(n, N)
    first = tl.program_id(0) // (G * column_tiles) * G
    high = tl.minimum(tl.cdiv(m, M) - first, G)
    tile = tl.program_id(0) % (G * column_tiles)
    top = (first + tile % high) * M
    row = (top + tl.arange(0, M)).to(tl.int64)
    column = tile // high * N + tl.arange(0, N)
    step = tl.arange(0, K)
    left += run * left_run
    right += run * right_run
    total = tl.zeros([M, N], dtype=tl.float32)
    for start in range(0, k, K):
        inner = start + step
        left_part = tl.load(left + row[:, None] * left_line + inner[None, :], mask=(row < m)[:, None], other=0.0)
        right_part = tl.load(
            right + inner[:, None] * right_line + column[None, :] * right_column, mask=(column < n)[None, :], other=0.0
        )
        total = tl.dot(left_part, right_part, total, input_precision=PRECISION)
    inside = (row < m)[:, None] & (column < n)[None, :]
    offset = (run * m + row)[:, None] * n + column[None, :]
    if ADDED:
        total += tl.load(plus + offset, mask=inside, other=0.0)
    tl.store(out + offset, total, mask=inside)


@triton.jit(do_not_specialize=["m"])
def _matmul_gradient(
    left, right, out, active, m, a, n, left_run, left_line, right_run,
    SKIP_INACTIVE: tl.constexpr, PRECISION: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(1).to(tl.int64)
    if SKIP_INACTIVE and tl.load(active + run) == 0:
        return
    piece, pieces = tl.program_id(2), tl.num_programs(2)
    column_tiles = tl.cdiv(n, N)
    row = tl.program_id(0) // column_tiles * M + tl.arange(0, M)
    column = tl.program_id(0) % column_tiles * N + tl.arange(0, N)
    step = tl.arange(0, K)
    share = tl.cdiv(tl.cdiv(m, pieces), K) * K
    left += run * left_run
    right += run * right_run
    total = tl.zeros([M, N], dtype=tl.float32)
    for start in range(piece * share, tl.minimum((piece + 1) * share, m), K):
        inner = (start + step).to(tl.int64)
        left_part = tl.load(
            left + inner[None, :] * left_line + row[:, None],
            mask=(inner < m)[None, :] & (row < a)[:, None],
            other=0.0,
        )
        right_part = tl.load(
            right + inner[:, None] * n + column[None, :],
            mask=(inner < m)[:, None] & (column < n)[None, :],
            other=0.0,
        )
        total = tl.dot(left_part, right_part, total, input_precision=PRECISION)
    offset = ((run * pieces + piece) * a + row)[:, None] * n + column[None, :]
    tl.store(out + offset, total, mask=(row < a)[:, None] & (column < n)[None, :])


def supports(x: Tensor, weight: Tensor) -> bool:
    """Whether the kernels can compute x·weight, x [R, n, a] and weight [R, a, b], and both gradients."""
    a, b = weight.shape[1:]
    return len(x) == len(weight) and x.stride(2) == 1 and a % TILE_DEPTH == b % TILE_DEPTH == 0 and b >= TILE_COLUMNS


def matmul(x: Tensor, weight: Tensor, *, active: Tensor | None = None, plus: Tensor | None = None) -> Tensor:
    """x·weight + plus, [R, n, b], of x [R, n, a], weight [R, a, b] and plus [R, n, b].

    a is a multiple of `TILE_DEPTH`. Products of runs that are not `active`, bool [R], are undefined.
    """
    (runs, m, k), n = x.shape, weight.shape[2]
    out = torch.empty(runs, m, n, device=x.device)
    plus = None if plus is None else plus.contiguous()
    _matmul[(triton.cdiv(m, TILE_ROWS) * triton.cdiv(n, TILE_COLUMNS), runs)](
        x, weight, x if plus is None else plus, out, x if active is None else active,
        m, n, k, x.stride(0), x.stride(1), *weight.stride(),
        ADDED=plus is not None, SKIP_INACTIVE=active is not None, PRECISION=_precision(),
        M=TILE_ROWS, N=TILE_COLUMNS, K=TILE_DEPTH, G=GROUP, num_warps=4, num_stages=3,
    )  # fmt: skip
    return out


def matmul_gradient(x: Tensor, gradient: Tensor, *, active: Tensor | None = None) -> Tensor:
    """xᵀ·gradient [R, a, b] of x [R, n, a] and gradient [R, n, b]; see `matmul`."""
    (runs, m, a), n = x.shape, gradient.shape[2]
    gradient = gradient.contiguous()
    tiles = triton.cdiv(a, TILE_ROWS) * triton.cdiv(n, TILE_COLUMNS)
    pieces = PIECES if tiles * runs < 1024 else 1
    out = torch.empty(runs, pieces, a, n, device=x.device)
    _matmul_gradient[(tiles, runs, pieces)](
        x, gradient, out, x if active is None else active, m, a, n, x.stride(0), x.stride(1), gradient.stride(0),
        SKIP_INACTIVE=active is not None, PRECISION=_precision(),
        M=TILE_ROWS, N=TILE_COLUMNS, K=TILE_DEPTH, num_warps=4, num_stages=3,
    )  # fmt: skip
    return out.sum(1) if pieces > 1 else out.squeeze(1)


@cache
def _precision() -> str:
    """Three passes of tensor cores if the GPU has them, else plain products."""
    return "tf32x3" if not torch.cuda.is_available() or torch.cuda.get_device_capability() >= (8, 0) else "ieee"
