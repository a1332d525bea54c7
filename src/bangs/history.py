"""History rows: the one record of a self-training run, plain enough for JSON."""

from typing import Any

import torch

from bangs.loop import State

_COLUMNS = ("node", "label", "raw_confidence", "confidence", "score", "stderr")  # of the nodes a round adopted


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
        "adopted": _adopted(state),
        "evaluations": 0 if state.adoption is None else state.adoption.ranking.evaluations,
        "seconds": {stage: round(value, 6) for stage, value in state.seconds.items()},
    }


def _adopted(state: State) -> list[dict[str, list[Any]]]:
    """The nodes a round adopted, run by run, best first: label, confidence before and after calibration, and value."""
    facts = state.adoption
    if facts is None:
        return [{name: [] for name in _COLUMNS} for _ in state.running]
    score, stderr = facts.ranking.score, facts.ranking.stderr
    out = []
    for run, chosen in enumerate(facts.chosen):
        nodes = chosen.nonzero().squeeze(1)
        nodes = nodes[score[run, nodes].argsort(descending=True, stable=True)]
        told = (facts.label, facts.raw_confidence, facts.confidence, score, stderr)
        columns = [nodes.tolist(), *([] if every is None else every[run, nodes].tolist() for every in told)]
        out.append(dict(zip(_COLUMNS, columns, strict=True)))
    return out
