"""Products of every run's own lines with its own weight."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from bangs import kernels

WIDE = 64  # columns from which a product keeps the whole device busy by itself
TALL = 256  # lines up to which a narrow weight's gradient is our own kernel's
FEW = 32  # columns up to which a processor multiplies the transposes instead
PIECES = 8  # of the lines, over which a wide weight's gradient is summed


def times(x: Tensor, weight: Tensor, *, plus: Tensor | None = None, busy: Tensor | None = None) -> Tensor:
    """The product [R, n, b] of x [R, n, a] and weight [R, a, b], plus [R, n, b].

    On a GPU the gradient of a weight, a sum over all n lines, is taken in many pieces at once; cuBLAS gives each run
    to a handful of its blocks. Large products are our own kernel's, which leaves out the runs that are not `busy`
    [R]. A processor takes the gradient of a few columns faster the other way round.
    """
    product: Tensor
    if weight.shape[1] > TALL and exact() and kernels.serves(x, weight):
        from bangs.kernels.matmul import suits

        if suits(x, weight):
            product = _Wide.apply(x, weight, plus, busy)
            return product
    if plus is not None:
        return torch.baddbmm(plus, x, weight)
    if not weight.requires_grad or not torch.is_grad_enabled():
        return x @ weight
    if not kernels.serves(x, weight):
        if weight.shape[2] > FEW or len(x) != len(weight):
            return x @ weight
        product = _Narrow.apply(x, weight)
        return product
    if weight.shape[1] <= TALL and weight.shape[2] <= WIDE:
        product = _Narrow.apply(x.expand(len(weight), -1, -1), weight)
        return product
    if len(x) == len(weight) and x.shape[1] % PIECES == 0 and not x.requires_grad:
        product = _InPieces.apply(x, weight)
        return product
    return x @ weight


def exact() -> bool:
    """Whether products must have all digits of float32, which cuBLAS takes without tensor cores."""
    return not torch.backends.cuda.matmul.allow_tf32


@contextmanager
def products_of(precision: str) -> Iterator[None]:
    """Inside, dense products on a GPU are of this precision: float32, or tf32 by tensor cores."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


class _Narrow(torch.autograd.Function):
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
        from bangs.kernels.spmm import tall

        return back, tall(x, gradient)


class _InPieces(torch.autograd.Function):
    """The gradient of a weight by lines that have none themselves; their number is a multiple of PIECES."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        (x,) = ctx.saved_tensors
        runs, lines, width = x.shape
        cut = x.reshape(runs * PIECES, lines // PIECES, width)
        parts = cut.transpose(1, 2) @ gradient.reshape(runs * PIECES, lines // PIECES, -1)
        return None, parts.view(runs, PIECES, width, -1).sum(1)


class _Wide(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, plus: Tensor | None, busy: Tensor | None) -> Tensor:
        from bangs.kernels.matmul import product

        ctx.save_for_backward(x, weight)
        ctx.busy, ctx.added = busy, plus is not None
        return product(x, weight, busy=busy, plus=plus)

    @staticmethod
    def backward(ctx: Any, pull: Tensor) -> tuple[Tensor | None, Tensor, Tensor | None, None]:
        from bangs.kernels.matmul import gradient, product

        x, weight = ctx.saved_tensors
        pull = pull.contiguous()
        back = product(pull, weight.transpose(1, 2), busy=ctx.busy) if ctx.needs_input_grad[0] else None
        return back, gradient(x, pull, weight.shape[1], busy=ctx.busy), pull if ctx.added else None, None
