"""Coalitions of bounded size, drawn exactly: how many members, then which."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor

from bangs.errors import InvalidInput

Law = Literal["uniform", "regression"]


def draw(players: int, k: int, count: int, generators: Sequence[torch.Generator], law: Law = "uniform") -> Tensor:
    """Coalitions of at most k of K players: bool [R, B, K], run r drawn from generator r alone.

    The size m is drawn from its exact distribution and the members uniformly among those of that size, so nothing
    is rejected, whatever K and k. Under `uniform` every coalition is equally likely, P(m) ∝ C(K, m); under
    `regression` P(m) ∝ η_m C(K, m) with the weights of `regression_weights`.
    """
    check(players, k)
    probabilities = size_law(players, k, law)
    return torch.stack([_subsets(_sizes(probabilities, count, g), players, g) for g in generators])


def blocks(players: int, limit: int, count: int, generators: Sequence[torch.Generator]) -> Tensor:
    """Coalitions of at most `limit` of K players that share the players evenly among them: bool [R, B, K].

    Each coalition follows the `uniform` law of `draw`, but they are not independent: as many as fit are laid side by
    side on one random order of the players, then a fresh order follows. So all players join about equally often, and
    what a player's companions add to a mean over coalitions hardly depends on the draw.
    """
    law = size_law(players, limit)
    mean = float(law @ torch.arange(len(law), dtype=torch.float64))
    lap = min(count, max(1, round(players / max(mean, 1.0))))
    return torch.stack([_laps(law, players, lap, -(-count // lap), g)[:count] for g in generators])


def every(players: int, k: int, device: torch.device | str = "cpu") -> Tensor:
    """All coalitions of at most k players: bool [B, K], B = Σ_{m≤k} C(K, m)."""
    check(players, k)
    if players > 20:
        raise InvalidInput(
            f"all coalitions of {players} players are too many to list; use an estimator that draws them, such as wls"
        )
    number = torch.arange(2**players, device=device)
    members = (number[:, None] >> torch.arange(players, device=device) & 1).bool()
    return members[members.sum(1) <= k]


def size_law(players: int, k: int, law: Law = "uniform") -> Tensor:
    """The distribution of a coalition's size: float64 [min(k, K) + 1], computed from log-binomials."""
    logs = log_binomials(players)[: min(k, players) + 1]
    if law == "regression":
        logs = logs + regression_weights(players, k).log()
    return logs.softmax(0)


def marginal_law(players: int, k: int) -> Tensor:
    """The distribution of |T| in the value's definition, w_m ∝ C(K−1, m) for m < k: float64 [min(k, K)]."""
    return log_binomials(players - 1)[: min(k, players)].softmax(0)


@lru_cache
def mean_share(players: int, k: int) -> float:
    """q = E|T| / (K − 1), the share of the other players that a drawn T holds; 0 if there are none."""
    law = marginal_law(players, k)
    return float(law @ torch.arange(len(law), dtype=torch.float64)) / max(players - 1, 1)


def regression_weights(players: int, k: int) -> Tensor:
    """η_m = [1 ≤ m] + [m < min(k, K)] for m ≤ min(k, K): float64 [min(k, K) + 1].

    With these weights a least-squares fit of U on membership has the k-bounded Banzhaf values as its slopes, up to
    one constant (Li and Yu 2024, theorem 2): 2 below size k, 1 at size k. The empty coalition may weigh anything.
    """
    top = min(k, players)
    weights = torch.full((top + 1,), 2.0, dtype=torch.float64)
    weights[0] = weights[top] = 1.0
    return weights


def log_binomials(n: int) -> Tensor:
    """log C(n, m) for m = 0 … n: float64 [n + 1]."""
    m = torch.arange(n + 1, dtype=torch.float64)
    return math.lgamma(n + 1) - torch.lgamma(m + 1) - torch.lgamma(n - m + 1)


def check(players: int, k: int) -> None:
    """Raises where there is nobody to play or no coalition to join."""
    if players < 1:
        raise InvalidInput(f"a game needs at least 1 player, got {players}")
    if k < 1:
        raise InvalidInput(f"k, the largest size of a coalition, must be at least 1, got {k}")


def _sizes(probabilities: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Sizes drawn by inverting the cumulated distribution: long [B]."""
    cumulated = probabilities.cumsum(0).to(generator.device)
    chance = torch.rand(count, dtype=torch.float64, generator=generator, device=generator.device)
    return torch.searchsorted(cumulated, chance, right=True).clamp(max=len(probabilities) - 1)


def _laps(law: Tensor, players: int, lap: int, laps: int, generator: torch.Generator) -> Tensor:
    """`laps` random orders of the players, each cut into `lap` coalitions: bool [laps · lap, K]."""
    sizes = _sizes(law, laps * lap, generator).view(laps, lap, 1)
    position = torch.rand(laps, 1, players, generator=generator, device=generator.device).argsort(2)
    # an order is a circle, so that a lap may be longer than the players are many
    distance = (position - sizes.cumsum(1) + sizes) % players
    return (distance < sizes).flatten(0, 1)


def _subsets(sizes: Tensor, players: int, generator: torch.Generator) -> Tensor:
    """A uniform subset of each size: bool [B, K]; the first players of a random order join."""
    order = torch.rand(len(sizes), players, generator=generator, device=generator.device).argsort(1)
    joins = torch.arange(players, device=generator.device) < sizes[:, None]
    return torch.zeros_like(joins).scatter(1, order, joins)
