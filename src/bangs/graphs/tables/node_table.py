"""The node table: one reading collects ids and statistics, a second one makes features, labels and split."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bangs.graphs.tables.column_features import Encoder, check_columns
from bangs.graphs.tables.column_roles import check_names, node_roles
from bangs.graphs.tables.column_statistics import ColumnStatistics, column_encodings, note_column_kinds
from bangs.graphs.tables.diagnostics import quoted
from bangs.graphs.tables.fitted_encoding import Column
from bangs.graphs.tables.id_index import IdIndex, id_keys, without_trailing_zeros
from bangs.graphs.tables.labels import LabelColumn
from bangs.graphs.tables.read_options import ReadOptions
from bangs.graphs.tables.split_column import SplitColumn
from bangs.graphs.tables.table import Table, equals
from bangs.graphs.tables.table_reader import TableReader


@dataclass(frozen=True, eq=False)
class NodeBlock:
    """Ids, features, labels and split of a piece of the node table."""

    ids: Any  # pyarrow string [n]
    features: npt.NDArray[np.float32]  # [n, F]
    labels: npt.NDArray[np.int64]  # [n], −1 = unknown
    parts: npt.NDArray[np.int8] | None  # [n], 0 = none, 1 = train, 2 = val, 3 = test
    rows: npt.NDArray[np.int64]  # [n], row numbers in the file


class NodeTable:
    """The node table. Call `scan` first, then iterate over `blocks`; with `learning`, labels are required."""

    def __init__(self, reader: TableReader, options: ReadOptions, *, learning: bool):
        self.reader, self.options, self.diagnostics = reader, options, reader.diagnostics
        self.learning = learning and options.encoding is None
        self.file = reader.path.name
        self.size = 0
        self.names: list[str] = []
        self.roles: dict[str, str] = {}  # role -> column
        self.ids: IdIndex  # set by `scan`
        self.plain_ids: IdIndex  # the ids with 1000.0 written 1000
        self.added: list[str] = []  # ids of nodes that only the edge table has; they follow those of the node table
        self.labels: LabelColumn | None = None
        self.split: SplitColumn | None = None
        self.columns: tuple[Column, ...] = ()
        self.left_out: tuple[str, ...] = ()
        self._statistics: list[ColumnStatistics] = []

    def scan(self) -> bool:
        """First reading: collect ids, classes and column statistics.

        Returns whether the table has nodes and an id column; otherwise this is reported, and `ids` is not set.
        """
        usable = False
        keys: list[npt.NDArray[np.uint64]] = []
        plain_keys: list[npt.NDArray[np.uint64]] = []
        rows: list[npt.NDArray[np.int64]] = []
        for table in self.reader:
            if not self.names:
                usable = self._begin(table)
            if not usable:
                continue
            ids = table.columns[self.roles["id"]]
            table.report(
                "blank-id",
                self.roles["id"],
                equals(ids, ""),
                lambda _: f"the id (column {self.roles['id']!r}) is blank",
                "give every node an id, or delete the row",
            )
            keys.append(id_keys(ids))
            respelled = without_trailing_zeros(ids)
            plain_keys.append(keys[-1] if respelled.equals(ids) else id_keys(respelled))
            rows.append(table.rows)
            self.size += len(table)
            for column in (self.labels, self.split, *self._statistics):
                if column is not None:
                    column.add(table)
        if not usable:
            return False
        self.ids = self.plain_ids = IdIndex(np.concatenate(keys))
        if any(exact is not plain for exact, plain in zip(keys, plain_keys, strict=True)):
            self.plain_ids = IdIndex(np.concatenate(plain_keys))
        self._report_repeats(np.concatenate(rows))
        if self.labels is not None:
            self.labels.decide(learning=self.learning)
        if self.options.encoding is None:
            for column in self._statistics:
                column.recount(self.reader)
            self.columns, left_out = column_encodings(self._statistics)
            self.left_out = (*left_out, *self.options.ignore)
            note_column_kinds(self.columns, self.diagnostics)
        return True

    def find(self, ids: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The node with each id, −1 if there is none: long [n]; and where 1000.0 matched 1000: bool [n]."""
        nodes = self.ids(ids)
        if (nodes >= 0).all():
            return nodes, np.zeros(len(nodes), bool)
        with_plain = np.where(nodes < 0, self.plain_ids.unambiguous(without_trailing_zeros(ids)), nodes)
        return with_plain, (nodes < 0) & (with_plain >= 0)

    def add(self, ids: list[str]) -> None:
        """Add nodes of which only the id is known."""
        texts = pa.array(ids, pa.string())
        self.ids = self.ids.extended(id_keys(texts))
        self.plain_ids = self.plain_ids.extended(id_keys(without_trailing_zeros(texts)))
        self.added = ids
        self.size += len(ids)

    def blocks(self, encoder: Encoder) -> Iterator[NodeBlock]:
        """Second reading: ids, features, labels and split in pieces."""
        learned = np.zeros(0 if self.labels is None else len(self.labels.names), bool)
        for table in self.reader:
            labels = np.full(len(table), -1) if self.labels is None else self.labels(table)
            parts = None if self.split is None else self.split(table, labels)
            if parts is not None:
                learned[labels[(parts == 1) & (labels >= 0)]] = True
            yield NodeBlock(table.columns[self.roles["id"]], encoder(table), labels, parts, table.rows)
        if count := len(self.added):
            no_parts = None if self.split is None else np.zeros(count, np.int8)
            ids, rows = pa.array(self.added, pa.string()), np.zeros(count, np.int64)
            yield NodeBlock(ids, encoder.unknown(count), np.full(count, -1), no_parts, rows)
        encoder.note()
        if self.split is not None and self.labels is not None:
            self.split.finish()
            for name, trained in zip(self.labels.names, learned.tolist(), strict=True):
                if not trained and self.options.encoding is None:
                    self.diagnostics.note(f"no row with label {name!r} says train, so it cannot be learned")

    def _begin(self, table: Table) -> bool:
        """Find the roles of the columns from the first piece; returns whether there is an id column."""
        options, self.names = self.options, table.names
        roles = node_roles(table, options, needs_label=self.learning)
        if roles is None:
            return False
        self.roles, features = roles
        if "label" in self.roles:
            self.labels = LabelColumn(self.roles["label"], self.diagnostics, options)
            if "split" in self.roles:
                self.split = SplitColumn(self.roles["split"], self.diagnostics)
        if options.encoding is not None:
            check_columns(table, options.encoding, [*self.roles.values(), *options.ignore], self.diagnostics)
            self.columns, self.left_out = options.encoding.columns, options.encoding.left_out
            return True
        check_names("categorical", options.categorical, table.names, self.diagnostics)
        self._statistics = [
            ColumnStatistics(name, self.diagnostics, name in options.categorical, options.scale) for name in features
        ]
        return True

    def _report_repeats(self, rows: npt.NDArray[np.int64]) -> None:
        repeats, first = self.ids.repeats()
        if not len(repeats):
            return
        ids: list[str] = []
        for table in self.reader:
            is_repeat = np.isin(table.rows, rows[repeats])
            ids += table.columns[self.roles["id"]].filter(pa.array(is_repeat)).to_pylist()
        self.diagnostics.add_rows(
            "duplicate-id",
            rows[repeats],
            lambda i: f"id {quoted(ids[i])} is already in row {rows[first[i]]:,}",
            "give every node one row and an id of its own; --id names another column",
        )
