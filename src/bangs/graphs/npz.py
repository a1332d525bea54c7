"""Read a graph from one .npz file.

Its arrays are those of `array_checks`. Features are dense `x`, or the CSR parts `x_data, x_indices, x_indptr, x_shape`,
or missing. Other arrays are not read.
"""

from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.array_checks import (
    MAX_FEATURES,
    as_float32,
    check_disjoint,
    check_edges,
    check_shapes,
    checked_csr,
    describe,
    edge_weights,
)
from bangs.graphs.edges import undirected
from bangs.graphs.safe_numpy_files import Array, Header, npz_headers, read_npz
from bangs.graphs.sparse import to_torch
from bangs.graphs.splits import MASKS

_PARTS = ("x_data", "x_indices", "x_indptr", "x_shape")


def read_graph(path: Path) -> Data:
    """The graph of an .npz file, with undirected edges; sparse features stay sparse.

    Weights of a repeated edge add up; of two opposite edges the larger weight counts.
    """
    data = read_as_listed(path)
    (source, target), weight = data.edge_index.numpy(), data.get("edge_weight")
    edges = undirected(source, target, len(data.y), None if weight is None else weight.numpy())
    data.edge_index = edges.edge_index
    if weight is not None:
        data.edge_weight = edges.edge_weight
    return data


def read_as_listed(path: Path) -> Data:
    """The graph of an .npz file with its edges as they are listed; every array is checked."""
    names = ("edge_index", "edge_weight", "y", "x", *_PARTS, *MASKS)
    headers = npz_headers(path, names)
    for name in ("edge_index", "y"):
        if name not in headers:
            raise InvalidInput(f"{path} has no array '{name}'; a graph needs edge_index and y")
    check_shapes(headers, path)
    if "x" not in headers:
        _check_sparse_shapes(headers, path)
    arrays = read_npz(path, names)
    y = _labels(arrays["y"], path)
    check_edges(arrays["edge_index"], len(y), path)
    index = torch.from_numpy(arrays["edge_index"].astype(np.int64))
    data = Data(edge_index=index, y=torch.from_numpy(y), num_nodes=len(y))
    if "edge_weight" in arrays:
        data.edge_weight = torch.from_numpy(edge_weights(arrays["edge_weight"], path))
    if "x" in arrays:
        data.x = torch.from_numpy(as_float32(arrays["x"], "x", path))
    elif "x_shape" in arrays:
        data.x = to_torch(_sparse(arrays, path))
    if MASKS[0] in arrays:
        check_disjoint(np.stack([arrays[name] for name in MASKS]), path)
        data.update({name: torch.from_numpy(arrays[name]) for name in MASKS})
    return data


def _check_sparse_shapes(headers: dict[str, Header], path: Path) -> None:
    present = [name for name in _PARTS if name in headers]
    if present and len(present) < len(_PARTS):
        missing = next(name for name in _PARTS if name not in headers)
        raise InvalidInput(f"{path} has '{present[0]}' but not '{missing}'; sparse features need {', '.join(_PARTS)}")
    if present and headers["x_data"].shape != headers["x_indices"].shape:
        shapes = f"{describe(headers['x_data'])} and {describe(headers['x_indices'])}"
        raise InvalidInput(f"'x_data' and 'x_indices' of {path} must be of one length, got {shapes}")
    if present and (headers["x_shape"].shape != (2,) or headers["x_shape"].dtype.kind not in "iu"):
        raise InvalidInput(f"'x_shape' of {path} must be two whole numbers, got {describe(headers['x_shape'])}")


def _labels(y: Array, path: Path) -> Array:
    low, high = int(y.min()), int(y.max())
    if low < -1 or high < 0 or high >= len(y):
        raise InvalidInput(
            f"'y' of {path} must be 0 … C−1 (−1 = unknown) with fewer classes than its {len(y)} nodes, "
            f"got values from {low} to {high}"
        )
    return y.astype(np.int64)


def _sparse(arrays: dict[str, Array], path: Path) -> "sp.csr_array[np.float32]":
    nodes, (rows, width) = len(arrays["y"]), map(int, arrays["x_shape"])
    if rows != nodes:
        raise InvalidInput(f"'x_shape' of {path} must be ({nodes}, F), one row per label in 'y', got {rows}, {width}")
    if not 1 <= width <= MAX_FEATURES:
        raise InvalidInput(f"'x_shape' of {path} must ask for 1 … {MAX_FEATURES} columns, got {width}")
    values, what = as_float32(arrays["x_data"], "x_data", path), f"the sparse features of {path}"
    matrix = checked_csr(values, arrays["x_indices"], arrays["x_indptr"], (nodes, width), what)
    matrix.sum_duplicates()
    return matrix
