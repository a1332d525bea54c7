"""Edge inputs: arrays, frames, adjacencies and graphs of other libraries as row numbers with weights."""

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp
import torch
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.graphs.csr import check_scipy
from bangs.graphs.edges import merged, mirrored

# a reason for edges to nodes that X has not
CUT = "; if scikit-learn cut the rows of X, use bangs.cross_validate or bangs.NodeRows, which keep the graph whole"


def edges(edge_index: Any, nodes: int, names: "pd.Index[Any] | None" = None) -> tuple[Tensor, Tensor | None]:
    """Edges long [2, E] and their weights float [E], None where every edge weighs the same.

    Edges are an array [2, E] of row numbers, a scipy adjacency [N, N], a frame of two or three columns: source,
    target, weight, or a networkx or igraph graph. Source and target are `names` of rows, where those have any. Without
    them, nodes of a graph are row numbers if they are 0 … N−1, and else stand in the order of the rows. The result
    shares no memory with `edge_index`.
    """
    edge_index = as_pandas(edge_index)
    if node_names(edge_index) is not None:
        return _frame(_library_edges(edge_index), nodes, row_names(edge_index, nodes) if names is None else names)
    if sp.issparse(edge_index):
        given: Any = edge_index
        check_scipy(given, "the adjacency")
        matrix = sp.coo_array(given)
        if matrix.shape != (nodes, nodes):
            raise InvalidInput(f"the adjacency must have shape [{nodes}, {nodes}], got {list(matrix.shape)}{CUT}")
        ends = torch.from_numpy(np.stack(matrix.coords).astype(np.int64))
        return ends, None if bool((matrix.data == 1).all()) else weights(matrix.data)
    if isinstance(edge_index, pd.DataFrame):
        return _frame(edge_index, nodes, names)
    index = _numbers(edge_index)
    if index.numel() == 0:
        index = index.reshape(2, -1).long()
    if index.dim() != 2 or index.shape[0] != 2:
        raise InvalidInput(f"edge_index must have shape [2, E], got {list(index.shape)}{_way_out(index, nodes)}")
    return index, None


def node_names(graph: Any) -> "pd.Index[Any] | None":
    """The nodes of a networkx or igraph graph in their order; None of anything else."""
    if hasattr(graph, "adj") and hasattr(graph, "number_of_nodes"):
        found: pd.Index[Any] = pd.Index(list(graph.nodes), tupleize_cols=False)
        return found
    if hasattr(graph, "get_edgelist") and hasattr(graph, "vcount"):
        names = graph.vs["name"] if "name" in graph.vs.attributes() else range(graph.vcount())
        numbered: pd.Index[Any] = pd.Index(list(names))
        return numbered
    return None


def named_nodes(edge_index: Any, y: Any = None) -> "pd.Index[Any]":
    """The names of the nodes that edges name and, where y is a series or a dict, labels; for graphs without X."""
    edge_index = as_pandas(edge_index)
    names = node_names(edge_index)
    if names is not None:
        return names
    named = pd.Index(list(y), tupleize_cols=False) if isinstance(y, Mapping) else None
    named = y.index if isinstance(y, pd.Series | pd.DataFrame) else named
    if isinstance(edge_index, pd.DataFrame) and (named is not None or y is None):
        ends = pd.unique(edge_index.iloc[:, :2].to_numpy().ravel())
        every: pd.Index[Any] = pd.Index(ends if named is None else [*named, *ends]).unique()
        return every
    if isinstance(y, pd.Series | pd.DataFrame):
        return y.index
    return pd.RangeIndex(_count(edge_index) if y is None or isinstance(y, Mapping) else count_rows(y, "y"))


def _count(edge_index: Any) -> int:
    """The number of nodes of an adjacency, or the largest row number and one."""
    if sp.issparse(edge_index):
        matrix: Any = edge_index
        return int(matrix.shape[0])
    index, _ = edges(edge_index, 0)
    if index.is_floating_point() or index.is_complex():
        raise InvalidInput(f"edge_index must hold whole numbers, got {index.dtype}")
    return int(index.max()) + 1 if index.numel() else 0


def rows_called(names: "pd.Index[Any]", wanted: "pd.Index[Any]") -> npt.NDArray[np.int64]:
    """The rows with these names, long, -1 = none; as in tables, 7, 7.0 and "7" are one name where that is unambiguous.

    `names` are unique.
    """
    rows = np.asarray(names.get_indexer(wanted), dtype=np.int64)
    if (rows < 0).any():
        text = pd.Index(_text(names))
        if text.is_unique:
            rows = np.where(rows < 0, text.get_indexer(pd.Index(_text(wanted))), rows)
    return rows


def _text(names: "pd.Index[Any]") -> list[str]:
    return [str(int(name)) if isinstance(name, float) and name.is_integer() else str(name) for name in names]


def row_names(edge_index: Any, nodes: int) -> "pd.Index[Any] | None":
    """The names that a networkx or igraph graph gives the rows of an array X; None where they are row numbers."""
    own = node_names(edge_index)
    if own is None:
        return None
    if len(own) != nodes:
        raise InvalidInput(
            f"the graph has {len(own):,} nodes, X has {nodes:,} rows; give a frame X whose index names the nodes{CUT}"
        )
    numbered = all(isinstance(name, numbers.Integral) for name in own) and set(own) == set(range(nodes))
    return None if numbered else own


