"""Views: a graph whose nodes show their features, their place in the graph, or both."""

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
from bangs.graphs.tables.structural_features import structural

STRUCTURE = 65  # columns that structure has
DEGREE = 0.2  # a factor for log(1 + degree), so that it weighs about as much as a place in the graph


def view_of(graph: Data, view: View, names: npt.NDArray[np.object_], seed: int) -> Data:
    """The same graph with the x of a view: its own [N, F], structure [N, 65], or both [N, F + 65].

    Structure is made from the edges, the nodes' names and the seed; see `structural`.
    """
    if view == "features":
        return graph
    scales = torch.cat([torch.tensor([DEGREE]), torch.ones(STRUCTURE - 1)])
    place = normalize(torch.from_numpy(structural(graph, names, seed)[:, 1:]).float() * scales, dim=1, eps=1e-6)
    x = place.to(graph.edge_index.device) if view == "structure" else _beside(graph.x, place)
    seen = Data(x=x, edge_index=graph.edge_index, num_nodes=graph.num_nodes)
    if graph.get("edge_weight") is not None:
        seen.edge_weight = graph.edge_weight
    return seen


def looks_like_counts(x: Tensor) -> bool:
    """Whether features are many and none is negative, as counts and words are; then rows are best of length one."""
    values = x.values() if x.layout == torch.sparse_csr else x
    return x.shape[1] >= 32 and bool((values >= 0).all())


def mostly_zeros(x: Tensor) -> bool:
    """Whether most features of most nodes are zero, as words are; only then a column can be rare."""
    stored = x.values() if x.layout == torch.sparse_csr else x
    return 2 * int((stored != 0).sum()) <= x.shape[0] * x.shape[1]


def _beside(x: Tensor, place: Tensor) -> Tensor:
    """Features and structure side by side, both with rows of about length one."""
    sparse = x.layout == torch.sparse_csr
    own: Any = to_scipy(x) if sparse else sp.csr_array(x.cpu().numpy())
    length = np.sqrt(np.asarray(own.multiply(own).sum(1))).ravel()
    if not looks_like_counts(x):
        length = np.full_like(length, np.sqrt(np.square(length).mean()))
    own = sp.diags_array((1 / np.maximum(length, 1e-6)).astype(np.float32)) @ own
    if sparse:
        return to_torch(sp.csr_array(sp.hstack([own, sp.csr_array(place.numpy())]))).to(x.device)
    return torch.cat([torch.from_numpy(own.toarray()), place], 1).to(x.device)
