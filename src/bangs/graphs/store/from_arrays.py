"""Arrays: a graph in arrays, in memory or in a folder of .npy files of any size, into a store.

The folder holds `edge_index.npy` [2, E] and `x.npy` [N, F]; `y.npy` [N], −1 = unknown, and the masks `train_mask.npy`,
`val_mask.npy` and `test_mask.npy` [N] or [N, S] where there are any; `edge_weight.npy` [E] where edges have weights.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.numpy_files import map_npy
from bangs.graphs.sparse import to_scipy
from bangs.graphs.splits import MASKS
from bangs.graphs.store.edge_sort import EdgeWriter
from bangs.graphs.store.manifest import MOST_NODES, Manifest
from bangs.graphs.store.writer import Writer

NAMES = ("edge_index", "x", "y", "edge_weight", *MASKS)
_CHUNK = 2**21

Array = npt.NDArray[Any]


def from_folder(path: Path, writer: Writer, dtype: str, *, directed: bool) -> Manifest:
    """The store of a folder of .npy files, which are memory-mapped."""
    arrays = {name: map_npy(path / f"{name}.npy") for name in NAMES if (path / f"{name}.npy").is_file()}
    if "x" not in arrays:
        raise InvalidInput(f"'{path}' has edge_index.npy but no x.npy; a graph needs features [N, F]")
    return write_arrays(arrays, writer, dtype, str(path), directed=directed)


def from_data(data: Data, writer: Writer, dtype: str, what: str) -> Manifest:
    """The store of a graph in memory; its edges stay as they are."""
    if data.get("x") is None:
        raise InvalidInput(f"{what} has no features; a store needs them")
    x = to_scipy(data.x) if data.x.is_sparse_csr else data.x.numpy()
    arrays: dict[str, Any] = {name: data[name].numpy() for name in NAMES if name != "x" and data.get(name) is not None}
    return write_arrays({**arrays, "x": x}, writer, dtype, what, directed=True)


def write_arrays(arrays: Mapping[str, Any], writer: Writer, dtype: str, what: str, *, directed: bool) -> Manifest:
    """The store of arrays by name; edges go both ways unless `directed`."""
    x, edges = arrays["x"], arrays["edge_index"]
    if len(x.shape) != 2 or not 1 <= x.shape[0] <= MOST_NODES or x.shape[1] < 1:
        raise InvalidInput(f"'x' of {what} must have shape [N, F], got {list(x.shape)}")
    nodes = int(x.shape[0])
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise InvalidInput(f"'edge_index' of {what} must be whole numbers of shape [2, E], got {list(edges.shape)}")
    classes = _labels(arrays.get("y"), nodes, writer, what)
    _split({name: arrays[name] for name in MASKS if name in arrays}, nodes, writer, what)
    file = writer.array_file("features", dtype, int(x.shape[1]))
    for rows in _slices(nodes, max(_CHUNK // int(x.shape[1]), 1)):
        block = x[rows].toarray() if hasattr(x, "toarray") else np.asarray(x[rows])
        file.append(finite(block, dtype, rows.start, what))
    weight, sizes = arrays.get("edge_weight"), {"nodes": nodes, "features": int(x.shape[1])}
    count, both = _write_edges(edges, weight, nodes, writer, what, directed)
    return writer.finish(**sizes, edges=count, classes=classes, directed=both, weighted=weight is not None)


def finite(block: Array, dtype: str, first: int, what: str) -> Array:
    """The rows in the type they are stored in; raises where one holds NaN, or a number too large for the type."""
    with np.errstate(over="ignore"):
        block = block.astype(dtype)
    if not (sound := np.isfinite(block).all(axis=1)).all():
        raise InvalidInput(
            f"row {first + int(np.flatnonzero(~sound)[0]):,} of the features of {what} holds NaN, infinity or a number "
            f"too large for {dtype}; fill or drop it" + (", or leave out --half" if dtype == "float16" else "")
        )
    return block


def _labels(y: Array | None, nodes: int, writer: Writer, what: str) -> tuple[str, ...]:
    y = np.broadcast_to(np.int32(-1), nodes) if y is None else y
    if y.shape != (nodes,) or y.dtype.kind not in "iu":
        raise InvalidInput(f"'y' of {what} must be whole numbers of shape [{nodes}], got {y.dtype} {list(y.shape)}")
    file, top = writer.array_file("labels", "int32"), -1
    for rows in _slices(nodes, _CHUNK):
        block = np.asarray(y[rows])
        if block.min() < -1 or block.max() >= min(nodes, 2**20):
            raise InvalidInput(f"'y' of {what} must be class numbers 0 … C−1, −1 = unknown, got {block.max()}")
        top = max(top, int(block.max()))
        file.append(block)
    return tuple(str(number) for number in range(top + 1))


def _split(masks: dict[str, Array], nodes: int, writer: Writer, what: str) -> None:
    if not masks:
        return
    if len(masks) < len(MASKS) or any(mask.shape[0] != nodes or mask.dtype != bool for mask in masks.values()):
        raise InvalidInput(f"a split of {what} needs {', '.join(MASKS)}, each bool [{nodes}]")
    columns = [mask.reshape(nodes, -1) for mask in masks.values()]
    if len({column.shape for column in columns}) > 1:
        raise InvalidInput(f"the masks of {what} must share one shape")
    file = writer.array_file("split", "int8")
    for number in range(columns[0].shape[1]):
        parts = np.stack([column[:, number] for column in columns])
        if (parts.sum(axis=0) > 1).any():
            raise InvalidInput(f"the masks of {what} must be disjoint, but a node stands in two of them")
        file.append(np.array([1, 2, 3], np.int8) @ parts.astype(np.int8))


def _write_edges(
    edges: Array, weight: Array | None, nodes: int, writer: Writer, what: str, directed: bool
) -> tuple[int, bool]:
    """The number of edges, and whether the store needs both directions."""
    if weight is not None and weight.shape != edges.shape[1:]:
        raise InvalidInput(f"'edge_weight' of {what} must hold one number for each of its {edges.shape[1]:,} edges")
    edge_writer = EdgeWriter(writer, nodes, directed=directed, weighted=weight is not None)
    for columns in _slices(edges.shape[1], _CHUNK):
        source, target = (np.asarray(edges[side, columns]).astype(np.int64) for side in (0, 1))
        for end in (source, target):
            if len(end) and not 0 <= end.min() <= end.max() < nodes:
                wrong = columns.start + int(np.flatnonzero((end < 0) | (end >= nodes))[0])
                raise InvalidInput(
                    f"edge {wrong:,} of {what} must join nodes 0 … {nodes - 1:,}, got node {end[wrong - columns.start]}"
                )
        own = None if weight is None else np.asarray(weight[columns], dtype=np.float32)
        if own is not None and not (np.isfinite(own).all() and (own >= 0).all()):
            raise InvalidInput(f"'edge_weight' of {what} must hold finite numbers from 0")
        edge_writer.add(source, target, own)
    return edge_writer.write()


def _slices(length: int, step: int) -> Iterator[slice]:
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))
