"""k-means clusters of nodes, each labelled with the class of the nearest centroid (M3S)."""

import torch
from torch import Tensor

from bangs.core.types import Labels


def cluster_labels(
    points: Tensor, pool: Tensor, labels: Labels, count: int, steps: int, generators: list[torch.Generator]
) -> Tensor:
    """The class of each node's cluster: long [R, N], -1 for nodes outside the pool, bool [R, N].

    k-means divides the nodes of the pool into `count` clusters by their points [R, N, D]. A cluster gets the class
    whose centroid, the mean point of its labelled nodes, is nearest to the cluster's centre.
    """
    label = torch.full_like(labels.target, -1)
    for run, generator in enumerate(generators):
        nodes = pool[run].nonzero().squeeze(1)
        if not len(nodes):
            continue
        run_points = points[run]
        start = torch.randperm(len(nodes), generator=generator, device=generator.device)[:count]
        centres, member = kmeans(run_points[nodes], run_points[nodes[start.to(nodes.device)]], steps)
        label[run, nodes] = nearest(centres, *centroids(run_points, labels.target[run]))[member]
    return label


def kmeans(points: Tensor, centres: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Lloyd's algorithm from the given centres [K, D]: the final centres and every point's cluster, long [n].

    It ends early when no point changes its cluster. An empty cluster keeps its centre.
    """
    member = torch.cdist(points, centres).argmin(1)
    for _ in range(steps):
        centres = _means(points, member, centres)
        moved = torch.cdist(points, centres).argmin(1)
        if bool((moved == member).all()):
            break
        member = moved
    return centres, member


def centroids(points: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The classes that occur in target [N] (-1 = none), long [c], and the mean point of each, [c, D]."""
    known = target >= 0
    classes, member = target[known].unique(return_inverse=True)
    return classes, _means(points[known], member, points.new_zeros(len(classes), points.shape[1]))


def nearest(centres: Tensor, classes: Tensor, means: Tensor) -> Tensor:
    """The class whose mean [c, D] is nearest to each centre [K, D]: long [K]."""
    return classes[torch.cdist(centres, means).argmin(1)]


def _means(points: Tensor, member: Tensor, default: Tensor) -> Tensor:
    """The mean of every cluster's points, or its `default` [K, D] if it is empty."""
    # a matrix product, since scatter_add on a GPU has no fixed order of sums
    belongs = torch.nn.functional.one_hot(member, len(default)).to(points.dtype).T
    size = belongs.sum(1, keepdim=True)
    return torch.where(size > 0, belongs @ points / size.clamp_min(1), default)
