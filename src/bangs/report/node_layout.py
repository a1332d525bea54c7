"""Layout: a place in the plane for every node, so that nodes the model speaks alike of lie together."""

import numpy as np
import numpy.typing as npt
import torch
from sklearn.manifold import TSNE
from torch import Tensor

FEWEST = 10  # points for which a neighbourhood means something


def places(logits: Tensor) -> npt.NDArray[np.float64]:
    """Coordinates in [0, 1]² of n nodes by t-SNE of their log-probabilities [n, C]; the same for the same logits.

    t-SNE (van der Maaten & Hinton 2008) keeps near points near; distances between groups mean little.
    """
    points = logits.double().log_softmax(-1)
    points = points - points.mean(0)
    if len(points) < FEWEST:
        flat = _principal(points)
    else:
        start = _principal(points)
        start = 1e-4 * start / max(float(start[:, 0].std()), 1e-12)
        perplexity = min(30.0, (len(points) - 1) / 3)
        made = TSNE(perplexity=perplexity, init=start, learning_rate="auto", max_iter=400, random_state=0, n_jobs=1)
        flat = np.asarray(made.fit_transform(points.numpy()), dtype=np.float64)
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
