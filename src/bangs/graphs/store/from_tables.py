"""Tables: an edge table and a node table of any length, into a store, a piece at a time.

The edge table is read once, the node table twice (`nodes`). What is held in memory grows with the nodes alone, by
some thirty bytes each.
"""

from pathlib import Path
from typing import Any

from bangs.graphs.numpy_files import map_npy
from bangs.graphs.store.edge_sort import EdgeChunk
from bangs.graphs.store.manifest import Manifest
from bangs.graphs.store.node_table import BESIDE, Nodes
from bangs.graphs.store.writer import Writer
from bangs.graphs.tables.chunks import Pieces
from bangs.graphs.tables.diagnostics import Diagnostics, counted
from bangs.graphs.tables.edges import look_up, read_weights
from bangs.graphs.tables.options import ReadOptions
from bangs.graphs.tables.roles import EdgeRoles, check_ignored, edge_roles
from bangs.graphs.tables.table import find, report_no_rows


def from_tables(folder: Path, writer: Writer, dtype: str, asked: ReadOptions) -> Manifest:
    """The store of a folder with a `nodes` and an `edges` table, and perhaps features.npy beside them.

    Everything wrong is raised at once as `BadTables`.
    """
    diagnostics, notes, asked = Diagnostics(str(folder)), list[str](), asked.as_fitted
    paths = {stem: find(folder, stem, diagnostics) for stem in ("nodes", "edges")}
    diagnostics.raise_any()
    pieces = {
        stem: Pieces(path, asked.unread, diagnostics, notes, asked.limits)
        for stem, path in paths.items()
        if path is not None
    }
    check_ignored(pieces["nodes"].first, pieces["edges"].first, asked.ignore, diagnostics)
    nodes = Nodes(pieces["nodes"], writer, asked, diagnostics, notes)
    nodes.count()
    wires = _edges(pieces["edges"], nodes, writer, asked, diagnostics, notes)
    array = _beside(folder, nodes, diagnostics)
    if not diagnostics:
        nodes.write(dtype, array, folder)
    diagnostics.raise_any()
    assert wires is not None  # None comes with a complaint
    weighted = wires[0].weighted
    edges, directed = wires[0].write()
    encoding = nodes.encoding(0 if array is None else int(array.shape[1]), wires[1], weighted)
    return writer.finish(
        nodes=nodes.size,
        edges=edges,
        features=len(encoding.features),
        classes=encoding.classes,
        directed=directed,
        weighted=weighted,
        encoding=encoding.to_dict(),
        notes=tuple(dict.fromkeys(notes)),
    )


def _edges(
    pieces: Pieces, nodes: Nodes, writer: Writer, asked: ReadOptions, diagnostics: Diagnostics, notes: list[str]
) -> tuple[EdgeChunk, EdgeRoles] | None:
    """The edges, gathered; None after complaining."""
    roles: EdgeRoles | None = None
    wires: EdgeChunk | None = None
    loops = rows = 0
    for table in pieces:
        if roles is None:
            roles = edge_roles(table, asked, None, diagnostics, notes)
            if roles is None or nodes.ids is None:
                return None
            wires = EdgeChunk(writer, nodes.size, directed=asked.directed, weighted=roles.weight is not None)
        assert nodes.ids is not None
        assert wires is not None
        weight = None if roles.weight is None else read_weights(table, roles.weight, diagnostics, notes)
        index, known = look_up(table, roles.source, roles.target, None, nodes.file, diagnostics, nodes.ids)
        apart = index[0] != index[1]
        loops += int((~apart).sum())
        rows += len(table)
        own = None if weight is None else weight[known][apart]
        wires.add(index[0][apart], index[1][apart], own)
    if wires is None or roles is None:
        if not diagnostics.about(pieces.path.name):
            report_no_rows("edges", pieces.path.name, diagnostics)
        return None
    if loops:
        notes.append(f"{pieces.path.name}: {counted(loops, 'edge')} from a node to itself dropped")
    notes.append(f"{pieces.path.name}: {counted(rows, 'row')} read")
    return wires, roles


def _beside(folder: Path, nodes: Nodes, diagnostics: Diagnostics) -> Any:
    """The matrix [N, F] of features.npy, mapped; None where there is none."""
    if not (folder / BESIDE).is_file():
        return None
    array = map_npy(folder / BESIDE)
    if array.ndim != 2 or array.shape[0] != nodes.size or array.shape[1] < 1:
        diagnostics.add(
            "array-rows",
            BESIDE,
            f"it has shape {list(array.shape)}, the node table has {nodes.size:,} rows",
            "give every node one row, in the order of the node table",
        )
        return None
    return array
