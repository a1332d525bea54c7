"""Cards: what the page shows of every node in the queue, made once after a fit."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.estimator.reasons import influences, neighbours
from bangs.estimator.saved_run import SavedRun
from bangs.graphs.tables.diagnostics import Diagnostics
from bangs.graphs.tables.read_options import ReadOptions
from bangs.graphs.tables.table_reader import open_table
from bangs.utils.files import parse, read_regular_file, write_atomic

QUEUE = "queue.json"
PROGRESS = "progress.jsonl"
NEIGHBOURS, INFLUENCES = 10, 5
CELL, COLUMNS = 300, 60  # letters of a cell and columns of a row that are shown
LARGEST = 1 << 28


def make_cards(saved: SavedRun, count: int, strategy: str | None, exclude: Tensor) -> dict[str, Any]:
    """The queue as JSON holds it: a card for every suggested node, but for the cells of its row, and what was skipped.

    Nodes in `exclude` bool [N] are left out.
    """
    found = saved.suggest(count, strategy, exclude=exclude)
    snapshot, names = saved.snapshot, saved.names
    nodes = [own.row for own in found]
    classes = [str(name) for name in saved.classes]
    around = neighbours(snapshot, nodes, NEIGHBOURS)
    reach = influences(snapshot, nodes, INFLUENCES)
    best = snapshot.calibrated[torch.tensor(nodes, dtype=torch.long)].softmax(-1).sort(descending=True)
    ranked = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    cards = []
    for own, (near, degree), (strongest, _, _), (order, shares) in zip(found, around, reach, ranked, strict=True):
        cards.append(
            {
                **{name: value for name, value in asdict(own).items() if name not in ("label", "second", "score")},
                "probs": [[classes[c], round(share, 4)] for c, share in zip(order, shares, strict=True)],
                "degree": degree,
                "neighbours": [[str(names[one.node]), classes[one.label], one.origin] for one in near],
                "influences": [[str(names[one.node]), classes[one.label], round(one.share, 4)] for one in strongest],
            }
        )
    return {"strategy": found.strategy, "classes": classes, "cards": cards, "notes": found.notes}


def table_rows(folder: Path, id: str | None, wanted: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """The cells of some nodes' rows, by name; empty where the graph has no node table or no column of ids."""
    if not folder.is_dir() or id is None:
        return {}
    names, out = set(wanted), {}
    reader = open_table(folder, "nodes", ReadOptions(), Diagnostics(str(folder)), hold=False)
    for table in reader or ():
        if id not in table.columns:
            return {}
        ids = table.columns[id].to_pylist()
        for place in [place for place, name in enumerate(ids) if name in names]:
            cells = [(name, str(column[place])) for name, column in table.columns.items() if name != id]
            out[ids[place]] = [(name, text[:CELL]) for name, text in cells[:COLUMNS] if text]
    return out


def write_queue(folder: Path, queue: dict[str, Any], row: dict[str, Any]) -> None:
    """Put a new queue in place, and a row about the fit behind the earlier ones."""
    write_atomic(folder / PROGRESS, "".join(json.dumps(own) + "\n" for own in [*read_progress(folder), row]))
    write_atomic(folder / QUEUE, json.dumps(queue))


def read_queue(folder: Path) -> dict[str, Any] | None:
    """The queue of a folder; None where there is none yet."""
    path = folder / QUEUE
    try:
        found = parse(read_regular_file(path, LARGEST), f"'{path}'")
    except FileNotFoundError:
        return None
    if not isinstance(found, dict) or not {"classes", "cards", "notes", "strategy"} <= found.keys():
        raise InvalidInput(f"'{path}' is not as `bangs label` writes it; move it away")
    return found


def read_progress(folder: Path) -> list[dict[str, Any]]:
    """A row for every fit: labels, accuracy on labels that were not learned, and its interval."""
    path = folder / PROGRESS
    try:
        lines = read_regular_file(path, LARGEST).splitlines()
    except FileNotFoundError:
        return []
    rows = [parse(line, f"'{path}'") for line in lines]
    if not all(isinstance(row, dict) and isinstance(row.get("answers"), int) for row in rows):
        raise InvalidInput(f"'{path}' is not as `bangs label` writes it; move it away")
    return rows
