"""Nodes: the table of nodes on its way into a store, read once to learn its columns and once to write them."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.store.from_arrays import finite
from bangs.graphs.store.id_index import IdIndex, key
from bangs.graphs.store.writer import Writer
from bangs.graphs.tables.chunks import Pieces
from bangs.graphs.tables.column_kinds import ColumnCount, Tally
from bangs.graphs.tables.diagnostics import Diagnostics, counted, listed, quoted
from bangs.graphs.tables.encoding import Categorical, Encoding, Numeric
from bangs.graphs.tables.features import check_columns, encode, tell_kinds
from bangs.graphs.tables.labels import PARTS, check_unknown, read_labels
from bangs.graphs.tables.options import ReadOptions
from bangs.graphs.tables.roles import EdgeRoles, NodeRoles, node_roles
from bangs.graphs.tables.table import Table, among, equals, places_in, report_no_rows

BESIDE = "features.npy"


class Nodes:
    """The node table: counted first, then written."""

    def __init__(self, pieces: Pieces, writer: Writer, asked: ReadOptions, diagnostics: Diagnostics, notes: list[str]):
        self.pieces, self.writer, self.asked, self.diagnostics, self.notes = pieces, writer, asked, diagnostics, notes
        self.file = pieces.path.name
        self.size = 0
        self.roles: NodeRoles | None = None
        self.ids: IdIndex | None = None
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
            if not self.diagnostics.about(self.file):
                report_no_rows("nodes", self.file, self.diagnostics)
            return
        self.ids = IdIndex(np.concatenate(keys))
        self._complain_of_repeats(np.concatenate(rows))
        self._classes()
        for column in self._columns:
            kept = column.encoding(self.notes)
            if kept is None:
                self._left_out.append(column.name)
            else:
                self._kept.append(kept)
        if self._columns:
            tell_kinds(self.file, self._kept, self.notes)

    def write(self, dtype: str, array: Any, folder: Path) -> None:
        """Second reading: features, labels and split."""
        assert self.roles is not None
        encoding = Encoding(tuple(self._kept), fill=self.asked.fill)
        width = len(encoding.features) + (0 if array is None else array.shape[1])
        if width == 0:
            self.diagnostics.add(
                "no-features",
                self.file,
                "no column can be a feature, and a store needs some",
                f"add columns of numbers or words, or keep features as an array in {BESIDE}",
            )
            return
        features, labels = self.writer.strip("features", dtype, width), self.writer.strip("labels", "int32")
        split = None if self.roles.split is None else self.writer.strip("split", "int8")
        start, parts = 0, np.zeros(4, np.int64)
        model: Literal["fitting", "fitted"] = "fitting" if self.asked.encoding is None else "fitted"
        for table in self.pieces:
            block = encode(table, encoding, {}, self.diagnostics, [], self.asked.limits, model)
            if self.diagnostics:
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
        if split is not None and not self.diagnostics and parts[1] == 0:
            self.diagnostics.add(
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
        found = node_roles(table, given, every, (), self.asked.ignore, Diagnostics(""), [])
        # a store may hold a graph without labels, to be predicted on
        guess = ("id", "split") if found is not None and found.label is None else every
        self.roles = node_roles(table, given, guess, (), self.asked.ignore, self.diagnostics, self.notes)
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
        check_columns(table, encoding, [*spare, *self.asked.ignore], self.diagnostics, self.notes)
        self._kept, self._left_out = list(encoding.columns), list(encoding.left_out)
        self.classes = list(encoding.classes)

    def _complain_of_blanks(self, table: Table, words: Any) -> None:
        assert self.roles is not None
        blank = equals(words, "")
        if blank.any():
            self.diagnostics.add_rows(
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
            self.diagnostics.add_rows(
                "duplicate-id",
                self.file,
                rows[again],
                lambda i: f"its id stands in row {rows[first[i]]:,} already",
                "give every node one row and an id of its own; --id names another column",
            )

    def _classes(self) -> None:
        if self._labels.many:
            self.diagnostics.add(
                "too-many-classes",
                self.file,
                "the labels are more than 100,000 different words",
                "name another column with --label COLUMN",
            )
            return
        seen = list(self._labels.words)
        if not seen:
            return
        words = pa.chunked_array([seen], pa.string())
        check_unknown(words, self.asked.unknown, self.file, self.diagnostics)
        known_before = None if self.asked.encoding is None else self.asked.encoding.classes
        told = Diagnostics("")
        number, self.classes = read_labels(
            words,
            np.zeros(len(words), np.int64),
            self.file,
            known_before,
            self.asked.unknown,
            told,
            [],
        )
        if known_before is not None and told:
            self.diagnostics.add(
                "unknown-class",
                self.file,
                f"some labels are none of the classes {listed(self.classes)}",
                "correct them or leave them blank; a new class needs a new fit",
            )
        self._label_of = number
        known = sum(count for place, count in enumerate(self._labels.words.values()) if number[place] >= 0)
        among = f" in {listed(self.classes)}" if self.classes else ""
        self.notes.append(f"{self.file}: {counted(known, 'label')} of {self.size:,} nodes{among}")

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
                self.diagnostics.add_rows(
                    kind,
                    self.file,
                    table.rows[places],
                    lambda i, places=places, tells=tells: (  # type: ignore[misc]
                        f"the split says {quoted(words[int(places[i])].as_py())}{tells}"
                    ),
                    remedy,
                )
        return np.maximum(said, 0)
