"""Edge inputs: arrays, frames, adjacencies and graphs of other libraries as row numbers with weights."""

import numbers
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp
import torch
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.graphs.array_checks import check_scipy
from bangs.graphs.edges import merged, mirrored
from bangs.graphs.tables.column_roles import guess
from bangs.graphs.tables.diagnostics import listed

# a likely reason for edges to nodes that X does not have
ROWS_HINT = (
    "; if scikit-learn cut the rows of X, use bangs.cross_validate or bangs.NodeRows, which keep the graph whole"
)

# nodes that edges alone may have, for every number in the edges and in all; more would be ids taken for row numbers
MAX_NODES_PER_NUMBER, MAX_BARE_NODES = 100, 10_000


def edges(edge_index: Any, nodes: int, names: "pd.Index[Any] | None" = None) -> tuple[Tensor, Tensor | None]:
    """Edges long [2, E] and their weights float [E]; None = all weights are equal.

    Edges are an array [2, E] of row numbers, a scipy adjacency [N, N], a frame (see `edge_columns`), or a networkx or
    igraph graph. Source and target are `names` of rows, if there are names. Else the nodes of a graph are row numbers
    if they are 0 … N−1, and otherwise have the order of the rows. The result shares no memory with `edge_index`.
    """
    edge_index = as_pandas(edge_index)
    if node_names(edge_index) is not None:
        return _frame_edges(_library_edges(edge_index), nodes, row_names(edge_index, nodes) if names is None else names)
    if sp.issparse(edge_index):
        adjacency: Any = edge_index
        check_scipy(adjacency, "the adjacency")
        matrix = sp.coo_array(adjacency)
        if matrix.shape != (nodes, nodes):
            raise InvalidInput(f"the adjacency must have shape [{nodes}, {nodes}], got {list(matrix.shape)}{ROWS_HINT}")
        ends = torch.from_numpy(np.stack(matrix.coords).astype(np.int64))
        return ends, None if bool((matrix.data == 1).all()) else weights(matrix.data)
    if isinstance(edge_index, pd.DataFrame):
        return _frame_edges(edge_index, nodes, names)
    index = _numbers(edge_index)
    if index.numel() == 0:
        index = index.reshape(2, -1).long()
    if index.dim() != 2 or index.shape[0] != 2:
        raise InvalidInput(f"edge_index must have shape [2, E], got {list(index.shape)}{_shape_advice(index, nodes)}")
    return index, None


def node_names(graph: Any) -> "pd.Index[Any] | None":
    """The nodes of a networkx or igraph graph in their order; None for anything else."""
    names: pd.Index[Any] | None = None
    if hasattr(graph, "adj") and hasattr(graph, "number_of_nodes"):
        names = pd.Index(list(graph.nodes), tupleize_cols=False)
    elif hasattr(graph, "get_edgelist") and hasattr(graph, "vcount"):
        names = pd.Index(list(graph.vs["name"] if "name" in graph.vs.attributes() else range(graph.vcount())))
        if not names.is_unique:
            raise InvalidInput(
                f"two nodes of the graph have the name {names[names.duplicated()][0]!r}; give every node its own "
                "name, or delete the names: del graph.vs['name']"
            )
    return names


def named_nodes(edge_index: Any, y: Any = None) -> "pd.Index[Any]":
    """The names of the nodes in the edges and, if y is a series or a dict, in y; for graphs without X."""
    edge_index = as_pandas(edge_index)
    names = node_names(edge_index)
    if names is not None:
        return names
    label_names = pd.Index(list(y), tupleize_cols=False) if isinstance(y, Mapping) else None
    label_names = y.index if isinstance(y, pd.Series | pd.DataFrame) else label_names
    if isinstance(edge_index, pd.DataFrame) and (label_names is not None or y is None):
        ends = pd.unique(edge_columns(edge_index).iloc[:, :2].to_numpy().ravel())
        every: pd.Index[Any] = pd.Index(ends if label_names is None else [*label_names, *ends]).unique()
        return every
    if isinstance(y, pd.Series | pd.DataFrame):
        return y.index
    return pd.RangeIndex(_count_nodes(edge_index) if y is None or isinstance(y, Mapping) else count_rows(y, "y"))


