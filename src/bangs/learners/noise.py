"""Noise: dropout whose random numbers belong to a run, not to the batch it happens to be in."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bangs import fused


class Noise:
    """Dropout masks drawn run by run; the generators advance with every draw.

    Masks compare 16-bit integers with a threshold, so a rate is met to within 2⁻¹⁶; four come out of one 64-bit
    draw, which is an order of magnitude faster on a CPU than `torch.dropout`.
    """

    def __init__(self, generators: Sequence[torch.Generator], rate: float | None = None):
        self.generators = list(generators)
        self.rate = rate  # instead of the rates a model asks for

    def restart(self, numbers: Sequence[int]) -> None:
        """Begin again, every run from its own number."""
        for generator, number in zip(self.generators, numbers, strict=True):
            generator.manual_seed(number)

    def factors(self, shape: tuple[int, ...], rate: float) -> Tensor:
        """What dropout multiplies with, 0 or 1/(1−rate): float [R, *shape]."""
        count = math.prod(shape)
        words = (count + 3) // 4
        device = self.generators[0].device
        bits = torch.empty(len(self.generators), words, dtype=torch.int64, device=device)
        for row, generator in zip(bits, self.generators, strict=True):
            row.random_(-(2**63), None, generator=generator)
        draws = bits.view(torch.int16)[:, :count]
        kept = draws.ge_(
            round(rate * 65536) - 32768
        )  # 0 or 1 in place, which a processor turns to float faster than bool
        return kept.float().mul_(1 / (1 - rate)).view(len(self.generators), *shape)

    def drop(self, x: Tensor, rate: float) -> Tensor:
        """Inverted dropout of x [R, …]; a shared x [1, …] gets one mask per run."""
        rate = rate if self.rate is None else self.rate
        if rate <= 0:
            return x
        # a product is an order of magnitude faster than torch.where on a CPU, and so is its gradient
        return x * self.factors(tuple(x.shape[1:]), rate)

    def activate(self, x: Tensor, bias: Tensor, rate: float) -> Tensor:
        """Dropout of relu(x + bias): x [R, n, h], bias [R, 1, h]."""
        return self.drop((x + bias).relu_(), rate)


class Counted(Noise):
    """Dropout on a GPU without generators: a mask is a pure function of a run's number and how many were drawn."""

    def __init__(self, numbers: Sequence[int], device: torch.device, rate: float | None = None):
        super().__init__((), rate)
        self.numbers = torch.tensor(numbers, device=device)
        self.drawn = torch.zeros((), dtype=torch.int64, device=device)

    def restart(self, numbers: Sequence[int]) -> None:
        self.numbers.copy_(torch.tensor(numbers))
        self.drawn.zero_()

    def factors(self, shape: tuple[int, ...], rate: float) -> Tensor:
        from bangs.fused.steps import mask

        factors = mask(self.numbers, self.drawn, math.prod(shape), rate)
        self.drawn.add_(1)
        return factors.view(-1, *shape)

    def activate(self, x: Tensor, bias: Tensor, rate: float) -> Tensor:
        rate = rate if self.rate is None else self.rate
        if rate <= 0:
            return super().activate(x, bias, rate)
        out: Tensor = _Activation.apply(x, bias, self, rate)
        self.drawn.add_(1)
        return out


class _Activation(torch.autograd.Function):
    """One kernel forward; backward, what came out says what was kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, noise: Counted, rate: float) -> Tensor:
        from bangs.fused.steps import activate

        out = activate(x.contiguous(), bias.contiguous(), noise.numbers, noise.drawn, rate)
        ctx.save_for_backward(out)
        ctx.rate = rate
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        from bangs.fused.steps import passed

        (out,) = ctx.saved_tensors
        back, bias = passed(out, gradient, ctx.rate)
        return back, bias, None, None


def source(numbers: Sequence[int], device: torch.device, rate: float | None = None) -> Noise:
    """The noise that suits the device, every run from its own number."""
    if fused.serves(torch.empty(0, device=device)):
        return Counted(numbers, device, rate)
    drawn = Noise([torch.Generator(device) for _ in numbers], rate)
    drawn.restart(numbers)
    return drawn
