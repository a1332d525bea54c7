"""Quotas: which nodes to adopt, given their scores; how many by default is in `selftraining/methods.py`: `Budget.k`."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from bangs.utils.setting_checks import check_integer, check_number


class Quota(Protocol):
    """Which nodes to adopt: (score [R, N], label [R, N]) -> bool [R, N]; a node with score -inf is never taken."""

    def __call__(self, score: Tensor, label: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Top:
    """The k best nodes of each run, if their score exceeds a floor; fewer if fewer remain."""

    k: int
    floor: float = float("-inf")

    def __post_init__(self) -> None:
        check_integer("Top.k", self.k, least=1)
        check_number("Top.floor", self.floor)

    def __call__(self, score: Tensor, label: Tensor) -> Tensor:
        best = score.topk(min(self.k, score.shape[1]), dim=1).indices
        return torch.zeros_like(score, dtype=torch.bool).scatter(1, best, True) & (score > self.floor)


@dataclass(frozen=True)
class TopPerClass:
    """The k best nodes of every predicted class of each run."""

    k: int

    def __post_init__(self) -> None:
        check_integer("TopPerClass.k", self.k, least=1)

    def __call__(self, score: Tensor, label: Tensor) -> Tensor:
        chosen = torch.zeros_like(score, dtype=torch.bool)
        for index in range(int(label.max()) + 1):
            chosen |= Top(self.k)(score.masked_fill(label != index, float("-inf")), label)
        return chosen


@dataclass(frozen=True)
class Balanced:
    """k nodes of each run, taken from the predicted classes in turn: the best of each, then the second best, …

    A class without further nodes is skipped. If fewer than k nodes remain, all are taken.
    """

    k: int

    def __post_init__(self) -> None:
        check_integer("Balanced.k", self.k, least=1)

    def __call__(self, score: Tensor, label: Tensor) -> Tensor:
        nodes = score.shape[1]
        order = score.argsort(dim=1, descending=True, stable=True)
        ordered = label.gather(1, order)
        turn = torch.nn.functional.one_hot(ordered).cumsum(1).gather(2, ordered[..., None]).squeeze(2)
        # sorted by turn, then by score
        rank = turn * nodes + torch.arange(nodes, device=score.device)
        rank = rank.masked_fill(score.gather(1, order) == float("-inf"), nodes * (nodes + 1))
        taken = order.gather(1, rank.topk(min(self.k, nodes), dim=1, largest=False).indices)
        return torch.zeros_like(score, dtype=torch.bool).scatter(1, taken, True) & (score > float("-inf"))


@dataclass(frozen=True)
class Above:
    """Every node whose score exceeds a threshold."""

    threshold: float

    def __post_init__(self) -> None:
        check_number("Above.threshold", self.threshold)

    def __call__(self, score: Tensor, label: Tensor) -> Tensor:
        return score > self.threshold


@dataclass(frozen=True)
class Everyone:
    """Every node with a score: all of the pool."""

    def __call__(self, score: Tensor, label: Tensor) -> Tensor:
        return score > float("-inf")


@dataclass(frozen=True)
class Nobody:
    """No node, for a method that never adopts."""

    def __call__(self, score: Tensor, label: Tensor) -> Tensor:
        return torch.zeros_like(score, dtype=torch.bool)