def is_table(edge_index: Any) -> bool:
    """Whether edges are a frame, or a graph of networkx or igraph."""
    return isinstance(as_pandas(edge_index), pd.DataFrame) or node_names(edge_index) is not None


def as_pandas(frame: Any) -> Any:
    """A frame of polars or another library as one of pandas; anything else as it is."""
    frame = frame.collect() if hasattr(frame, "collect_schema") and hasattr(frame, "collect") else frame
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame


def without_repeats(index: Tensor, weight: Tensor | None, nodes: int) -> tuple[Tensor, Tensor | None]:
    """Edges long [2, E] and weights [E] in order, each once and none from a node to itself, as `bangs fit` has them.

    Weights of a repeated edge add up.
    """
    apart = index[0] != index[1]
    keys, total = _merged(index[:, apart], None if weight is None else weight[apart], nodes)
    return _edges_of(keys, total, nodes)


def both_ways(index: Tensor, weight: Tensor | None, nodes: int) -> tuple[Tensor, Tensor | None]:
    """Edges long [2, E] and weights [E] in both directions; what is so already comes back as it is.

    Weights of a repeated edge add up; of two opposite edges the larger counts, as in tables.
    """
    keys, total = _merged(index, weight, nodes)
    both, larger = mirrored(keys, total, nodes)
    if len(both) == len(keys) and (total is None or larger is None or np.array_equal(total, larger)):
        return index, weight
    return _edges_of(both, larger, nodes)


def _merged(index: Tensor, weight: Tensor | None, nodes: int) -> tuple[Any, Any]:
    return merged(index[0].numpy(), index[1].numpy(), None if weight is None else weight.numpy(), nodes)


def _edges_of(keys: Any, weight: Any, nodes: int) -> tuple[Tensor, Tensor | None]:
    """Edges long [2, E] from their keys source · N + target, and their weights float32 [E]."""
    ends = torch.from_numpy(np.stack(np.divmod(keys, nodes)))
    return ends, None if weight is None else torch.from_numpy(weight.astype(np.float32))


def weights(values: Any) -> Tensor:
    """Weights of edges as float32 [E], in memory of their own."""
    if isinstance(values, Tensor):
        return values.detach().cpu().to(torch.float32, copy=True)
    try:
        return torch.from_numpy(np.array(unmasked(values, "edge_weight"), dtype=np.float32))
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"the weight of an edge must be a number: {error}") from error


def count_rows(values: Any, name: str) -> int:
    """How many rows an array, frame or list has; raises where it has none."""
    shape = getattr(values, "shape", None)
    if isinstance(shape, tuple) and len(shape):
        return int(shape[0])
    if shape is None and hasattr(values, "__len__") and not isinstance(values, str | bytes | type):
        return len(values)
    raise InvalidInput(f"{name} must have one row per node, got {type(values).__name__}")


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
    if isinstance(edge_index, list) and edge_index and isinstance(edge_index[0], Mapping):
        raise InvalidInput(f"edge_index must be an array [2, E] of row numbers, got {len(edge_index):,} dicts{CUT}")
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
    return ""


def _library_edges(graph: Any) -> pd.DataFrame:
    """The edges of a networkx or igraph graph as a frame; a weight is 1 where others have one and it has none."""
    if hasattr(graph, "adj"):
        listed = list(graph.edges(data="weight"))
        ends, weight = [pair[:2] for pair in listed], [own for *_, own in listed]
    else:
        names = node_names(graph)
        assert names is not None
        ends = [(names[one], names[other]) for one, other in graph.get_edgelist()]
        weight = graph.es["weight"] if "weight" in graph.es.attributes() else [None] * len(ends)
    out: dict[str, Any] = {}
    for place, name in enumerate(("source", "target")):
        out[name] = pd.Series([pair[place] for pair in ends], dtype=object)  # a name may be a tuple
    if any(own is not None for own in weight):
        out["weight"] = [1.0 if own is None else own for own in weight]
    frame = pd.DataFrame(out)
    if graph.is_directed():
        return frame
    back = frame[frame["source"] != frame["target"]].rename(columns={"source": "target", "target": "source"})
    return pd.concat([frame, back[frame.columns]], ignore_index=True)


def _frame(frame: pd.DataFrame, nodes: int, names: "pd.Index[Any] | None") -> tuple[Tensor, Tensor | None]:
    if frame.shape[1] not in (2, 3):
        raise InvalidInput(f"a frame of edges has two or three columns (source, target, weight), got {frame.shape[1]}")
    known = pd.RangeIndex(nodes) if names is None else names
    if not known.is_unique:
        raise InvalidInput("the index of X must name every row once; call X.reset_index(drop=True) to number them")
    ends = [rows_called(known, pd.Index(frame.iloc[:, end], tupleize_cols=False)) for end in (0, 1)]
    for end, found in enumerate(ends):
        if (found < 0).any():
            row = int(np.flatnonzero(found < 0)[0])
            name = frame.iloc[row, end]
            where = f"among the row numbers 0 … {nodes - 1} of X" if names is None else "in the index of X"
            raise InvalidInput(
                f"row {row} of the edges names node {name.item() if isinstance(name, np.generic) else name!r} in "
                f"column '{frame.columns[end]}', which is not {where}{CUT}"
            )
    weight = None if frame.shape[1] == 2 else weights(frame.iloc[:, 2])
    return torch.from_numpy(np.stack(ends).astype(np.int64)), weight
