"""Inputs: arrays, frames and graphs of the caller as one checked graph."""

import warnings
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from bangs.core.graph_checks import check_graph
from bangs.errors import InvalidInput
from bangs.estimator.edge_inputs import (
    ROWS_HINT,
    as_pandas,
    both_ways,
    count_rows,
    edges,
    is_table,
    named_nodes,
    row_names,
    unmasked,
    weights,
    without_repeats,
)
from bangs.estimator.label_inputs import label_rows
from bangs.estimator.node_rows import NodeRows
from bangs.graphs.array_checks import check_indices, check_range, check_scipy
from bangs.graphs.sparse import csr, to_torch
from bangs.graphs.splits import MASKS
from bangs.graphs.store import NodeNames, Store, StoreReference
from bangs.graphs.structural_features import standardised
from bangs.graphs.tables.fitted_encoding import Encoding, Numeric
from bangs.graphs.tables.frames import encode_frame

MAX_WARNINGS = 5  # about the columns of one frame


@dataclass(frozen=True, eq=False)
class Inputs:
    """The graph and the other arguments of a fit or a prediction."""

    graph: Any  # a Data without labels, or a StoredGraph
    source: Any  # what labels are matched with: a Data or Store with masks, or a frame with an index; else None
    y: Any
    names: Any  # of the nodes: str [N], an array or `NodeNames`
    columns: Encoding | None  # how columns became features; None = they are taken as they are
    frame: pd.DataFrame | None = None  # X, where it came as a frame
    rows: Any = None  # long [n], the nodes to predict; None = all


def prepare(
    X: Any,
    y: Any = None,
    edge_index: Any = None,
    edge_weight: Any = None,
    names: Any = None,
    *,
    directed: bool = False,
    seed: int = 0,
    fill: Literal["mean"] | None = None,
    scale: str = "auto",
    fitted: bool = False,
    columns: Encoding | None = None,
    feature_names: Any = None,
) -> Inputs:
    """The graph of the arguments, to fit a model, or to predict by one that was `fitted` with these columns.

    Without X, or if no column of X can be a feature, features are made from the edges, as in `bangs fit`. For a model
    that was fitted on a frame, an array has the columns of that frame, named `feature_names`.
    """
    rows = None
    if isinstance(X, NodeRows):
        if edge_index is not None or edge_weight is not None:
            raise InvalidInput("NodeRows carry their own edges; give either NodeRows or X and edge_index, not both")
        y = None if y is None else X.spread(y)
        X, edge_index, edge_weight, rows = X.X, X.edge_index, X.edge_weight, X.rows
        if isinstance(X, Data):  # the rows decide which labels are read, not its masks
            X, edge_index, edge_weight = X.get("x"), X.edge_index, X.get("edge_weight")
    if isinstance(X, Store):
        if edge_index is not None or edge_weight is not None:
            raise InvalidInput("a Store carries its own edges; give either a Store or X and edge_index, not both")
        source = X if fitted else in_memory(X)
        graph = source.unlabelled() if isinstance(source, Store) else as_graph(source, directed=True)
        nodes = int(graph.num_nodes or 0)
        return Inputs(graph, source, y, names_of(names, X, nodes), None)
    X = as_pandas(X)
    if columns is not None and columns.columns:
        X, edge_index, edge_weight = _as_fitted_frame(X, edge_index, edge_weight, columns, feature_names)
    elif columns is not None and isinstance(X, pd.DataFrame) and {str(c).strip() for c in X} <= {*columns.left_out}:
        X = X[[]]  # the model was fitted without these columns
    bare = _without_features(X, edge_index, y)
    if fitted and (bare is None) != (columns is None or columns.structural is None):
        raise InvalidInput(
            "the model was fitted with features; give X, one row per node"
            if bare is not None
            else "the model was fitted without features; leave X out and give edge_index"
        )
    numeric, encoding = X if bare is None else bare, None
    if bare is None and not (fitted and columns is None):
        numeric, encoding = encoded(X, columns, fill, scale)
    if encoding is not None and not encoding.columns:
        numeric = bare = _zero_column(X.index)
    graph = as_graph(numeric, edge_index, edge_weight, directed=directed)
    nodes = int(graph.num_nodes or 0)
    in_graph = None if isinstance(numeric, Data | pd.DataFrame) else row_names(edge_index, nodes)
    are_given, names = names is not None, names_of(names, numeric, nodes, in_graph)
    source = numeric if isinstance(numeric, Data) else label_rows(numeric, y, nodes, names if are_given else in_graph)
    if bare is not None:
        x, structural = standardised(graph, names, seed, None if columns is None else columns.structural)
        graph.x, encoding = torch.from_numpy(x), replace(encoding or Encoding(), structural=structural)
    frame = X if isinstance(X, pd.DataFrame) and bare is None else None
    return Inputs(graph, source, y, names, encoding, frame, rows)


