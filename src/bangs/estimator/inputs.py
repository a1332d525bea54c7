"""Inputs: arrays, frames and graphs from a notebook, as one graph with numbered classes."""

import warnings
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp
import torch
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from bangs.core.graph_checks import check_graph
from bangs.core.types import Split
from bangs.errors import InvalidInput
from bangs.estimator.edge_inputs import both_ways, edges, unmasked, weights
from bangs.graphs.csr import check_indices, check_range, check_scipy
from bangs.graphs.sparse import csr, to_torch
from bangs.graphs.splits import MASKS
from bangs.graphs.store import NodeNames, Store, StoreReference
from bangs.graphs.tables.feature_encoding import Encoding
from bangs.graphs.tables.frames import encode_frame
from bangs.graphs.tables.labels import many_classes

Classes = npt.NDArray[Any]


def as_graph(X: Any, edge_index: Any = None, edge_weight: Any = None, *, directed: bool = False) -> Data:
    """A checked graph without labels: x float [N, F] dense or CSR, edge_index long [2, E], perhaps edge_weight [E].

    X is a `Data`, or features [N, F]: numpy, scipy sparse, torch or a pandas frame of numbers. Edges are an array
    [2, E] of row numbers, a scipy adjacency [N, N], or a frame of two or three columns: source, target, weight. Where
    both are frames, source and target are names in the index of X. An edge goes both ways unless `directed`. The graph
    shares no memory with what was given.
    """
    if isinstance(X, Data):
        if edge_index is not None or edge_weight is not None:
            raise InvalidInput("a Data carries its own edges; give either a Data or X and edge_index, not both")
        nodes, index = int(X.num_nodes or 0), X.get("edge_index")
        graph = Data(
            x=None if X.get("x") is None else features(X.x),
            edge_index=None if index is None else edges(index, nodes)[0],
            num_nodes=nodes,
        )
        edge_weight = X.get("edge_weight")
    else:
        if edge_index is None:
            raise InvalidInput(f"edge_index is missing: {_no_edges(X)}")
        x = features(X)
        index, weight = edges(edge_index, len(x), X.index if isinstance(X, pd.DataFrame) else None)
        if weight is not None and edge_weight is not None:
            raise InvalidInput("edge weights came twice, in edge_index and as edge_weight; give them once")
        graph = Data(x=x, edge_index=index, num_nodes=len(x))
        edge_weight = weight if edge_weight is None else edge_weight
    if edge_weight is not None:
        graph.edge_weight = weights(edge_weight)
    nodes = check_graph(graph)
    if not directed and graph.num_edges:
        index, weight = both_ways(graph.edge_index.cpu(), graph.get("edge_weight"), nodes)
        graph.edge_index = index.to(graph.edge_index.device)
        if weight is not None:
            graph.edge_weight = weight
    return graph


def names_of(X: Any, nodes: int) -> Any:
    """The names of the nodes: the index of a frame, the names in a store, or 0 … N−1; an array, or `NodeNames`."""
    if isinstance(X, Store):
        names = NodeNames(StoreReference.of(X))
        return np.array(list(names), dtype=object) if X.fits else names
    index = X.index if isinstance(X, pd.DataFrame) else pd.RangeIndex(nodes)
    return np.array([str(name) for name in index], dtype=object)


def opened(X: Any) -> Any:
    """X, or the graph of a `Store` of at most 1 GiB in memory; of several splits it has the first."""
    if not isinstance(X, Store) or not X.fits:
        return X
    data = X.whole()
    for name in MASKS:
        if name in data and data[name].dim() == 2:
            data[name] = data[name][:, 0]
    return data


def encoded(X: Any, encoding: Encoding | None = None) -> tuple[Any, Encoding | None]:
    """X, and how its columns became features: a frame with words or dates as a frame of numbers with the same index.

    Everything else comes back as it is, but a polars frame, which becomes a pandas frame. With the `encoding` of
    another frame the columns become the same features. What is left out is warned of.
    """
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if not isinstance(X, pd.DataFrame) or (
        encoding is None and all(pd.api.types.is_numeric_dtype(kind) for kind in X.dtypes)
    ):
        return X, None
    notes: list[str] = []
    numbers, found = encode_frame(X, encoding, notes)
    for note in notes:
        if encoding is not None or any(f"column {name!r}" in note for name in found.left_out):
            warnings.warn(note, stacklevel=3)
    return pd.DataFrame(numbers, index=X.index, columns=found.features), found


def features(X: Any) -> Tensor:
    """Features float32 [N, F], dense or CSR, in memory of their own."""
    if isinstance(X, Tensor):
        X = X.detach()
        return _two_axes(X.to(torch.float32, copy=True)) if X.layout == torch.strided else _sparse_tensor(X)
    if sp.issparse(X):
        matrix: Any = X
        check_scipy(matrix, "X")
        if matrix.dtype.kind not in "biuf":
            raise InvalidInput(f"X must hold real numbers, got {matrix.dtype}")
        return to_torch(sp.csr_array(matrix))
    X = unmasked(X, "X")
    if isinstance(X, pd.DataFrame):
        X = X.to_numpy(dtype=np.float32, na_value=np.nan)
    try:
        array = np.asarray(X)
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
    return _two_axes(numbers)


