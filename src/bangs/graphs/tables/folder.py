"""Folder: an edge table and a node table as the parts of a graph."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
import torch

from bangs.core.types import Split
from bangs.graphs.tables.delimited import read_delimited
from bangs.graphs.tables.diagnostics import Diagnostics, quoted
from bangs.graphs.tables.edges import Edges, likeness, look_up, read_weights, tidy
from bangs.graphs.tables.encoding import Categorical, Encoding, Numeric
from bangs.graphs.tables.feature_array import read_beside
from bangs.graphs.tables.features import Fitting, check_columns, encode, tell_kinds
from bangs.graphs.tables.labels import check_enough, check_unknown, read_labels, read_split
from bangs.graphs.tables.options import GraphParts, ReadOptions
from bangs.graphs.tables.parquet import read_parquet
from bangs.graphs.tables.roles import NodeRoles, check_ignored, check_names, edge_roles, node_roles
from bangs.graphs.tables.table import Table, equals, find, places_in, report_no_rows


def from_folder(folder: Path, asked: ReadOptions, diagnostics: Diagnostics, notes: list[str]) -> GraphParts | None:
    """The parts of the graph in a folder, or None after complaining of everything that is wrong in any file."""
    nodes = _table(folder, "nodes", asked, diagnostics, notes)
    edges = _table(folder, "edges", asked, diagnostics, notes)
    check_ignored(nodes, edges, asked.ignore, diagnostics)
    array = read_beside(folder, None if nodes is None else len(nodes), diagnostics, notes, asked.limits)
    roles = None if nodes is None else _roles(nodes, asked, diagnostics, notes)
    ids = None if nodes is None or roles is None else _ids(nodes, roles.id, diagnostics)
    wired = None if edges is None else _edges(edges, nodes, roles, ids, asked, diagnostics, notes)
    if nodes is None or roles is None or ids is None:
        return None
    y, classes, split = _labels(nodes, roles, asked, diagnostics, notes)
    columns, left_out, dense = _columns(nodes, roles, asked, diagnostics, notes)
    if wired is None or diagnostics:
        return None
    names = {"id": roles.id, "label": roles.label, "split": roles.split, **wired[1]}
    return GraphParts(
        file=nodes.file,
        ids=np.array(ids.to_pylist(), dtype=object),
        edges=wired[0],
        y=y,
        classes=classes,
        split=split,
        dense=dense,
        array=array,
        columns=columns,
        left_out=left_out,
        roles=tuple((role, name) for role, name in names.items() if name is not None),
    )


def _table(folder: Path, stem: str, asked: ReadOptions, diagnostics: Diagnostics, notes: list[str]) -> Table | None:
    """The table of that name, if it can be read and has rows."""
    path = find(folder, stem, diagnostics)
    if path is None:
        return None
    try:
        size, most = path.stat().st_size, asked.limits.bytes
        if size > most:
            diagnostics.add(
                "too-large", path.name, f"it has {size:,} bytes, {most:,} are allowed", "take a part of the graph"
            )
            return None
        if path.suffix == ".parquet":
            table = read_parquet(path, asked.unread, diagnostics, asked.limits)
        else:
            table = read_delimited(path, diagnostics, notes, asked.limits)
    except OSError as error:
        diagnostics.add(
            "unreadable", path.name, f"it cannot be opened: {error.strerror or error}", "look at its permissions"
        )
        return None
    if table is None:
        return None
    allowed = asked.limits.nodes if stem == "nodes" else asked.limits.edges
    if len(table) > allowed:
        diagnostics.add(
            "too-large", path.name, f"it has {len(table):,} rows, {allowed:,} are allowed", "take a part of the graph"
        )
        return None
    if len(table) == 0:
        report_no_rows(stem, path.name, diagnostics)
        return None
    return table


def _roles(table: Table, asked: ReadOptions, diagnostics: Diagnostics, notes: list[str]) -> NodeRoles | None:
    given = {role: asked.role(role, table) for role in ("id", "label", "split")}
    if asked.encoding is None:
        return node_roles(table, given, ("id", "label", "split"), (), asked.ignore, diagnostics, notes)
    # what the model takes for a feature must not be guessed to be a label
    features = [column.name for column in asked.encoding.columns]
    return node_roles(table, given, ("id",), features, asked.ignore, diagnostics, notes)


def _ids(table: Table, name: str, diagnostics: Diagnostics) -> Any:
    """The ids as one pyarrow array [N]; blank and repeated ones are complained about."""
    ids = table.columns[name].combine_chunks()
    blank = equals(ids, "")
    if blank.any():
        diagnostics.add_rows(
            "blank-id",
            table.file,
            table.rows[blank],
            lambda i: f"the id (column {name!r}) is blank",
            "give every node an id, or delete the row",
        )
    first = places_in(ids, ids)
    again = np.flatnonzero((first != np.arange(len(ids))) & ~blank)
    if len(again):
        diagnostics.add_rows(
            "duplicate-id",
            table.file,
            table.rows[again],
            lambda i: f"id {quoted(ids[int(again[i])].as_py())} stands in row {table.rows[first[again[i]]]:,} already",
            "give every node one row and an id of its own; --id names another column",
        )
    return ids


def _edges(
    table: Table,
    nodes: Table | None,
    known_as: NodeRoles | None,
    ids: Any,
    asked: ReadOptions,
    diagnostics: Diagnostics,
    notes: list[str],
) -> tuple[Edges, dict[str, str | None]] | None:
    """The edges and the names of the columns they came from."""
    roles = edge_roles(table, asked, ids, diagnostics, notes)
    if roles is None:
        return None
    weights = None if roles.weight is None else read_weights(table, roles.weight, diagnostics, notes)
    if nodes is None or known_as is None or ids is None:
        return None
    way_out = partial(_way_out, ids, nodes, known_as.id, asked)
    index, known = look_up(table, roles.source, roles.target, ids, nodes.file, diagnostics, way_out=way_out)
    edges = tidy(index, None if weights is None else weights[known], len(ids), asked.directed, table.file, notes)
    if known.all() and edges.index.shape[1] == 0:
        diagnostics.add(
            "only-loops", table.file, "every edge leads from a node to itself", "a graph needs edges between nodes"
        )
    return edges, {"source": roles.source, "target": roles.target, "weight": roles.weight}


def _way_out(ids: Any, nodes: Table, identity: str, asked: ReadOptions, words: Any, all_unknown: bool) -> str | None:
    """What to do about ends of edges that are no ids: they are spelled otherwise, or stand in another column."""
    alike = likeness(words, ids)
    if alike is not None:
        return alike
    if not all_unknown:
        fitted = f"add the node to {nodes.file}, which must hold those of the fitted graph too, or delete the edge"
        return None if asked.encoding is None else fitted
    for name, column in nodes.columns.items():
        if pc.all(pc.is_in(words, column.combine_chunks())).as_py():
            return f"ids were looked for in column {identity!r}; these stand in another, so say --id {name!r}"
    return f"ids were looked for in column {identity!r}; --id names another"


def _labels(
    table: Table, roles: NodeRoles, asked: ReadOptions, diagnostics: Diagnostics, notes: list[str]
) -> tuple[npt.NDArray[np.int64], list[str], Split | None]:
    classes = None if asked.encoding is None else list(asked.encoding.classes)
    if roles.label is None:
        return np.full(len(table), -1), classes or [], None
    words = table.columns[roles.label]
    check_unknown(words, asked.unknown, table.file, diagnostics)
    y, names = read_labels(words, table.rows, table.file, classes, asked.unknown, diagnostics, notes)
    masks = None
    if roles.split is not None:
        masks = read_split(table.columns[roles.split], table.rows, table.file, y, diagnostics, notes)
    if asked.encoding is None and (masks is None or not masks[1].any()):
        check_enough(y, y >= 0 if masks is None else masks[0], names, table.rows, table.file, diagnostics)
    if masks is None:
        return y, names, None
    if asked.encoding is None:
        unlearned = [name for number, name in enumerate(names) if not (masks[0] & (y == number)).any()]
        notes += [f"{table.file}: no row with label {name!r} says train, so it cannot be learned" for name in unlearned]
    return y, names, Split(*(torch.from_numpy(mask.copy())[None] for mask in masks))


def _columns(
    table: Table, roles: NodeRoles, asked: ReadOptions, diagnostics: Diagnostics, notes: list[str]
) -> tuple[tuple[Numeric | Categorical, ...], tuple[str, ...], npt.NDArray[np.float32]]:
    """The encoding of the feature columns, the columns left out, and the features [N, F]."""
    if asked.encoding is not None:
        spare = [name for name in (roles.id, roles.label, roles.split, *asked.ignore) if name is not None]
        check_columns(table, asked.encoding, spare, diagnostics, notes)
        dense = encode(table, asked.encoding, {}, diagnostics, notes, asked.limits)
        return asked.encoding.columns, asked.encoding.left_out, dense
    check_names(table, "categorical", asked.categorical, diagnostics)
    fitting = Fitting(asked.categorical, asked.fill)
    kept, left_out, parsed = fitting(table, roles.features, diagnostics, notes)
    columns = tuple(kept)
    tell_kinds(table.file, columns, notes)
    dense = encode(table, Encoding(columns, fill=asked.fill), parsed, diagnostics, notes, asked.limits)
    return columns, (*left_out, *asked.ignore), dense
