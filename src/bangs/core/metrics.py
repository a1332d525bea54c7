"""Accuracy and calibration metrics of predictions, one float64 number per run.

`target` is always long [R, N], with -1 for a node that is not counted. A run without a counted node gives NaN.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from bangs.core.types import Prediction

Binning = Literal["width", "mass"]


@dataclass(frozen=True, eq=False)
class Reliability:
    """The reliability diagram of R runs in M bins of confidence; an empty bin has NaN means."""

    confidence: Tensor  # float64 [R, M], mean confidence in the bin
    accuracy: Tensor  # float64 [R, M], share of correct predictions in the bin
    count: Tensor  # long [R, M], nodes in the bin

    @property
    def error(self) -> Tensor:
        """Expected calibration error Σ_m n_m/n · |accuracy_m − confidence_m|: float64 [R]."""
        gap = (self.accuracy - self.confidence).abs().nan_to_num(0.0)
        return (gap * self.count).sum(-1) / self.count.sum(-1)


def accuracy(prediction: Prediction, target: Tensor) -> Tensor:
    """Share of counted nodes whose most likely class is the target: float64 [R]."""
    return _mean(prediction.label == target, target)


def log_likelihood(prediction: Prediction, target: Tensor) -> Tensor:
    """Mean log-probability of the target, (1/n) Σ_i log p_{i,y_i} ≤ 0: float64 [R]."""
    return _mean(_target_entries(prediction.log_probs, target), target)


def negative_log_likelihood(prediction: Prediction, target: Tensor) -> Tensor:
    """Minus the mean log-probability of the target: float64 [R]."""
    return -log_likelihood(prediction, target)


def brier(prediction: Prediction, target: Tensor) -> Tensor:
    """Brier score (1/n) Σ_i Σ_c (p_ic − 1[y_i = c])², between 0 and 2: float64 [R]."""
    probs = prediction.probs
    return _mean(probs.square().sum(-1) - 2 * _target_entries(probs, target) + 1, target)


def calibration_error(prediction: Prediction, target: Tensor, bins: int = 20, binning: Binning = "width") -> Tensor:
    """Expected calibration error (ECE) of the most likely class, as in `reliability`: float64 [R]."""
    return reliability(prediction, target, bins, binning).error


def classwise_calibration_error(
    prediction: Prediction, target: Tensor, bins: int = 20, binning: Binning = "width"
) -> Tensor:
    """Mean over classes c of the calibration error of p_ic as the probability of y_i = c: float64 [R]."""
    runs, nodes, classes = prediction.logits.shape
    value = prediction.probs.transpose(1, 2).reshape(runs * classes, nodes)
    each = torch.arange(classes, device=target.device)
    hit = (target[:, None] == each[:, None]).reshape(runs * classes, nodes)
    counted = (target >= 0).repeat_interleave(classes, 0)
    return _binned(value, hit, counted, bins, binning).error.view(runs, classes).mean(-1)


def reliability(prediction: Prediction, target: Tensor, bins: int = 20, binning: Binning = "width") -> Reliability:
    """Mean confidence, accuracy and count in M bins of confidence: each [R, M].

    `width` divides [0, 1] into equal half-open bins (l, u]. `mass` sorts the counted nodes by confidence and puts
    equally many, up to one, in every bin.
    """
    return _binned(prediction.confidence, prediction.label == target, target >= 0, bins, binning)


def entropy(probs: Tensor) -> Tensor:
    """Shannon entropy −Σ_c p_c log p_c in nats over the last axis, with 0 log 0 = 0: [...] from [..., C]."""
    terms: Tensor = torch.special.entr(probs)
    return terms.sum(-1)


def confusion(prediction: Prediction, target: Tensor) -> Tensor:
    """Counts of nodes by target (rows) and most likely class (columns): long [R, C, C]."""
    classes = prediction.logits.shape[-1]
    cell = target.clamp(min=0) * classes + prediction.label
    counts = torch.zeros(len(target), classes * classes, dtype=torch.long, device=target.device)
    return counts.scatter_add(1, cell, (target >= 0).long()).view(-1, classes, classes)


def macro_f1(prediction: Prediction, target: Tensor) -> Tensor:
    """Mean over classes of F₁ = 2·TP / (2·TP + FP + FN): float64 [R].

    As in scikit-learn, classes that are neither a target nor predicted are left out of the mean.
    """
    counts = confusion(prediction, target).double()
    hits = counts.diagonal(dim1=1, dim2=2)
    size = counts.sum(1) + counts.sum(2)
    return (2 * hits / size.clamp(min=1)).sum(-1) / (size > 0).sum(-1)


def _mean(value: Tensor, target: Tensor) -> Tensor:
    counted = target >= 0
    return torch.where(counted, value.double(), 0.0).sum(-1) / counted.sum(-1)


def _target_entries(value: Tensor, target: Tensor) -> Tensor:
    """The entry of the target class: [R, N] from [R, N, C]; arbitrary where there is no target."""
    return value.gather(-1, target.clamp(min=0)[..., None]).squeeze(-1)


def _binned(value: Tensor, hit: Tensor, counted: Tensor, bins: int, binning: Binning) -> Reliability:
    """Means of `value` and `hit` over the counted entries of each row by bins of value: each [G, M] from [G, N]."""
    if binning == "width":
        bin_index = (value.double() * bins).ceil().long() - 1
    else:
        rank = torch.where(counted, value, torch.inf).argsort(stable=True, dim=-1).argsort(dim=-1)
        bin_index = rank * bins // counted.sum(-1, keepdim=True).clamp(min=1)
    bin_index = bin_index.clamp(0, bins - 1).cpu()  # scatter_add on a GPU has no fixed order of sums

    def total(part: Tensor) -> Tensor:
        empty = torch.zeros(len(value), bins, dtype=torch.float64)
        return empty.scatter_add(-1, bin_index, torch.where(counted, part.double(), 0.0).cpu()).to(value.device)

    count = total(counted)
    return Reliability(total(value) / count, total(hit) / count, count.long())
