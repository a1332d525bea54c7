"""DropoutMasks: dropout whose random numbers belong to a run, not to the batch it happens to be in."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bangs import kernels


class DropoutMasks:
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

    def kept(self, shape: tuple[int, ...], rate: float) -> Tensor:
        """One where dropout leaves a value and zero where it takes it: float [R, *shape]."""
        count = math.prod(shape)
        out = torch.empty(len(self.generators), count, device=self.generators[0].device)
        for run, own in enumerate(out):
            draws = self._words(run, (count + 3) // 4).view(torch.int16)[:count]
            # 0 or 1 in place, which a processor turns to float faster than bool
            own.copy_(draws.ge_(round(rate * 65536) - 32768))
        return out.view(-1, *shape)

    def factors(self, shape: tuple[int, ...], rate: float) -> Tensor:
        """What dropout multiplies with, 0 or 1/(1−rate): float [R, *shape]."""
        return self.kept(shape, rate).mul_(1 / (1 - rate))

    def drop(self, x: Tensor, rate: float) -> Tensor:
        """Inverted dropout of x [R, …]; a shared x [1, …] gets one mask per run."""
        rate = rate if self.rate is None else self.rate
        if rate <= 0 or x.numel() == 0:  # sparse features may have no entry near the labelled nodes
            return x
        factors = self.factors(tuple(x.shape[1:]), rate)
        # a product is an order of magnitude faster than torch.where on a CPU, and so is its gradient
        return x * factors if x.requires_grad else factors.mul_(x)

    def activate(self, x: Tensor, bias: Tensor, rate: float) -> Tensor:
        """Dropout of relu(x + bias): x [R, n, h], bias [R, 1, h]."""
        rate = rate if self.rate is None else self.rate
        if rate <= 0:
            return (x + bias).relu_()
        out: Tensor = _Activation.apply(x, bias, self, rate)
        return out

    def activated(self, x: Tensor, bias: Tensor, rate: float) -> Tensor:
        """The same without a gradient, at this rate."""
        scale = 1 / (1 - rate)
        return torch.add(bias * scale, x, alpha=scale).relu_().mul_(self.kept(tuple(x.shape[1:]), rate))

    def _words(self, run: int, count: int) -> Tensor:
        """The next 64-bit words of a run, all values alike: long [count]."""
        generator = self.generators[run]
        return torch.empty(count, dtype=torch.int64, device=generator.device).random_(
            -(2**63), None, generator=generator
        )


class Numpy(DropoutMasks):
    """Dropout on a CPU by numpy's PCG64DXSM, three times as fast as torch's generators, which stock modules need."""

    def __init__(self, numbers: Sequence[int], rate: float | None = None):
        super().__init__([torch.Generator() for _ in numbers], rate)
        self.restart(numbers)

    def restart(self, numbers: Sequence[int]) -> None:
        super().restart(numbers)
        self.sources = [np.random.PCG64DXSM(number) for number in numbers]

    def _words(self, run: int, count: int) -> Tensor:
        return torch.from_numpy(self.sources[run].random_raw(count).view(np.int64))


class Counted(DropoutMasks):
    """Dropout on a GPU without generators: a mask is a pure function of a run's number and how many were drawn."""

    def __init__(self, numbers: Sequence[int], device: torch.device, rate: float | None = None):
        super().__init__((), rate)
        self.numbers = torch.tensor(numbers, device=device)
        self.drawn = torch.zeros((), dtype=torch.int64, device=device)

    def restart(self, numbers: Sequence[int]) -> None:
        self.numbers.copy_(torch.tensor(numbers))
        self.drawn.zero_()

    def factors(self, shape: tuple[int, ...], rate: float) -> Tensor:
        from bangs.kernels.epoch import mask

        factors = mask(self.numbers, self.drawn, math.prod(shape), rate)
        self.drawn.add_(1)
        return factors.view(-1, *shape)

    def activated(self, x: Tensor, bias: Tensor, rate: float) -> Tensor:
        from bangs.kernels.epoch import activate

        out = activate(x.contiguous(), bias.contiguous(), self.numbers, self.drawn, rate)
        self.drawn.add_(1)
        return out


class _Activation(torch.autograd.Function):
    """Backward, what came out says what was kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, masks: DropoutMasks, rate: float) -> Tensor:
        out = masks.activated(x, bias, rate)
        ctx.save_for_backward(out)
        ctx.rate = rate
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (out,) = ctx.saved_tensors
        if kernels.serves(out, gradient):
            from bangs.kernels.epoch import passed

            return *passed(out, gradient, ctx.rate), None, None
        # an exponential linear unit without its exponential part is a relu, and its gradient takes the scale along
        back = torch.ops.aten.elu_backward(gradient, 0.0, 1 / (1 - ctx.rate), 1.0, True, out)
        return back, back.sum(1, keepdim=True), None, None


def source(numbers: Sequence[int], device: torch.device, rate: float | None = None) -> DropoutMasks:
    """The noise that suits the device, every run from its own number."""
    if kernels.serves(torch.empty(0, device=device)):
        return Counted(numbers, device, rate)
    if device.type == "cpu":
        return Numpy(numbers, rate)
    drawn = DropoutMasks([torch.Generator(device) for _ in numbers], rate)
    drawn.restart(numbers)
    return drawn
