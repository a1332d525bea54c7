"""Edges: pairs of node ids as an edge index, each edge once in each direction it has."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch

from bangs.graphs.edges import EdgeList, merged, mirrored
from bangs.graphs.tables.column_roles import EdgeRoles, edge_roles
from bangs.graphs.tables.diagnostics import SHOWN, FileDiagnostics, counted, listed, quoted
from bangs.graphs.tables.nodes import NodeTable
from bangs.graphs.tables.numbers import LARGEST, read_numbers
from bangs.graphs.tables.read_options import ReadOptions
from bangs.graphs.tables.table import Table, equals
from bangs.graphs.tables.table_reader import TableReader

Indices = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float32]

_SAMPLE = 1000  # unknown ids that are compared with the ids of nodes


class EdgeTable:
    """The edge table, whose ends are looked up among the ids of the nodes; iterate over `pieces` once."""

    def __init__(self, reader: TableReader, nodes: NodeTable | None, options: ReadOptions):
        self.reader, self.options, self.diagnostics = reader, options, reader.diagnostics
        self.nodes = nodes
        self.file = reader.file
        self.names: list[str] = []
        self.roles: EdgeRoles | None = None
        self.rows = self.loops = self.dropped = 0

    def unknown_ids(self) -> list[str]:
        """The ends of edges that no node has as its id, each once, sorted."""
        found: set[str] = set()
        for table in () if self.nodes is None else self.reader:
            for words in self._ends(table).values():
                lost = (self.nodes.find(words)[0] < 0) & ~equals(words, "")  # type: ignore[union-attr]
                found.update(words.filter(pa.array(lost)).to_pylist())
        return sorted(found)

    def pieces(self) -> Iterator[tuple[Indices, Weights | None]]:
        """The ends [2, n] and weights [n] of the edges, piece by piece, without loops; problems are reported."""
        unknown = {"source": _UnknownEnds("source"), "target": _UnknownEnds("target")}
        respelled, example = 0, ""
        dropping = self.options.unknown_edges == "drop"
        for table in self.reader:
            ends = self._ends(table)
            weight = None
            if self.roles is not None and self.roles.weight is not None:
                weight = read_weights(table, self.roles.weight, self.diagnostics)
            if not ends or self.nodes is None:
                continue
            index = np.empty((2, len(table)), np.int64)
            for side, (role, words) in enumerate(ends.items()):
                index[side], plain = self.nodes.find(words)
                if plain.any():
                    respelled += int(plain.sum())
                    example = example or words[int(plain.argmax())].as_py()
                unknown[role].add(table, words, index[side], self.diagnostics)
            self.rows += len(table)
            known = (index >= 0).all(axis=0)
            self.dropped += int((~known).sum()) if dropping else 0
            self.loops += int((known & (index[0] == index[1])).sum())
            keep = known & (index[0] != index[1])
            yield index[:, keep], None if weight is None else weight[keep]
        if respelled:
            plain_example = example.partition(".")[0]
            self.diagnostics.note(
                f"{counted(respelled, 'end')} of edges found by ids that differ in a trailing '.0', as "
                f"{quoted(example)} and {quoted(plain_example if '.' in example else example + '.0')}"
            )
        self._finish(unknown)

    def _ends(self, table: Table) -> dict[str, Any]:
        """The columns of sources and targets; none where their roles cannot be found."""
        if not self.names:
            self.names = table.names
            ids = None if self.nodes is None else self.nodes.ids
            self.roles = edge_roles(table, self.options, ids, self.diagnostics)
        if self.roles is None:
            return {}
        return {"source": table.columns[self.roles.source], "target": table.columns[self.roles.target]}

    def _finish(self, unknown: "dict[str, _UnknownEnds]") -> None:
        if self.loops:
            self.diagnostics.note(f"{counted(self.loops, 'edge')} from a node to itself dropped")
        lost = [end for end in unknown.values() if end.total]
        if self.rows and self.loops == self.rows - self.dropped:
            what = "every edge leads from a node to itself" if self.loops else "every edge has an unknown end"
            self.diagnostics.add("only-loops", what, "a graph needs edges between nodes")
        if self.nodes is None or not lost:
            return
        words = [word for end in lost for word in end.words[:_SAMPLE]]
        if self.options.unknown_edges == "drop":
            some = listed(list(dict.fromkeys(words)), 3)
            self.diagnostics.note(f"{counted(self.dropped, 'edge')} to unknown nodes dropped: {some}")
            return
        all_unknown = sum(end.total for end in lost) == 2 * self.rows
        remedy = self._way_out(self.nodes, pa.array(words, pa.string()), all_unknown)
        for end in lost:
            messages = [
                (row, f"{end.role} {quoted(word)} is not a node of {self.nodes.file}")
                for row, word in zip(end.rows[:SHOWN], end.words[:SHOWN], strict=True)
            ]
            self.diagnostics.add_many("unknown-node", messages, remedy, total=end.total)

    def _way_out(self, nodes: NodeTable, words: Any, all_unknown: bool) -> str:
        """What to do about ends that are no ids: they are spelled differently, or stand in another column."""
        spelled = {what: np.zeros(len(words), bool) for what in _SPELLINGS}
        columns = {name: np.zeros(len(words), bool) for name in nodes.names}
        for table in nodes.reader:
            ids = table.columns[nodes.roles.id].combine_chunks()
            for what, spell in _SPELLINGS.items():
                spelled[what] |= np.asarray(pc.is_in(spell(words), spell(ids)))
            for name in columns if all_unknown else ():
                columns[name] |= np.asarray(pc.is_in(words, table.columns[name].combine_chunks()))
        what = max(spelled, key=lambda own: int(spelled[own].sum()))
        if spelled[what].all():
            return f"ids of the two tables differ in {what}; write them alike in both"
        other = next((name for name, found in columns.items() if all_unknown and found.all()), None)
        looked = f"ids were looked for in column {nodes.roles.id!r}"
        if other is not None:
            return f"{looked}; these stand in another, so say --id {other!r}"
        if spelled[what].any():
            part = f"{int(spelled[what].sum()):,} of {len(words):,}"
            return (
                f"{part} differ from ids of {nodes.file} in {what} only; write them alike, and add or drop the others"
            )
        if all_unknown:
            return f"{looked}; --id names another"
        also = "" if self.options.encoding is None else ", which must hold those of the fitted graph too"
        return f"add the node to {nodes.file}{also}, or delete the edge; --unknown-edges drop or add does so for all"


@dataclass
class _UnknownEnds:
    """The ends of edges in one role that no node has as its id: the first ones, and their number."""

    role: str
    rows: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    total: int = 0

    def add(self, table: Table, words: Any, places: Indices, diagnostics: FileDiagnostics) -> None:
        """One more piece; blank ends are reported at once."""
        lost = places < 0
        if not lost.any():
            return
        blank = lost & equals(words, "")
        diagnostics.add_rows(
            "blank-end",
            table.rows[blank],
            lambda i: f"the {self.role} is blank",
            "an edge needs two nodes; fill it in or delete the row",
        )
        nodes = np.flatnonzero(lost & ~blank)
        room = nodes[: max(_SAMPLE - len(self.words), 0)]
        self.rows += table.rows[room].tolist()
        self.words += words.take(pa.array(room)).to_pylist()
        self.total += len(nodes)


_SPELLINGS = {
    "capital letters": pc.utf8_lower,
    "leading zeros": lambda column: pc.utf8_ltrim(column, characters="0"),
    "how accented letters are stored (Unicode NFC or NFD)": lambda column: pc.utf8_normalize(column, form="NFC"),
    "a trailing '.0'": lambda column: pc.replace_substring_regex(column, r"\.0+$", ""),
}


def read_weights(table: Table, name: str, diagnostics: FileDiagnostics) -> Weights:
    """The weights [n] of the rows of an edge table; what is not a weight is reported."""
    found = read_numbers(table, name, diagnostics.every.notes)
    with np.errstate(invalid="ignore"):
        bad = found.missing | found.wrong | ~(found.values >= 0) | (found.values > LARGEST)
    message = "the weight is {}, not a number from 0 to 1e30"
    remedy = "correct it, or delete the row; --weight names another column, --ignore COLUMN takes all edges alike"
    table.report(diagnostics, "bad-weight", name, bad, message.format, remedy)
    return np.where(bad, 0, found.values).astype(np.float32)


def tidy(
    index: Indices, weight: Weights | None, nodes: int, rows: int, directed: bool, diagnostics: FileDiagnostics
) -> EdgeList:
    """Edges of a file of so many rows without repeats, mirrored unless directed; loops must be dropped before.

    Weights of a repeated edge add up; of two opposite edges of an undirected graph the larger counts.
    """
    unique, total = merged(index[0], index[1], weight, nodes)
    if repeats := index.shape[1] - len(unique):
        how = "merged" if weight is None else "merged, their weights added"
        diagnostics.note(f"{counted(repeats, 'repeated edge')} {how}")
    if not directed:
        both, larger = mirrored(unique, total, nodes)
        smaller = 0 if total is None or larger is None else int((total < larger[np.searchsorted(both, unique)]).sum())
        if smaller:
            diagnostics.note(
                f"{counted(smaller, 'edge')} with another weight in the other direction; the larger counts"
            )
        unique, total = both, larger
    number = len(unique) if directed else len(unique) // 2
    kind = "directed" if directed else "undirected"
    diagnostics.note(f"{counted(rows, 'row')} {'makes' if rows == 1 else 'make'} {counted(number, f'{kind} edge')}")
    if total is not None and len(total):
        _note_size(float(np.median(total)), diagnostics)
    ends = np.stack([unique // nodes, unique % nodes])
    joined = np.zeros(nodes, dtype=bool)
    joined[ends] = True
    alone = nodes - int(joined.sum())
    if alone:
        diagnostics.note(f"{counted(alone, 'node')} {'has' if alone == 1 else 'have'} no edge")
    return EdgeList(torch.from_numpy(ends), nodes, None if total is None else torch.from_numpy(total).float())


def _note_size(middle: float, diagnostics: FileDiagnostics) -> None:
    """Say that weights are far from 1, the weight of a node's own features in a graph network."""
    if not 0.01 <= middle <= 100:
        diagnostics.note(
            f"the median weight is {middle:.3g}, while a node counts itself with weight 1; "
            "divide the weights by a number of that size unless this is meant"
        )
