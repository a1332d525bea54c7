"""Npz: one file, one graph.

Arrays: `edge_index` integer [2, E]; `y` integer [N], −1 where unknown; features as dense `x` [N, F] or as CSR
parts `x_data, x_indices, x_indptr, x_shape`, or none; `edge_weight` [E] where edges have weights; `train_mask,
val_mask, test_mask` bool [N] or [N, S] where a split exists. Other arrays are not read.
"""

from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.csr import checked_csr
from bangs.graphs.edges import mirrored, undirected
from bangs.graphs.numpy_files import Array, Header, npz_headers, read_npz
from bangs.graphs.sparse import to_torch
from bangs.graphs.splits import MASKS

MOST_FEATURES = 10_000_000
_PARTS = ("x_data", "x_indices", "x_indptr", "x_shape")


def read_graph(path: Path) -> Data:
    """The graph of an .npz file; features stay sparse if they came so, and edges are read as undirected.

    Weights of a repeated edge add up; of two opposite edges the larger counts.
    """
    data = read_as_listed(path)
    index, weight, nodes = data.edge_index.numpy(), data.get("edge_weight"), int(data.num_nodes or 0)
    if weight is not None:
        apart = index[0] != index[1]
        keys, place = np.unique((index[0] * nodes + index[1])[apart], return_inverse=True)
        _, larger = mirrored(keys, np.bincount(place, weight.numpy()[apart], len(keys)).astype(np.float64), nodes)
        data.edge_weight = torch.tensor(larger, dtype=torch.float32)
    data.edge_index = undirected(index[0], index[1], nodes)
    return data


def read_as_listed(path: Path) -> Data:
    """The graph of an .npz file with its edges as they are listed; every array is checked."""
    names = ("edge_index", "edge_weight", "y", "x", *_PARTS, *MASKS)
    _check_shapes(npz_headers(path, names), path)
    arrays = read_npz(path, names)
    y = _labels(arrays["y"], path)
    _check_edges(arrays["edge_index"], len(y), path)
    index = torch.from_numpy(arrays["edge_index"].astype(np.int64))
    data = Data(edge_index=index, y=torch.from_numpy(y), num_nodes=len(y))
    if "edge_weight" in arrays:
        weight = _finite(arrays["edge_weight"], "edge_weight", path)
        if (weight < 0).any():
            raise InvalidInput(f"'edge_weight' of {path} must hold numbers from 0, got {float(weight.min()):g}")
        data.edge_weight = torch.from_numpy(weight)
    if "x" in arrays:
        data.x = torch.from_numpy(_finite(arrays["x"], "x", path))
    elif "x_shape" in arrays:
        data.x = to_torch(_sparse(arrays, path))
    masks = [arrays[name] for name in MASKS if name in arrays]
    if masks and (np.sum(masks, axis=0) > 1).any():
        raise InvalidInput(f"the masks of {path} must be disjoint, but a node stands in two of them")
    for name, mask in zip(MASKS, masks, strict=False):
        data[name] = torch.from_numpy(mask)
    return data


def _check_shapes(headers: dict[str, Header], path: Path) -> None:
    """Raises where arrays are missing or do not fit together, before any of them is unpacked."""
    for name in ("edge_index", "y"):
        if name not in headers:
            raise InvalidInput(f"{path} has no array '{name}'; a graph needs edge_index and y")
    y, edges = headers["y"], headers["edge_index"]
    if y.ndim != 1 or y.dtype.kind not in "iu" or y.nbytes == 0:
        raise InvalidInput(f"'y' of {path} must be integers of shape [N], got {_what(y)}")
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise InvalidInput(f"'edge_index' of {path} must be integers of shape [2, E], got {_what(edges)}")
    weight = headers.get("edge_weight")
    if weight is not None and weight.shape != edges.shape[1:]:
        raise InvalidInput(f"'edge_weight' of {path} must have shape [{edges.shape[1]}], got {_what(weight)}")
    nodes = y.shape[0]
    if "x" in headers:
        x = headers["x"]
        if x.ndim != 2 or x.shape[0] != nodes or not 1 <= x.shape[1] <= MOST_FEATURES:
            raise InvalidInput(f"'x' of {path} must have shape [{nodes}, F], one row per label in 'y', got {_what(x)}")
    else:
        _check_sparse_shapes(headers, path)
    _check_mask_shapes({name: headers[name] for name in MASKS if name in headers}, nodes, path)