def in_order(X: Any, y: Any) -> Any:
    """Labels in the order of the rows of X.

    A series whose index names rows of the frame X is put in their order, and rows it does not name are unknown. A
    series numbered 0, 1, … beside rows with names keeps its order. The same holds for a frame of one column.
    """
    if not isinstance(X, pd.DataFrame) or not isinstance(y, pd.Series | pd.DataFrame) or y.index.equals(X.index):
        return y
    for whose, index in (("X", X.index), ("y", y.index)):
        if not index.is_unique:
            raise InvalidInput(
                f"the index of {whose} must name every row once, or be the same for X and y, got "
                f"{index[index.duplicated()][0]!r} twice; give y.to_numpy() if its labels stand in the order of rows"
            )
    unknown = ~y.index.isin(X.index)
    if not unknown.any():
        return y.reindex(X.index)
    if y.index.equals(pd.RangeIndex(len(y))):
        return y
    name = y.index[unknown][0]
    raise InvalidInput(
        f"y has a label for {name!r}, which is not in the index of X; give both the same index, or y.to_numpy() if its "
        "labels stand in the order of the rows"
    )


def as_labels(y: Any, nodes: int, read: Tensor | None = None) -> tuple[Tensor, Classes]:
    """Class numbers long [N], -1 = unknown, and the classes in order.

    Unknown is -1, None, NaN, an empty word and a masked entry. Labels outside the mask `read` [N] are unknown,
    whatever they are.
    """
    values, masked = _label_array(y), np.ma.getmaskarray(y) if np.ma.isMaskedArray(y) else None
    if values.ndim == 2 and values.shape[1] == 1:
        values = column_or_1d(values, warn=not isinstance(y, pd.DataFrame))
    if values.shape != (nodes,):
        raise InvalidInput(f"y must hold one label per node [{nodes}], got shape {list(values.shape)}")
    values, known = _known(values)
    if masked is not None:
        known &= ~masked.reshape(nodes)
    if read is not None:
        known &= read.numpy()
    if not known.any():
        raise InvalidInput("no node has a label; give some, -1 (or None among words) is for the unknown")
    check_classification_targets(values[known])
    if values.dtype.kind == "f":
        values = np.where(known, values, -1).astype(np.int64)
    classes, codes = np.unique(values[known], return_inverse=True)
    out = np.full(nodes, -1, dtype=np.int64)
    out[known] = codes
    return torch.from_numpy(out), classes


def labelled(X: Any, y: Any, nodes: int) -> tuple[Tensor, Classes, Split | None]:
    """Class numbers [N], the classes, and the split [1, N] of the masks of a Data or Store; None without masks.

    With masks, only labels under `train_mask` and `val_mask` are read, or all but those of test nodes if there is no
    `train_mask`.
    """
    data = X if isinstance(X, Data | Store) else Data()
    y = data.get("y") if y is None else in_order(X, y)
    if y is None:
        raise InvalidInput("requires y to be passed, but the target y is None: give one label per node, -1 = unknown")
    masks = {name: mask_of(data, name, nodes) for name in ("train", "val", "test")}
    if all(mask is None for mask in masks.values()):
        target, classes = as_labels(y, nodes)
        _warn_of_many(target, classes)
        return target, classes, None
    none = torch.zeros(nodes, dtype=torch.bool)
    val, test = (none if (mask := masks[name]) is None else mask for name in ("val", "test"))
    train = ~val & ~test if masks["train"] is None else masks["train"]
    target, classes = as_labels(y, nodes, train | val)
    _warn_of_many(target, classes)
    known = target >= 0
    return target, classes, Split((train & known)[None], (val & known)[None], test[None])


def mask_of(data: Data | Store, name: str, nodes: int) -> Tensor | None:
    """The mask [N] of one part of the split of a Data or Store; of several splits the first."""
    mask = data.get(f"{name}_mask")
    if isinstance(data, Store) and mask is not None and mask.dim() == 2:
        mask = mask[:, 0]
    if mask is not None and (mask.dtype != torch.bool or mask.shape != (nodes,)):
        raise InvalidInput(
            f"data.{name}_mask must be bool with one entry per node [{nodes}], got {mask.dtype} of shape "
            f"{list(mask.shape)}; of several splits take one column"
        )
    return None if mask is None else mask.cpu()


def _warn_of_many(target: Tensor, classes: Classes) -> None:
    if many := many_classes(len(classes), int((target >= 0).sum())):
        warnings.warn(many, stacklevel=4)


