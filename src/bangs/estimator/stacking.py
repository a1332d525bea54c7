"""Stacking: how much each member counts, by what it says of nodes it has not learned."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from bangs.calibration.scaling import shrunk_temperature
from bangs.core.intervals import Z, wilson
from bangs.core.types import Prediction, Task

PRIOR = 0.1  # labels that every member has for nothing, so that few labels leave members alike
SPREAD = 1.0  # standard deviation of log temperatures beforehand
FACTORS = tuple(step / 20 for step in range(-20, 21))  # logarithms of factors that are tried
LEAST = 0.02  # a member of less weight is left out


def stacking_weights(likely: Tensor) -> Tensor:
    """Weights [K] of K members that sum to one, from the probabilities [K, M] they give to unseen labels.

    Maximises Σ_i log Σ_k w_k p_ki + prior · Σ_k log w_k by expectation maximisation; it has one maximum. Members that
    cannot be told apart share the weight, one that is clearly behind gets next to none. Weights below 2 % become 0.
    """
    likely = likely.double().clamp_min(1e-12)
    weights = likely.new_full((len(likely),), 1 / len(likely))
    for _ in range(500):
        part = weights[:, None] * likely
        new = (part / part.sum(0)).sum(1) + PRIOR
        new = new / new.sum()
        done = bool((new - weights).abs().max() < 1e-9)
        weights = new
        if done:
            break
    kept = torch.where(weights < min(LEAST, float(weights.max())), 0.0, weights)
    return kept / kept.sum()


def member_temperatures(unseen: Sequence[Tensor], label: Tensor) -> Tensor:
    """The temperature of each of K members by M labels long it has not learned, float64 [K]; few leave it near 1."""
    task = Task(None, None, label.expand(len(unseen), -1), unseen[0].shape[-1])  # type: ignore[arg-type]  # no graph
    return shrunk_temperature(Prediction(torch.stack(list(unseen))), task, SPREAD)


def common_factor(unseen: Sequence[Tensor], weights: Tensor, label: Tensor) -> float:
    """The factor t, for the temperatures of all K members, under which their weighted mean likes M labels best.

    Maximises Σ_i log Σ_k w_k softmax(z_ki / t)_{y_i} − (log t)² / (2 spread²) over a grid: a mean of models is less
    sure than each of them.
    """
    nodes = torch.arange(len(label))

    def merit(log: float) -> float:
        likely = mixture([own.double() / math.exp(log) for own in unseen], weights)[nodes, label]
        return float(likely.clamp_min(-50).sum()) - log**2 / (2 * SPREAD**2)

    return math.exp(max(FACTORS, key=merit))


def mixture(logs: list[Tensor], weights: Tensor) -> Tensor:
    """The log of the weighted mean of probabilities: float [N, C] from K log-probabilities [N, C]."""
    total = None
    for own, weight in zip(logs, weights.tolist(), strict=True):
        if weight > 0:
            part = own.log_softmax(-1) + torch.tensor(weight, dtype=own.dtype).log()
            total = part if total is None else torch.logaddexp(total, part)
    assert total is not None  # weights sum to one
    return total


def share_interval(right: Tensor) -> dict[str, float]:
    """A share of successes bool [M] with Wilson's 95 % interval: value, low, high and nodes."""
    nodes = len(right)
    share = float(right.double().mean()) if nodes else float("nan")
    low, high = wilson(share, nodes)
    return {"value": share, "low": low, "high": high, "nodes": nodes}


def mean_interval(value: Tensor) -> dict[str, float]:
    """The mean of log-probabilities [M] with a normal 95 % interval, not above 0: value, low, high and nodes."""
    nodes = len(value)
    mean = float(value.double().mean()) if nodes else float("nan")
    half = Z * float(value.double().std()) / nodes**0.5 if nodes > 1 else 0.0
    return {"value": mean, "low": mean - half, "high": min(mean + half, 0.0), "nodes": nodes}


def far_behind(own: Tensor, best: Tensor) -> bool:
    """Whether log-probabilities of unseen labels [M] are behind others by more than two standard errors."""
    gap = own - best
    if len(gap) < 2:
        return False
    return bool(gap.mean() < -2.0 * gap.std() / len(gap) ** 0.5)
