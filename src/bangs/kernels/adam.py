"""A Triton kernel for Adam that skips inactive runs."""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024  # elements per program
BIAS_STEPS = 20_000  # after which Adam's bias corrections are 1 to the last bit


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
