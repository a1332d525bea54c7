"""Posterior: the uncertainty of a Bayesian linear model, which does not depend on the labels themselves."""

from dataclasses import dataclass

import torch
from torch import Tensor

NOISE = 0.1  # variance of a label around the linear model; points have a mean squared norm of one
CHUNK = 2**16  # points at once


@dataclass(frozen=True, eq=False)
class Posterior:
    """The covariance A = (I + Σ_i z_i z_iᵀ / NOISE)⁻¹ of the weights of a linear model with labels at some points."""

    covariance: Tensor  # float64 [d, d]

    @classmethod
    def of(cls, labelled: Tensor) -> "Posterior":
        """The posterior with labels at these points [n, d]."""
        return cls(torch.eye(labelled.shape[1], dtype=torch.float64)).updated(labelled)

    def updated(self, points: Tensor) -> "Posterior":
        """The posterior with more labels, at these points [n, d]; the order does not matter."""
        if not len(points):
            return self
        z = points.double()
        precision = torch.linalg.inv(self.covariance) + z.T @ z / NOISE
        return Posterior(torch.linalg.inv(precision))

    def variance(self, points: Tensor) -> Tensor:
        """zᵀ A z at every point: float [N]."""
        ridge = 1e-12 * torch.eye(len(self.covariance), dtype=torch.float64)
        root = torch.linalg.cholesky((self.covariance + self.covariance.T) / 2 + ridge)
        return _squared_norms(points, root)

    def gain(self, points: Tensor, gram: Tensor) -> Tensor:
        """By how much a label at every point lowers Σ_j w_j var_j: float [N].

        Σ_j w_j (z_iᵀ A z_j)² / (z_iᵀ A z_i + NOISE), with gram = Σ_j w_j z_j z_jᵀ; V-optimal design.
        """
        root = _square_root(self.covariance @ gram.double() @ self.covariance)
        return _squared_norms(points, root) / (self.variance(points) + NOISE)


def weighted_gram(points: Tensor, weight: Tensor) -> Tensor:
    """Σ_j w_j z_j z_jᵀ / N: float64 [d, d]."""
    total = torch.zeros(points.shape[1], points.shape[1], dtype=torch.float64)
    for z, w in zip(points.split(CHUNK), weight.split(CHUNK), strict=True):
        total += (z.T @ (z * w[:, None])).double()
    return total / max(len(points), 1)


def _squared_norms(points: Tensor, root: Tensor) -> Tensor:
    """|zᵀ R|² of every point: float [N]."""
    root = root.float()
    return torch.cat([(z @ root).square().sum(1) for z in points.split(CHUNK)])


def _square_root(matrix: Tensor) -> Tensor:
    """R with R Rᵀ = matrix, of a matrix that may be singular."""
    values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
    root: Tensor = vectors * values.clamp_min(0).sqrt()
    return root
