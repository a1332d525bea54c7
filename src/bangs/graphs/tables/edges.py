"""Edges: pairs of node ids as an edge index, each edge once in each direction it has."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.edges import mirrored
from bangs.graphs.tables.diagnostics import Diagnostics, counted, quoted
from bangs.graphs.tables.numbers import LARGEST, read_numbers
from bangs.graphs.tables.table import Table, equals, places_in

Indices = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of a graph."""

    index: Indices  # [2, E], sorted by source, then target
    weight: Weights | None  # [E]


def look_up(
    table: Table,
    source: str,
    target: str,
    ids: Any,
    nodes_file: str,
    diagnostics: Diagnostics,
    find: Callable[[Any], Indices] | None = None,
    way_out: Callable[[Any, bool], str | None] | None = None,
) -> tuple[Indices, npt.NDArray[np.bool_]]:
    """The positions [2, E] of the ends of every edge among the ids, and which rows gave one: bool [rows].

    Rows with an unknown end are complained about and give none. `find` looks words up where the ids are too many to be
    given as an array. `way_out` may know what to do about some unknown words, and whether all ends are unknown.
    """
    columns = {"source": table.columns[source], "target": table.columns[target]}
    index = np.stack([places_in(words, ids) if find is None else find(words) for words in columns.values()])
    for (role, words), places in zip(columns.items(), index, strict=True):
        lost = places < 0
        blank = lost & equals(words, "") if lost.any() else lost
        rows = np.flatnonzero(blank)
        if len(rows):
            diagnostics.add_rows(
                "blank-end",
                table.file,
                table.rows[rows],
                lambda i, role=role: f"the {role} is blank",  # type: ignore[misc]
                "an edge needs two nodes; fill it in or delete the row",
            )
        rows = np.flatnonzero(lost & ~blank)
        if len(rows):
            diagnostics.add_rows(
                "unknown-node",
                table.file,
                table.rows[rows],
                lambda i, role=role, words=words, rows=rows: (  # type: ignore[misc]
                    f"{role} {quoted(words[int(rows[i])].as_py())} is not a node of {nodes_file}"
                ),
                (way_out and way_out(words.take(pa.array(rows[:1000])), bool((index < 0).all())))
                or f"add the node to {nodes_file}, or delete the edge",
            )
    known: npt.NDArray[np.bool_] = np.all(index >= 0, axis=0)
    return index[:, known], known


def read_weights(table: Table, name: str, diagnostics: Diagnostics, notes: list[str]) -> Weights:
    """The weights [E] of the rows of an edge table; those that are no weights are complained about."""
    words = table.columns[name]
    found = read_numbers(table, name, notes)
    with np.errstate(invalid="ignore"):
        bad = found.missing | found.wrong | ~(found.values >= 0) | (found.values > LARGEST)
    rows = np.flatnonzero(bad)
    if len(rows):
        diagnostics.add_rows(
            "bad-weight",
            table.file,
            table.rows[rows],
            lambda i: f"the weight is {quoted(words[int(rows[i])].as_py())}, not a number from 0 to 1e30",
            "correct it, or delete the row; --weight names another column",
        )
    return np.where(bad, 0, found.values).astype(np.float32)


def tidy(index: Indices, weight: Weights | None, nodes: int, directed: bool, file: str, notes: list[str]) -> Edges:
    """Edges without loops and repeats, mirrored unless directed.

    Weights of a repeated edge add up; of two opposite edges of an undirected graph the larger counts.
    """
    listed = index.shape[1]
    keep = index[0] != index[1]
    if not keep.all():
        notes.append(f"{file}: {counted(int((~keep).sum()), 'edge')} from a node to itself dropped")
        index, weight = index[:, keep], None if weight is None else weight[keep]
    keys = index[0] * nodes + index[1]
    unique, place = np.unique(keys, return_inverse=True)
    if len(unique) < len(keys):
        how = "merged" if weight is None else "merged, their weights added"
        notes.append(f"{file}: {counted(len(keys) - len(unique), 'repeated edge')} {how}")
    total: npt.NDArray[np.float64] | None = None
    if weight is not None:
        total = np.bincount(place, weight, len(unique)).astype(np.float64)
    if not directed:
        both, larger = mirrored(unique, total, nodes)
        smaller = 0 if total is None or larger is None else int((total < larger[np.searchsorted(both, unique)]).sum())
        if smaller:
            notes.append(
                f"{file}: {counted(smaller, 'edge')} with another weight in the other direction; the larger counts"
            )
        unique, total = both, larger
    number = len(unique) if directed else len(unique) // 2
    kind = "directed" if directed else "undirected"
    notes.append(
        f"{file}: {counted(listed, 'row')} {'makes' if listed == 1 else 'make'} {counted(number, f'{kind} edge')}"
    )
    if total is not None and len(total):
        _tell_size(float(np.median(total)), file, notes)
    ends = np.stack([unique // nodes, unique % nodes])
    joined = np.zeros(nodes, dtype=bool)
    joined[ends] = True
    alone = nodes - int(joined.sum())
    if alone:
        notes.append(f"{file}: {counted(alone, 'node')} {'has' if alone == 1 else 'have'} no edge")
    return Edges(ends, None if total is None else total.astype(np.float32))


def _tell_size(middle: float, file: str, notes: list[str]) -> None:
    """Says where weights are far from 1, with which a graph network hears a node itself."""
    if not 0.01 <= middle <= 100:
        notes.append(
            f"{file}: the middle weight is {middle:.3g}, while a node counts itself with weight 1; "
            "divide the weights by a number of that size unless this is meant"
        )


def likeness(words: Any, ids: Any) -> str | None:
    """A way out if ids of both tables differ in spelling only."""
    for what, spell in (
        ("capital letters", pc.utf8_lower),
        ("leading zeros", lambda column: pc.utf8_ltrim(column, characters="0")),
        ("how accented letters are stored (Unicode NFC or NFD)", lambda column: pc.utf8_normalize(column, form="NFC")),
        ("a trailing '.0'", lambda column: pc.replace_substring_regex(column, r"\.0+$", "")),
    ):
        if pc.all(pc.is_in(spell(words), spell(ids))).as_py():
            return f"ids of the two tables differ in {what}; write them alike in both"
    return None
