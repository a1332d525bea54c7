"""Folds: every label is learned by most models and judges the others."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bangs.core.rng import Streams
from bangs.core.types import Labels, Prediction, Task
from bangs.errors import InvalidInput

FOLDS, MOST = 4, 100


@dataclass(frozen=True, eq=False)
class Folds:
    """Which labels each of R runs learns from and which judge it: all labels in the one, the other, or both."""

    given: Tensor  # long [R, N], -1 = not learned from
    held: Tensor  # long [R, N], -1 = does not judge
    has_held_out: bool  # False = labels are too few to hold any back: every run learns from all of them
    single_label_classes: tuple[int, ...] = ()  # classes of one label, which all runs learn from

    @classmethod
    def of(cls, target: Tensor, folds: int, seed: int) -> "Folds":
        """Labels long [N], -1 = unknown, dealt out class by class, so that every fold has its share of each class.

        A class of one label is learned by all runs and judges none. Where fewer labels than folds are left to judge,
        there are as many folds as labels. Where there is one such label or none, no label is held back; the runs then
        differ by their random numbers alone.
        """
        check_folds(folds)
        target = target.cpu()
        generator = Streams((seed,)).at("folds").generators()[0]
        order: list[Tensor] = []
        alone = []
        for label in target[target >= 0].unique().tolist():
            nodes = (target == label).nonzero().flatten()
            if len(nodes) == 1:
                alone.append(label)
            else:
                order.append(nodes[torch.randperm(len(nodes), generator=generator)])
        dealt = torch.cat(order) if order else torch.zeros(0, dtype=torch.long)
        if not len(dealt):
            every = target.expand(folds, -1).clone()
            return cls(every, every.clone(), False, tuple(alone))
        folds = min(folds, len(dealt))
        fold = torch.full_like(target, -1)
        fold[dealt] = torch.arange(len(dealt)) % folds
        mine = fold == torch.arange(folds)[:, None]
        return cls(torch.where(mine, -1, target), torch.where(mine, target, -1), True, tuple(alone))

    @property
    def runs(self) -> int:
        return len(self.given)

    def task(self, graph: Any, classes: int, place: torch.device) -> Task:
        """The task of R runs on a graph without labels."""
        return Task(graph, Labels.given(self.given), self.held, classes).to(place)


def check_folds(folds: int | None) -> None:
    """Raises where a number of folds leaves nothing to learn from or is none."""
    if folds is not None and (isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= MOST):
        raise InvalidInput(
            f"folds must be a whole number from 2 to {MOST}, or None for the usual {FOLDS}, got {folds!r}"
        )


def seeds_of(seed: int, runs: int) -> list[int]:
    """One seed per fold; that of the first is the fit's own."""
    return [seed + fold * 1_000_003 for fold in range(runs)]


def mean_of_runs(prediction: Prediction) -> Prediction:
    """The mean of the runs' probabilities, as log-probabilities: [1, N, C] from [R, N, C]."""
    runs = prediction.logits.shape[0]
    if runs == 1:
        return prediction
    return Prediction(torch.logsumexp(prediction.log_probs, 0, keepdim=True) - torch.tensor(float(runs)).log())


def held_out_labels(held: Tensor) -> Tensor:
    """The labels of the M nodes held from some run: long [M] from long [R, N]; nodes in their order."""
    label = held.amax(0)
    return label[label >= 0]


def label_log_probs(logits: Tensor, label: Tensor) -> Tensor:
    """The log-probabilities, at least -50, that logits [M, C] give to labels [M]: float64 [M]."""
    return logits.double().log_softmax(-1).gather(-1, label[:, None]).squeeze(-1).clamp_min(-50)


def unseen(prediction: Prediction, held: Tensor) -> Prediction:
    """What models say of the M nodes held from them, the mean where several hold one: log-probabilities [1, M, C].

    `held` is long [R, N], -1 where a run has learned from a node or it has no label; nodes in their order.
    """
    out = held >= 0
    nodes = out.any(0)
    logs = prediction.logits[:, nodes].log_softmax(-1)
    logs = logs.masked_fill(~out[:, nodes, None], float("-inf"))
    return Prediction(torch.logsumexp(logs, 0, keepdim=True) - out[:, nodes].sum(0).log()[None, :, None])
