"""Read Cora, CiteSeer and PubMed from the pickles of Yang et al., 2016, without running their code."""

import pickle  # by an unpickler that admits a few names, none of which runs code  # nosec B403
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from bangs.errors import DataUnavailable, InvalidInput
from bangs.graphs.array_checks import MAX_FEATURES, check_range, checked_csr
from bangs.graphs.edges import undirected
from bangs.graphs.safe_numpy_files import Array
from bangs.graphs.sparse import to_torch

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
VALIDATION = 500


def read_planetoid(folder: Path, name: str) -> Data:
    """The graph of the files `ind.NAME.*`, with the public split: 20 a class, 500 for validation, 1,000 for the test.

    Features are sparse, and rows sum to one. CiteSeer has nodes without features or label: they get an empty row and
    the label −1, and are in no part of the split.
    """
    files = {part: folder / f"ind.{name}.{part}" for part in PARTS}
    allx, tx = _matrix(files["allx"]), _matrix(files["tx"])
    ally, ty = _one_hot(files["ally"], allx.shape[0]), _one_hot(files["ty"], tx.shape[0])
    labelled = _matrix(files["x"]).shape[0]
    if allx.shape[1] != tx.shape[1] or ally.shape[1] != ty.shape[1]:
        raise InvalidInput(f"{files['tx']} and {files['allx']} (or ty and ally) must have the same number of columns")
    nodes = _test_nodes(files["test.index"], allx.shape[0], tx.shape[0])
    total = int(nodes.max()) + 1
    if labelled + VALIDATION > allx.shape[0]:
        raise InvalidInput(f"{files['allx']} must hold the {labelled} rows of x and {VALIDATION} for validation")

    labels = np.zeros((total, ally.shape[1]), ally.dtype)
    labels[: allx.shape[0]] = ally
    labels[nodes] = ty
    y = np.where(labels.any(axis=1), labels.argmax(axis=1), -1)
    data = Data(
        x=to_torch(_normalised(_stacked(allx, tx, nodes))),
        edge_index=_edges(files["graph"], total),
        y=torch.from_numpy(y),
        num_nodes=total,
    )
    node = torch.arange(total)
    data.train_mask = node < labelled
    data.val_mask = (node >= labelled) & (node < labelled + VALIDATION)
    data.test_mask = torch.zeros(total, dtype=torch.bool)
    data.test_mask[torch.from_numpy(nodes)] = True
    data.num_classes = int(labels.shape[1])
    return data


class _Array:
    """Stands for a numpy array while a pickle is read; `array` checks its size."""

    def __init__(self, *_: Any) -> None:
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def array(self) -> Array:
        _, shape, dtype, fortran, raw = self.state
        raw = raw.encode("latin1") if isinstance(raw, str) else raw
        if not isinstance(raw, bytes):
            raise ValueError(f"the content of an array must be bytes, got {type(raw).__name__}")
        # numpy refuses a shape that the bytes do not fill
        flat = np.frombuffer(raw, dtype=dtype.dtype())
        return flat.reshape(shape, order="F" if fortran else "C")


class _Dtype:
    """Stands for a numpy dtype; only numbers are allowed."""

    def __init__(self, code: str, *_: Any) -> None:
        self.code = code
        self.order = "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = str(state[1])

    def dtype(self) -> np.dtype[Any]:
        if self.code[:1] not in "biuf" or self.order not in "<>=|":
            raise ValueError(f"dtype {self.code!r} is not a plain number")
        return np.dtype(f"{self.order}{self.code}")


class _Csr:
    """Stands for a scipy CSR matrix."""


# numpy and scipy reconstruction, and the dictionary of lists that holds the links; nothing here runs foreign code
_ALLOWED: dict[tuple[str, str], Callable[..., Any] | str] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): _Dtype,
    ("scipy.sparse.csr", "csr_matrix"): _Csr,
    ("scipy.sparse._csr", "csr_matrix"): _Csr,
    ("collections", "defaultdict"): lambda *_: {},
    ("__builtin__", "list"): "list",
    ("builtins", "list"): "list",
}