def as_graph(X: Any, edge_index: Any = None, edge_weight: Any = None, *, directed: bool = False) -> Data:
    """A checked graph without labels: x float [N, F] dense or CSR, edge_index long [2, E], perhaps edge_weight [E].

    X is a `Data`, or features [N, F]: numpy, scipy sparse, torch or a pandas frame of numbers. Edges are an array
    [2, E] of row numbers, a scipy adjacency [N, N], or a frame of two or three columns: source, target, weight. Where
    both are frames, source and target are names in the index of X. An edge goes both ways unless `directed`. In a frame
    every edge counts once and self-loops do not count, as in tables. The graph shares no memory with the arguments.
    """
    if not isinstance(directed, bool | np.bool_):
        raise InvalidInput(f"directed must be True or False, got {repr(directed)[:100]}")
    if isinstance(X, Data):
        if edge_index is not None or edge_weight is not None:
            raise InvalidInput("a Data carries its own edges; give either a Data or X and edge_index, not both")
        nodes, x, index, edge_weight = int(X.num_nodes or 0), X.get("x"), X.get("edge_index"), X.get("edge_weight")
        x = None if x is None else features(x)
        index = None if index is None else edges(index, nodes)[0]
    else:
        if edge_index is None:
            raise InvalidInput(f"edge_index is missing: {_missing_edges_advice(X)}")
        x = features(X)
        nodes = len(x)
        index, weight = edges(edge_index, nodes, X.index if isinstance(X, pd.DataFrame) else None)
        if weight is not None and edge_weight is not None:
            raise InvalidInput("edge weights came twice, in edge_index and as edge_weight; give them once")
        edge_weight = weight if edge_weight is None else edge_weight
    weight = None if edge_weight is None else weights(edge_weight)
    _check_edge_range(index, nodes)
    check_graph(Data(x=x, edge_index=index, edge_weight=weight, num_nodes=nodes))
    if is_table(edge_index) and index.numel():
        index, weight = without_repeats(index, weight, nodes)
    if not directed and index.numel():
        both, weight = both_ways(index.cpu(), weight, nodes)
        index = both.to(index.device)
    return Data(x=x, edge_index=index, edge_weight=weight, num_nodes=nodes)


def _check_edge_range(index: Tensor | None, nodes: int) -> None:
    """Raises where an edge has a row number that X does not have."""
    if index is None or index.is_meta or index.dtype != torch.int64 or not index.numel() or index.dim() != 2:
        return
    if int(index.max()) >= nodes > 0:
        wrong = int((index >= nodes).any(0).nonzero()[0])
        from_1 = int(index.min()) == 1 and int(index.max()) == nodes
        raise InvalidInput(
            f"edge {wrong} joins nodes {index[:, wrong].tolist()}, but nodes are numbered 0 … {nodes - 1}"
            f"{'; if the edges count from 1, give edge_index - 1' if from_1 else ROWS_HINT}"
        )


