"""Batches: nodes taken one after the other, so that none repeats what another would teach."""

from dataclasses import dataclass

import torch
from torch import Tensor

from bangs.suggestion.situation import Situation
from bangs.suggestion.strategies import Strategy

SAME = 1e-3  # squared distance below which two nodes are the same, of a mean squared length of one


@dataclass(frozen=True)
class Taken:
    """A node of a batch."""

    node: int
    score: float


@dataclass(frozen=True)
class Skipped:
    """A node that ranked high and was left out: it has no edge, or is like another one."""

    node: int
    like: int | None = None  # the node it is like, labelled or in the batch; None = it has no edge


def batch(situation: Situation, choose: Strategy) -> tuple[list[Taken], list[Skipped]]:
    """The nodes to label, best first, and those skipped on the way.

    After a node is taken, what it would teach counts as known. A node without edges to others teaches no other node
    over the graph; a near duplicate of a labelled or taken node teaches nothing that is not known.
    """
    free = situation.pool.clone()
    alone = situation.alone
    taken: list[Taken] = []
    skipped: list[Skipped] = []
    likeness = situation.places[situation.known]
    origins = situation.known.nonzero()[:, 0].tolist()
    score = None
    while len(taken) < situation.count and bool(free.any()):
        if score is None:
            score = choose(situation, [own.node for own in taken])
        node = int(score.masked_fill(~free, float("-inf")).argmax())
        if not bool(score[node] > float("-inf")):
            break
        free[node] = False
        if bool(alone[node]):
            skipped.append(Skipped(node))
            free &= ~alone  # all of them, once one has come up
            continue
        twin = _twin(situation.places[node], likeness)
        if twin is not None:
            skipped.append(Skipped(node, origins[twin]))
            continue
        taken.append(Taken(node, float(score[node])))
        likeness = torch.cat([likeness, situation.places[node][None]])
        origins.append(node)
        score = None
    return taken, skipped


def _twin(place: Tensor, others: Tensor) -> int | None:
    """The place in the list of a point that is the same, or None."""
    if not len(others):
        return None
    far = (others - place).square().sum(1)
    nearest = int(far.argmin())
    return nearest if float(far[nearest]) < SAME else None
