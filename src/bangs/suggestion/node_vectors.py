"""Node vectors: the input spaces of several linear models merged into one of few dimensions."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

WIDTH = 64
MAX_SAMPLED_NODES = 20_000  # for the principal directions


def merged(inputs: Sequence[Tensor], weights: Sequence[float], width: int = WIDTH) -> Tensor:
    """The inputs [N, d_k] of several linear models as one space: float [N, width].

    Inner products approximate the weighted mean of theirs, Σ_k w_k ⟨z_ki, z_kj⟩, by the first principal directions.
    """
    total = sum(weights)
    norms = [float(z.square().sum(1).mean().sqrt()) for z in inputs]
    scales = [(weight / total) ** 0.5 / max(norm, 1e-6) for norm, weight in zip(norms, weights, strict=True)]
    nodes = len(inputs[0])
    if sum(z.shape[1] for z in inputs) <= width:
        return torch.cat([z * scale for z, scale in zip(inputs, scales, strict=True)], 1)
    rows = torch.arange(nodes)
    if nodes > MAX_SAMPLED_NODES:
        rows = torch.from_numpy(np.random.default_rng(0).choice(nodes, MAX_SAMPLED_NODES, replace=False))
    sample = torch.cat([z[rows] * scale for z, scale in zip(inputs, scales, strict=True)], 1).double()
    _, vectors = torch.linalg.eigh(sample.T @ sample)
    basis = vectors.flip(1)[:, :width].float()
    out = torch.zeros(nodes, basis.shape[1])
    for z, scale, directions in zip(inputs, scales, basis.split([z.shape[1] for z in inputs]), strict=True):
        out += (z * scale) @ directions
    return out
