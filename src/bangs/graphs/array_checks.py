"""Check the arrays of a graph, and the indices of sparse ones, before they are used.

The arrays are `edge_index` integer [2, E], `y` integer [N] with −1 = unknown, `x` [N, F], and optionally `edge_weight`
[E] and `train_mask, val_mask, test_mask` bool [N] or [N, S].
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from bangs.errors import InvalidInput
from bangs.graphs.splits import MASKS

Array = npt.NDArray[Any]

MAX_FEATURES = 10_000_000


def check_shapes(arrays: Mapping[str, Any], what: object) -> int:
    """The number of nodes in `y`, or else in `x`; raises if the shapes of arrays, or of their headers, do not fit."""
    y, x, edges, weight = arrays.get("y"), arrays.get("x"), arrays["edge_index"], arrays.get("edge_weight")
    if y is not None and (len(y.shape) != 1 or y.dtype.kind not in "iu" or 0 in y.shape):
        raise InvalidInput(f"'y' of {what} must be integers of shape [N], got {describe(y)}")
    if len(edges.shape) != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise InvalidInput(f"'edge_index' of {what} must be integers of shape [2, E], got {describe(edges)}")
    if weight is not None and weight.shape != edges.shape[1:]:
        raise InvalidInput(f"'edge_weight' of {what} must have shape [{edges.shape[1]}], got {describe(weight)}")
    nodes = next((array.shape[0] for array in (y, x) if array is not None and array.shape), 0)
    if x is not None and (len(x.shape) != 2 or x.shape[0] != nodes or 0 in x.shape or x.shape[1] > MAX_FEATURES):
        raise InvalidInput(f"'x' of {what} must have shape [{nodes or 'N'}, F], one row per node, got {describe(x)}")
    masks = {name: arrays[name] for name in MASKS if name in arrays}
    if masks and len(masks) < len(MASKS):
        raise InvalidInput(f"{what} has {' and '.join(masks)} only; a split needs {', '.join(MASKS)}")
    for name, mask in masks.items():
        if mask.dtype.kind != "b" or len(mask.shape) not in (1, 2) or mask.shape[0] != nodes or 0 in mask.shape:
            raise InvalidInput(f"'{name}' of {what} must be bool [{nodes}] or [{nodes}, S], got {describe(mask)}")
        if mask.shape != masks[MASKS[0]].shape:
            raise InvalidInput(f"the masks of {what} must share one shape, got {describe(mask)} for '{name}'")
    return nodes


def check_edges(edges: Array, nodes: int, what: object, first: int = 0) -> None:
    """Raises if an edge of a block [2, n] has an end that is not a node; the block begins with edge number `first`."""
    if edges.size and (int(edges.min()) < 0 or int(edges.max()) >= nodes):
        edge = int(((edges < 0) | (edges >= nodes)).any(axis=0).argmax())
        raise InvalidInput(
            f"edge {first + edge} of {what} joins nodes {edges[:, edge].tolist()}, "
            f"but nodes are numbered 0 … {nodes - 1}"
        )


def edge_weights(values: Array, what: object) -> Array:
    """The weights as float32; raises if one is negative or not finite."""
    weights = as_float32(values, "edge_weight", what)
    if (weights < 0).any():
        raise InvalidInput(f"'edge_weight' of {what} must hold numbers from 0, got {float(weights.min()):g}")
    return weights


def as_float32(values: Array, name: str, what: object) -> Array:
    """The array as float32; raises if a number is NaN, infinite or too large for float32."""
    with np.errstate(over="ignore"):
        numbers = np.ascontiguousarray(values, dtype=np.float32)
    if not np.isfinite(numbers).all():
        raise InvalidInput(
            f"'{name}' of {what} must hold finite float32 numbers, but has NaN or infinity; fill or drop"
        )
    return numbers


def check_disjoint(masks: Array, what: object) -> None:
    """Raises if a node is in two of the masks [3, …]."""
    if (masks.sum(axis=0) > 1).any():
        raise InvalidInput(f"the masks of {what} must be disjoint, but a node is in two of them")


def describe(array: Any) -> str:
    return f"{array.dtype} {list(array.shape)}"


def checked_csr(
    values: Array, columns: Array, pointers: Array, shape: tuple[int, int], what: str
) -> "sp.csr_array[Any]":
    """The scipy CSR array [n, m] of these parts, with 64-bit indices; raises if an index is out of range."""
    entries = check_indices(pointers, columns, shape, what)
    if values.ndim != 1 or len(values) < entries:
        raise InvalidInput(f"{what} must have one value for each of its {entries} column numbers, got {len(values)}")
    parts = values[:entries], columns[:entries].astype(np.int64), pointers.astype(np.int64)
    return sp.csr_array(parts, shape=shape)


def check_indices(pointers: Array, columns: Array, shape: tuple[int, int], what: str) -> int:
    """The number of entries of a CSR matrix [n, m]; raises if a pointer or column number is out of range."""
    if any(array.ndim != 1 or array.dtype.kind not in "iu" for array in (pointers, columns)):
        raise InvalidInput(f"the row pointers and column numbers of {what} must be whole numbers in one dimension")
    starts = pointers.astype(np.int64)
    rows, width = shape
    if len(starts) != rows + 1 or starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] > len(columns):
        raise InvalidInput(
            f"the row pointers of {what} must be {rows + 1} numbers that rise from 0 to its {len(columns)} entries"
        )
    check_range(columns[: starts[-1]], width, f"the column numbers of {what}")
    return int(starts[-1])


def check_range(numbers: Array, count: int, what: str) -> None:
    """Raises if one of the numbers is not in 0 … count − 1."""
    if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < count:
        raise InvalidInput(f"{what} must be 0 … {count - 1}, got {int(numbers.min())} … {int(numbers.max())}")


def check_scipy(matrix: Any, what: str) -> None:
    """Raises if a scipy sparse matrix of any format has an index out of range."""
    rows, width = matrix.shape
    if matrix.format in ("csr", "csc", "bsr"):
        if matrix.format == "bsr":
            rows, width = rows // matrix.blocksize[0], width // matrix.blocksize[1]
        shape = (width, rows) if matrix.format == "csc" else (rows, width)
        entries = check_indices(matrix.indptr, matrix.indices, shape, what)
        if len(matrix.data) < entries:
            raise InvalidInput(f"{what} must have one value for each of its {entries} column numbers")
    elif matrix.format == "coo":
        for numbers, count, side in zip(matrix.coords, matrix.shape, ("row", "column"), strict=True):
            check_range(numbers, count, f"the {side} numbers of {what}")
