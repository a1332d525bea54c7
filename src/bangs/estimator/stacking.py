"""Stacking: weights and temperatures of members, from their out-of-fold predictions."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from bangs.calibration.logit_scaling import shrunk_temperature
from bangs.core.intervals import Z, wilson
from bangs.core.types import Prediction, Task
from bangs.estimator.folds import label_log_probs

PRIOR_LABELS = 0.1  # imagined labels of every member; with few labels, they keep the weights nearly equal
LOG_TEMPERATURE_STD = 1.0  # prior standard deviation of a log temperature
LOG_FACTORS = tuple(step / 20 for step in range(-20, 21))  # the grid of `common_factor`
MIN_WEIGHT = 0.02  # a member of less weight is left out


def stacking_weights(probs: Tensor, label_weight: Tensor | float = 1.0) -> Tensor:
    """Weights [K] of K members that sum to one, from the probabilities [K, M] they give to held-out labels.

    Maximises Σ_i v_i log Σ_k w_k p_ki + prior · Σ_k log w_k, with the weights v of the labels [M], by expectation
    maximisation; there is one maximum. Members that are equally good share the weight, one that is clearly behind gets
    almost none. Weights below 2 % become 0.
    """
    probs = probs.double().clamp_min(1e-12)
    weights = probs.new_full((len(probs),), 1 / len(probs))
    for _ in range(500):
        joint = weights[:, None] * probs
        new = (joint / joint.sum(0) * label_weight).sum(1) + PRIOR_LABELS
        new = new / new.sum()
        converged = bool((new - weights).abs().max() < 1e-9)
        weights = new
        if converged:
            break
    weights = torch.where(weights < min(MIN_WEIGHT, float(weights.max())), 0.0, weights)
    return weights / weights.sum()


def member_temperatures(unseen: Sequence[Tensor], labels: Tensor, label_weight: Tensor | float = 1.0) -> Tensor:
    """Temperatures float64 [K] of K members, by out-of-fold logits [M, C] and labels [M]; near 1 if M is small."""
    task = Task(None, None, labels.expand(len(unseen), -1), unseen[0].shape[-1])  # type: ignore[arg-type]  # no graph
    return shrunk_temperature(Prediction(torch.stack(list(unseen))), task, LOG_TEMPERATURE_STD, label_weight)


def common_factor(
    unseen: Sequence[Tensor], weights: Tensor, labels: Tensor, label_weight: Tensor | float = 1.0
) -> float:
    """The factor t of all K temperatures under which the weighted mean gives M held-out labels most likelihood.

    Maximises Σ_i v_i log Σ_k w_k softmax(z_ki / t)_{y_i} − (log t)² / (2 std²) over a grid, with the weights v of the
    labels. It is needed since a mean of models is less sure than each of them.
    """
    nodes = torch.arange(len(labels))

    def objective(log_factor: float) -> float:
        log_probs = mixture([logits.double() / math.exp(log_factor) for logits in unseen], weights)[nodes, labels]
        return float((label_weight * log_probs.clamp_min(-50)).sum()) - log_factor**2 / (2 * LOG_TEMPERATURE_STD**2)

    return math.exp(max(LOG_FACTORS, key=objective))


def mixture(members: list[Tensor], weights: Tensor) -> Tensor:
    """The log of the weighted mean of probabilities: float [N, C] from K logits [N, C]."""
    total = None
    for logits, weight in zip(members, weights.tolist(), strict=True):
        if weight > 0:
            part = logits.log_softmax(-1) + torch.tensor(weight, dtype=logits.dtype).log()
            total = part if total is None else torch.logaddexp(total, part)
    assert total is not None  # weights sum to one
    return total


def share_interval(correct: Tensor) -> dict[str, float]:
    """The share of correct predictions bool [M] with Wilson's 95 % interval: value, low, high and nodes."""
    nodes = len(correct)
    share = float(correct.double().mean()) if nodes else float("nan")
    low, high = wilson(share, nodes)
    return {"value": share, "low": low, "high": high, "nodes": nodes}


def mean_interval(log_probs: Tensor) -> dict[str, float]:
    """The mean of log-probabilities [M] with a normal 95 % interval, not above 0: value, low, high and nodes."""
    nodes = len(log_probs)
    mean = float(log_probs.double().mean()) if nodes else float("nan")
    half = Z * float(log_probs.double().std()) / nodes**0.5 if nodes > 1 else 0.0
    return {"value": mean, "low": mean - half, "high": min(mean + half, 0.0), "nodes": nodes}


def far_behind(unseen: Tensor, best: Tensor, labels: Tensor, label_weight: Tensor | float = 1.0) -> bool:
    """Whether out-of-fold logits [M, C] are worse than the best by more than two standard errors.

    They are compared by the weighted log-probabilities of labels [M], after a temperature each: the average gives every
    member one too, so being too sure or too unsure is no reason to stop.
    """
    if len(labels) < 2:
        return False
    temperatures = member_temperatures([unseen, best], labels, label_weight).tolist()
    log_probs, best_log_probs = (
        label_log_probs(logits / t, labels) * label_weight
        for logits, t in zip((unseen, best), temperatures, strict=True)
    )
    gap = log_probs - best_log_probs
    return bool(gap.mean() < -2.0 * gap.std() / len(gap) ** 0.5)
