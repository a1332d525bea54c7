"""History rows: the one record of a self-training run, plain enough for JSON."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from bangs.loop import State


@dataclass
class History:
    """Observes a run; one row a round."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, state: State) -> None:
        self.rows.append(row(state))

    def __len__(self) -> int:
        return len(self.rows)


def row(state: State) -> dict[str, Any]:
    """The facts of a round; lists over runs come in the order of the seeds."""
    classes = state.prediction.logits.shape[2]
    known = state.labels.known
    counts = torch.stack([(known & (state.labels.target == c)).sum(1) for c in range(classes)], dim=1)
    return {
        "round": state.index,
        "validation": state.validation.tolist(),
        "epochs": state.student.epochs.tolist(),
        "took_part": state.took_part.tolist(),
        "labelled": known.sum(1).tolist(),
        "class_counts": counts.tolist(),
        "adopted": adopted(state),
        "evaluations": 0 if state.adoption is None else state.adoption.ranking.evaluations,
        "seconds": {stage: round(value, 6) for stage, value in state.seconds.items()},
    }


def adopted(state: State) -> list[dict[str, list[Any]]]:
    """The nodes a round adopted, run by run, with label, confidence before and after calibration, and value."""
    if state.adoption is None:
        return [_columns() for _ in range(len(state.running))]
    facts = state.adoption
    out = []
    for run, chosen in enumerate(facts.chosen):
        nodes = chosen.nonzero().squeeze(1)
        order = nodes[facts.ranking.score[run, nodes].argsort(descending=True, stable=True)]
        stderr = facts.ranking.stderr
        out.append(
            _columns(
                order,
                facts.label[run, order],
                facts.raw_confidence[run, order],
                facts.confidence[run, order],
                facts.ranking.score[run, order],
                None if stderr is None else stderr[run, order],
            )
        )
    return out


def _columns(
    node: Tensor | None = None,
    label: Tensor | None = None,
    raw_confidence: Tensor | None = None,
    confidence: Tensor | None = None,
    score: Tensor | None = None,
    stderr: Tensor | None = None,
) -> dict[str, list[Any]]:
    columns = {
        "node": node,
        "label": label,
        "raw_confidence": raw_confidence,
        "confidence": confidence,
        "score": score,
        "stderr": stderr,
    }
    return {name: [] if column is None else column.tolist() for name, column in columns.items()}
