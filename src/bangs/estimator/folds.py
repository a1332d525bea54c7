"""Folds: every label is held out from one model and learned by the others."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bangs.core.rng import Streams
from bangs.core.types import Labels, Prediction, Task
from bangs.errors import InvalidInput

DEFAULT_FOLDS, MAX_FOLDS = 4, 100


@dataclass(frozen=True, eq=False)
class Folds:
    """The labels that each of R runs learns from, and those that are held out from it."""

    given: Tensor  # long [R, N], -1 = not learned from
    held: Tensor  # long [R, N], -1 = not held out
    has_held_out: bool  # False = most classes have one label: no label is held back, every run learns from all of them
    single_label_classes: tuple[int, ...] = ()  # classes of one label, which all runs learn from

    @classmethod
    def of(cls, target: Tensor, folds: int, seed: int) -> "Folds":
        """Stratified folds of labels long [N], -1 = unknown: every fold has its share of each class.

        A class of one label is learned by all runs and never held out. If the other labels are fewer than the folds,
        there are as many folds as such labels. If most classes have one label, no label is held out, and the runs
        differ in their random numbers only: models judged by few of the classes would be chosen for predicting those.
        """
        check_folds(folds)
        folds, target = int(folds), target.cpu()
        generator = Streams((seed,)).at("folds").generators()[0]
        shuffled: list[Tensor] = []
        single = []
        for label in target[target >= 0].unique().tolist():
            nodes = (target == label).nonzero().flatten()
            if len(nodes) == 1:
                single.append(label)
            else:
                shuffled.append(nodes[torch.randperm(len(nodes), generator=generator)])
        if len(shuffled) < len(single):
            every = target.expand(folds, -1).clone()
            return cls(every, every.clone(), False, tuple(single))
        nodes = torch.cat(shuffled)
        folds = min(folds, len(nodes))
        fold = torch.full_like(target, -1)
        fold[nodes] = torch.arange(len(nodes)) % folds
        held = fold == torch.arange(folds)[:, None]
        return cls(torch.where(held, -1, target), torch.where(held, target, -1), True, tuple(single))

    @property
    def runs(self) -> int:
        return len(self.given)

    def task(self, graph: Any, class_weights: Tensor, device: torch.device) -> Task:
        """The task of R runs on a graph without labels; class weights are [C]."""
        return Task(graph, self.given_labels(class_weights), self.held, len(class_weights)).to(device)

    def given_labels(self, class_weights: Tensor) -> Labels:
        """The labels that the runs learn from [R, N], with class weights [C]."""
        return Labels.given(self.given, label_weights(self.given, class_weights).float())

    @property
    def all_labels(self) -> Tensor:
        """All labels, given to some run or held out from it: long [N]."""
        return self.given.amax(0).maximum(self.held.amax(0))


def check_folds(folds: Any) -> None:
    """Raises where a number of folds is invalid."""
    if folds is not None and (
        isinstance(folds, bool) or not isinstance(folds, int | np.integer) or not 2 <= folds <= MAX_FOLDS
    ):
        raise InvalidInput(f"folds must be a whole number from 2 to {MAX_FOLDS}, got {folds!r}")


def seeds_of(seed: int, runs: int) -> list[int]:
    """One seed per fold; the first fold has the seed itself."""
    return [seed + fold * 1_000_003 for fold in range(runs)]


def mean_of_runs(prediction: Prediction) -> Prediction:
    """The mean of the runs' probabilities, as log-probabilities: [1, N, C] from [R, N, C]."""
    runs = prediction.logits.shape[0]
    if runs == 1:
        return prediction
    return Prediction(torch.logsumexp(prediction.log_probs, 0, keepdim=True) - torch.tensor(float(runs)).log())


def label_weights(labels: Tensor, class_weights: Tensor) -> Tensor:
    """The weights of labels long [..., M] by their classes, 0 where a label is -1: float64 [..., M] of mean 1."""
    known = labels >= 0
    weights = torch.where(known, class_weights[labels.clamp_min(0)], 0.0)
    return weights * (known.sum(-1, keepdim=True) / weights.sum(-1, keepdim=True))


def held_out_labels(held: Tensor) -> Tensor:
    """The labels of the M nodes held out from some run, in node order: long [M] from long [R, N]."""
    labels = held.amax(0)
    return labels[labels >= 0]


def label_log_probs(logits: Tensor, labels: Tensor) -> Tensor:
    """The log-probabilities, at least -50, that logits [M, C] give to labels [M]: float64 [M]."""
    return logits.double().log_softmax(-1).gather(-1, labels[:, None]).squeeze(-1).clamp_min(-50)


def unseen_prediction(prediction: Prediction, held: Tensor) -> Prediction:
    """The out-of-fold prediction of M held-out nodes, in node order: log-probabilities [1, M, C].

    It is the mean over the runs a node is held out from. `held` is long [R, N], -1 = not held out from this run.
    """
    out = held >= 0
    any_out = out.any(0)
    log_probs = prediction.logits[:, any_out].log_softmax(-1)
    log_probs = log_probs.masked_fill(~out[:, any_out, None], float("-inf"))
    return Prediction(torch.logsumexp(log_probs, 0, keepdim=True) - out[:, any_out].sum(0).log()[None, :, None])
