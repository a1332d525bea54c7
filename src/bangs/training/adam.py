"""Adam: a step of torch's fused kernel, without the bookkeeping of an optimiser around it."""

from collections.abc import Sequence

import torch
from torch import Tensor


class Adam:
    """`torch.optim.Adam` with its usual betas, every weight with its own decay; what it keeps is changed in place."""

    def __init__(self, weights: Sequence[Tensor], lr: float, decays: Sequence[float]):
        self.lr = lr
        self.weights = list(weights)
        self.decays = list(decays)
        self.means = [torch.zeros_like(weight) for weight in weights]
        self.squares = [torch.zeros_like(weight) for weight in weights]
        self.turns = [torch.zeros((), device=weight.device) for weight in weights]

    def restart(self) -> None:
        """Forget every step."""
        for value in (*self.means, *self.squares, *self.turns):
            value.zero_()

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One step along the gradients."""
        for decay in dict.fromkeys(self.decays):
            self._step(decay)

    def _step(self, decay: float) -> None:
        """A step of the weights with this decay."""
        weights, gradients, means, squares, turns = [], [], [], [], []
        for number, weight in enumerate(self.weights):
            if weight.grad is not None and self.decays[number] == decay:
                weights.append(weight)
                gradients.append(weight.grad)
                means.append(self.means[number])
                squares.append(self.squares[number])
                turns.append(self.turns[number])
        if not weights:
            return
        torch._foreach_add_(turns, 1)
        torch._fused_adam_(
            weights, gradients, means, squares, [], turns, lr=self.lr, beta1=0.9, beta2=0.999,
            weight_decay=decay, eps=1e-8, amsgrad=False, maximize=False,
        )  # fmt: skip
        torch.autograd.graph.increment_version(weights)  # which torch's kernel forgets
