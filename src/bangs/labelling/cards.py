"""Cards: what the page shows of each node in the queue; they are made after every fit."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.estimator.explanation_facts import influences, neighbours
from bangs.estimator.model_file import SavedRun
from bangs.graphs.tables.diagnostics import Diagnostics
from bangs.graphs.tables.read_options import ReadOptions
from bangs.graphs.tables.table_reader import open_table
from bangs.labelling.answers import read_file
from bangs.utils.files import parse, write_atomic

QUEUE = "queue.json"
PROGRESS = "progress.jsonl"
MAX_NEIGHBOURS, MAX_INFLUENCES = 10, 5
MAX_CELL_LENGTH, MAX_COLUMNS = 300, 60  # of the table row that is shown


def make_cards(saved: SavedRun, count: int, strategy: str | None, exclude: Tensor) -> dict[str, Any]:
    """The queue as a JSON-able dict: a card for every suggested node, still without the cells of its table row.

    Nodes in `exclude` bool [N] are left out.
    """
    suggestions = saved.suggest(count, strategy, exclude=exclude)
    snapshot, names = saved.snapshot, saved.names
    nodes = [suggestion.row for suggestion in suggestions]
    classes = [str(name) for name in saved.classes]
    around = neighbours(snapshot, nodes, MAX_NEIGHBOURS)
    reach = influences(snapshot, nodes, MAX_INFLUENCES)
    best = snapshot.calibrated[torch.tensor(nodes, dtype=torch.long)].softmax(-1).sort(descending=True)
    ranked = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    cards = []
    for suggestion, (nearest, degree), (strongest, _, _), (order, shares) in zip(
        suggestions, around, reach, ranked, strict=True
    ):
        card = asdict(suggestion)
        for key in ("label", "second", "score"):
            del card[key]
        card["probs"] = [[classes[c], round(share, 4)] for c, share in zip(order, shares, strict=True)]
        card["degree"] = degree
        card["neighbours"] = [[str(names[one.node]), classes[one.label], one.origin] for one in nearest]
        card["influences"] = [[str(names[one.node]), classes[one.label], round(one.share, 4)] for one in strongest]
        cards.append(card)
    return {"strategy": suggestions.strategy, "classes": classes, "cards": cards, "notes": suggestions.notes}


def table_rows(folder: Path, id: str | None, wanted: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """The cells (column, text) of some nodes by node name; empty if the graph has no node table or no id column."""
    if not folder.is_dir() or id is None:
        return {}
    names, cells_by_node = set(wanted), {}
    reader = open_table(folder, "nodes", ReadOptions(), Diagnostics(str(folder)), hold=False)
    for table in reader or ():
        if id not in table.columns:
            return {}
        ids = table.columns[id].to_pylist()
        for row in [row for row, name in enumerate(ids) if name in names]:
            cells = [(name, str(column[row])) for name, column in table.columns.items() if name != id]
            cells_by_node[ids[row]] = [(name, text[:MAX_CELL_LENGTH]) for name, text in cells[:MAX_COLUMNS] if text]
    return cells_by_node


def write_queue(folder: Path, queue: dict[str, Any], row: dict[str, Any]) -> None:
    """Replace the queue, and append a row about the fit to the progress."""
    write_atomic(folder / PROGRESS, "".join(json.dumps(line) + "\n" for line in [*read_progress(folder), row]))
    write_atomic(folder / QUEUE, json.dumps(queue))


def read_queue(folder: Path) -> dict[str, Any] | None:
    """The queue of a folder; None if there is none yet."""
    path = folder / QUEUE
    body = read_file(path)
    if body is None:
        return None
    queue = parse(body, f"'{path}'")
    if not isinstance(queue, dict) or not {"classes", "cards", "notes", "strategy"} <= queue.keys():
        raise InvalidInput(f"'{path}' is not as `bangs label` writes it; move it away")
    return queue


def read_progress(folder: Path) -> list[dict[str, Any]]:
    """A row per fit: the number of labels, the accuracy on held-out labels, and its interval."""
    path = folder / PROGRESS
    rows = [parse(line, f"'{path}'") for line in (read_file(path) or b"").splitlines()]
    if not all(isinstance(row, dict) and isinstance(row.get("answers"), int) for row in rows):
        raise InvalidInput(f"'{path}' is not as `bangs label` writes it; move it away")
    return rows
