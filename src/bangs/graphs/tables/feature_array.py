"""Read features.npz or features.npy beside the node table: one row per node, in the order of the table."""

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import scipy.sparse as sp

from bangs.errors import BangsError, OutOfMemory
from bangs.graphs.array_checks import checked_csr
from bangs.graphs.safe_numpy_files import map_npy, read_npy, read_npz
from bangs.graphs.tables.diagnostics import Diagnostics, FileDiagnostics, counted

FILES = ("features.npz", "features.npy")
_DENSE = ("x", "features", "arr_0")
_SPARSE = (("x_data", "x_indices", "x_indptr", "x_shape"), ("data", "indices", "indptr", "shape"))


def read_array(folder: Path, nodes: int | None, diagnostics: Diagnostics, *, load: bool) -> Any:
    """The matrix [N, F] of features.npz or features.npy, dense or scipy CSR; None if there is none or it is reported.

    With `load` it is read and checked. Otherwise an .npy file is mapped, and the caller checks the rows it reads.
    """
    present = [folder / name for name in FILES if (folder / name).is_file()]
    if len(present) == 2:
        message = "both features.npz and features.npy exist"
        diagnostics.of("features").add("two-tables", message, "remove or rename one")
    if not present:
        return None
    path = present[0]
    file_diagnostics = diagnostics.of(path.name)
    try:
        if path.suffix == ".npz":
            matrix = _from_archive(path)
        else:
            matrix = _dense(read_npy(path)) if load else _two_axes(map_npy(path))
    except OutOfMemory:
        raise
    except (BangsError, ValueError) as error:
        reason = str(error).replace(str(path), path.name)
        file_diagnostics.add("bad-array", reason, "save it again with numpy.save, numpy.savez or scipy.sparse.save_npz")
        return None
    if nodes is not None and matrix.shape[0] != nodes:
        file_diagnostics.add(
            "array-rows",
            f"it has {matrix.shape[0]:,} rows, the node table has {nodes:,}",
            "give every node one row, in the order of the node table",
        )
        return None
    if load and not _finite(matrix, file_diagnostics):
        return None
    file_diagnostics.note(f"{counted(matrix.shape[1], 'feature')} a node")
    return matrix


def padded(array: Any, rows: int) -> Any:
    """The matrix with rows of zeros appended; None stays None."""
    if array is None or rows == 0:
        return array
    shape = (rows, array.shape[1])
    if sp.issparse(array):
        parts: list[Any] = [array, sp.csr_array(shape, dtype=np.float32)]
        return sp.csr_array(sp.vstack(parts))
    return np.concatenate([array, np.zeros(shape, np.float32)])


def _two_axes(array: Any) -> Any:
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"features must have shape [N, F], got {list(array.shape)}")
    return array


def _dense(array: Any) -> Any:
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(_two_axes(array), dtype=np.float32)


def _from_archive(path: Path) -> Any:
    arrays = read_npz(path, (*_DENSE, *(name for parts in _SPARSE for name in parts)))
    for parts in _SPARSE:
        if all(name in arrays for name in parts):
            return _sparse(path, *(arrays[name] for name in parts))
    for name in _DENSE:
        if name in arrays:
            return _dense(arrays[name])
    raise ValueError("it holds no array 'x', nor the parts x_data, x_indices, x_indptr and x_shape of a sparse one")


def _sparse(path: Path, data: Any, indices: Any, indptr: Any, shape: Any) -> Any:
    if not _is_csr(path):
        raise ValueError("its sparse matrix is not in CSR form; save matrix.tocsr()")
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise ValueError("the shape of a sparse matrix must be two whole numbers")
    size = (int(shape[0]), int(shape[1]))
    if min(size) < 1 or max(size) >= 2**31:
        raise ValueError(f"features must have shape [N, F], got {list(size)}")
    with np.errstate(over="ignore"):
        values = data.astype(np.float32)
    matrix = checked_csr(values, indices, indptr, size, "the sparse matrix")
    matrix.sum_duplicates()
    return matrix


def _is_csr(path: Path) -> bool:
    """Whether scipy stored the matrix as CSR; True if the file does not say."""
    try:
        with ZipFile(path) as archive, archive.open("format.npy") as stream:
            return b"csr" in stream.read(1024)
    except Exception:  # a broken archive may raise any error, and does so again when its arrays are read
        return True


def _finite(matrix: Any, diagnostics: FileDiagnostics) -> bool:
    sparse = bool(sp.issparse(matrix))
    values = matrix.data if sparse else matrix
    bad = ~np.isfinite(values)
    if sparse:
        nodes = np.unique(np.searchsorted(np.asarray(matrix.indptr), np.flatnonzero(bad), side="right") - 1)
    else:
        nodes = np.flatnonzero(bad.any(axis=1))
    diagnostics.add_rows(
        "array-not-finite",
        [None] * len(nodes),
        lambda i: f"row {int(nodes[i]):,}, counted from 0, holds NaN or infinity",
        "fill or drop it",
    )
    return not len(nodes)
