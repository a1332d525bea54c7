"""Edges: every pair of neighbours once in each direction."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


def undirected(source: npt.NDArray[Any], target: npt.NDArray[Any], nodes: int) -> Tensor:
    """Both directions of every pair, without loops or repeats, ordered by source: long [2, E]."""
    source, target = source.astype(np.int64), target.astype(np.int64)
    apart = source != target
    low, high = np.minimum(source, target)[apart], np.maximum(source, target)[apart]
    low, high = np.divmod(np.unique(low * nodes + high), nodes)
    both = np.sort(np.concatenate([low * nodes + high, high * nodes + low]))
    return torch.from_numpy(np.stack(np.divmod(both, nodes)))
