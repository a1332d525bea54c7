"""Adam by torch's fused kernel, called directly.

`torch.optim.Adam(fused=True)` takes the same steps to the bit, but its bookkeeping is 7 to 9 % of an epoch of a small
model on a CPU (`benchmarks/adam.py`).
"""

from collections.abc import Sequence

import torch
from torch import Tensor


class Adam:
    """`torch.optim.Adam` with default betas; every weight has its own decay, and all state changes in place."""

    def __init__(self, weights: Sequence[Tensor], lr: float, decays: Sequence[float]):
        self.weights, self.lr, self.decays = weights, lr, decays
        # of every weight: the mean of its gradients, the mean of their squares, and the number of steps
        self.states = [
            (torch.zeros_like(weight), torch.zeros_like(weight), torch.zeros((), device=weight.device))
            for weight in weights
        ]

    def restart(self) -> None:
        """Reset the moments and the number of steps."""
        for state in self.states:
            for value in state:
                value.zero_()

    def zero_grad(self) -> None:
        """Remove the gradients."""
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One step of Adam."""
        for decay in dict.fromkeys(self.decays):
            parts = [
                (weight, weight.grad, *state)
                for weight, own_decay, state in zip(self.weights, self.decays, self.states, strict=True)
                if own_decay == decay and weight.grad is not None
            ]
            if not parts:
                continue
            weights, gradients, means, squares, steps = map(list, zip(*parts, strict=True))
            torch._foreach_add_(steps, 1)
            torch._fused_adam_(
                weights, gradients, means, squares, [], steps, lr=self.lr, beta1=0.9, beta2=0.999,
                weight_decay=decay, eps=1e-8, amsgrad=False, maximize=False,
            )  # fmt: skip
            torch.autograd.graph.increment_version(weights)  # torch's kernel does not do it
