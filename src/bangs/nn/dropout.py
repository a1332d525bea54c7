"""Dropout masks that every run draws from its own random stream."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bangs import kernels


class DropoutMasks:
    """Dropout masks with one generator per run, which advances with every mask.

    A mask compares 16-bit integers with a threshold, so the rate is exact to 2⁻¹⁶. Four of them come from one 64-bit
    number, which is ten times as fast on a CPU as `torch.dropout`.
    """

    def __init__(self, generators: Sequence[torch.Generator], rate: float | None = None):
        self.generators = list(generators)
        self.rate = rate  # replaces the rates of the model

    def restart(self, numbers: Sequence[int]) -> None:
        """Seed every run again with its own number."""
        for generator, number in zip(self.generators, numbers, strict=True):
            generator.manual_seed(number)

    def keep_mask(self, shape: tuple[int, ...], rate: float) -> Tensor:
        """1 where dropout keeps a value, else 0: float [R, *shape]."""
        count = math.prod(shape)
        out = torch.empty(len(self.generators), count, device=self.generators[0].device)
        for run, mask in enumerate(out):
            draws = self._random_numbers(run, (count + 3) // 4).view(torch.int16)[:count]
            # 0 or 1 in place, which a CPU converts to float faster than bool
            mask.copy_(draws.ge_(round(rate * 65536) - 32768))
        return out.view(-1, *shape)

    def factors(self, shape: tuple[int, ...], rate: float) -> Tensor:
        """The factors of inverted dropout, 0 or 1/(1−rate): float [R, *shape]."""
        return self.keep_mask(shape, rate).mul_(1 / (1 - rate))

    def drop(self, x: Tensor, rate: float) -> Tensor:
        """Inverted dropout of x [R, …]; a shared x [1, …] gets one mask per run."""
        rate = rate if self.rate is None else self.rate
        if rate <= 0 or x.numel() == 0:  # a subgraph's sparse features may be empty
            return x
        factors = self.factors(tuple(x.shape[1:]), rate)
        # on a CPU a product is ten times as fast as torch.where, and so is its gradient
        return x * factors if x.requires_grad else factors.mul_(x)

    def activate(self, x: Tensor, bias: Tensor, rate: float) -> Tensor:
        """Dropout of relu(x + bias): x [R, n, h], bias [R, 1, h]."""
        rate = rate if self.rate is None else self.rate
        if rate <= 0:
            return (x + bias).relu_()
        return _Activation.apply(x, bias, self, rate)

    def activated(self, x: Tensor, bias: Tensor, rate: float) -> Tensor:
        """`activate` without a gradient, at this rate."""
        scale = 1 / (1 - rate)
        return torch.add(bias * scale, x, alpha=scale).relu_().mul_(self.keep_mask(tuple(x.shape[1:]), rate))

    def _random_numbers(self, run: int, count: int) -> Tensor:
        """The next 64-bit random numbers of a run: long [count]."""
        generator = self.generators[run]
        return torch.empty(count, dtype=torch.int64, device=generator.device).random_(
            -(2**63), None, generator=generator
        )


class NumpyMasks(DropoutMasks):
    """Dropout masks on a CPU by numpy's PCG64DXSM, three times as fast as torch's generators."""

    def __init__(self, numbers: Sequence[int], rate: float | None = None):
        super().__init__([torch.Generator() for _ in numbers], rate)
        self.restart(numbers)

    def restart(self, numbers: Sequence[int]) -> None:
        super().restart(numbers)
        self.bit_generators = [np.random.PCG64DXSM(number) for number in numbers]

    def _random_numbers(self, run: int, count: int) -> Tensor:
        return torch.from_numpy(self.bit_generators[run].random_raw(count).view(np.int64))


class CounterMasks(DropoutMasks):
    """Dropout masks on a GPU, a pure function of a run's seed and a counter of masks."""

    def __init__(self, numbers: Sequence[int], device: torch.device, rate: float | None = None):
        super().__init__((), rate)
        self.numbers = torch.tensor(numbers, device=device)
        self.counter = torch.zeros((), dtype=torch.int64, device=device)

    def restart(self, numbers: Sequence[int]) -> None:
        self.numbers.copy_(torch.tensor(numbers))
        self.counter.zero_()

    def factors(self, shape: tuple[int, ...], rate: float) -> Tensor:
        from bangs.kernels.dropout import mask

        factors = mask(self.numbers, self.counter, math.prod(shape), rate)
        self.counter.add_(1)
        return factors.view(-1, *shape)

    def activated(self, x: Tensor, bias: Tensor, rate: float) -> Tensor:
        from bangs.kernels.dropout import activate

        out = activate(x.contiguous(), bias.contiguous(), self.numbers, self.counter, rate)
        self.counter.add_(1)
        return out


class _Activation(torch.autograd.Function):
    """Dropout of relu(x + bias); the backward pass reads the mask from the output."""

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
            from bangs.kernels.dropout import activate_back

            return *activate_back(out, gradient, ctx.rate), None, None
        # an ELU without its exponential part is a ReLU, and its gradient includes the scale
        back = torch.ops.aten.elu_backward(gradient, 0.0, 1 / (1 - ctx.rate), 1.0, True, out)
        return back, back.sum(1, keepdim=True), None, None


def dropout_masks(numbers: Sequence[int], device: torch.device, rate: float | None = None) -> DropoutMasks:
    """The fastest dropout masks for the device, each run seeded with its own number."""
    if kernels.serves(torch.empty(0, device=device)):
        return CounterMasks(numbers, device, rate)
    if device.type == "cpu":
        return NumpyMasks(numbers, rate)
    return DropoutMasks([torch.Generator(device).manual_seed(number) for number in numbers], rate)
