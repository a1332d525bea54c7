"""Write the store of a graph in arrays, in memory or in a folder of .npy files of any size.

The arrays are those of `array_checks`, each in a file such as `edge_index.npy`; `x.npy` is required.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.array_checks import Array, check_disjoint, check_edges, check_shapes, edge_weights
from bangs.graphs.safe_numpy_files import map_npy
from bangs.graphs.sparse import to_scipy
from bangs.graphs.splits import MASKS
from bangs.graphs.store.edge_sort import EdgeWriter
from bangs.graphs.store.manifest import MAX_NODES, Manifest
from bangs.graphs.store.writer import Writer

NAMES = ("edge_index", "x", "y", "edge_weight", *MASKS)
_CHUNK = 2**21  # numbers or edges written at once


def from_folder(path: Path, writer: Writer, dtype: str, *, directed: bool) -> Manifest:
    """The store of a folder of .npy files, which are memory-mapped; self-loops are dropped."""
    arrays = {name: map_npy(path / f"{name}.npy") for name in NAMES if (path / f"{name}.npy").is_file()}
    if "x" not in arrays:
        raise InvalidInput(f"'{path}' has edge_index.npy but no x.npy; a graph needs features [N, F]")
    return write_arrays(arrays, writer, dtype, str(path), directed=directed, loops=False)


def from_data(data: Data, writer: Writer, dtype: str, what: str) -> Manifest:
    """The store of a graph in memory; its edges stay as they are."""
    if data.get("x") is None:
        raise InvalidInput(f"{what} has no features; a store needs them")
    x = to_scipy(data.x) if data.x.is_sparse_csr else data.x.numpy()
    arrays: dict[str, Any] = {name: data[name].numpy() for name in NAMES if name != "x" and data.get(name) is not None}
    return write_arrays({**arrays, "x": x}, writer, dtype, what, directed=True, loops=True)


def write_arrays(
    arrays: Mapping[str, Any], writer: Writer, dtype: str, what: str, *, directed: bool, loops: bool
) -> Manifest:
    """The store of arrays by name; edges go both ways unless `directed`; self-loops are kept with `loops`."""
    x, edges = arrays["x"], arrays["edge_index"]
    nodes = check_shapes(arrays, what)
    if nodes > MAX_NODES:
        raise InvalidInput(f"{what} must have at most {MAX_NODES:,} nodes, got {nodes:,}")
    classes = _labels(arrays.get("y"), nodes, writer, what)
    _split({name: arrays[name] for name in MASKS if name in arrays}, nodes, writer, what)
    for rows in _slices(nodes, max(_CHUNK // int(x.shape[1]), 1)):
        block = x[rows].toarray() if hasattr(x, "toarray") else np.asarray(x[rows])
        writer.append("features", dtype, as_finite(block, dtype, rows.start, what))
    weight, sizes = arrays.get("edge_weight"), {"nodes": nodes, "features": int(x.shape[1])}
    count, needs_both = _write_edges(edges, weight, nodes, writer, what, directed, loops)
    return writer.finish(**sizes, edges=count, classes=classes, directed=needs_both, weighted=weight is not None)


def as_finite(block: Array, dtype: str, first: int, what: str) -> Array:
    """The rows in the type of the store; raises if one holds NaN, or a number too large for the type."""
    with np.errstate(over="ignore"):
        block = block.astype(dtype)
    if not (finite_rows := np.isfinite(block).all(axis=1)).all():
        raise InvalidInput(
            f"row {first + int(finite_rows.argmin()):,} of the features of {what} holds NaN, infinity or a number "
            f"too large for {dtype}; fill or drop it" + (", or leave out --half" if dtype == "float16" else "")
        )
    return block


def _labels(y: Array | None, nodes: int, writer: Writer, what: str) -> tuple[str, ...]:
    y = np.broadcast_to(np.int32(-1), nodes) if y is None else y
    highest = -1
    for rows in _slices(nodes, _CHUNK):
        block = np.asarray(y[rows])
        if block.min() < -1 or block.max() >= min(nodes, 2**20):
            raise InvalidInput(f"'y' of {what} must be class numbers 0 … C−1, −1 = unknown, got {block.max()}")
        highest = max(highest, int(block.max()))
        writer.append("labels", "int32", block)
    return tuple(str(number) for number in range(highest + 1))


def _split(masks: dict[str, Array], nodes: int, writer: Writer, what: str) -> None:
    if not masks:
        return
    columns = [mask.reshape(nodes, -1) for mask in masks.values()]
    for number in range(columns[0].shape[1]):
        parts = np.stack([column[:, number] for column in columns])
        check_disjoint(parts, what)
        writer.append("split", "int8", np.array([1, 2, 3], np.int8) @ parts.astype(np.int8))


def _write_edges(
    edges: Array, weight: Array | None, nodes: int, writer: Writer, what: str, directed: bool, loops: bool
) -> tuple[int, bool]:
    """Returns the number of edges, and whether the store needs edges by target and by source."""
    edge_writer = EdgeWriter(writer, nodes, directed=directed, weighted=weight is not None)
    for columns in _slices(edges.shape[1], _CHUNK):
        block = np.asarray(edges[:, columns]).astype(np.int64)
        check_edges(block, nodes, what, columns.start)
        block_weight = None if weight is None else edge_weights(np.asarray(weight[columns]), what)
        if not loops:
            not_loop = block[0] != block[1]
            block, block_weight = block[:, not_loop], None if block_weight is None else block_weight[not_loop]
        edge_writer.add(block[0], block[1], block_weight)
    return edge_writer.write()


def _slices(length: int, step: int) -> Iterator[slice]:
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))
