"""Batches: nodes chosen one after the other, so that no two of them give the same information."""

from dataclasses import dataclass

import torch
from torch import Tensor

from bangs.suggestion.strategies import Strategy
from bangs.suggestion.strategy_input import StrategyInput

DUPLICATE_DISTANCE = 1e-3  # squared distance below which two nodes are duplicates; the mean squared norm is 1


@dataclass(frozen=True)
class Taken:
    """A node of a batch."""

    node: int
    score: float


@dataclass(frozen=True)
class Skipped:
    """A node with a high score that was left out: it has no edge, or duplicates another one."""

    node: int
    like: int | None = None  # the labelled or taken node that it duplicates; None = it has no edge


def batch(inputs: StrategyInput, choose: Strategy) -> tuple[list[Taken], list[Skipped]]:
    """The nodes to label, best first, and those skipped on the way.

    After a node is taken, its label counts as known for the next scores. A node without edges gives no information
    about other nodes; a near duplicate of a labelled or taken node gives nothing new.
    """
    available = inputs.pool.clone()
    isolated = inputs.isolated
    taken: list[Taken] = []
    skipped: list[Skipped] = []
    points = inputs.points[inputs.known]
    nodes = inputs.known.nonzero()[:, 0].tolist()
    score = None
    while len(taken) < inputs.count and bool(available.any()):
        if score is None:
            score = choose(inputs, [item.node for item in taken])
        node = int(score.masked_fill(~available, float("-inf")).argmax())
        if not bool(score[node] > float("-inf")):
            break
        available[node] = False
        if bool(isolated[node]):
            skipped.append(Skipped(node))
            available &= ~isolated  # skip all of them at once
            continue
        duplicate = _duplicate(inputs.points[node], points)
        if duplicate is not None:
            skipped.append(Skipped(node, nodes[duplicate]))
            continue
        taken.append(Taken(node, float(score[node])))
        points = torch.cat([points, inputs.points[node][None]])
        nodes.append(node)
        score = None
    return taken, skipped


def _duplicate(point: Tensor, others: Tensor) -> int | None:
    """The index of a point among the others that is nearly the same, or None."""
    if not len(others):
        return None
    distance = (others - point).square().sum(1)
    nearest = int(distance.argmin())
    return nearest if float(distance[nearest]) < DUPLICATE_DISTANCE else None
