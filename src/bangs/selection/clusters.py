"""Clusters: groups of nodes that a model speaks alike of, each named after the class nearest to it."""

import torch
from torch import Tensor

from bangs.core.types import Labels


def named(
    points: Tensor, among: Tensor, labels: Labels, count: int, steps: int, generators: list[torch.Generator]
) -> Tensor:
    """The class of each node's cluster: long [R, N], -1 for nodes not `among` [R, N] the clustered.

    The nodes fall into `count` clusters by their points [R, N, D]; a cluster takes the name of the class whose
    centroid, the mean point of its labelled nodes, is nearest to the cluster's centre.
    """
    name = torch.full_like(labels.target, -1)
    for run, generator in enumerate(generators):
        nodes = among[run].nonzero().squeeze(1)
        if not len(nodes):
            continue
        own = points[run]
        start = torch.randperm(len(nodes), generator=generator, device=generator.device)[:count]
        centres, member = kmeans(own[nodes], own[nodes[start.to(nodes.device)]], steps)
        name[run, nodes] = nearest(centres, *centroids(own, labels.target[run]))[member]
    return name


def kmeans(points: Tensor, centres: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Lloyd's algorithm from the given centres [K, D]: the last centres and every point's cluster, long [n].

    Ends early when nothing moves. An empty cluster stays where it is.
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


def _means(points: Tensor, member: Tensor, otherwise: Tensor) -> Tensor:
    """The mean of every cluster's points, or `otherwise` [K, D] where it has none."""
    # a product, since scattered sums on a GPU come in any order
    belongs = torch.nn.functional.one_hot(member, len(otherwise)).to(points.dtype).T
    size = belongs.sum(1, keepdim=True)
    return torch.where(size > 0, belongs @ points / size.clamp_min(1), otherwise)
