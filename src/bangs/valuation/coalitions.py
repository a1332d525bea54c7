"""Random coalitions of bounded size: first the size, then the members."""

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

    The size m is drawn from its exact distribution, then the members uniformly, so no draw is rejected. Under `uniform`
    every coalition is equally likely, P(m) ∝ C(K, m); under `regression` P(m) ∝ η_m C(K, m) with `regression_weights`.
    """
    check(players, k)
    chance, order = _random_orders(count, (count, players), generators)
    sizes = _sizes(size_law(players, k, law), chance)
    is_member = torch.arange(players, device=sizes.device) < sizes[..., None]
    # the first players of a random order are members
    return torch.zeros_like(is_member).scatter(2, order, is_member)


def blocks(players: int, limit: int, count: int, generators: Sequence[torch.Generator]) -> Tensor:
    """Coalitions of at most `limit` of K players in which all players occur about equally often: bool [R, B, K].

    Each coalition has the `uniform` distribution of `draw`, but they are not independent: one random order of the
    players is divided into as many coalitions as fit, then a new order follows. So the contribution of the other
    players to a mean over coalitions has little variance.
    """
    law = size_law(players, limit)
    mean = float(law @ torch.arange(len(law), dtype=torch.float64))
    per_order = min(count, max(1, round(players / max(mean, 1.0))))
    orders = -(-count // per_order)
    chance, position = _random_orders(orders * per_order, (orders, 1, players), generators)
    sizes = _sizes(law, chance).view(-1, orders, per_order, 1)
    # an order is circular, since the sizes may add up to more than K
    distance = (position - sizes.cumsum(2) + sizes) % players
    return (distance < sizes).flatten(1, 2)[:, :count]


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
    """q = E|T| / (K − 1), the expected share of the other players in T; 0 if there are none."""
    law = marginal_law(players, k)
    return float(law @ torch.arange(len(law), dtype=torch.float64)) / max(players - 1, 1)


def regression_weights(players: int, k: int) -> Tensor:
    """η_m = [1 ≤ m] + [m < min(k, K)] for m ≤ min(k, K): float64 [min(k, K) + 1].

    With these weights a least-squares fit of U on membership has the k-bounded Banzhaf values as its slopes, up to
    one constant (Li and Yu 2024, theorem 2): 2 below size k, 1 at size k. The weight at size 0 is arbitrary.
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
    """Raises `InvalidInput` if there is no player or k is less than 1."""
    if players < 1:
        raise InvalidInput(f"a game needs at least 1 player, got {players}")
    if k < 1:
        raise InvalidInput(f"k, the largest size of a coalition, must be at least 1, got {k}")


def _random_orders(sizes: int, orders: tuple[int, ...], generators: Sequence[torch.Generator]) -> tuple[Tensor, Tensor]:
    """Uniform numbers float64 [R, sizes] and random orders long [R, …, K], run r from generator r alone."""
    chances, keys = [], []
    for generator in generators:
        chances.append(torch.rand(sizes, dtype=torch.float64, generator=generator, device=generator.device))
        keys.append(torch.rand(orders, generator=generator, device=generator.device))
    return torch.stack(chances), torch.stack(keys).argsort(dim=-1, stable=True)


def _sizes(probabilities: Tensor, chance: Tensor) -> Tensor:
    """Sizes by inverse transform sampling: long [R, B]."""
    cumulative = probabilities.cumsum(0).to(chance.device)
    return torch.searchsorted(cumulative, chance, right=True).clamp(max=len(probabilities) - 1)
