"""Posterior: how sure a linear model of the places of nodes would be, whatever their labels are."""

from dataclasses import dataclass

import torch
from torch import Tensor

NOISE = 0.1  # variance of a label around the linear model; places have a mean squared length of one
PIECE = 2**16  # nodes at once


@dataclass(frozen=True, eq=False)
class Posterior:
    """The covariance A = (I + Σ_i z_i z_iᵀ / NOISE)⁻¹ of the weights of a linear model with labels at some places."""

    covariance: Tensor  # float64 [d, d]

    @classmethod
    def of(cls, labelled: Tensor) -> "Posterior":
        """The posterior with labels at these places [n, d]."""
        return cls(torch.eye(labelled.shape[1], dtype=torch.float64)).beside(labelled)

    def beside(self, places: Tensor) -> "Posterior":
        """The posterior with more labels, at these places [n, d]; the order does not matter."""
        if not len(places):
            return self
        z = places.double()
        precision = torch.linalg.inv(self.covariance) + z.T @ z / NOISE
        return Posterior(torch.linalg.inv(precision))

    def variance(self, places: Tensor) -> Tensor:
        """zᵀ A z at every place: float [N]."""
        ridge = 1e-12 * torch.eye(len(self.covariance), dtype=torch.float64)
        root = torch.linalg.cholesky((self.covariance + self.covariance.T) / 2 + ridge).float()
        return torch.cat([(part @ root).square().sum(1) for part in places.split(PIECE)])

    def gain(self, places: Tensor, mass: Tensor) -> Tensor:
        """By how much a label at every place lowers Σ_j w_j var_j: float [N].

        Σ_j w_j (z_iᵀ A z_j)² / (z_iᵀ A z_i + NOISE), with mass = Σ_j w_j z_j z_jᵀ; V-optimal design.
        """
        inner = self.covariance @ mass.double() @ self.covariance
        root = _root(inner).float()
        moved = torch.cat([(part @ root).square().sum(1) for part in places.split(PIECE)])
        return moved / (self.variance(places) + NOISE)


def weighted_gram(places: Tensor, weight: Tensor) -> Tensor:
    """Σ_j w_j z_j z_jᵀ / N: float64 [d, d]."""
    total = torch.zeros(places.shape[1], places.shape[1], dtype=torch.float64)
    for part, own in zip(places.split(PIECE), weight.split(PIECE), strict=True):
        total += (part.T @ (part * own[:, None])).double()
    return total / max(len(places), 1)


def _root(matrix: Tensor) -> Tensor:
    """R with R Rᵀ = matrix, of a matrix that may be singular."""
    values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
    found: Tensor = vectors * values.clamp_min(0).sqrt()
    return found