def _count_nodes(edge_index: Any) -> int:
    """The number of nodes of an adjacency, or the largest row number plus one."""
    if sp.issparse(edge_index):
        adjacency: Any = edge_index
        return int(adjacency.shape[0])
    index, _ = edges(edge_index, 0)
    if index.is_floating_point() or index.is_complex():
        raise InvalidInput(f"edge_index must hold whole numbers, got {index.dtype}")
    nodes, named = int(index.max()) + 1 if index.numel() else 0, len(index.unique())
    if nodes > MAX_NODES_PER_NUMBER * named + MAX_BARE_NODES:
        raise InvalidInput(
            f"edge_index has {named:,} different numbers and the largest is {nodes - 1:,}, so they are names of nodes, "
            "not row numbers; give a frame, whose nodes have names: pandas.DataFrame(edge_index.T)"
        )
    return nodes


def rows_by_name(names: "pd.Index[Any]", wanted: "pd.Index[Any]") -> npt.NDArray[np.int64]:
    """The rows whose names are `wanted`, long, -1 = none; `names` are unique.

    As in tables, 7, 7.0 and "7" are one name, unless two rows have such names.
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
    names = node_names(edge_index)
    if names is None:
        return None
    if len(names) != nodes:
        raise InvalidInput(
            f"the graph has {len(names):,} nodes, X has {nodes:,} rows; "
            f"give a frame X whose index names the nodes{ROWS_HINT}"
        )
    whole = all(isinstance(name, numbers.Integral) for name in names)
    if whole and set(names) == set(range(nodes)):
        return None
    numbered = whole or all(text.isdecimal() for text in _text(names))
    if numbered and not pd.Index([int(name) for name in names]).is_monotonic_increasing:
        what = f"numbers, but not 0 … {nodes - 1}" if whole else "numbers as text or with decimals"
        warnings.warn(
            f"the nodes of the graph are {what}: the rows of X and y are taken in the order of the graph's nodes, "
            f"{names[0]} first; give a frame X whose index names the nodes to be sure",
            stacklevel=4,
        )
    return names


def is_table(edge_index: Any) -> bool:
    """Whether edges are a frame, or a graph of networkx or igraph."""
    return isinstance(as_pandas(edge_index), pd.DataFrame) or node_names(edge_index) is not None


def as_pandas(frame: Any) -> Any:
    """A frame of polars or another library as one of pandas; anything else as it is."""
    frame = frame.collect() if hasattr(frame, "collect_schema") and hasattr(frame, "collect") else frame
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame


def without_repeats(index: Tensor, weight: Tensor | None, nodes: int) -> tuple[Tensor, Tensor | None]:
    """Edges long [2, E] and weights [E] in order, each edge once and no self-loops, as in `bangs fit`.

    Weights of a repeated edge add up.
    """
    proper = index[0] != index[1]
    keys, total = _merged(index[:, proper], None if weight is None else weight[proper], nodes)
    return _edges_of(keys, total, nodes)


def both_ways(index: Tensor, weight: Tensor | None, nodes: int) -> tuple[Tensor, Tensor | None]:
    """Edges long [2, E] and weights [E] in both directions; unchanged if they are symmetric already.

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
    """A copy of the weights of edges as float32 [E]."""
    if isinstance(values, Tensor):
        return values.detach().cpu().to(torch.float32, copy=True)
    try:
        return torch.from_numpy(np.array(unmasked(values, "edge_weight"), dtype=np.float32))
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"the weight of an edge must be a number: {error}") from error


def count_rows(values: Any, name: str) -> int:
    """The number of rows of an array, frame or list; raises for anything else."""
    shape = getattr(values, "shape", None)
    if isinstance(shape, tuple) and len(shape):
        return int(shape[0])
    if shape is None and hasattr(values, "__len__") and not isinstance(values, str | bytes | type):
        return len(values)
    raise InvalidInput(f"{name} must have one row per node, got {type(values).__name__}")


def unmasked(values: Any, name: str) -> Any:
    """The values of a numpy masked array, anything else as it is; raises where an entry is masked."""
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
    """A copy of the array as a tensor, long if it holds whole numbers."""
    if isinstance(edge_index, Tensor):
        dtype = edge_index.dtype if edge_index.is_floating_point() or edge_index.is_complex() else torch.int64
        return edge_index.detach().to(dtype, copy=True)
    if isinstance(edge_index, list) and edge_index and isinstance(edge_index[0], Mapping):
        raise InvalidInput(
            f"edge_index must be an array [2, E] of row numbers, got {len(edge_index):,} dicts{ROWS_HINT}"
        )
    edge_index = unmasked(edge_index, "edge_index")
    try:
        array = np.asarray(edge_index)
    except ValueError as error:
        raise InvalidInput(f"edge_index must be an array [2, E] of row numbers: {error}") from error
    if array.dtype.kind not in "biuf":
        raise InvalidInput(
            f"edge_index must hold row numbers, got {array.dtype}; edges between names are a pandas frame of two "
            "columns, beside a frame X with these names in its index"
        )
    return torch.from_numpy(np.array(array, dtype=np.float64 if array.dtype.kind == "f" else np.int64))


