"""Batch normalisation along a run axis (Ioffe & Szegedy 2015)."""

import torch
from torch import Tensor, nn

MOMENTUM = 0.1  # of the running mean and variance
EPSILON = 1e-5


class BatchNorm(nn.Module):
    """Normalises every run's columns [R, n, d] to mean 0 and variance 1 over its nodes, then scales and shifts them.

    Training uses the statistics of its nodes and updates running ones; inference uses the running ones.
    """

    def __init__(self, runs: int, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(runs, 1, width))
        self.shift = nn.Parameter(torch.zeros(runs, 1, width))
        self.mean: Tensor
        self.variance: Tensor
        self.register_buffer("mean", torch.zeros(runs, 1, width))
        self.register_buffer("variance", torch.ones(runs, 1, width))

    def normalise_batch(self, x: Tensor) -> Tensor:
        """x [R, n, d] normalised by its own mean and variance, which update the running ones."""
        mean, variance = x.mean(1, keepdim=True), x.var(1, keepdim=True, correction=0)
        with torch.no_grad():
            n = x.shape[1]
            self.mean.lerp_(mean, MOMENTUM)
            self.variance.lerp_(variance * (n / max(n - 1, 1)), MOMENTUM)
        return (x - mean) * (variance + EPSILON).rsqrt() * self.scale + self.shift

    def forward(self, x: Tensor) -> Tensor:
        """x [R, n, d] normalised by the running mean and variance."""
        factor, offset = self.affine()
        return x * factor + offset

    def affine(self) -> tuple[Tensor, Tensor]:
        """The factor and the offset [R, 1, d] of the normalisation by the running mean and variance."""
        factor = self.scale * (self.variance + EPSILON).rsqrt()
        return factor, self.shift - self.mean * factor
