"""Decide which column is the id, the label, the split, the source, the target and the weight."""

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.tables.diagnostics import FileDiagnostics, listed
from bangs.graphs.tables.id_index import IdIndex
from bangs.graphs.tables.numbers import numbers
from bangs.graphs.tables.read_options import ReadOptions
from bangs.graphs.tables.table import Table, is_unnamed

GUESSES: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "node", "node_id", "nodeid", "ids", "key", "name", "vertex", "vertex_id", "index"),
    "label": ("label", "labels", "class", "y", "target", "category", "node_label"),
    "split": ("split", "set", "fold", "partition", "subset"),
    "source": ("source", "src", "from", "source_id", "from_id", "u", "head", "node1", "a"),
    "target": ("target", "dst", "to", "target_id", "to_id", "v", "destination", "dest", "tail", "node2", "b"),
    "weight": ("weight", "weights", "w", "edge_weight", "strength"),
}


def node_roles(table: Table, options: ReadOptions, *, needs_label: bool) -> tuple[dict[str, str], list[str]] | None:
    """The columns of the roles id, label and split, given or guessed, and the columns of features; None without an id.

    A column of `ignore` is never guessed. For a fitted model only the id is guessed, so that none of its features is
    taken as a label.
    """
    diagnostics = table.diagnostics
    given = {role: options.role(role, table) for role in ("id", "label", "split")}
    fitted, ignore = options.encoding is not None, options.ignore
    reserved = [] if options.encoding is None else [column.name for column in options.encoding.columns]
    if _lacks_header(table, "id,label,…"):
        return None
    id_column = _pick(table, "id", given["id"], [*reserved, *ignore])
    if id_column is None and given["id"] is None:
        id_column = _first_unique(table, ignore)
    if id_column is None:
        return None
    roles = {"id": id_column}
    for role in ("label", "split"):
        if given[role] is not None or not fitted:
            column = _pick(table, role, given[role], [*roles.values(), *reserved, *ignore])
            if column is not None:
                roles[role] = column
    if "label" not in roles and needs_label and given["label"] is None:
        diagnostics.add(
            "no-label-column",
            f"no column looks like a label (label, class, y …); the table has {listed(table.names)}",
            "name it with --label COLUMN, or add one, blank where the label is unknown; "
            "labels in another file: --labels reads the labels.csv of `bangs label`, and no other",
        )
    others = [name for name in table.names if name not in {*roles.values(), *ignore}]
    features = [name for name in others if not is_unnamed(name)]
    if len(features) < len(others):
        diagnostics.note(f"{listed([name for name in others if is_unnamed(name)])} has no name; left out")
    guessed = [f"{role} from {name!r}" for role, name in roles.items() if given[role] is None]
    if guessed:
        diagnostics.note(", ".join(guessed))
    for name in features:
        if _spelling(name) in GUESSES["label"] and not fitted:
            diagnostics.note(
                f"column {name!r} has the name of a label and is taken as a feature; "
                f"leave it out with --ignore {name} if it holds the answer"
            )
    return roles, features


def edge_roles(table: Table, options: ReadOptions, ids: IdIndex | None) -> dict[str, str] | None:
    """The columns of the roles source, target and perhaps weight, given or guessed; None if an end has no column.

    A weight in `ignore` is never guessed.
    """
    diagnostics = table.diagnostics
    if _lacks_header(table, "source,target"):
        return None
    given = {role: options.role(role, table) for role in ("source", "target", "weight")}
    source = _pick(table, "source", given["source"], [])
    target = _pick(table, "target", given["target"], [source])
    left_out = options.ignore if given["weight"] is None else ()
    weight = _pick(table, "weight", given["weight"], [source, target, *left_out])
    missing = [role for role, name in (("source", source), ("target", target)) if name is None]
    spare = [name for name in table.names if name not in (source, target, weight) and not is_unnamed(name)]
    if any(given[role] is not None for role in missing):
        return None
    if missing and ids is not None and (ids(pa.array(table.names, pa.string())) >= 0).any():
        diagnostics.add(
            "no-header",
            f"its first row, {listed(table.names)}, names nodes instead of columns",
            "put a first row above it: source,target",
        )
        return None
    if len(missing) > len(spare):
        diagnostics.add(
            "no-end-column",
            f"no column looks like the {' or the '.join(missing)} of an edge; the table has {listed(table.names)}",
            "an edge table needs two columns; name them with --source COLUMN and --target COLUMN",
        )
        return None
    ends = {"source": source or spare.pop(0), "target": target or spare.pop(0)}
    guessed = [f"{role} from {name!r}" for role, name in (*ends.items(), ("weight", weight)) if name]
    diagnostics.note(", ".join(guessed) + (f"; {listed(spare)} not used" if spare else ""))
    if_absent = f"but no column of {listed(table.names)} looks like one", "add it or name it with --weight COLUMN"
    weight = weight_as_fitted(weight, options, if_absent, diagnostics)
    return ends if weight is None else {**ends, "weight": weight}


