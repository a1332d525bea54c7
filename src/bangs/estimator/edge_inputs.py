"""Edge inputs: arrays, frames and adjacencies as pairs of row numbers with weights."""

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.graphs.csr import check_scipy
from bangs.graphs.edges import mirrored


def edges(edge_index: Any, nodes: int, names: "pd.Index[Any] | None" = None) -> tuple[Tensor, Tensor | None]:
    """Edges long [2, E] and their weights float [E], None where every edge weighs the same.

    Edges are an array [2, E] of row numbers, a scipy adjacency [N, N], or a frame of two or three columns: source,
    target, weight. Source and target are `names` of rows, where those have any. The result shares no memory with
    `edge_index`.
    """
    if sp.issparse(edge_index):
        given: Any = edge_index
        check_scipy(given, "the adjacency")
        matrix = sp.coo_array(given)
        if matrix.shape != (nodes, nodes):
            raise InvalidInput(f"the adjacency must have shape [{nodes}, {nodes}], got {list(matrix.shape)}")
        ends = torch.from_numpy(np.stack(matrix.coords).astype(np.int64))
        return ends, None if bool((matrix.data == 1).all()) else weights(matrix.data)
    if isinstance(edge_index, pd.DataFrame):
        return _frame(edge_index, nodes, names)
    if hasattr(edge_index, "adj") and hasattr(edge_index, "number_of_nodes"):
        order = f"range({nodes})" if names is None else "X.index"
        raise InvalidInput(
            "edge_index is a networkx graph, whose nodes may stand in another order than the rows of X; give "
            f"networkx.to_scipy_sparse_array(graph, nodelist={order})"
        )
    index = _numbers(edge_index)
    if index.numel() == 0:
        index = index.reshape(2, -1).long()
    if index.dim() != 2 or index.shape[0] != 2:
        raise InvalidInput(f"edge_index must have shape [2, E], got {list(index.shape)}{_way_out(index, nodes)}")
    return index, None


def both_ways(index: Tensor, weight: Tensor | None, nodes: int) -> tuple[Tensor, Tensor | None]:
    """Edges long [2, E] and weights [E] in both directions; what is so already comes back as it is.

    Weights of a repeated edge add up; of two opposite edges the larger counts, as in tables.
    """
    keys = (index[0] * nodes + index[1]).numpy()
    unique, place = np.unique(keys, return_inverse=True)
    total = None if weight is None else np.bincount(place, weight.numpy(), len(unique)).astype(np.float64)
    both, larger = mirrored(unique, total, nodes)
    if len(both) == len(unique) and (total is None or larger is None or np.array_equal(total, larger)):
        return index, weight
    ends = torch.from_numpy(np.stack(np.divmod(both, nodes)))
    return ends, None if larger is None else torch.from_numpy(larger.astype(np.float32))


def weights(values: Any) -> Tensor:
    """Weights of edges as float32 [E], in memory of their own."""
    if isinstance(values, Tensor):
        return values.detach().cpu().to(torch.float32, copy=True)
    try:
        return torch.from_numpy(np.array(unmasked(values, "edge_weight"), dtype=np.float32))
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"the weight of an edge must be a number: {error}") from error


def unmasked(values: Any, name: str) -> Any:
    """The values of a numpy masked array of which nothing is masked; raises where something is."""
    if not np.ma.isMaskedArray(values):
        return values
    masked = int(np.ma.count_masked(values))
    if masked:
        raise InvalidInput(
            f"{name} has {masked:,} masked entr{'y' if masked == 1 else 'ies'}, and every entry counts; fill them with "
            f"{name}.filled(value), or leave them out"
        )
    return values.data


def _numbers(edge_index: Any) -> Tensor:
    """The array as a new tensor, of long if it holds whole numbers."""
    if isinstance(edge_index, Tensor):
        kind = edge_index.dtype if edge_index.is_floating_point() or edge_index.is_complex() else torch.int64
        return edge_index.detach().to(kind, copy=True)
    held = unmasked(edge_index, "edge_index")
    try:
        found = np.asarray(held)
    except ValueError as error:
        raise InvalidInput(f"edge_index must be an array [2, E] of row numbers: {error}") from error
    if found.dtype.kind not in "biuf":
        raise InvalidInput(
            f"edge_index must hold row numbers, got {found.dtype}; edges between names are a pandas frame of two "
            "columns, beside a frame X with these names in its index"
        )
    return torch.from_numpy(np.array(found, dtype=np.float64 if found.dtype.kind == "f" else np.int64))


def _way_out(index: Tensor, nodes: int) -> str:
    """The way out for edges of another shape."""
    if index.dim() == 2 and index.shape[1] == 2:
        return "; pairs stand in columns: write edge_index.T"
    if index.shape == (nodes, nodes):
        return "; an adjacency is given sparse: scipy.sparse.csr_array(adjacency)"
    return "; call fit(X, edge_index, y)" if index.dim() == 1 else ""


def _frame(frame: pd.DataFrame, nodes: int, names: "pd.Index[Any] | None") -> tuple[Tensor, Tensor | None]:
    if frame.shape[1] not in (2, 3):
        raise InvalidInput(f"a frame of edges has two or three columns (source, target, weight), got {frame.shape[1]}")
    known = pd.RangeIndex(nodes) if names is None else names
    if not known.is_unique:
        raise InvalidInput("the index of X must name every row once; call X.reset_index(drop=True) to number them")
    ends = [known.get_indexer(pd.Index(frame.iloc[:, end])) for end in (0, 1)]
    for end, found in enumerate(ends):
        if (found < 0).any():
            row = int(np.flatnonzero(found < 0)[0])
            name = frame.iloc[row, end]
            where = f"among the row numbers 0 … {nodes - 1} of X" if names is None else "in the index of X"
            raise InvalidInput(
                f"row {row} of the edges names node {name.item() if isinstance(name, np.generic) else name!r} in "
                f"column '{frame.columns[end]}', which is not {where}"
            )
    weight = None if frame.shape[1] == 2 else weights(frame.iloc[:, 2])
    return torch.from_numpy(np.stack(ends).astype(np.int64)), weight