def _known(values: Classes) -> tuple[Classes, npt.NDArray[np.bool_]]:
    """The labels, and which of them are known: bool [N]."""
    if values.dtype.kind == "O":
        return _objects(values)
    if values.dtype.kind in "US":  # numpy makes "-1" of a -1 among words
        return values, (values != values.dtype.type()) & (values.astype(str) != "-1")
    return values, (values != -1) & (~np.isnan(values) if values.dtype.kind == "f" else True)


def _label_array(y: Any) -> Classes:
    """The labels as an array; among words, NaN stays NaN, where numpy would make the word 'nan' of it."""
    if isinstance(y, Tensor):
        return y.detach().cpu().numpy()
    if isinstance(y, pd.Series | pd.DataFrame):
        return y.to_numpy(dtype=object)
    values = np.asarray(y)
    mixed = values.dtype.kind in "US" and not isinstance(y, np.ndarray)
    return np.array(y, dtype=object) if mixed else values


def _no_edges(X: Any) -> str:
    """What to give instead of an X without edges that is not a `Data`."""
    if isinstance(X, str | PathLike):
        return "tables are read by `bangs fit`; in Python, bangs.graphs.tables.read_graph(path).data is a graph for fit"
    if isinstance(X, HeteroData):
        return "a HeteroData has nodes of several kinds; data.to_homogeneous(), with features x, has one"
    return "give the edges as an array [2, E] of row numbers, or a PyG Data in place of X"


def check_columns(X: Any, fitted: "npt.NDArray[Any] | None") -> None:
    """Raises where the columns of a frame are not those of the fit, in their order."""
    if fitted is None or not isinstance(X, pd.DataFrame) or list(map(str, X.columns)) == fitted.tolist():
        return
    came, wanted = (", ".join(map(repr, map(str, names[:5]))) for names in (X.columns, fitted))
    raise InvalidInput(
        "The feature names should match those that were passed during fit, in their order: it had "
        f"{wanted}{' …' * (len(fitted) > 5)}, X has {came}{' …' * (X.shape[1] > 5)}; "
        "write X[list(model.feature_names_in_)], or X.to_numpy() if they mean the same"
    )


def _two_axes(x: Tensor) -> Tensor:
    if x.dim() != 2:
        raise InvalidInput(
            f"Expected 2D array, one row per node: X must have shape [N, F], got {list(x.shape)}. "
            "Reshape your data: X.reshape(-1, 1) makes one feature of a list of numbers"
        )
    if x.shape[1] == 0:
        raise InvalidInput(f"X has 0 feature(s) (shape={tuple(x.shape)}) while a minimum of 1 is required.")
    return x


def _objects(values: Classes) -> tuple[Classes, npt.NDArray[np.bool_]]:
    """An array of Python objects as words or numbers, and which of them are known."""
    known = np.array([not (value is None or value is pd.NA or value != value or value == "") for value in values])
    known &= np.array([not (isinstance(value, int | float | np.number) and value == -1) for value in values])
    known &= np.array([not (isinstance(value, str) and value == "-1") for value in values])
    kinds = {str if isinstance(value, str) else type(value) for value in values[known]}
    if kinds <= {str}:
        return np.where(known, values, "").astype(str), known
    if all(issubclass(kind, int | float | np.number | np.bool_) for kind in kinds):
        return _whole_or_float(np.where(known, values, -1)), known
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InvalidInput(
        f"labels must be all words or all numbers, got a mixture of {names}; write [str(label) for label in y]"
    )


def _whole_or_float(values: Classes) -> Classes:
    """Python numbers as int64 where all are whole, which float64 would merge above 2^53; else as float64."""
    if not all(float(value).is_integer() for value in values):
        return values.astype(np.float64)
    try:
        return np.array([int(value) for value in values], dtype=np.int64)
    except OverflowError as error:
        raise InvalidInput("labels must be words or 64-bit numbers; write [str(label) for label in y]") from error


def _sparse_tensor(x: Tensor) -> Tensor:
    """A torch CSR tensor of a sparse one; its indices are checked, since torch does not check them."""
    x, shape = x.cpu(), (int(x.shape[0]), int(x.shape[1])) if x.dim() == 2 else (0, 0)
    if x.layout == torch.sparse_coo and x.dim() == 2:
        for numbers, count, side in zip(x._indices(), shape, ("row", "column"), strict=True):
            check_range(numbers.numpy(), count, f"the {side} numbers of X")
    elif x.layout == torch.sparse_csr and x.dim() == 2:
        check_indices(x.crow_indices().numpy(), x.col_indices().numpy(), shape, "X")
    else:
        raise InvalidInput(f"a sparse X must be a CSR or COO tensor [N, F], got {x.layout} {list(x.shape)}")
    found = x.float().to_sparse_csr()
    return csr(found.crow_indices().clone(), found.col_indices().clone(), found.values().clone(), shape)
