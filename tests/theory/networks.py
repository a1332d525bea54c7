"""Small graph convolutional networks in torch, and the influence of Def. 3.1 from their Jacobians."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from tests.theory.definitions import Array, normalised

NODES, FEATURES, HIDDEN, CLASSES = 20, 5, 8, 3


def weights(layers: int, seed: int, hidden: int = HIDDEN) -> list[Tensor]:
    rng = np.random.default_rng(seed)
    sizes = [FEATURES, *[hidden] * (layers - 1), CLASSES]
    return [torch.tensor(rng.standard_normal(pair) / pair[0] ** 0.5) for pair in pairwise(sizes)]


def network(step: Array, layers: list[Tensor], gate: Callable[[Tensor, int], Tensor]) -> Callable[[Tensor], Tensor]:
    """x^(l) = gate(Ã x^(l−1) W^(l)), the last layer without a gate: [N, F] to [N, C]."""
    move = torch.tensor(step)

    def run(x: Tensor) -> Tensor:
        for depth, weight in enumerate(layers):
            x = move @ x @ weight
            if depth < len(layers) - 1:
                x = gate(x, depth)
        return x

    return run


def linear(x: Tensor, depth: int) -> Tensor:
    return x


def relu(x: Tensor, depth: int) -> Tensor:
    return x.relu()


def influence(jacobian: Tensor) -> Array:
    """Def. 3.1 from the expected Jacobian [j, C, i, F]: row j has the influences on j. [N, N]"""
    return normalised(jacobian.abs().sum((1, 3)).numpy())


def inputs(draws: int, seed: int, nodes: int = NODES) -> Tensor:
    return torch.tensor(np.random.default_rng(seed).standard_normal((draws, nodes, FEATURES)))
