"""Read the edge table and the node table of a folder in pieces."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from bangs.graphs.tables.column_features import Encoder
from bangs.graphs.tables.column_roles import check_names
from bangs.graphs.tables.diagnostics import Diagnostics, FileDiagnostics, counted, listed
from bangs.graphs.tables.edge_table import EdgeTable, Indices, Weights
from bangs.graphs.tables.feature_array import read_array
from bangs.graphs.tables.fitted_encoding import Encoding
from bangs.graphs.tables.node_table import NodeBlock, NodeTable
from bangs.graphs.tables.read_options import ReadOptions
from bangs.graphs.tables.table_reader import open_table


def read_folder(
    folder: Path,
    options: ReadOptions,
    diagnostics: Diagnostics,
    take_edges: Callable[[Indices, Weights | None, int], object],
    take_nodes: Callable[[NodeBlock, Any], object],
    *,
    in_memory: bool,
) -> tuple[NodeTable, EdgeTable, Any, Encoding]:
    """Read a folder's tables; returns the node table, the edge table, the feature array and the encoding of columns.

    All problems are raised at once. `take_edges` gets every piece of the edges [2, n] and their weights, and the number
    of nodes. `take_nodes` then gets every piece of the nodes, and the array [N, F] of more features, or None. With
    `in_memory` the text is kept between the two readings of the node table, the array is loaded at once, and labels are
    required.
    """
    readers = {stem: open_table(folder, stem, options, diagnostics, hold=in_memory) for stem in ("nodes", "edges")}
    nodes = edges = None
    if readers["nodes"] is not None:
        table = NodeTable(readers["nodes"], options, learning=in_memory)
        nodes = table if table.scan() else None
    if readers["edges"] is not None:
        edges = EdgeTable(readers["edges"], nodes, options)
        if options.unknown_edges == "add" and nodes is not None and (new := edges.unknown_ids(nodes)):
            nodes.add(new)
            added = counted(len(new), "node")
            edges.diagnostics.note(f"{added} added that {nodes.file} has not: {listed(new, 3)}")
        for index, weight in edges.pieces():
            take_edges(index, weight, 0 if nodes is None else nodes.size)
    rows = None if nodes is None else nodes.size - len(nodes.added)
    array = read_array(folder, rows, diagnostics, load=in_memory)
    if nodes is None:
        raise diagnostics.error()
    if edges is not None and edges.names:
        present = f"{nodes.file} has {listed(nodes.names)}, {edges.file} has {listed(edges.names)}"
        check_names("ignore", options.ignore, [*nodes.names, *edges.names], nodes.diagnostics, present)
    kind: Literal["learning", "fitted"] = "learning" if options.encoding is None else "fitted"
    encoder = Encoder(Encoding(nodes.columns, fill=options.fill), nodes.diagnostics, kind)
    array = array_as_fitted(array, encoder.width, options.encoding, nodes.diagnostics)
    if encoder.width * nodes.size > options.limits.cells:
        nodes.diagnostics.add(
            "too-wide",
            f"its {len(nodes.columns):,} columns become {encoder.width:,} features of {nodes.size:,} nodes, "
            f"more than {options.limits.cells:,} numbers",
            "leave columns out with --ignore COLUMN, or keep sparse features in features.npz",
        )
    for block in nodes.blocks(encoder):
        if not diagnostics:
            take_nodes(block, array)
    if edges is None or diagnostics:
        raise diagnostics.error()
    encoding = options.encoding or Encoding(
        columns=nodes.columns,
        array=0 if array is None else int(array.shape[1]),
        classes=() if nodes.labels is None else tuple(nodes.labels.names),
        roles=(*nodes.roles.items(), *edges.roles.items()),
        left_out=nodes.left_out,
        directed=options.directed,
        weighted="weight" in edges.roles,
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