def _shape_advice(index: Tensor, nodes: int) -> str:
    """The advice for edges of another shape."""
    if index.dim() == 2 and index.shape[1] == 2:
        return "; pairs stand in columns: write edge_index.T"
    if index.shape == (nodes, nodes):
        return "; an adjacency is given sparse: scipy.sparse.csr_array(adjacency)"
    return ""


def _library_edges(graph: Any) -> pd.DataFrame:
    """The edges of a networkx or igraph graph as a frame; an edge without a weight has weight 1, if others have one."""
    if hasattr(graph, "adj"):
        edges = list(graph.edges(data="weight"))
    else:
        named, ends = node_names(graph), graph.get_edgelist()
        assert named is not None
        names = list(named)  # an index takes microseconds for every name
        weights = graph.es["weight"] if "weight" in graph.es.attributes() else [None] * len(ends)
        edges = [(names[u], names[v], weight) for (u, v), weight in zip(ends, weights, strict=True)]
    frame = pd.DataFrame(edges, columns=["source", "target", "weight"], dtype=object)  # a name may be a tuple
    if all(weight is None for *_, weight in edges):
        frame = frame[["source", "target"]]
    else:
        frame["weight"] = [1.0 if weight is None else weight for *_, weight in edges]
    if graph.is_directed():
        return frame
    back = frame[frame["source"] != frame["target"]].rename(columns={"source": "target", "target": "source"})
    return pd.concat([frame, back[frame.columns]], ignore_index=True)


def edge_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns source, target and perhaps weight of a frame of edges, in this order.

    They are found by their names, as in a table of edges (`source`, `src`, `from`, …). Ends that no name tells are the
    first other columns. Columns without names, that is with numbers, are source, target and weight in their order.
    """
    names = list(frame.columns)
    if not any(isinstance(name, str) for name in names) and len(names) in (2, 3):
        return frame
    texts = [str(name) for name in names]
    found: dict[str, str | None] = {}
    for role in ("source", "target", "weight"):
        found[role] = guess(role, texts, found.values())
    ends = [name for name in (found["source"], found["target"]) if name is not None]
    if len(ends) == 1 and len(ends[0]) == 1:  # `v` tells an end beside `u` only, else `w` may be the other end
        found = {role: None if name is None or len(name) == 1 else name for role, name in found.items()}
    others = [name for name in texts if name not in found.values()]
    for role in ("source", "target"):
        if found[role] is None and others:
            found[role] = others.pop(0)
    if found["weight"] is None and (weight := guess("weight", others, [])) is not None:
        found["weight"] = weight
        others.remove(weight)
    if found["target"] is None or others or len(set(texts)) < len(texts):
        raise InvalidInput(
            "a frame of edges has the columns source and target, and perhaps weight, got "
            f"{listed(texts)}; rename the columns, and drop those that are no weights"
        )
    return frame.iloc[:, [texts.index(name) for name in found.values() if name is not None]]


def _frame_edges(frame: pd.DataFrame, nodes: int, names: "pd.Index[Any] | None") -> tuple[Tensor, Tensor | None]:
    frame = edge_columns(frame)
    known = pd.RangeIndex(nodes) if names is None else names
    if not known.is_unique:
        raise InvalidInput("the index of X must name every row once; call X.reset_index(drop=True) to number them")
    ends = [rows_by_name(known, pd.Index(frame.iloc[:, end], tupleize_cols=False)) for end in (0, 1)]
    for end, rows in enumerate(ends):
        if (rows < 0).any():
            row = int(np.flatnonzero(rows < 0)[0])
            name = frame.iloc[row, end]
            if bool(frame.iloc[[row], end].isna().all()):
                column = frame.columns[end]
                raise InvalidInput(f"row {row} of the edges names no node in column '{column}'; fill it in, or drop it")
            where = f"among the row numbers 0 … {nodes - 1} of X" if names is None else "in the index of X"
            raise InvalidInput(
                f"row {row} of the edges names node {name.item() if isinstance(name, np.generic) else name!r} in "
                f"column '{frame.columns[end]}', which is not {where}{ROWS_HINT}"
            )
    weight = None if frame.shape[1] == 2 else weights(frame.iloc[:, 2])
    return torch.from_numpy(np.stack(ends).astype(np.int64)), weight