def _check_sparse_shapes(headers: dict[str, Header], path: Path) -> None:
    there = [name for name in _PARTS if name in headers]
    if there and len(there) < len(_PARTS):
        missing = next(name for name in _PARTS if name not in headers)
        raise InvalidInput(f"{path} has '{there[0]}' but not '{missing}'; sparse features need {', '.join(_PARTS)}")
    if there and headers["x_data"].shape != headers["x_indices"].shape:
        came = f"{_what(headers['x_data'])} and {_what(headers['x_indices'])}"
        raise InvalidInput(f"'x_data' and 'x_indices' of {path} must be of one length, got {came}")
    if there and (headers["x_shape"].shape != (2,) or headers["x_shape"].dtype.kind not in "iu"):
        raise InvalidInput(f"'x_shape' of {path} must be two whole numbers, got {_what(headers['x_shape'])}")


def _check_mask_shapes(masks: dict[str, Header], nodes: int, path: Path) -> None:
    if masks and len(masks) < len(MASKS):
        raise InvalidInput(f"{path} has {' and '.join(masks)} only; a split needs {', '.join(MASKS)}")
    for name, mask in masks.items():
        if mask.dtype.kind != "b" or mask.ndim not in (1, 2) or mask.shape[0] != nodes or 0 in mask.shape:
            raise InvalidInput(f"'{name}' of {path} must be bool [{nodes}] or [{nodes}, S], got {_what(mask)}")
        if mask.shape != masks[MASKS[0]].shape:
            raise InvalidInput(f"the masks of {path} must share one shape, got {_what(mask)} for '{name}'")


def _labels(y: Array, path: Path) -> Array:
    low, high = int(y.min()), int(y.max())
    if low < -1 or high < 0 or high >= len(y):
        raise InvalidInput(
            f"'y' of {path} must be 0 … C−1 (−1 = unknown) with fewer classes than its {len(y)} nodes, "
            f"got values from {low} to {high}"
        )
    return y.astype(np.int64)


def _check_edges(edges: Array, nodes: int, path: Path) -> None:
    if edges.size and (int(edges.min()) < 0 or int(edges.max()) >= nodes):
        edge = int(((edges < 0) | (edges >= nodes)).any(axis=0).argmax())
        raise InvalidInput(
            f"edge {edge} of {path} joins nodes {edges[:, edge].tolist()}, but nodes are numbered 0 … {nodes - 1}"
        )


def _sparse(arrays: dict[str, Array], path: Path) -> "sp.csr_array[np.float32]":
    nodes, (rows, width) = len(arrays["y"]), map(int, arrays["x_shape"])
    if rows != nodes:
        raise InvalidInput(f"'x_shape' of {path} must be ({nodes}, F), one row per label in 'y', got {rows}, {width}")
    if not 1 <= width <= MOST_FEATURES:
        raise InvalidInput(f"'x_shape' of {path} must ask for 1 … {MOST_FEATURES} columns, got {width}")
    values, what = _finite(arrays["x_data"], "x_data", path), f"the sparse features of {path}"
    matrix = checked_csr(values, arrays["x_indices"], arrays["x_indptr"], (nodes, width), what)
    matrix.sum_duplicates()
    return matrix


def _finite(values: Array, name: str, path: Path) -> Array:
    with np.errstate(over="ignore"):
        numbers = np.ascontiguousarray(values, dtype=np.float32)
    # a double too large for float32 becomes infinite, and is as unusable as one that came so
    if not np.isfinite(numbers).all():
        raise InvalidInput(
            f"'{name}' of {path} must hold finite float32 numbers, but has NaN or infinity; fill or drop"
        )
    return numbers


def _what(array: Header) -> str:
    return f"{array.dtype} {list(array.shape)}"