def names_of(names: Any, X: Any, nodes: int, in_graph: "pd.Index[Any] | None" = None) -> Any:
    """The names of the N nodes: str [N], an array or `NodeNames`.

    They are the given `names`, or else the index of a frame, the names in a store or those of a networkx or igraph
    graph, or 0 … N−1.
    """
    if names is not None and count_rows(names, "names") != nodes:
        raise InvalidInput(f"names must hold one name per node [{nodes}], got {len(names)}")
    if names is None and isinstance(X, Store):
        names = NodeNames(StoreReference.of(X))
        return np.array(list(names), dtype=object) if X.fits else names
    if names is None:
        names = X.index if isinstance(X, pd.DataFrame) else in_graph
        names = range(nodes) if names is None else names
    return names if isinstance(names, NodeNames) else np.array([str(name) for name in names], dtype=object)


def in_memory(store: Store) -> Data | Store:
    """The graph of a store of at most 1 GiB in memory, with the first of several splits; else the store."""
    if not store.fits:
        return store
    data = store.whole()
    for name in MASKS:
        if name in data and data[name].dim() == 2:
            data[name] = data[name][:, 0]
    return data


def encoded(
    X: Any, fitted: Encoding | None = None, fill: Literal["mean"] | None = None, scale: str = "auto"
) -> tuple[Any, Encoding | None]:
    """A frame X as a frame of numbers, and its encoding; scaled as `bangs fit` scales the columns of a table.

    Everything else comes back as it is. With the encoding of a `fitted` frame, columns become the same features.
    Columns that are left out give a warning.
    """
    if not isinstance(X, pd.DataFrame):
        return X, None
    notes: list[str] = []
    numbers, encoding = encode_frame(X, fitted, notes, fill, scale)
    relevant = [
        note
        for note in notes
        if (fitted is not None and not (encoding.fill is not None and note.endswith("filled with its mean")))
        or any(f"column {name!r}" in note for name in encoding.left_out)
    ]
    if len(relevant) > MAX_WARNINGS:
        relevant[MAX_WARNINGS - 1 :] = [f"X: {len(relevant) - MAX_WARNINGS + 1:,} more notes of this kind"]
    if not encoding.columns:
        relevant.append("X: no column can be a feature, so features are made from the edges")
    for note in relevant:
        warnings.warn(note, stacklevel=3)
    return pd.DataFrame(numbers, index=X.index, columns=encoding.features), encoding


def _as_fitted_frame(
    X: Any, edge_index: Any, edge_weight: Any, columns: Encoding, feature_names: Any
) -> tuple[Any, Any, Any]:
    """X as a frame with the columns of the fitted frame, and its edges and their weights."""
    if X is None or isinstance(X, pd.DataFrame):
        return X, edge_index, edge_weight
    if isinstance(X, Data) and edge_index is None and edge_weight is None:
        X, edge_index, edge_weight = X.get("x"), X.get("edge_index"), X.get("edge_weight")
    not_numeric = [column.name for column in columns.columns if not isinstance(column, Numeric)]
    if not_numeric:
        raise InvalidInput(
            f"the model was fitted on a frame, in which column {not_numeric[0]!r} holds words or dates; give a frame"
        )
    numbers = features(X).to_dense().numpy()
    names = [str(column) for column in range(numbers.shape[1])] if feature_names is None else list(feature_names)
    if len(names) != numbers.shape[1]:
        raise InvalidInput(
            f"X has {numbers.shape[1]} features, but the model was fitted on a frame and is expecting {len(names)} "
            "features as input: its columns"
        )
    return pd.DataFrame(numbers, columns=names), edge_index, edge_weight


def _without_features(X: Any, edge_index: Any, y: Any) -> Any:
    """A graph or frame with one column of zeros, if there are edges but no features; else None."""
    if isinstance(X, Data) and X.get("x") is None and X.get("edge_index") is not None and X.num_nodes:
        return X.clone().update({"x": torch.zeros(int(X.num_nodes), 1)})
    if X is None and edge_index is not None:
        X = pd.DataFrame(index=named_nodes(edge_index, y))
    if isinstance(X, pd.DataFrame) and X.shape[1] == 0 and len(X):
        return _zero_column(X.index)
    return None


def _zero_column(index: "pd.Index[Any]") -> pd.DataFrame:
    """A frame with one column of zeros, which features made from the edges replace."""
    return pd.DataFrame({"none": np.zeros(len(index), np.float32)}, index=index)