def weight_as_fitted(
    weight: str | None, options: ReadOptions, if_absent: tuple[str, str], diagnostics: FileDiagnostics
) -> str | None:
    """The column of weights; None for a fitted model that was fitted without weights.

    `if_absent` is the end of the message and the remedy for a model that needs weights if there are none.
    """
    if options.encoding is None:
        return weight
    if weight is not None and not options.encoding.weighted:
        diagnostics.note(f"the model was fitted without edge weights; {weight!r} not used")
        return None
    if weight is None and options.encoding.weighted:
        message, remedy = (
            f"the model was fitted with edge weights, {if_absent[0]}",
            f"{if_absent[1]}, or fit the model again",
        )
        diagnostics.add("column-missing", message, remedy)
    return weight


def check_names(
    option: str, names: Collection[str], known: list[str], diagnostics: FileDiagnostics, present: str | None = None
) -> bool:
    """Whether all columns named by an option exist; `present` describes the columns, if not those of one table."""
    present = present or f"the table has {listed(known)}"
    absent = [name for name in names if name not in known]
    for name in absent:
        matches = get_close_matches(name, known, n=1, cutoff=0.6)
        diagnostics.add(
            "no-such-column",
            f"--{option} names column {name!r}, which is not there; {present}",
            f"did you mean {matches[0]!r}?" if matches else "name one of these",
        )
    return not absent


def _pick(table: Table, role: str, given: str | None, taken: Collection[str | None]) -> str | None:
    """The column of a role: the given one, or the first guess that exists and is not taken."""
    if given is not None:
        if given in taken:
            table.diagnostics.add(
                "column-twice",
                f"column {given!r} cannot be the {role} and something else",
                "give every role its own column",
            )
            return None
        return given if check_names(role, [given], table.names, table.diagnostics) else None
    return guess(role, table.names, taken)


def guess(role: str, names: Sequence[str], taken: Collection[str | None]) -> str | None:
    """The column whose name suggests a role and that is not taken, the likeliest first."""
    by_spelling = {_spelling(name): name for name in reversed(names)}
    columns = (by_spelling.get(spelling) for spelling in GUESSES[role])
    return next((name for name in columns if name is not None and name not in taken), None)


def _first_unique(table: Table, ignore: Collection[str]) -> str | None:
    first = next((name for name in table.names if name not in ignore), None)
    if first is not None and len(pc.unique(table.columns[first])) == len(table):
        table.diagnostics.note(f"no column is called id; the first one, {first!r}, differs in every row")
        return first
    table.diagnostics.add(
        "no-id-column",
        f"no column looks like an id (id, node, node_id …); the table has {listed(table.names)}",
        "name it with --id COLUMN, or add one: the names by which the edge table knows the nodes",
    )
    return None


def _lacks_header(table: Table, example: str) -> bool:
    """Whether the header holds numbers, which means that it is missing."""
    header = pa.array(table.names, pa.string())
    if len(header) == 0 or np.isnan(numbers(header).values).any():
        return False
    table.diagnostics.add(
        "no-header",
        f"its first row, {listed(table.names)}, holds numbers instead of names",
        f"put a first row with names above it: {example}",
    )
    return True


def _spelling(name: str) -> str:
    return "_".join(name.lower().replace("-", " ").replace("_", " ").split())
