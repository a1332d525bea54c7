"""Node layout: a position in the plane for every node, so that nodes with similar predictions lie together."""

import numpy as np
import numpy.typing as npt
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

FEWEST = 10  # points for which a neighbourhood means something
ANCHORS = 1200  # nodes that t-SNE places itself
CHUNK = 4096  # other nodes that are placed at once
NEAREST = 3  # anchors between which another node is placed


def positions(logits: Tensor) -> npt.NDArray[np.float64]:
    """Coordinates in [0, 1]² of n nodes by t-SNE of their log-probabilities [n, C]; the same for the same logits.

    t-SNE (van der Maaten & Hinton 2008) keeps near points near; distances between groups mean little. Of more than
    1,200 nodes, it places 1,200 drawn by chance; every other node stands between its three nearest of these.
    """
    points = logits.double().log_softmax(-1)
    # where a class has no chance at all, its log-probability is -inf
    points = points.nan_to_num(neginf=-50.0).clamp_min(-50.0)
    points = points - points.mean(0)
    if len(points) <= ANCHORS:
        return _scaled(_embedded(points))
    anchors = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))[:ANCHORS].sort().values
    embedded = torch.from_numpy(_scaled(_embedded(points[anchors])))
    out = torch.cat([_between(part, points[anchors], embedded) for part in points.split(CHUNK)])
    out[anchors] = embedded
    return np.asarray(out.numpy(), dtype=np.float64)


def _embedded(points: Tensor) -> npt.NDArray[np.float64]:
    """Coordinates of at most 1,200 points: float [n, 2]."""
    start = _principal(points)
    if len(points) < FEWEST:
        return start
    from sklearn.manifold import TSNE  # its import takes a second

    start = 1e-4 * start / max(float(start[:, 0].std()), 1e-12)
    perplexity = min(30.0, (len(points) - 1) / 3)
    tsne = TSNE(perplexity=perplexity, init=start, learning_rate="auto", max_iter=400, random_state=0, n_jobs=1)
    with threadpool_limits(1, user_api="openmp"):  # `n_jobs` does not reach the threads of its gradient
        return np.asarray(tsne.fit_transform(points.numpy()), dtype=np.float64)


def _between(points: Tensor, anchors: Tensor, embedded: Tensor) -> Tensor:
    """Coordinates of other points, the mean of their nearest anchors weighted by 1 / distance²: float [n, 2]."""
    near = torch.cdist(points, anchors).topk(NEAREST, dim=1, largest=False)
    weight = 1 / (near.values**2 + 1e-9)
    return (embedded[near.indices] * (weight / weight.sum(1, keepdim=True))[..., None]).sum(1)


def _scaled(flat: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The same points, stretched to fill [0, 1]²."""
    low, high = flat.min(0), flat.max(0)
    wide = high - low
    return np.asarray(np.where(wide > 0, (flat - low) / np.where(wide > 0, wide, 1.0), 0.5), dtype=np.float64)


def _principal(points: Tensor) -> npt.NDArray[np.float64]:
    """The two directions of largest variance: float [n, 2], signs fixed."""
    _, _, turn = torch.linalg.svd(points, full_matrices=False)
    turn = turn[:2]
    turn = turn * torch.where(turn.gather(1, turn.abs().argmax(1, keepdim=True)) < 0, -1.0, 1.0)
    flat = points @ turn.T
    return np.asarray(torch.nn.functional.pad(flat, (0, 2 - flat.shape[1])).numpy(), dtype=np.float64)
