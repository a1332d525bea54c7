"""Npz: one file, one graph.

Arrays: `edge_index` integer [2, E]; `y` integer [N], −1 where unknown; features as dense `x` [N, F] or as CSR
parts `x_data, x_indices, x_indptr, x_shape`, or none; `edge_weight` [E] where edges have weights; `train_mask,
val_mask, test_mask` bool [N] or [N, S] where a split exists. Other arrays are not read.
"""

from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.csr import checked_csr
from bangs.graphs.edges import mirrored, undirected
from bangs.graphs.numpy_files import Array, read_npz
from bangs.graphs.sparse import to_torch
from bangs.graphs.splits import MASKS

MOST_FEATURES = 10_000_000
_PARTS = ("x_data", "x_indices", "x_indptr", "x_shape")


def read_graph(path: Path) -> Data:
    """The graph of an .npz file; features stay sparse if they came so, and edges are read as undirected."""
    arrays = read_npz(path, ("edge_index", "edge_weight", "y", "x", *_PARTS, *MASKS))
    for name in ("edge_index", "y"):
        if name not in arrays:
            raise InvalidInput(f"{path} has no array '{name}'; a graph needs edge_index and y")
    y = _labels(arrays["y"], path)
    data = Data(edge_index=_edges(arrays["edge_index"], len(y), path), y=torch.from_numpy(y), num_nodes=len(y))
    if "edge_weight" in arrays:
        data.edge_weight = _weights(arrays["edge_weight"], arrays["edge_index"].astype(np.int64), len(y), path)
    features = _features(arrays, len(y), path)
    if features is not None:
        data.x = features
    for name, mask in _masks(arrays, len(y), path).items():
        data[name] = mask
    return data


def _labels(y: Array, path: Path) -> Array:
    if y.ndim != 1 or y.dtype.kind not in "iu" or len(y) == 0:
        raise InvalidInput(f"'y' of {path} must be integers of shape [N], got {_what(y)}")
    low, high = int(y.min()), int(y.max())
    if low < -1 or high < 0 or high >= len(y):
        raise InvalidInput(
            f"'y' of {path} must be 0 … C−1 (−1 = unknown) with fewer classes than its {len(y)} nodes, "
            f"got values from {low} to {high}"
        )
    return y.astype(np.int64)


def _edges(edges: Array, nodes: int, path: Path) -> Tensor:
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise InvalidInput(f"'edge_index' of {path} must be integers of shape [2, E], got {_what(edges)}")
    if edges.size and (int(edges.min()) < 0 or int(edges.max()) >= nodes):
        edge = int(((edges < 0) | (edges >= nodes)).any(axis=0).argmax())
        raise InvalidInput(
            f"edge {edge} of {path} joins nodes {edges[:, edge].tolist()}, but nodes are numbered 0 … {nodes - 1}"
        )
    return undirected(edges[0], edges[1], nodes)


def _weights(weight: Array, edges: Array, nodes: int, path: Path) -> Tensor:
    """The weights of the undirected edges; those of repeats add up, of two opposite ones the larger counts."""
    if weight.shape != edges.shape[1:]:
        raise InvalidInput(f"'edge_weight' of {path} must have shape [{edges.shape[1]}], got {_what(weight)}")
    weight = _finite(weight, "edge_weight", path)
    if (weight < 0).any():
        raise InvalidInput(f"'edge_weight' of {path} must hold numbers from 0, got {float(weight.min()):g}")
    apart = edges[0] != edges[1]
    keys, place = np.unique((edges[0] * nodes + edges[1])[apart], return_inverse=True)
    _, larger = mirrored(keys, np.bincount(place, weight[apart], len(keys)).astype(np.float64), nodes)
    return torch.tensor(larger, dtype=torch.float32)


def _features(arrays: dict[str, Array], nodes: int, path: Path) -> Tensor | None:
    if "x" in arrays:
        x = arrays["x"]
        if x.ndim != 2 or x.shape[0] != nodes or not 1 <= x.shape[1] <= MOST_FEATURES:
            raise InvalidInput(f"'x' of {path} must have shape [{nodes}, F], one row per label in 'y', got {_what(x)}")
        return torch.from_numpy(_finite(x, "x", path))
    there = [name for name in _PARTS if name in arrays]
    if not there:
        return None
    if len(there) < len(_PARTS):
        missing = next(name for name in _PARTS if name not in arrays)
        raise InvalidInput(f"{path} has '{there[0]}' but not '{missing}'; sparse features need {', '.join(_PARTS)}")
    values, columns, pointers, shape = (arrays[name] for name in _PARTS)
    return to_torch(_sparse(values, columns, pointers, shape, nodes, path))


def _sparse(
    values: Array, columns: Array, pointers: Array, shape: Array, nodes: int, path: Path
) -> "sp.csr_array[np.float32]":
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or int(shape[0]) != nodes:
        raise InvalidInput(f"'x_shape' of {path} must be ({nodes}, F), one row per label in 'y', got {shape.tolist()}")
    width = int(shape[1])
    if not 1 <= width <= MOST_FEATURES:
        raise InvalidInput(f"'x_shape' of {path} must ask for 1 … {MOST_FEATURES} columns, got {width}")
    if values.shape != columns.shape:
        raise InvalidInput(
            f"'x_data' and 'x_indices' of {path} must be of one length, got {_what(values)} and {_what(columns)}"
        )
    numbers = _finite(values, "x_data", path)
    matrix = checked_csr(numbers, columns, pointers, (nodes, width), f"the sparse features of {path}")
    matrix.sum_duplicates()
    return matrix


def _masks(arrays: dict[str, Array], nodes: int, path: Path) -> dict[str, Tensor]:
    there = [name for name in MASKS if name in arrays]
    if there and len(there) < len(MASKS):
        raise InvalidInput(f"{path} has {' and '.join(there)} only; a split needs {', '.join(MASKS)}")
    for name in there:
        mask = arrays[name]
        if mask.dtype.kind != "b" or mask.ndim not in (1, 2) or mask.shape[0] != nodes or 0 in mask.shape:
            raise InvalidInput(f"'{name}' of {path} must be bool [{nodes}] or [{nodes}, S], got {_what(mask)}")
        if mask.shape != arrays[there[0]].shape:
            raise InvalidInput(f"the masks of {path} must share one shape, got {_what(mask)} for '{name}'")
    if there and (np.sum([arrays[name] for name in there], axis=0) > 1).any():
        raise InvalidInput(f"the masks of {path} must be disjoint, but a node stands in two of them")
    return {name: torch.from_numpy(arrays[name].copy()) for name in there}


def _finite(values: Array, name: str, path: Path) -> Array:
    numbers = np.ascontiguousarray(values, dtype=np.float32)
    # a double too large for float32 becomes infinite, and is as unusable as one that came so
    if not np.isfinite(numbers).all():
        raise InvalidInput(
            f"'{name}' of {path} must hold finite float32 numbers, but has NaN or infinity; fill or drop"
        )
    return numbers.copy() if numbers is values or not numbers.flags.writeable else numbers


def _what(array: Array) -> str:
    return f"{array.dtype} {list(array.shape)}"
