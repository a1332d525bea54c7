"""Coverage: which nodes stand for many that have no label near them."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bangs.graphs.pagerank import PPR
from bangs.suggestion.situation import Situation

PIECE = 2**13  # nodes whose distances are computed at once
CLUSTERS = 500  # at most
SAMPLE = 20_000  # nodes from which clusters are found
STEPS = 10


def pagerank(situation: Situation, taken: Sequence[int]) -> Tensor:
    """The personalised PageRank of a node on nodes that no label reaches yet.

    Σ_j P[j, i] · left_j, where left_j is what known and taken labels leave of node j: float [N].
    left_j = max(0, 1 − Σ_i P[j, i] / alpha) over labelled and taken i; a node's own label leaves nothing of it.
    """
    reached = situation.reached
    if taken:
        here = torch.zeros(situation.nodes, 1)
        here[list(taken)] = 1
        reached = reached + situation.operator(here)[:, 0]
    left = (1 - reached / PPR.alpha).clamp_min(0)
    return situation.operator.adjoint(left[:, None].contiguous())[:, 0]


def k_centre(situation: Situation, taken: Sequence[int]) -> Tensor:
    """The squared distance of the propagated features to the nearest node that is labelled or taken."""
    far: Tensor = situation.cached(_to_known)
    return torch.minimum(far, _closest(situation.places, situation.places[list(taken)])[1]) if taken else far


def typical(situation: Situation, taken: Sequence[int], weight: Tensor | None = None) -> Tensor:
    """Nodes near the middle of large clusters of propagated features that have no label yet.

    In a cluster without a label a node scores the cluster's size, times how near its middle it is: float [N]. There
    are as many clusters as labels, known or asked for. With a weight [N], a cluster's size is the sum of it.
    """
    cluster, near, size = situation.cached(_clusters)
    if weight is not None:
        size = torch.zeros_like(size).index_add_(0, cluster, weight)
    used = torch.zeros(len(size), dtype=torch.bool)
    used[cluster[situation.known]] = True
    used[cluster[list(taken)]] = True
    score = size[cluster] * (0.5 + 0.5 * near)
    return torch.where(used[cluster], 1e-3 * near / situation.nodes, score)


def _to_known(situation: Situation) -> Tensor:
    labelled = situation.places[situation.known]
    if not len(labelled):
        return situation.places.square().sum(1) + 1
    return _closest(situation.places, labelled)[1]


def _clusters(situation: Situation) -> tuple[Tensor, Tensor, Tensor]:
    """The cluster of every node, long [N], how near its middle it is, float [N], and the sizes of clusters."""
    z, rng = situation.places, np.random.default_rng(situation.seed)
    rows = rng.choice(len(z), SAMPLE, replace=False) if len(z) > SAMPLE else np.arange(len(z))
    sample = z[torch.from_numpy(rows)]
    wanted = min(int(situation.known.sum()) + situation.count, CLUSTERS, len(sample))
    middle = _spread_out(sample, wanted, rng)
    for _ in range(STEPS):
        own = _closest(sample, middle)[0]
        total = torch.zeros_like(middle).index_add_(0, own, sample)
        count = torch.bincount(own, minlength=len(middle))[:, None]
        middle = torch.where(count > 0, total / count.clamp_min(1), middle)
    cluster, far = _closest(z, middle)
    size = torch.bincount(cluster, minlength=len(middle)).float()
    usual = torch.zeros(len(middle)).index_add_(0, cluster, far) / size.clamp_min(1)
    return cluster, 1 / (1 + far / usual[cluster].clamp_min(1e-12)), size


def _spread_out(points: Tensor, count: int, rng: np.random.Generator) -> Tensor:
    """Places to begin with, drawn as k-means++ does: float [count, d]."""
    chosen = [int(rng.integers(len(points)))]
    far = (points - points[chosen[0]]).square().sum(1)
    while len(chosen) < count:
        total = float(far.sum())
        share = far.double().numpy() / total if total > 0 else None
        if share is not None:
            share /= share.sum()
        chosen.append(int(rng.choice(len(points), p=share)))
        far = torch.minimum(far, (points - points[chosen[-1]]).square().sum(1))
    return points[chosen].clone()


def _closest(points: Tensor, middle: Tensor) -> tuple[Tensor, Tensor]:
    """The middle that is nearest to every point, long [N], and its squared distance, float [N]."""
    found = []
    for part in points.split(PIECE):
        squared = part.square().sum(1)[:, None] + middle.square().sum(1) - 2 * part @ middle.T
        found.append(squared.clamp_min(0).min(1))
    return torch.cat([own.indices for own in found]), torch.cat([own.values for own in found])
