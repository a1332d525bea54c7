"""The result of a fit, as in result.json; every figure has the number of nodes it was measured on."""

from typing import Any

import torch
from torch import Tensor

from bangs.core import metrics
from bangs.core.intervals import wilson
from bangs.core.types import Prediction
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.runs.history_rows import is_soft, seconds_by_stage
from bangs.runs.snapshot import Snapshot


def fit_result(model: SelfTrainingClassifier, truth: Tensor | None, seconds: float) -> dict[str, Any]:
    """The JSON-able result of a fit; truth long [N] holds the labels of test nodes, -1 elsewhere."""
    snapshot = model.snapshot_
    stages, soft = seconds_by_stage(snapshot.rows), any(map(is_soft, snapshot.rows))
    adopted = int((snapshot.adopted_round > 0).sum())
    counts = snapshot.known[snapshot.known >= 0].bincount(minlength=1)
    judged, share = _judged(snapshot), float(counts.max() / counts.sum())  # of the largest class among all labels
    return {
        "classes": [str(name) for name in model.classes_],
        "nodes": snapshot.nodes,
        "given": int((snapshot.given >= 0).sum()),
        "held": int((snapshot.held >= 0).sum()),
        "folds": snapshot.folds,
        "adopted": adopted,
        "adopted_in_all": adopted if soft else int(snapshot.scored_nodes.taken.sum()),
        "soft": soft,
        "rounds": model.n_iter_,
        "chosen": snapshot.chosen,
        "ended": model.termination_condition_,
        "validation": judged,
        "largest_share": share,
        "no_better_than_chance": bool(judged["nodes"]) and judged["interval"][0] <= share,
        "leaderboard": model.leaderboard_,
        "notes": model.notes_,
        "test": None if truth is None or not (truth >= 0).any() else _test(model, truth),
        "seconds": {**{stage: round(value, 3) for stage, value in stages.items()}, "total": round(seconds, 3)},
    }


def _judged(snapshot: Snapshot) -> dict[str, Any]:
    """Figures on held-out labels, with 95 % intervals; None if there are no such labels."""
    before, after, label = snapshot.judged
    nodes = len(label)
    if not nodes:
        names = ("accuracy", "interval", "raw", "error_before", "error_after", "error_interval")
        return {"nodes": 0, **dict.fromkeys(names)}
    accuracy = float((before.argmax(-1) == label).double().mean())
    prediction = Prediction(after[None])
    return {
        "nodes": nodes,
        "accuracy": accuracy,
        "interval": list(wilson(accuracy, nodes)),
        "raw": float(snapshot.rows[0]["validation"][0]),
        "error_before": float(metrics.calibration_error(Prediction(before[None]), label[None], 10)),
        "error_after": float(metrics.calibration_error(prediction, label[None], 10)),
        "error_interval": _resampled_error(prediction, label),
    }


def _resampled_error(prediction: Prediction, label: Tensor, draws: int = 200) -> list[float]:
    """A 95 % bootstrap interval of the calibration error."""
    nodes = torch.randint(len(label), (draws, len(label)), generator=torch.Generator().manual_seed(0))
    errors = metrics.calibration_error(Prediction(prediction.logits[0][nodes]), label[nodes], 10)
    return torch.quantile(errors, torch.tensor([0.025, 0.975], dtype=errors.dtype)).tolist()


def _test(model: SelfTrainingClassifier, truth: Tensor) -> dict[str, Any]:
    snapshot = model.snapshot_
    is_test = truth >= 0
    after = Prediction(snapshot.calibrated[None])
    adopted = is_test & (snapshot.adopted_round > 0)
    return {
        "nodes": int(is_test.sum()),
        "accuracy": float(metrics.accuracy(after, truth[None])),
        "raw": float((snapshot.round_labels[0] == truth)[is_test].double().mean()),
        "error": float(metrics.calibration_error(after, truth[None], 10)),
        "adopted": int(adopted.sum()),
        "adopted_right": int((adopted & (snapshot.target == truth)).sum()),
    }


def labels_of_test_nodes(labels: Tensor, classes: list[str], model: SelfTrainingClassifier, test: Tensor) -> Tensor:
    """The class numbers of test nodes long [N], -1 elsewhere; a class that the model has not learned has number C.

    `labels` long [N] number the names in `classes`; `test` bool [N].
    """
    known = [str(name) for name in model.classes_]
    class_index = torch.tensor([known.index(name) if name in known else len(known) for name in classes] or [-1])
    return torch.where(test & (labels >= 0), class_index[labels.clamp_min(0)], -1)
