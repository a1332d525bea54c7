"""Write the store of an edge table and a node table of any length, piece by piece.

The edge table is read once, the node table twice. Memory grows with the nodes only, by about thirty bytes each.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from bangs.graphs.store.edge_sort import EdgeWriter
from bangs.graphs.store.from_arrays import as_finite
from bangs.graphs.store.manifest import MAX_NODES, Manifest
from bangs.graphs.store.writer import Writer
from bangs.graphs.tables.diagnostics import Diagnostics, counted
from bangs.graphs.tables.edge_table import Indices, Weights
from bangs.graphs.tables.feature_array import padded
from bangs.graphs.tables.folder import read_folder
from bangs.graphs.tables.node_table import NodeBlock
from bangs.graphs.tables.read_options import ReadOptions
from bangs.graphs.tables.table import Limits
from bangs.graphs.tables.table_reader import explain_memory_errors

_ANY_SIZE = Limits(bytes=2**62, nodes=MAX_NODES, edges=2**62, cells=2**62)


def from_tables(folder: Path, writer: Writer, dtype: str, options: ReadOptions) -> Manifest:
    """The store of a folder with a `nodes` and an `edges` table, and perhaps an array of features beside them.

    All problems are raised at once as `BadTables`.
    """
    diagnostics = Diagnostics(str(folder))
    options = replace(options.as_fitted(), limits=_ANY_SIZE)
    pieces = _Pieces(writer, options.directed, dtype, str(folder))
    with explain_memory_errors(str(folder), "free some memory; a conversion needs some thirty bytes for every node"):
        nodes, table, _, encoding = read_folder(
            folder, options, diagnostics, pieces.edges, pieces.nodes, in_memory=False
        )
        if not pieces.width:
            nodes.diagnostics.add(
                "no-features",
                "no column can be a feature, and a store needs some",
                "add columns of numbers or words, or keep features as an array in features.npy",
            )
            raise diagnostics.error()
        assert pieces.edge_writer is not None
        edges, directed = pieces.edge_writer.write()
    number, kind = (edges, "directed edge") if options.directed else (edges // 2, "undirected edge")
    table.diagnostics.note(f"{counted(table.rows, 'row')} read, {counted(number, kind)} stored")
    return writer.finish(
        nodes=nodes.size,
        edges=edges,
        features=pieces.width,
        classes=encoding.classes,
        directed=directed,
        weighted=pieces.edge_writer.weighted,
        encoding=encoding.to_dict(),
        notes=tuple(dict.fromkeys(diagnostics.notes)),
    )


class _Pieces:
    """Writes the pieces of a folder to the files of a store."""

    def __init__(self, writer: Writer, directed: bool, dtype: str, what: str):
        self.writer, self.directed, self.dtype, self.what = writer, directed, dtype, what
        self.edge_writer: EdgeWriter | None = None
        self._id_bytes = self._node = self.width = 0

    def edges(self, index: Indices, weight: Weights | None, nodes: int) -> None:
        if self.edge_writer is None:
            self.edge_writer = EdgeWriter(self.writer, nodes, directed=self.directed, weighted=weight is not None)
        self.edge_writer.add(index[0], index[1], weight)

    def nodes(self, block: NodeBlock, array: Any) -> None:
        features, end = block.features, self._node + len(block.labels)
        if array is not None:
            rows = array[self._node : end]
            dense = rows.toarray() if hasattr(rows, "toarray") else rows
            features = np.concatenate([features, padded(dense, end - self._node - len(dense))], axis=1)
        self.width = features.shape[1]
        if not self.width:
            return
        ends = self._id_bytes + np.cumsum(np.asarray(pc.binary_length(block.ids)).astype(np.int64))
        self._id_bytes = int(ends[-1])
        self.writer.append("ids.bytes", "uint8", np.frombuffer("".join(block.ids.to_pylist()).encode(), np.uint8))
        self.writer.append("ids.ends", "int64", ends)
        self.writer.append("features", self.dtype, as_finite(features, self.dtype, self._node, self.what))
        self.writer.append("labels", "int32", block.labels)
        if block.parts is not None:
            self.writer.append("split", "int8", block.parts)
        self._node = end
