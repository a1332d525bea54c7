"""Tables: an edge table and a node table of any length, into a store, a piece at a time.

The node table is read twice: once to learn what its columns are, once to write them. The edge table is read once.
What is held in memory grows with the nodes alone, by some thirty bytes each.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.arrays import map_npy
from bangs.graphs.custom.complaints import Complaints, counted, listed, quoted
from bangs.graphs.custom.counting import ColumnCount, Tally
from bangs.graphs.custom.edges import look_up, read_weights
from bangs.graphs.custom.encoding import Categorical, Encoding, Numeric
from bangs.graphs.custom.features import check_columns, encode
from bangs.graphs.custom.labels import PARTS, read_labels
from bangs.graphs.custom.parts import Asked
from bangs.graphs.custom.roles import EdgeRoles, NodeRoles, edge_roles, node_roles
from bangs.graphs.custom.streaming import Pieces
from bangs.graphs.custom.tables import Table, among, equals, find, places_in
from bangs.graphs.store.arrays import finite
from bangs.graphs.store.ids import Ids, key
from bangs.graphs.store.manifest import Manifest
from bangs.graphs.store.sorting import Wires
from bangs.graphs.store.writing import Writer

BESIDE = "features.npy"


def from_tables(folder: Path, writer: Writer, dtype: str, asked: Asked) -> Manifest:
    """The store of a folder with a `nodes` and an `edges` table, and perhaps features.npy beside them.

    Everything wrong is raised at once as `BadTables`.
    """
    complaints, notes = Complaints(str(folder)), list[str]()
    paths = {stem: find(folder, stem, complaints) for stem in ("nodes", "edges")}
    complaints.raise_any()
    pieces = {
        stem: Pieces(path, asked.ignore, complaints, notes, asked.limits)
        for stem, path in paths.items()
        if path is not None
    }
    nodes = _Nodes(pieces["nodes"], writer, asked, complaints, notes)
    nodes.count()
    wires = _edges(pieces["edges"], nodes, writer, asked, complaints, notes)
    array = _beside(folder, nodes, complaints)
    if not complaints:
        nodes.write(dtype, array, folder)
    complaints.raise_any()
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


class _Nodes:
    """The node table: counted first, then written."""

    def __init__(self, pieces: Pieces, writer: Writer, asked: Asked, complaints: Complaints, notes: list[str]):
        self.pieces, self.writer, self.asked, self.complaints, self.notes = pieces, writer, asked, complaints, notes
        self.file = pieces.path.name
        self.size = 0
        self.roles: NodeRoles | None = None
        self.ids: Ids | None = None
        self.classes: list[str] = []
        self._labels = Tally()
        self._columns: list[ColumnCount] = []
        self._kept: list[Numeric | Categorical] = []
        self._left_out: list[str] = []
        self._label_of: npt.NDArray[np.int64] = np.empty(0, np.int64)

    def count(self) -> None:
        """First reading: names, classes and what every column is."""
        keys: list[npt.NDArray[np.uint64]] = []
        rows: list[npt.NDArray[np.int64]] = []
        body, ends, written = self.writer.strip("ids.bytes", "uint8"), self.writer.strip("ids.ends", "int64"), 0
        for table in self.pieces:
            if self.roles is None and not self._begin(table):
                return
            assert self.roles is not None
            words = table.columns[self.roles.id]
            self._complain_of_blanks(table, words)
            keys.append(key(words))
            rows.append(table.rows)
            lengths = np.asarray(pc.binary_length(words)).astype(np.int64)
            body.append(np.frombuffer("".join(words.to_pylist()).encode(), np.uint8))
            ends.append(written + np.cumsum(lengths))
            written += int(lengths.sum())
            self.size += len(table)
            if self.roles.label is not None:
                self._labels.add(table.columns[self.roles.label])
            for column in self._columns:
                column.add(table)
        if self.size == 0:
            self.complaints.add(
                "no-rows", self.file, "it has a header and no rows", "a graph needs nodes; add them below it"
            )
            return
        self.ids = Ids(np.concatenate(keys))
        self._complain_of_repeats(np.concatenate(rows))
        self._classes()
        for column in self._columns:
            kept = column.encoding(self.notes)
            if kept is None:
                self._left_out.append(column.name)
            else:
                self._kept.append(kept)

    def write(self, dtype: str, array: Any, folder: Path) -> None:
        """Second reading: features, labels and split."""
        assert self.roles is not None
        encoding = Encoding(tuple(self._kept), fill=self.asked.fill)
        width = len(encoding.features) + (0 if array is None else array.shape[1])
        if width == 0:
            self.complaints.add(
                "no-features",
                self.file,
                "no column can be a feature, and a store needs some",
                f"add columns of numbers or words, or keep features as an array in {BESIDE}",
            )
            return
        features, labels = self.writer.strip("features", dtype, width), self.writer.strip("labels", "int32")
        split = None if self.roles.split is None else self.writer.strip("split", "int8")
        start, parts = 0, np.zeros(4, np.int64)
        for table in self.pieces:
            block = encode(table, encoding, {}, self.complaints, [], self.asked.limits)
            if self.complaints:
                continue
            if array is not None:
                block = np.concatenate([block, array[start : start + len(table)]], axis=1)
            features.append(finite(block, dtype, start, str(folder)))
            label = self._label(table)
            labels.append(label)
            if split is not None:
                said = self._split(table, label)
                parts += np.bincount(said, minlength=4)
                split.append(said)
            start += len(table)
        if split is not None and not self.complaints and parts[1] == 0:
            self.complaints.add(
                "no-training", self.file, "the split leaves no node for training", "write train for some of them"
            )

    def encoding(self, array: int, wiring: EdgeRoles, weighted: bool) -> Encoding:
        """All that is needed to read another graph as this one was read."""
        assert self.roles is not None
        names = {"id": self.roles.id, "label": self.roles.label, "split": self.roles.split}
        names |= {"source": wiring.source, "target": wiring.target, "weight": wiring.weight}
        return Encoding(
            columns=tuple(self._kept),
            array=array,
            classes=tuple(self.classes),
            roles=tuple((role, name) for role, name in names.items() if name is not None),
            left_out=(*self._left_out, *self.asked.ignore),
            directed=self.asked.directed,
            weighted=weighted,
            fill=self.asked.fill,
        )

    def _begin(self, table: Table) -> bool:
        given = {role: self.asked.role(role, table) for role in ("id", "label", "split")}
        every = ("id", "label", "split")
        found = node_roles(table, given, every, (), self.asked.ignore, Complaints(""), [])
        # a store may hold a graph without labels, to be predicted on
        guess = ("id", "split") if found is not None and found.label is None else every
        self.roles = node_roles(table, given, guess, (), self.asked.ignore, self.complaints, self.notes)
        if self.roles is None:
            return False
        if self.asked.encoding is not None:
            self._as_before(self.asked.encoding, table)
            return True
        self._columns = [
            ColumnCount(name, self.file, name in self.asked.categorical, self.asked.fill)
            for name in self.roles.features
        ]
        return True

    def _as_before(self, encoding: Encoding, table: Table) -> None:
        """Take columns and classes as they were taken of another graph."""
        spare = [name for name in (self.roles.id, self.roles.label, self.roles.split) if name] if self.roles else []
        check_columns(table, encoding, [*spare, *self.asked.ignore], self.complaints, self.notes)
        self._kept, self._left_out = list(encoding.columns), list(encoding.left_out)
        self.classes = list(encoding.classes)

    def _complain_of_blanks(self, table: Table, words: Any) -> None:
        assert self.roles is not None
        blank = equals(words, "")
        if blank.any():
            self.complaints.add_rows(
                "blank-id",
                self.file,
                table.rows[blank],
                lambda i: f"the id (column {self.roles.id!r}) is blank",  # type: ignore[union-attr]
                "give every node an id, or delete the row",
            )

    def _complain_of_repeats(self, rows: npt.NDArray[np.int64]) -> None:
        assert self.ids is not None
        again, first = self.ids.again()
        if len(again):
            self.complaints.add_rows(
                "duplicate-id",
                self.file,
                rows[again],
                lambda i: f"its id stands in row {rows[first[i]]:,} already",
                "give every node one row and an id of its own; --id names another column",
            )

    def _classes(self) -> None:
        if self._labels.many:
            self.complaints.add(
                "too-many-classes",
                self.file,
                "the labels are more than 100,000 different words",
                "name another column with --label COLUMN",
            )
            return
        words = list(self._labels.words)
        if not words:
            return
        known_before = None if self.asked.encoding is None else self.asked.encoding.classes
        told = Complaints("")
        number, self.classes = read_labels(
            pa.chunked_array([words], pa.string()),
            np.zeros(len(words), np.int64),
            self.file,
            known_before,
            self.asked.unknown,
            told,
            [],
        )
        if known_before is not None and told:
            self.complaints.add(
                "unknown-class",
                self.file,
                f"some labels are none of the classes {listed(self.classes)}",
                "correct them or leave them blank; a new class needs a new fit",
            )
        self._label_of = number
        known = sum(count for place, count in enumerate(self._labels.words.values()) if number[place] >= 0)
        self.notes.append(f"{self.file}: {counted(known, 'label')} of {self.size:,} nodes in {listed(self.classes)}")

    def _label(self, table: Table) -> npt.NDArray[np.int64]:
        if self.roles is None or self.roles.label is None:
            return np.full(len(table), -1)
        places = places_in(table.columns[self.roles.label], pa.array(list(self._labels.words), pa.string()))
        return self._label_of[places]

    def _split(self, table: Table, label: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
        """0 = none, 1 = train, 2 = val, 3 = test: [n]."""
        assert self.roles is not None
        words = table.columns[self.roles.split or ""]
        lower = pc.utf8_lower(words)
        said = np.full(len(table), -1, np.int8)
        for number, part in enumerate(("", "train", "val", "test")):
            said[among(lower, PARTS[part])] = number
        for kind, wrong, tells, remedy in (
            ("split-word", said < 0, "", "write train, val or test, or leave it blank; --split names another column"),
            (
                "split-without-label",
                ((said == 1) | (said == 2)) & (label < 0),
                ", but there is no label",
                "label the node, or leave its split blank",
            ),
        ):
            places = np.flatnonzero(wrong)
            if len(places):
                self.complaints.add_rows(
                    kind,
                    self.file,
                    table.rows[places],
                    lambda i, places=places, tells=tells: (  # type: ignore[misc]
                        f"the split says {quoted(words[int(places[i])].as_py())}{tells}"
                    ),
                    remedy,
                )
        return np.maximum(said, 0)


def _edges(
    pieces: Pieces, nodes: _Nodes, writer: Writer, asked: Asked, complaints: Complaints, notes: list[str]
) -> tuple[Wires, EdgeRoles] | None:
    """The edges, gathered; None after complaining."""
    roles: EdgeRoles | None = None
    wires: Wires | None = None
    loops = rows = 0
    for table in pieces:
        if roles is None:
            given = {role: asked.role(role, table) for role in ("source", "target", "weight")}
            roles = edge_roles(table, given, None, complaints, notes)
            if roles is None or nodes.ids is None:
                return None
            wires = Wires(writer, nodes.size, directed=asked.directed, weighted=roles.weight is not None)
        assert nodes.ids is not None
        assert wires is not None
        weight = None if roles.weight is None else read_weights(table, roles.weight, complaints)
        index, known = look_up(table, roles.source, roles.target, None, nodes.file, complaints, nodes.ids)
        apart = index[0] != index[1]
        loops += int((~apart).sum())
        rows += len(table)
        own = None if weight is None else weight[known][apart]
        wires.add(index[0][apart], index[1][apart], own)
    if wires is None or roles is None:
        complaints.add(
            "no-rows", pieces.path.name, "it has a header and no rows", "a graph needs edges; add them below it"
        )
        return None
    if loops:
        notes.append(f"{pieces.path.name}: {counted(loops, 'edge')} from a node to itself dropped")
    notes.append(f"{pieces.path.name}: {counted(rows, 'row')} read")
    return wires, roles


def _beside(folder: Path, nodes: _Nodes, complaints: Complaints) -> Any:
    """The matrix [N, F] of features.npy, mapped; None where there is none."""
    if not (folder / BESIDE).is_file():
        return None
    array = map_npy(folder / BESIDE)
    if array.ndim != 2 or array.shape[0] != nodes.size or array.shape[1] < 1:
        complaints.add(
            "array-rows",
            BESIDE,
            f"it has shape {list(array.shape)}, the node table has {nodes.size:,} rows",
            "give every node one row, in the order of the node table",
        )
        return None
    return array
