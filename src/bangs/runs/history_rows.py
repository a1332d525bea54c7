"""History rows: one JSON-able dict per round of a run."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from bangs.runs.scored_nodes import ScoredNodes

if TYPE_CHECKING:
    from bangs.selftraining.loop import State

STAGES = ("calibrate", "select", "train")  # of a round, in this order


def row(state: "State") -> dict[str, Any]:
    """The facts of a round; lists over runs are in the order of the seeds."""
    classes = state.prediction.logits.shape[2]
    known = state.labels.known
    adoption, runs = state.adoption, range(len(state.running))
    counts = torch.stack([(known & (state.labels.target == c)).sum(1) for c in range(classes)], dim=1)
    return {
        "round": state.index,
        "validation": state.validation.tolist(),
        "epochs": state.student.epochs.tolist(),
        "took_part": state.took_part.tolist(),
        "labelled": known.sum(1).tolist(),
        "class_counts": counts.tolist(),
        "adopted": adoption.chosen.sum(1).tolist()  # only their number, as every round makes all soft labels anew
        if adoption is not None and adoption.soft
        else [ScoredNodes.of(state, run).adopted(state.index) for run in runs],
        "evaluations": 0 if adoption is None else adoption.ranking.evaluations,
        "seconds": {stage: round(value, 6) for stage, value in state.seconds.items()},
    }


def is_row(value: Any) -> bool:
    """Whether a value from a file has the keys of a row that every reader needs: round, took_part and validation."""
    if not isinstance(value, dict) or type(value.get("round")) is not int:
        return False
    columns = [(value.get("took_part"), bool), (value.get("validation"), float)]
    return all(isinstance(items, list) and items and {*map(type, items)} == {kind} for items, kind in columns)


def is_soft(row: Mapping[str, Any]) -> bool:
    """Whether a row is of a round of soft labels; such a row has only their number."""
    adopted = row.get("adopted")
    return isinstance(adopted, list) and bool(adopted) and all(type(entry) is int for entry in adopted)


def seconds_by_stage(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The seconds of all rows by stage."""
    return {stage: sum(row["seconds"].get(stage, 0.0) for row in rows) for stage in STAGES}


def without_adopted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of one run without their adopted nodes, which are among its scored nodes; see `with_adopted`."""
    return [row if is_soft(row) else {**row, "adopted": None} for row in rows]


def with_adopted(rows: list[dict[str, Any]], log: ScoredNodes) -> list[dict[str, Any]]:
    """The rows of `without_adopted` with their adopted nodes; a row of soft labels has only their number."""
    return [row if is_soft(row) else {**row, "adopted": [log.adopted(row["round"])]} for row in rows]
