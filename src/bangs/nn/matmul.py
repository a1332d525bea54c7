"""Batched matrix products, one per run, with fast gradients of the weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from bangs import kernels

WIDE_COLUMNS = 64  # of a weight; with more, a product uses the whole GPU
TALL_ROWS = 256  # of a weight; up to this many, our kernel computes the gradient of a narrow weight
CPU_NARROW_COLUMNS = 32  # of a weight; up to this many, a CPU computes its gradient as a transposed product
GRADIENT_PIECES = 8  # in which the gradient of a wide weight is summed over the rows


def batched_matmul(x: Tensor, weight: Tensor, *, plus: Tensor | None = None, active: Tensor | None = None) -> Tensor:
    """x·weight + plus, [R, n, b], of x [R, n, a], weight [R, a, b] and plus [R, n, b].

    On a GPU the gradient of a weight, a sum over all n rows, is computed in many pieces at once, since cuBLAS would use
    only a few blocks per run. Large products use our own kernel, which skips runs that are not `active` [R]. On a CPU
    the gradient of a narrow weight is faster as a transposed product.
    """
    if weight.shape[1] > TALL_ROWS and full_precision() and kernels.serves(x, weight):
        from bangs.kernels.matmul import supports

        if supports(x, weight):
            return _KernelMatmul.apply(x, weight, plus, active)
    if plus is not None:
        return torch.baddbmm(plus, x, weight)
    if not weight.requires_grad or not torch.is_grad_enabled():
        return x @ weight
    if not kernels.serves(x, weight):
        narrow = weight.shape[2] <= CPU_NARROW_COLUMNS and len(x) == len(weight)
        return _NarrowMatmul.apply(x, weight) if narrow else x @ weight
    if weight.shape[1] <= TALL_ROWS and weight.shape[2] <= WIDE_COLUMNS:
        return _NarrowMatmul.apply(x.expand(len(weight), -1, -1), weight)
    if len(x) == len(weight) and x.shape[1] % GRADIENT_PIECES == 0 and not x.requires_grad:
        return _MatmulInPieces.apply(x, weight)
    return x @ weight


def full_precision() -> bool:
    """Whether products must have full float32 precision, which cuBLAS computes without tensor cores."""
    return not torch.backends.cuda.matmul.allow_tf32


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Inside, dense products on a GPU have this precision: float32, or tf32 by tensor cores."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


class _NarrowMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor]:
        x, weight = ctx.saved_tensors
        back = gradient @ weight.transpose(1, 2) if ctx.needs_input_grad[0] else None
        if not kernels.serves(x, gradient):
            return back, (gradient.transpose(1, 2) @ x).transpose(1, 2)
        from bangs.kernels.spmm import tall_matmul

        return back, tall_matmul(x, gradient)


class _MatmulInPieces(torch.autograd.Function):
    """A product whose x needs no gradient; the gradient of the weight is summed in GRADIENT_PIECES."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        (x,) = ctx.saved_tensors
        runs, rows, width = x.shape
        pieces = x.reshape(runs * GRADIENT_PIECES, rows // GRADIENT_PIECES, width)
        parts = pieces.transpose(1, 2) @ gradient.reshape(runs * GRADIENT_PIECES, rows // GRADIENT_PIECES, -1)
        return None, parts.view(runs, GRADIENT_PIECES, width, -1).sum(1)


class _KernelMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, plus: Tensor | None, active: Tensor | None) -> Tensor:
        from bangs.kernels.matmul import matmul

        ctx.save_for_backward(x, weight)
        ctx.active, ctx.added = active, plus is not None
        return matmul(x, weight, active=active, plus=plus)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, Tensor | None, None]:
        from bangs.kernels.matmul import matmul, matmul_gradient

        x, weight = ctx.saved_tensors
        gradient = gradient.contiguous()
        back = matmul(gradient, weight.transpose(1, 2), active=ctx.active) if ctx.needs_input_grad[0] else None
        to_weight = matmul_gradient(x, gradient, active=ctx.active)
        return back, to_weight, gradient if ctx.added else None, None
