"""Read a user's folder of tables, or one .npz file, as a graph."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.types import Split
from bangs.errors import BangsError, OutOfMemory
from bangs.graphs.npz import read_as_listed
from bangs.graphs.sparse import to_torch
from bangs.graphs.splits import every_public
from bangs.graphs.structural_features import standardised
from bangs.graphs.tables.column_roles import weight_as_fitted
from bangs.graphs.tables.diagnostics import Diagnostics, FileDiagnostics, counted, listed
from bangs.graphs.tables.edge_table import Indices, Weights, merged_edges
from bangs.graphs.tables.feature_array import padded
from bangs.graphs.tables.fitted_encoding import Encoding
from bangs.graphs.tables.folder import array_as_fitted, read_folder
from bangs.graphs.tables.labels import check_two_labels, many_classes
from bangs.graphs.tables.node_table import NodeBlock
from bangs.graphs.tables.read_options import ReadOptions
from bangs.graphs.tables.table_reader import explain_memory_errors


@dataclass(frozen=True, eq=False)
class UserGraph:
    """A graph of a user, with the names of its nodes, classes and columns."""

    data: Data  # x float [N, F] dense or CSR, edge_index [2, E], perhaps edge_weight [E], y long [N]; or a `Store`
    ids: Any  # str [N], as in the file: an array, or `NodeNames` that are read from disk
    classes: list[str]  # [C], the labels as in the file
    columns: Encoding  # how columns became features; pass it to `read` to read another graph alike
    split: Split | None  # bool [S, N], if the files have one; val may be empty
    notes: list[str]  # sentences about what was guessed, made, merged or left out


def read(path: Path | str, **options: Any) -> UserGraph:
    """The graph of a folder with an `edges` and a `nodes` table, or of one .npz file; `options` are `ReadOptions`.

    All problems are raised at once as `BadTables`.
    """
    read_options = ReadOptions(**options).as_fitted()
    path = Path(path)
    diagnostics = Diagnostics(str(path))
    remedy = "free some memory, or make a store with `bangs convert`, which reads in pieces"
    with explain_memory_errors(str(path), remedy):
        if path.is_dir():
            return _from_folder(path, read_options, diagnostics)
        if path.is_file() and path.suffix == ".npz":
            return _from_npz(path, read_options, diagnostics.of(path.name))
        reason = "is neither a folder nor an .npz file" if path.exists() else "does not exist"
        remedy = "give a folder with edges.csv and nodes.csv, or one .npz file"
        diagnostics.of(path.name or str(path)).add("no-folder", f"it {reason}", remedy)
        raise diagnostics.error()


def _from_folder(folder: Path, options: ReadOptions, diagnostics: Diagnostics) -> UserGraph:
    pieces: list[tuple[Indices, Weights | None]] = []
    blocks: list[NodeBlock] = []
    nodes, edges, array, encoding = read_folder(
        folder,
        options,
        diagnostics,
        take_edges=lambda index, weight, _: pieces.append((index, weight)),
        take_nodes=lambda block, _: blocks.append(block),
        in_memory=True,
    )
    y, rows = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("labels", "rows"))
    parts = [block.parts for block in blocks if block.parts is not None]
    split = None
    if parts:
        part = torch.from_numpy(np.concatenate(parts))
        split = Split(*((part == number)[None] for number in (1, 2, 3)))
    if options.two_labels and nodes.learning and (split is None or not split.val.any()):
        train = y >= 0 if split is None else split.train[0].numpy()
        check_two_labels(y, train, encoding.classes, rows, nodes.diagnostics)
    index = np.concatenate([index for index, _ in pieces], axis=1)
    weights = [weight for _, weight in pieces if weight is not None]
    weight = np.concatenate(weights) if weights else None
    graph = merged_edges(index, weight, nodes.size, edges.rows, options.directed, edges.diagnostics)
    ids = np.array([name for block in blocks for name in block.ids.to_pylist()], dtype=object)
    x = _features(np.concatenate([block.features for block in blocks]), padded(array, len(nodes.added)))
    graph.update({"x": x, "y": torch.from_numpy(y)})
    return _user_graph(graph, ids, split, encoding, options, nodes.diagnostics)


def _features(dense: npt.NDArray[np.float32], array: Any) -> Tensor | None:
    """The features of the columns and of the array: [N, F], sparse if the array is; None if there are none."""
    if array is None:
        return torch.from_numpy(dense) if dense.shape[1] else None
    if bool(sp.issparse(array)):  # `bool` keeps mypy from narrowing the type
        return to_torch(sp.csr_array(sp.hstack([sp.csr_array(dense), array])))
    return torch.from_numpy(np.concatenate([dense, array], axis=1))


def _from_npz(path: Path, options: ReadOptions, diagnostics: FileDiagnostics) -> UserGraph:
    """The graph of an .npz file; its nodes are called 0, 1, … and its classes by their numbers."""
    try:
        data = read_as_listed(path)
    except OutOfMemory:
        raise
    except BangsError as error:
        reason = str(error).replace(str(path), path.name)
        diagnostics.add("bad-array", reason, "write the file again with numpy.savez")
        raise diagnostics.all_files.error() from None
    original = data.y.numpy()
    present = [str(label) for label in np.unique(original[original >= 0])]
    names = present if options.encoding is None else list(options.encoding.classes)
    unknown = [name for name in present if name not in names]
    if unknown:
        diagnostics.add(
            "unknown-class",
            f"unknown labels {listed(unknown)}; the model knows {listed(names)}",
            "write −1 where a label is unknown; a new class needs a new fit",
        )
        raise diagnostics.all_files.error()
    numbers = {int(name): number for number, name in enumerate(names) if name in present}
    y = np.array([numbers.get(int(label), -1) for label in original], dtype=np.int64)
    if warning := many_classes(len(names), int((y >= 0).sum())):
        diagnostics.note(warning)
    split = every_public(data)
    if options.encoding is None:
        _check_labels(y, names, split, diagnostics)
        if options.two_labels and split is None:
            check_two_labels(y, y >= 0, names, None, diagnostics)
    diagnostics.note(f"{counted(int((y >= 0).sum()), 'label')} of {len(y):,} nodes in {listed(names)}")
    weighted = "edge_weight" if "edge_weight" in data else None
    absent = "and there is no array 'edge_weight'", "add it"
    weighted = weight_as_fitted(weighted, options, absent, diagnostics)
    x = array_as_fitted(data.get("x"), 0, options.encoding, diagnostics)
    if x is not None:
        diagnostics.note(f"{counted(x.shape[1], 'feature')} a node")
    index = data.edge_index.numpy()
    not_loop = index[0] != index[1]
    if not not_loop.all():
        diagnostics.note(f"{counted(int((~not_loop).sum()), 'edge')} from a node to itself dropped")
    weight = None if weighted is None else data.edge_weight.numpy()[not_loop]
    graph = merged_edges(index[:, not_loop], weight, len(y), len(not_loop), options.directed, diagnostics)
    ids = np.array([str(node) for node in range(len(y))], dtype=object)
    encoding = options.encoding or Encoding(
        array=0 if x is None else int(x.shape[1]),
        classes=tuple(names),
        directed=options.directed,
        weighted=weight is not None,
        fill=options.fill,
    )
    graph.update({"x": x, "y": torch.from_numpy(y)})
    return _user_graph(graph, ids, split, encoding, options, diagnostics)


def _check_labels(
    y: npt.NDArray[np.int64], names: list[str], split: Split | None, diagnostics: FileDiagnostics
) -> None:
    if len(names) == 1:
        remedy = "a classifier needs nodes of at least two classes"
        diagnostics.add("one-class", f"every label is {names[0]}", remedy)
    if split is None:
        return
    in_mask = ((split.train | split.val).any(dim=0)).numpy()
    nodes = np.flatnonzero(in_mask & (y < 0))
    remedy = "label it, or take it out of the mask"
    message = "node {:,} is in train_mask or val_mask, but has no label".format
    diagnostics.add_rows("split-without-label", [None] * len(nodes), lambda i: message(nodes[i]), remedy)
    if not split.train.any(dim=1).all():
        diagnostics.add("no-training", "train_mask holds no node", "let it hold some labelled ones")


def _user_graph(
    graph: Data, ids: Any, split: Split | None, encoding: Encoding, options: ReadOptions, diagnostics: FileDiagnostics
) -> UserGraph:
    """The graph of a file without problems; if it has no features, they are made from the edges."""
    diagnostics.all_files.raise_any()
    if graph.x is None:
        made, scale = standardised(graph, ids, options.seed, encoding.structural)
        graph.x, encoding = torch.from_numpy(made), replace(encoding, structural=scale)
        diagnostics.note(
            f"there are no features, so {counted(made.shape[1], 'feature')} were made from the edges: "
            "degree, log degree and spectral position"
        )
        if options.encoding is not None:
            diagnostics.note("positions can be compared only if most nodes are those the model was fitted on")
    notes = list(dict.fromkeys(diagnostics.all_files.notes))
    return UserGraph(graph, ids, list(encoding.classes), encoding, split, notes)