def features(X: Any) -> Tensor:
    """A copy of the features as float32 [N, F], dense or CSR."""
    if isinstance(X, Tensor):
        X = X.detach()
        return _two_dimensional(X.to(torch.float32, copy=True)) if X.layout == torch.strided else _sparse_tensor(X)
    if sp.issparse(X):
        matrix: Any = X
        check_scipy(matrix, "X")
        if matrix.dtype.kind not in "biuf":
            raise InvalidInput(f"X must hold real numbers, got {matrix.dtype}")
        return to_torch(sp.csr_array(matrix))
    X = unmasked(X, "X")
    try:
        array = np.asarray(X.to_numpy(dtype=np.float32, na_value=np.nan) if isinstance(X, pd.DataFrame) else X)
        if array.dtype.kind == "c":
            raise InvalidInput(f"Complex data not supported: X must hold real numbers, got {array.dtype}")
        with np.errstate(over="ignore"):
            numbers = torch.from_numpy(np.array(array, dtype=np.float32, order="C"))
    except InvalidInput:
        raise
    except TypeError as error:
        raise TypeError(f"X must hold numbers, one row of features per node: {error}") from error
    except ValueError as error:
        raise InvalidInput(f"X must hold numbers, one row of features per node: {error}") from error
    return _two_dimensional(numbers)


def _missing_edges_advice(X: Any) -> str:
    """The advice for an X without edges that is not a `Data`."""
    if isinstance(X, str | PathLike):
        return (
            "tables are read by `bangs fit`; in Python, read them with pandas and give X, a frame with node names as "
            "its index, y, a series, and edge_index, a frame of edges"
        )
    if isinstance(X, HeteroData):
        return "a HeteroData has nodes of several kinds; data.to_homogeneous(), with features x, has one"
    return (
        "give edge_index=edges, the row numbers [2, E] of X, or a PyG Data in place of X; behind another "
        "step of a Pipeline, give edge_index to the Pipeline, or transform X before NodeRows(X, edges)"
    )


def check_columns(X: Any, fitted: "npt.NDArray[Any] | None") -> None:
    """Raises where the columns of a frame are not those of the fit, in the same order."""
    if fitted is None or not isinstance(X, pd.DataFrame) or list(map(str, X.columns)) == fitted.tolist():
        return
    given, wanted = (", ".join(map(repr, map(str, names[:5]))) for names in (X.columns, fitted))
    raise InvalidInput(
        "The feature names should match those that were passed during fit, in their order: it had "
        f"{wanted}{' …' * (len(fitted) > 5)}, X has {given}{' …' * (X.shape[1] > 5)}; "
        "write X[list(model.feature_names_in_)], or X.to_numpy() if they mean the same"
    )


def _two_dimensional(x: Tensor) -> Tensor:
    if x.dim() != 2:
        raise InvalidInput(
            f"Expected 2D array, one row per node: X must have shape [N, F], got {list(x.shape)}. "
            "Reshape your data: X.reshape(-1, 1) makes one feature of a list of numbers"
        )
    if x.shape[1] == 0:
        raise InvalidInput(f"X has 0 feature(s) (shape={tuple(x.shape)}) while a minimum of 1 is required.")
    return x


def _sparse_tensor(x: Tensor) -> Tensor:
    """A sparse tensor as a CSR tensor; its indices are checked, since torch does not check them."""
    x, shape = x.cpu(), (int(x.shape[0]), int(x.shape[1])) if x.dim() == 2 else (0, 0)
    if x.layout == torch.sparse_coo and x.dim() == 2:
        for indices, size, axis in zip(x._indices(), shape, ("row", "column"), strict=True):
            check_range(indices.numpy(), size, f"the {axis} numbers of X")
    elif x.layout == torch.sparse_csr and x.dim() == 2:
        check_indices(x.crow_indices().numpy(), x.col_indices().numpy(), shape, "X")
    else:
        raise InvalidInput(f"a sparse X must be a CSR or COO tensor [N, F], got {x.layout} {list(x.shape)}")
    x = x.float().to_sparse_csr()
    return csr(x.crow_indices().clone(), x.col_indices().clone(), x.values().clone(), shape)
