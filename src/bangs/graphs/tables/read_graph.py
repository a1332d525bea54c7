"""Read a user's folder of tables, or one .npz file, as a graph."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.types import Split
from bangs.graphs.sparse import to_torch
from bangs.graphs.tables.diagnostics import Diagnostics, FileDiagnostics, counted
from bangs.graphs.tables.edge_table import Indices, Weights, merged_edges
from bangs.graphs.tables.feature_array import padded
from bangs.graphs.tables.feature_encoding import Encoding
from bangs.graphs.tables.folder import read_folder
from bangs.graphs.tables.labels import check_two_labels
from bangs.graphs.tables.node_table import NodeBlock
from bangs.graphs.tables.npz_archive import GraphParts, from_npz
from bangs.graphs.tables.read_options import ReadOptions
from bangs.graphs.tables.structural_features import standardised
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
        parts = _parts(path, read_options, diagnostics)
        diagnostics.raise_any()
        assert parts is not None  # None means a problem, which was raised
        return _assembled(parts, read_options, diagnostics)


def _parts(path: Path, options: ReadOptions, diagnostics: Diagnostics) -> GraphParts | None:
    if path.is_dir():
        return _from_folder(path, options, diagnostics)
    if path.is_file() and path.suffix == ".npz":
        return from_npz(path, options, diagnostics)
    reason = "is neither a folder nor an .npz file" if path.exists() else "does not exist"
    remedy = "give a folder with edges.csv and nodes.csv, or one .npz file"
    diagnostics.of(path.name or str(path)).add("no-folder", f"it {reason}", remedy)
    return None


class _MemoryCollector:
    """Collects the pieces of a folder as arrays."""

    in_memory = True

    def __init__(self) -> None:
        self.names: list[str] = []
        self.index: list[Indices] = []
        self.weight: list[Weights] = []
        self.blocks: list[NodeBlock] = []

    def ids(self, ids: Any) -> None:
        self.names += ids.to_pylist()

    def edges(self, index: Indices, weight: Weights | None, nodes: int) -> None:
        self.index.append(index)
        self.weight += [] if weight is None else [weight]

    def nodes(self, block: NodeBlock, array: Any) -> None:
        self.blocks.append(block)


def _from_folder(folder: Path, options: ReadOptions, diagnostics: Diagnostics) -> GraphParts | None:
    """The parts of the graph in a folder; None if a file has problems, which are reported."""
    pieces = _MemoryCollector()
    tables = read_folder(folder, options, pieces, diagnostics)
    if tables is None:
        return None
    nodes, edges, array, encoding = tables
    y, rows = (np.concatenate([getattr(block, name) for block in pieces.blocks]) for name in ("labels", "rows"))
    parts = [block.parts for block in pieces.blocks if block.parts is not None]
    split = None
    if parts:
        part = torch.from_numpy(np.concatenate(parts))
        split = Split(*((part == number)[None] for number in (1, 2, 3)))
    if options.two_labels and nodes.learning and (split is None or not split.val.any()):
        train = y >= 0 if split is None else split.train[0].numpy()
        check_two_labels(y, train, encoding.classes, rows, nodes.diagnostics)
    index, weight = np.concatenate(pieces.index, axis=1), np.concatenate(pieces.weight) if pieces.weight else None
    return GraphParts(
        file=nodes.file,
        ids=np.array(pieces.names, dtype=object),
        edges=merged_edges(index, weight, nodes.size, edges.rows, options.directed, edges.diagnostics),
        y=y,
        split=split,
        dense=np.concatenate([block.features for block in pieces.blocks]),
        array=padded(array, nodes.added),
        encoding=encoding,
    )


def _assembled(parts: GraphParts, options: ReadOptions, diagnostics: Diagnostics) -> UserGraph:
    encoding = parts.encoding
    graph = Data(edge_index=parts.edges.edge_index, y=torch.from_numpy(parts.y), num_nodes=len(parts.ids))
    if parts.edges.edge_weight is not None:
        graph.edge_weight = parts.edges.edge_weight
    if encoding.columns or encoding.array:
        graph.x = _features(parts, encoding)
    else:
        graph.x, encoding = _structural(graph, parts, encoding, options, diagnostics.of(parts.file))
    notes = list(dict.fromkeys(diagnostics.notes))
    return UserGraph(graph, parts.ids, list(encoding.classes), encoding, parts.split, notes)


def _features(parts: GraphParts, encoding: Encoding) -> Tensor:
    """The features of the columns and the array side by side: [N, F], sparse if the array is."""
    if encoding.array == 0:
        return torch.from_numpy(parts.dense)
    if bool(sp.issparse(parts.array)):  # `bool` keeps mypy from narrowing the type
        return to_torch(sp.csr_array(sp.hstack([sp.csr_array(parts.dense), parts.array])))
    return torch.from_numpy(np.concatenate([parts.dense, parts.array], axis=1))


def _structural(
    graph: Data, parts: GraphParts, encoding: Encoding, options: ReadOptions, diagnostics: FileDiagnostics
) -> tuple[Tensor, Encoding]:
    """Features made from the edges [N, F], and the encoding with their scale."""
    x, scale = standardised(graph, parts.ids, options.seed, encoding.structural)
    diagnostics.note(
        f"there are no features, so {counted(x.shape[1], 'feature')} were made from the edges: "
        "degree, log degree and spectral position"
    )
    if options.encoding is not None:
        diagnostics.note("positions can be compared only if most nodes are those the model was fitted on")
    return torch.from_numpy(x), replace(encoding, structural=scale)