class _Unpickler(pickle._Unpickler):
    """Python's unpickler, since the one in C allocates gigabytes if a small file claims to need them."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it uses {module}.{name}, which is not allowed")
        return _ALLOWED[module, name]


def _unpickle(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            return _Unpickler(file, encoding="latin1").load()
    except OSError as error:
        raise DataUnavailable(f"{path} cannot be read: {error.strerror or error}") from error
    except Exception as error:  # a broken pickle may raise any error
        raise InvalidInput(f"{path} is not a valid Planetoid file: {error}") from error


def _matrix(path: Path) -> "sp.csr_array[np.float32]":
    content = _unpickle(path)
    parts = vars(content) if isinstance(content, _Csr) else {}
    try:
        shape = parts.get("_shape") or parts["shape"]
        values, columns, pointers = (parts[name].array() for name in ("data", "indices", "indptr"))
        rows, width = (int(side) for side in shape)
        if not 1 <= width <= MAX_FEATURES:
            raise ValueError(f"{width} columns are too many")
        matrix = checked_csr(values.astype(np.float32), columns, pointers, (rows, width), "the matrix")
    except (KeyError, AttributeError, TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"{path} must hold a sparse matrix in CSR form: {error}") from error
    if not np.isfinite(matrix.data).all():
        raise InvalidInput(f"{path} must hold finite numbers")
    return matrix


def _one_hot(path: Path, rows: int) -> Array:
    content = _unpickle(path)
    try:
        labels = content.array()
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"{path} must hold an array: {error}") from error
    if labels.ndim != 2 or len(labels) != rows or labels.shape[1] < 2:
        raise InvalidInput(f"{path} must hold one-hot labels [{rows}, C], got {list(labels.shape)}")
    return np.asarray(labels)


def _test_nodes(path: Path, known: int, tested: int) -> Array:
    try:
        nodes = np.array(path.read_text().split(), dtype=np.int64)
    except OSError as error:
        raise DataUnavailable(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{path} must hold one node number per line: {error}") from error
    if len(nodes) != tested or len(np.unique(nodes)) != tested:
        raise InvalidInput(f"{path} must name each of the {tested} test nodes once, got {len(nodes)} numbers")
    # CiteSeer skips 15 numbers; many more would only allocate memory
    if tested == 0 or int(nodes.min()) < known or int(nodes.max()) >= known + 2 * tested:
        raise InvalidInput(f"{path} must number test nodes from {known} on with few gaps")
    return nodes


def _edges(path: Path, nodes: int) -> torch.Tensor:
    links = _unpickle(path)
    try:
        sizes = [len(neighbours) for neighbours in links.values()]
        if sum(sizes) > path.stat().st_size:  # a pickle may name one long list again and again
            raise ValueError(f"{sum(sizes)} links do not fit into {path.stat().st_size} bytes")
        source = np.repeat(np.fromiter(links.keys(), np.int64, len(links)), sizes)
        target = np.fromiter(chain.from_iterable(links.values()), np.int64, sum(sizes))
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"{path} must hold a list of neighbours for every node: {error}") from error
    check_range(np.concatenate([source, target]), nodes, f"the nodes that {path} links")
    return undirected(source, target, nodes).edge_index


def _stacked(
    allx: "sp.csr_array[np.float32]", tx: "sp.csr_array[np.float32]", nodes: Array
) -> "sp.csr_array[np.float32]":
    """The known rows, then the test rows, each at its node; nodes without features have empty rows."""
    rows = sp.vstack([allx, tx, sp.csr_array((1, allx.shape[1]), dtype=np.float32)], format="csr")
    row = np.full(int(nodes.max()) + 1, -1)
    row[: allx.shape[0]] = np.arange(allx.shape[0])
    row[nodes] = allx.shape[0] + np.arange(len(nodes))
    return sp.csr_array(rows[row])


def _normalised(x: "sp.csr_array[np.float32]") -> "sp.csr_array[np.float32]":
    total = np.asarray(x.sum(axis=1), np.float32).ravel()
    scale = np.divide(1, total, out=np.zeros(len(total), np.float32), where=total > 0)
    return sp.csr_array((x.data * np.repeat(scale, np.diff(x.indptr)), x.indices, x.indptr), shape=x.shape)
