"""Toy games whose values are known in closed form."""

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Additive:
    """Every player brings a fixed amount: U(S) = offset + Σ_{i∈S} a_i; value of player i: a_i, for every k."""

    amounts: Tensor  # float [R, K]
    offset: float = 0.0

    @property
    def runs(self) -> int:
        return self.amounts.shape[0]

    @property
    def players(self) -> int:
        return self.amounts.shape[1]

    @property
    def device(self) -> torch.device:
        return self.amounts.device

    def __call__(self, members: Tensor) -> Tensor:
        return self.offset + torch.einsum("rbk,rk->rb", members.to(self.amounts.dtype), self.amounts)


@dataclass(frozen=True)
class Majority:
    """A coalition of more than half the K players wins 1; value: C(K−1, h) / Σ_{m<k} C(K−1, m), h = ⌊K/2⌋ < k."""

    players: int
    runs: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def __call__(self, members: Tensor) -> Tensor:
        return (members.to(torch.float64).sum(2) > self.players / 2).to(torch.float64)


@dataclass(frozen=True)
class Glove:
    """Left and right gloves; a coalition is worth the pairs it can make: U(S) = min(left in S, right in S).

    With one left glove (player 0) and two right ones the unbounded Banzhaf values are 3/4, 1/4, 1/4.
    """

    left: int
    right: int
    runs: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def players(self) -> int:
        return self.left + self.right

    def __call__(self, members: Tensor) -> Tensor:
        held = members.to(torch.float64)
        return torch.minimum(held[..., : self.left].sum(2), held[..., self.left :].sum(2))


@dataclass(frozen=True, eq=False)
class Interacting:
    """A smooth game with interactions of every order: U(m) = Σ_h c_h exp(m · A_h), for memberships in [0, 1]."""

    strength: Tensor  # float [R, h, K], the A
    scale: Tensor  # float [R, h], the c

    @classmethod
    def random(cls, runs: int, players: int, seed: int = 0) -> "Interacting":
        """A game of four terms."""
        generator = torch.Generator().manual_seed(seed)
        strength = torch.randn(runs, 4, players, generator=generator, dtype=torch.float64) * 0.5
        return cls(strength, torch.randn(runs, 4, generator=generator, dtype=torch.float64))

    @property
    def runs(self) -> int:
        return self.strength.shape[0]

    @property
    def players(self) -> int:
        return self.strength.shape[2]

    @property
    def device(self) -> torch.device:
        return self.strength.device

    def __call__(self, members: Tensor) -> Tensor:
        power = torch.einsum("rbk,rhk->rbh", members.to(self.strength.dtype), self.strength)
        return (power.exp() * self.scale[:, None]).sum(2)
