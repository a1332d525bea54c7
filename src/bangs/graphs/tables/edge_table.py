"""The edge table: turn pairs of node ids into an edge index without repeated edges."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch_geometric.data import Data

from bangs.graphs.edges import merged, mirrored
from bangs.graphs.tables.column_roles import edge_roles
from bangs.graphs.tables.diagnostics import FileDiagnostics, counted, listed, quoted
from bangs.graphs.tables.node_table import NodeTable
from bangs.graphs.tables.numbers import MAX_MAGNITUDE, read_numbers
from bangs.graphs.tables.read_options import ReadOptions
from bangs.graphs.tables.table import Mask, Table, equals
from bangs.graphs.tables.table_reader import TableReader

Indices = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float32]

_SAMPLE = 1000  # unknown ids that are kept for comparison with known ids


class EdgeTable:
    """The edge table; its ends are looked up among the ids of the nodes. Iterate over `pieces` once."""

    def __init__(self, reader: TableReader, nodes: NodeTable | None, options: ReadOptions):
        self.reader, self.options, self.diagnostics = reader, options, reader.diagnostics
        self.nodes = nodes
        self.file = reader.path.name
        self.names: list[str] = []
        self.roles: dict[str, str] = {}  # role -> column; empty if there are no columns of sources and targets
        self.rows = self.loops = self.dropped = 0
        self._unknown: dict[str, list[tuple[int, str]]] = {"source": [], "target": []}  # rows and ids, a sample
        self._unknown_count: Counter[str] = Counter()  # of all rows, by role

    def unknown_ids(self, nodes: NodeTable) -> list[str]:
        """The ids in this table that no node has, without repeats, sorted."""
        unknown: set[str] = set()
        for table in self.reader:
            for cells in self._ends(table).values():
                is_unknown = (nodes.find(cells)[0] < 0) & ~equals(cells, "")
                unknown.update(cells.filter(pa.array(is_unknown)).to_pylist())
        return sorted(unknown)

    def pieces(self) -> Iterator[tuple[Indices, Weights | None]]:
        """The ends [2, n] and weights [n] of the edges in pieces, without self-loops; problems are reported."""
        respelled_count, example = 0, ""
        dropping = self.options.unknown_edges == "drop"
        for table in self.reader:
            ends = self._ends(table)
            weight = None
            if "weight" in self.roles:
                weight = read_weights(table, self.roles["weight"])
            if not ends or self.nodes is None:
                continue
            index = np.empty((2, len(table)), np.int64)
            for side, (role, cells) in enumerate(ends.items()):
                index[side], matched = self.nodes.find(cells)
                if matched.any():
                    respelled_count += int(matched.sum())
                    example = example or cells[int(matched.argmax())].as_py()
                self._add_unknown(role, table, cells, index[side] < 0)
            self.rows += len(table)
            known = (index >= 0).all(axis=0)
            self.dropped += int((~known).sum()) if dropping else 0
            self.loops += int((known & (index[0] == index[1])).sum())
            keep = known & (index[0] != index[1])
            yield index[:, keep], None if weight is None else weight[keep]
        if respelled_count:
            plain_example = example.partition(".")[0]
            self.diagnostics.note(
                f"{counted(respelled_count, 'end')} of edges found by ids that differ in a trailing '.0', as "
                f"{quoted(example)} and {quoted(plain_example if '.' in example else example + '.0')}"
            )
        self._finish()

    def _ends(self, table: Table) -> dict[str, Any]:
        """The columns of sources and targets; empty if there are no such columns."""
        if not self.names:
            self.names = table.names
            ids = None if self.nodes is None else self.nodes.ids
            self.roles = edge_roles(table, self.options, ids) or {}
        return {role: table.columns[self.roles[role]] for role in ("source", "target") if role in self.roles}

    def _add_unknown(self, role: str, table: Table, cells: Any, unknown: Mask) -> None:
        """Count the unknown ids of a piece; blank ones are reported at once."""
        if not unknown.any():
            return
        blank = unknown & equals(cells, "")
        remedy = "an edge needs two nodes; fill it in or delete the row"
        self.diagnostics.add_rows("blank-end", table.rows[blank], lambda i: f"the {role} is blank", remedy)
        positions = np.flatnonzero(unknown & ~blank)
        sampled = positions[: _SAMPLE - len(self._unknown[role])]
        ids = cells.take(pa.array(sampled)).to_pylist()
        self._unknown[role] += zip(table.rows[sampled].tolist(), ids, strict=True)
        self._unknown_count[role] += len(positions)

    def _finish(self) -> None:
        if self.loops:
            self.diagnostics.note(f"{counted(self.loops, 'edge')} from a node to itself dropped")
        if self.rows and self.loops == self.rows - self.dropped:
            what = "every edge leads from a node to itself" if self.loops else "every edge has an unknown end"
            self.diagnostics.add("only-loops", what, "a graph needs edges between nodes")
        ids = [id for sample in self._unknown.values() for _, id in sample]
        if self.nodes is None or not ids:
            return
        if self.options.unknown_edges == "drop":
            examples = listed(list(dict.fromkeys(ids)), 3)
            self.diagnostics.note(f"{counted(self.dropped, 'edge')} to unknown nodes dropped: {examples}")
            return
        all_unknown = self._unknown_count.total() == 2 * self.rows
        remedy = self._remedy(self.nodes, pa.array(ids, pa.string()), all_unknown)
        for role, sample in self._unknown.items():
            rows, total = [row for row, _ in sample], self._unknown_count[role]
            messages = [f"{role} {quoted(id)} is not a node of {self.nodes.file}" for _, id in sample]
            self.diagnostics.add_rows("unknown-node", rows, messages.__getitem__, remedy, total)

    def _remedy(self, nodes: NodeTable, ids: Any, all_unknown: bool) -> str:
        """The remedy for unknown ids: they may be spelled differently, or be in another column."""
        matches = {difference: np.zeros(len(ids), bool) for difference in _SPELLINGS}
        in_column = {name: np.zeros(len(ids), bool) for name in nodes.names}
        for table in nodes.reader:
            node_ids = table.columns[nodes.roles["id"]].combine_chunks()
            for difference, spell in _SPELLINGS.items():
                matches[difference] |= np.asarray(pc.is_in(spell(ids), spell(node_ids)))
            for name in in_column if all_unknown else ():
                in_column[name] |= np.asarray(pc.is_in(ids, table.columns[name].combine_chunks()))
        difference = max(matches, key=lambda difference: int(matches[difference].sum()))
        if matches[difference].all():
            return f"ids of the two tables differ in {difference}; write them alike in both"
        other_column = next((name for name, contained in in_column.items() if all_unknown and contained.all()), None)
        searched = f"ids were looked for in column {nodes.roles['id']!r}"
        if other_column is not None:
            return f"{searched}; these are in another column, so use --id {other_column!r}"
        if matches[difference].any():
            part = f"{int(matches[difference].sum()):,} of {len(ids):,}"
            only = f"{part} differ from ids of {nodes.file} in {difference} only"
            return f"{only}; write them alike, and add or drop the others"
        if all_unknown:
            return f"{searched}; --id names another"
        also = "" if self.options.encoding is None else ", which must hold those of the fitted graph too"
        return f"add the node to {nodes.file}{also}, or delete the edge; --unknown-edges drop or add does so for all"


_SPELLINGS = {
    "capital letters": pc.utf8_lower,
    "leading zeros": lambda column: pc.utf8_ltrim(column, characters="0"),
    "how accented letters are stored (Unicode NFC or NFD)": lambda column: pc.utf8_normalize(column, form="NFC"),
    "punctuation or spaces": lambda column: pc.replace_substring_regex(column, r"[\s\pP\pS]+", ""),
    "a trailing '.0'": lambda column: pc.replace_substring_regex(column, r"\.0+$", ""),
}


def read_weights(table: Table, name: str) -> Weights:
    """The weights [n] of the rows of an edge table; cells that are not weights are reported."""
    numbers = read_numbers(table, name, table.diagnostics.all_files.notes)
    with np.errstate(invalid="ignore"):
        bad = numbers.missing | numbers.wrong | ~(numbers.values >= 0) | (numbers.values > MAX_MAGNITUDE)
    message = "the weight is {}, not a number from 0 to 1e30"
    remedy = (
        "correct it, or delete the row; --weight names another column, --ignore COLUMN gives all edges the same weight"
    )
    table.report("bad-weight", name, bad, message.format, remedy)
    return np.where(bad, 0, numbers.values).astype(np.float32)


def merged_edges(
    index: Indices, weight: Weights | None, nodes: int, rows: int, directed: bool, diagnostics: FileDiagnostics
) -> Data:
    """A graph of the edges of a file with `rows` rows, without repeats, in both directions unless directed.

    The given edges have no self-loops. Weights of a repeated edge add up; of two opposite edges of an undirected graph
    the larger weight counts.
    """
    keys, weights = merged(index[0], index[1], weight, nodes)
    if repeats := index.shape[1] - len(keys):
        how = "merged" if weight is None else "merged, their weights added"
        diagnostics.note(f"{counted(repeats, 'repeated edge')} {how}")
    if not directed:
        given_keys, given_weights = keys, weights
        keys, weights = mirrored(keys, weights, nodes)
        if given_weights is not None and weights is not None:
            overruled = int((given_weights < weights[np.searchsorted(keys, given_keys)]).sum())
            if overruled:
                edges = counted(overruled, "edge")
                diagnostics.note(f"{edges} with another weight in the other direction; the larger counts")
    count = len(keys) if directed else len(keys) // 2
    kind = "directed" if directed else "undirected"
    diagnostics.note(f"{counted(rows, 'row')} {'makes' if rows == 1 else 'make'} {counted(count, f'{kind} edge')}")
    if weights is not None:
        _note_unusual_weights(weights, diagnostics)
    ends = np.stack([keys // nodes, keys % nodes])
    if isolated := int((np.bincount(ends.ravel(), minlength=nodes) == 0).sum()):
        diagnostics.note(f"{counted(isolated, 'node')} {'has' if isolated == 1 else 'have'} no edge")
    graph = Data(edge_index=torch.from_numpy(ends), num_nodes=nodes)
    if weights is not None:
        graph.edge_weight = torch.from_numpy(weights).float()
    return graph


def _note_unusual_weights(weights: npt.NDArray[np.float64], diagnostics: FileDiagnostics) -> None:
    """Note weights of 0, and weights far from 1, the weight of the self-loops that graph networks add."""
    positive = weights[weights > 0]
    if len(positive) < len(weights):
        diagnostics.note("edges of weight 0 do not count, except in models that ignore weights")
    if len(positive) and not 0.01 <= (middle := float(np.median(positive))) <= 100:
        diagnostics.note(
            f"the median weight is {middle:.3g}, while a node counts itself with weight 1; "
            "divide the weights by a number of that size unless this is meant"
        )
