"""Points: where nodes lie for the models of a fit, in few directions."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

WIDTH = 64  # directions kept
SAMPLE = 20_000  # nodes from which directions are found


def merged(inputs: Sequence[Tensor], weights: Sequence[float], width: int = WIDTH) -> Tensor:
    """The inputs [N, d_k] of several linear models as one: float [N, width].

    Inner products are about the weighted mean of theirs, Σ_k w_k ⟨z_ki, z_kj⟩: the first principal directions.
    """
    total = sum(weights)
    lengths = [float(part.square().sum(1).mean().sqrt()) for part in inputs]
    scales = [(weight / total) ** 0.5 / max(own, 1e-6) for own, weight in zip(lengths, weights, strict=True)]
    nodes, wide = len(inputs[0]), sum(part.shape[1] for part in inputs)
    if wide <= width:
        return torch.cat([part * scale for part, scale in zip(inputs, scales, strict=True)], 1)
    rows = torch.arange(nodes)
    if nodes > SAMPLE:
        rows = torch.from_numpy(np.random.default_rng(0).choice(nodes, SAMPLE, replace=False))
    drawn = torch.cat([part[rows] * scale for part, scale in zip(inputs, scales, strict=True)], 1).double()
    _, vectors = torch.linalg.eigh(drawn.T @ drawn)
    basis = vectors.flip(1)[:, :width].float()
    out, begin = torch.zeros(nodes, basis.shape[1]), 0
    for part, scale in zip(inputs, scales, strict=True):
        out += (part * scale) @ basis[begin : begin + part.shape[1]]
        begin += part.shape[1]
    return out
