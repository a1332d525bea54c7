"""Read the edge table and the node table of a folder in pieces, and pass the pieces to a collector."""

from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from bangs.graphs.tables.column_roles import check_names
from bangs.graphs.tables.diagnostics import Diagnostics, FileDiagnostics, counted, listed
from bangs.graphs.tables.edge_table import EdgeTable, Indices, Weights
from bangs.graphs.tables.feature_array import read_array
from bangs.graphs.tables.feature_encoding import Encoding
from bangs.graphs.tables.node_table import NodeBlock, NodeTable
from bangs.graphs.tables.read_options import ReadOptions
from bangs.graphs.tables.table_reader import open_table


class Collector(Protocol):
    """Receives the pieces: makes arrays in memory, or files of a store."""

    in_memory: bool  # keep text between two readings, load arrays at once, and require labels

    def ids(self, ids: Any) -> None:
        """Take the ids of the next nodes."""

    def edges(self, index: Indices, weight: Weights | None, nodes: int) -> None:
        """Take the next edges [2, n] of a graph with this number of nodes."""

    def nodes(self, block: NodeBlock, array: Any) -> None:
        """Take features, labels and split of the next nodes; `array` [N, F] has more features, or is None."""


def read_folder(
    folder: Path, options: ReadOptions, collector: Collector, diagnostics: Diagnostics
) -> "tuple[NodeTable, EdgeTable, Any, Encoding] | None":
    """Pass all pieces of a folder's tables to the collector; None if a file has problems, which are reported.

    Returns the node table, the edge table, the feature array, and how columns became features.
    """
    hold = collector.in_memory
    readers = {stem: open_table(folder, stem, options, diagnostics, hold=hold) for stem in ("nodes", "edges")}
    nodes = edges = None
    if readers["nodes"] is not None:
        table = NodeTable(readers["nodes"], options, learning=hold)
        nodes = table if table.scan(collector.ids) else None
    if readers["edges"] is not None:
        edges = EdgeTable(readers["edges"], nodes, options)
        if options.unknown_edges == "add" and nodes is not None and (new := edges.unknown_ids()):
            nodes.add(pa.array(new, pa.string()), collector.ids)
            added = counted(len(new), "node")
            edges.diagnostics.note(f"{added} added that {nodes.file} has not: {listed(new, 3)}")
        for index, weight in edges.pieces():
            collector.edges(index, weight, 0 if nodes is None else nodes.size)
    rows = None if nodes is None else nodes.size - nodes.added
    array = read_array(folder, rows, diagnostics, load=hold)
    if nodes is None:
        return None
    if edges is not None and edges.names:
        present = f"{nodes.file} has {listed(nodes.names)}, {edges.file} has {listed(edges.names)}"
        check_names("ignore", options.ignore, [*nodes.names, *edges.names], nodes.diagnostics, present)
    encoder = nodes.encoder()
    array = array_as_fitted(array, encoder.width, options.encoding, nodes.diagnostics)
    _check_size(encoder.width, nodes, options)
    for block in nodes.blocks(encoder):
        if not diagnostics:
            collector.nodes(block, array)
    if edges is None or edges.roles is None or diagnostics:
        return None
    names = {"id": nodes.roles.id, "label": nodes.roles.label, "split": nodes.roles.split, **vars(edges.roles)}
    encoding = options.encoding or Encoding(
        columns=nodes.columns,
        array=0 if array is None else int(array.shape[1]),
        classes=nodes.classes,
        roles=tuple((role, name) for role, name in names.items() if name is not None),
        left_out=nodes.left_out,
        directed=options.directed,
        weighted=edges.roles.weight is not None,
        fill=options.fill,
        unknown=None if options.unknown is None else tuple(options.unknown),
        ignore_case=options.labels_ignore_case,
    )
    return nodes, edges, array, encoding


def array_as_fitted(array: Any, columns: int, encoding: Encoding | None, diagnostics: FileDiagnostics) -> Any:
    """The feature array that a fitted model needs beside `columns` features of a table; its width is checked."""
    if encoding is None:
        return array
    if columns != sum(len(column.features) for column in encoding.columns):
        names = listed([column.name for column in encoding.columns])
        diagnostics.add(
            "column-missing",
            f"the model was fitted with the columns {names} of a node table, which is not here",
            "give a folder of tables with the same columns, or fit the model again",
        )
    width = 0 if array is None else array.shape[1]
    if not encoding.array and width:
        diagnostics.note("the model was fitted without an array of features; not used")
        return None
    if width != encoding.array:
        diagnostics.add(
            "array-width",
            f"the model was fitted with an array of {encoding.array:,} features, here it has {width:,}",
            "give an array of the same columns, or fit the model again",
        )
    return array


def _check_size(width: int, nodes: NodeTable, options: ReadOptions) -> None:
    if width * nodes.size > options.limits.cells:
        nodes.diagnostics.add(
            "too-wide",
            f"its {len(nodes.columns):,} columns become {width:,} features of {nodes.size:,} nodes, "
            f"more than {options.limits.cells:,} numbers",
            "leave columns out with --ignore COLUMN, or keep sparse features in features.npz",
        )
