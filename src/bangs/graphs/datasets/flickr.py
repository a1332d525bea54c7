"""Read Flickr from GraphSAINT's four files: links, features, classes and roles."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.array_checks import check_indices
from bangs.graphs.edges import undirected
from bangs.graphs.safe_numpy_files import open_regular, read_npy, read_npz
from bangs.utils.files import check_size

LINKS, FEATURES, CLASSES, ROLES = "adj_full.npz", "feats.npy", "class_map.json", "role.json"
MAX_BYTES = 2**28  # of one JSON file


def read_flickr(folder: Path) -> Data:
    """The graph of adj_full.npz, feats.npy, class_map.json and role.json: x dense [N, F], edge_index, y.

    GraphSAINT's split (half of the nodes for training) becomes `role` long [N], 0 train, 1 val, 2 test. It does not
    become masks, since the paper draws 5 / 15 / 80 %, and so does the default split.
    """
    x = read_npy(folder / FEATURES)
    if x.ndim != 2 or 0 in x.shape or x.dtype.kind not in "fiub":
        raise InvalidInput(f"{folder / FEATURES} must hold numbers [N, F], got {x.dtype} {list(x.shape)}")
    dense = x.astype(np.float32)
    if not np.isfinite(dense).all():
        raise InvalidInput(f"{folder / FEATURES} must hold finite numbers, but has NaN or infinity")
    nodes = len(x)
    source, target = _links(folder / LINKS, nodes)
    y = _classes(folder / CLASSES, nodes)
    return Data(
        x=torch.from_numpy(dense),
        edge_index=undirected(source, target, nodes).edge_index,
        y=torch.from_numpy(y),
        role=torch.from_numpy(_roles(folder / ROLES, nodes)),
        num_nodes=nodes,
    )


def _links(path: Path, nodes: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    arrays = read_npz(path, ("indices", "indptr", "shape"))
    try:
        columns, pointers, shape = (arrays[name] for name in ("indices", "indptr", "shape"))
    except KeyError as error:
        raise InvalidInput(f"{path} must hold a CSR matrix, but has no array {error}") from error
    if shape.tolist() != [nodes, nodes]:
        raise InvalidInput(f"{path} must be a matrix of {nodes} × {nodes}, as feats.npy has rows, got {shape.tolist()}")
    entries = check_indices(pointers, columns, (nodes, nodes), str(path))
    starts = pointers.astype(np.int64)
    return np.repeat(np.arange(nodes), starts[1:] - starts[:-1]), columns[:entries].astype(np.int64)


def _classes(path: Path, nodes: int) -> npt.NDArray[np.int64]:
    classes = _json(path)
    try:
        node = np.fromiter((int(key) for key in classes), np.int64, len(classes))
        label = np.fromiter(classes.values(), np.int64, len(classes))
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidInput(f"{path} must map each node to one class number: {error}") from error
    if not np.array_equal(np.sort(node), np.arange(nodes)):
        raise InvalidInput(f"{path} must give each node 0 … {nodes - 1} one class")
    if not 0 <= label.min() <= label.max() < nodes:
        raise InvalidInput(f"{path} must number classes 0 … C−1, fewer than its {nodes} nodes")
    y = np.empty(nodes, np.int64)
    y[node] = label
    return y


def _roles(path: Path, nodes: int) -> npt.NDArray[np.int64]:
    roles = _json(path)
    role = np.full(nodes, -1, np.int64)
    try:
        for number, name in enumerate(("tr", "va", "te")):
            members = np.array(roles[name], dtype=np.int64)
            if members.size and not 0 <= members.min() <= members.max() < nodes:
                raise ValueError(f"'{name}' has nodes outside 0 … {nodes - 1}")
            role[members] = number
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise InvalidInput(f"{path} must list the nodes of 'tr', 'va' and 'te': {error}") from error
    return role


def _json(path: Path) -> Any:
    with open_regular(path) as file:
        check_size(file, path, MAX_BYTES)
        content = file.read()
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not JSON: {error}") from error
