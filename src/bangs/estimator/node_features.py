"""Node features: what a model sees of a node, its features, its position in the graph, or both."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch_geometric.data import Data

from bangs.estimator.members import View
from bangs.graphs.sparse import to_scipy, to_torch
from bangs.graphs.structural_features import structural

SAME_SCALE = 1.1  # ratio of standard deviations up to which columns have the same scale
STRUCTURE_WIDTH = 65  # columns of structural features
DEGREE_SCALE = 0.2  # factor of log(1 + degree), so that it weighs about as much as the other structural features


def view_of(graph: Data, view: View, names: npt.NDArray[np.object_], seed: int) -> Data:
    """The same graph with the x of a view: features [N, F], structure [N, 65], or both [N, F + 65].

    Structural features come from the edges, the names of the nodes and the seed; see `structural`.
    """
    if view == "features":
        return graph
    scales = torch.cat([torch.tensor([DEGREE_SCALE]), torch.ones(STRUCTURE_WIDTH - 1)])
    structure = normalize(torch.from_numpy(structural(graph, names, seed)[:, 1:]).float() * scales, dim=1, eps=1e-6)
    x = structure.to(graph.edge_index.device) if view == "structure" else _concatenated(graph.x, structure)
    return Data(x=x, edge_index=graph.edge_index, edge_weight=graph.get("edge_weight"), num_nodes=graph.num_nodes)


def looks_like_counts(x: Tensor) -> bool:
    """Whether there are many features and none is negative, as with word counts; then rows are scaled to length one."""
    values = x.values() if x.layout == torch.sparse_csr else x
    return x.shape[1] >= 32 and bool((values >= 0).all())


def mostly_zeros(x: Tensor) -> bool:
    """Whether at least half of all entries are zero, as with words; only then a column can be rare."""
    values = x.values() if x.layout == torch.sparse_csr else x
    return 2 * int((values != 0).sum()) <= x.shape[0] * x.shape[1]


def columns_differ_in_scale(x: Tensor) -> bool:
    """Whether dense columns, 0/1 ones aside, have different standard deviations, so that standardising matters."""
    if x.layout != torch.strided or mostly_zeros(x):
        return False
    deviation = x.std(0, correction=0)
    indicator = ((x == 0) | (x == 1)).all(0)
    deviation = deviation[(deviation > 0) & ~indicator]
    return len(deviation) > 1 and bool(deviation.max() > SAME_SCALE * deviation.min())


def _concatenated(x: Tensor, structure: Tensor) -> Tensor:
    """Features and structural features side by side, both with rows of about length one."""
    sparse = x.layout == torch.sparse_csr
    features: Any = to_scipy(x) if sparse else sp.csr_array(x.cpu().numpy())
    length = np.sqrt(np.asarray(features.multiply(features).sum(1))).ravel()
    if not looks_like_counts(x):
        length = np.full_like(length, np.sqrt(np.square(length).mean()))
    features = sp.diags_array((1 / np.maximum(length, 1e-6)).astype(np.float32)) @ features
    if sparse:
        return to_torch(sp.csr_array(sp.hstack([features, sp.csr_array(structure.numpy())]))).to(x.device)
    return torch.cat([torch.from_numpy(features.toarray()), structure], 1).to(x.device)
