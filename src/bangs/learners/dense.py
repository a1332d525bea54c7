"""Products of every run's own lines with its own weight."""

from typing import Any

import torch
from torch import Tensor

from bangs import fused

WIDE = 64  # columns from which a product keeps the whole device busy by itself


def times(x: Tensor, weight: Tensor) -> Tensor:
    """The product [R, n, b] of x [R, n, a] and weight [R, a, b].

    On a GPU the gradient of a narrow weight, a sum over all n lines, is taken in many pieces at once; cuBLAS gives
    each run to a handful of its blocks.
    """
    if not fused.serves(x, weight) or not weight.requires_grad or weight.shape[2] > WIDE:
        return x @ weight
    product: Tensor = _Narrow.apply(x.expand(len(weight), -1, -1), weight)
    return product


class _Narrow(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor]:
        from bangs.fused.products import tall

        x, weight = ctx.saved_tensors
        back = gradient @ weight.transpose(1, 2) if ctx.needs_input_grad[0] else None
        return back, tall(x, gradient)
