"""Coverage: strategies that choose nodes with many unlabelled nodes near them."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bangs.graphs.pagerank import PPR
from bangs.suggestion.strategy_input import StrategyInput

CHUNK = 2**13  # nodes whose distances are computed at once
MAX_CLUSTERS = 500
MAX_SAMPLED_NODES = 20_000  # for k-means
KMEANS_STEPS = 10


def pagerank(inputs: StrategyInput, taken: Sequence[int]) -> Tensor:
    """The total personalised PageRank of a node on nodes that labels do not reach yet.

    Σ_j P[j, i] · left_j, with left_j = max(0, 1 − Σ_i P[j, i] / alpha) over labelled and taken i: float [N].
    """
    reached = inputs.reached
    if taken:
        one_hot = torch.zeros(inputs.nodes, 1)
        one_hot[list(taken)] = 1
        reached = reached + inputs.operator(one_hot)[:, 0]
    left = (1 - reached / PPR.alpha).clamp_min(0)
    return inputs.operator.adjoint(left[:, None].contiguous())[:, 0]


def k_centre(inputs: StrategyInput, taken: Sequence[int]) -> Tensor:
    """The squared distance of the propagated features to the nearest node that is labelled or taken."""
    distance: Tensor = inputs.cached(_distance_to_labelled)
    return torch.minimum(distance, _nearest(inputs.points, inputs.points[list(taken)])[1]) if taken else distance


def typical(inputs: StrategyInput, taken: Sequence[int], weight: Tensor | None = None) -> Tensor:
    """Nodes near the centres of large clusters of propagated features without a label.

    The score of a node is the size of its cluster, times how near the node is to the centre: float [N]; almost zero in
    a cluster with a label. There are as many clusters as labels, known or to be suggested. With a weight [N], the size
    of a cluster is the sum of the weights.
    """
    cluster, nearness, size = inputs.cached(_clusters)
    if weight is not None:
        size = torch.zeros_like(size).index_add_(0, cluster, weight)
    covered = torch.zeros(len(size), dtype=torch.bool)
    covered[cluster[inputs.known]] = True
    covered[cluster[list(taken)]] = True
    score = size[cluster] * (0.5 + 0.5 * nearness)
    return torch.where(covered[cluster], 1e-3 * nearness / inputs.nodes, score)


def _distance_to_labelled(inputs: StrategyInput) -> Tensor:
    labelled = inputs.points[inputs.known]
    if not len(labelled):
        return inputs.points.square().sum(1) + 1
    return _nearest(inputs.points, labelled)[1]


def _clusters(inputs: StrategyInput) -> tuple[Tensor, Tensor, Tensor]:
    """k-means: the cluster of every node, long [N], its nearness to the centre in (0, 1], float [N], and the sizes."""
    z, rng = inputs.points, np.random.default_rng(inputs.seed)
    rows = rng.choice(len(z), MAX_SAMPLED_NODES, replace=False) if len(z) > MAX_SAMPLED_NODES else np.arange(len(z))
    sample = z[torch.from_numpy(rows)]
    centres = _initial_centres(sample, min(int(inputs.known.sum()) + inputs.count, MAX_CLUSTERS, len(sample)), rng)
    for _ in range(KMEANS_STEPS):
        assigned = _nearest(sample, centres)[0]
        total = torch.zeros_like(centres).index_add_(0, assigned, sample)
        count = torch.bincount(assigned, minlength=len(centres))[:, None]
        centres = torch.where(count > 0, total / count.clamp_min(1), centres)
    cluster, distance = _nearest(z, centres)
    size = torch.bincount(cluster, minlength=len(centres)).float()
    mean_distance = torch.zeros(len(centres)).index_add_(0, cluster, distance) / size.clamp_min(1)
    return cluster, 1 / (1 + distance / mean_distance[cluster].clamp_min(1e-12)), size


def _initial_centres(points: Tensor, count: int, rng: np.random.Generator) -> Tensor:
    """The initial centres of k-means++: float [count, d]."""
    chosen = [int(rng.integers(len(points)))]
    distance = (points - points[chosen[0]]).square().sum(1)
    while len(chosen) < count:
        total = float(distance.sum())
        probs = distance.double().numpy() / total if total > 0 else None
        if probs is not None:
            probs /= probs.sum()
        chosen.append(int(rng.choice(len(points), p=probs)))
        distance = torch.minimum(distance, (points - points[chosen[-1]]).square().sum(1))
    return points[chosen].clone()


def _nearest(points: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    """The centre that is nearest to every point, long [N], and its squared distance, float [N]."""
    nearest = []
    for chunk in points.split(CHUNK):
        squared = chunk.square().sum(1)[:, None] + centres.square().sum(1) - 2 * chunk @ centres.T
        nearest.append(squared.clamp_min(0).min(1))
    return torch.cat([chunk.indices for chunk in nearest]), torch.cat([chunk.values for chunk in nearest])
