"""Node layout: 2D positions of the nodes; nodes with similar predictions are near each other."""

import numpy as np
import numpy.typing as npt
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

MIN_TSNE_NODES = 10
MAX_TSNE_NODES = 1200
CHUNK = 4096  # other nodes that are placed at once
NEAREST_ANCHORS = 3  # the position of another node is the mean of so many anchors


def positions(logits: Tensor) -> npt.NDArray[np.float64]:
    """Coordinates in [0, 1]² of n nodes by t-SNE of their log-probabilities [n, C]; the same for the same logits.

    t-SNE (van der Maaten & Hinton 2008) keeps near points near; distances between groups mean little. Of more than
    1,200 nodes, it places 1,200 random anchors; every other node is placed between its three nearest anchors.
    """
    points = logits.double().log_softmax(-1)
    # the log-probability of an impossible class is -inf
    points = points.nan_to_num(neginf=-50.0).clamp_min(-50.0)
    points = points - points.mean(0)
    if len(points) <= MAX_TSNE_NODES:
        return _scaled(_embedded(points))
    anchors = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))[:MAX_TSNE_NODES].sort().values
    embedded = torch.from_numpy(_scaled(_embedded(points[anchors])))
    coordinates = torch.cat([_between(part, points[anchors], embedded) for part in points.split(CHUNK)])
    coordinates[anchors] = embedded
    return np.asarray(coordinates.numpy(), dtype=np.float64)


def _embedded(points: Tensor) -> npt.NDArray[np.float64]:
    """Coordinates of at most 1,200 points: float [n, 2]."""
    start = _principal(points)
    if len(points) < MIN_TSNE_NODES:
        return start
    from sklearn.manifold import TSNE  # its import takes a second

    start = 1e-4 * start / max(float(start[:, 0].std()), 1e-12)
    perplexity = min(30.0, (len(points) - 1) / 3)
    tsne = TSNE(perplexity=perplexity, init=start, learning_rate="auto", max_iter=400, random_state=0, n_jobs=1)
    with threadpool_limits(1, user_api="openmp"):  # `n_jobs` does not reach the threads of its gradient
        return np.asarray(tsne.fit_transform(points.numpy()), dtype=np.float64)


def _between(points: Tensor, anchors: Tensor, embedded: Tensor) -> Tensor:
    """Coordinates of other points, the mean of their nearest anchors weighted by 1 / distance²: float [n, 2]."""
    near = torch.cdist(points, anchors).topk(NEAREST_ANCHORS, dim=1, largest=False)
    weight = 1 / (near.values**2 + 1e-9)
    return (embedded[near.indices] * (weight / weight.sum(1, keepdim=True))[..., None]).sum(1)


def _scaled(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The same points, stretched to fill [0, 1]²."""
    low, high = points.min(0), points.max(0)
    width = high - low
    return np.asarray(np.where(width > 0, (points - low) / np.where(width > 0, width, 1.0), 0.5), dtype=np.float64)


def _principal(points: Tensor) -> npt.NDArray[np.float64]:
    """The two directions of largest variance: float [n, 2], signs fixed."""
    _, _, directions = torch.linalg.svd(points, full_matrices=False)
    directions = directions[:2]
    directions = directions * torch.where(directions.gather(1, directions.abs().argmax(1, keepdim=True)) < 0, -1.0, 1.0)
    projected = points @ directions.T
    return np.asarray(torch.nn.functional.pad(projected, (0, 2 - projected.shape[1])).numpy(), dtype=np.float64)
