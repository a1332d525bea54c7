"""Read one .npz file as the parts of a graph."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch_geometric.data import Data

from bangs.core.types import Split
from bangs.errors import BangsError, OutOfMemory
from bangs.graphs.datasets.npz import read_as_listed
from bangs.graphs.edges import EdgeList
from bangs.graphs.sparse import to_scipy
from bangs.graphs.splits import every_public
from bangs.graphs.tables.column_roles import weight_as_fitted
from bangs.graphs.tables.diagnostics import Diagnostics, FileDiagnostics, counted, listed
from bangs.graphs.tables.edge_table import merged_edges
from bangs.graphs.tables.feature_encoding import Encoding
from bangs.graphs.tables.folder import array_as_fitted
from bangs.graphs.tables.labels import check_two_labels, many_classes
from bangs.graphs.tables.read_options import ReadOptions


@dataclass(frozen=True, eq=False)
class GraphParts:
    """A graph in memory; its features are in two parts."""

    file: str
    ids: npt.NDArray[np.object_]  # str [N]
    edges: EdgeList  # sorted by source, then target
    y: npt.NDArray[np.int64]  # [N], −1 = unknown
    split: Split | None  # bool [S, N]
    dense: npt.NDArray[np.float32]  # [N, F], from the table's columns
    array: Any  # [N, F], dense or scipy CSR, as in the file; None if there is none
    encoding: Encoding  # with the class names


def from_npz(path: Path, options: ReadOptions, diagnostics: Diagnostics) -> GraphParts | None:
    """The parts of the graph in an .npz file; its nodes are called 0, 1, … and its classes by their numbers."""
    file_diagnostics = diagnostics.of(path.name)
    try:
        data = read_as_listed(path)
    except OutOfMemory:
        raise
    except BangsError as error:
        reason = str(error).replace(str(path), path.name)
        file_diagnostics.add("bad-array", reason, "write the file again with numpy.savez")
        return None
    original = data.y.numpy()
    present = [str(label) for label in np.unique(original[original >= 0])]
    names = present if options.encoding is None else list(options.encoding.classes)
    unknown = [name for name in present if name not in names]
    if unknown:
        file_diagnostics.add(
            "unknown-class",
            f"unknown labels {listed(unknown)}; the model knows {listed(names)}",
            "write −1 where a label is unknown; a new class needs a new fit",
        )
        return None
    numbers = {int(name): number for number, name in enumerate(names) if name in present}
    y = np.array([numbers.get(int(label), -1) for label in original], dtype=np.int64)
    if warning := many_classes(len(names), int((y >= 0).sum())):
        file_diagnostics.note(warning)
    split = every_public(data)
    if options.encoding is None:
        _check(y, names, split, file_diagnostics)
        if options.two_labels and split is None:
            check_two_labels(y, y >= 0, names, None, file_diagnostics)
    file_diagnostics.note(f"{counted(int((y >= 0).sum()), 'label')} of {len(y):,} nodes in {listed(names)}")
    weighted = "edge_weight" if "edge_weight" in data else None
    absent = "and there is no array 'edge_weight'", "add it"
    if weight_as_fitted(weighted, options, absent, file_diagnostics) is None:
        data.edge_weight = None
    x = array_as_fitted(data.get("x"), 0, options.encoding, file_diagnostics)
    if x is not None:
        file_diagnostics.note(f"{counted(x.shape[1], 'feature')} a node")
    return GraphParts(
        file=path.name,
        ids=np.array([str(node) for node in range(len(y))], dtype=object),
        edges=_edges(data, options.directed, file_diagnostics),
        y=y,
        split=split,
        dense=np.zeros((len(y), 0), np.float32),
        array=None if x is None else to_scipy(x) if x.is_sparse_csr else x.numpy(),
        encoding=options.encoding
        or Encoding(
            array=0 if x is None else int(x.shape[1]),
            classes=tuple(names),
            directed=options.directed,
            weighted=data.edge_weight is not None,
            fill=options.fill,
        ),
    )


def _edges(data: Data, directed: bool, diagnostics: FileDiagnostics) -> EdgeList:
    index, weight = data.edge_index.numpy(), data.edge_weight
    not_loop = index[0] != index[1]
    if not not_loop.all():
        diagnostics.note(f"{counted(int((~not_loop).sum()), 'edge')} from a node to itself dropped")
    weights = None if weight is None else weight.numpy()[not_loop]
    return merged_edges(index[:, not_loop], weights, data.num_nodes, index.shape[1], directed, diagnostics)


def _check(y: npt.NDArray[np.int64], names: list[str], split: Split | None, diagnostics: FileDiagnostics) -> None:
    if len(names) == 1:
        remedy = "a classifier needs nodes of at least two classes"
        diagnostics.add("one-class", f"every label is {names[0]}", remedy)
    if split is None:
        return
    in_mask = ((split.train | split.val).any(dim=0)).numpy()
    nodes = np.flatnonzero(in_mask & (y < 0))
    if len(nodes):
        messages = [(None, f"node {int(node):,} is in train_mask or val_mask, but has no label") for node in nodes]
        diagnostics.add_many("split-without-label", messages, "label it, or take it out of the mask")
    if not split.train.any(dim=1).all():
        diagnostics.add("no-training", "train_mask holds no node", "let it hold some labelled ones")
