"""Outcome: the figures of a fit, each with the number of nodes it was measured on."""

from typing import Any

import torch
from torch import Tensor

from bangs.core import metrics
from bangs.core.types import Prediction
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.runs.history import is_soft, seconds_by_stage


def outcome(model: SelfTrainingClassifier, truth: Tensor | None, seconds: float) -> dict[str, Any]:
    """The JSON-able result of a fit; truth long [N] holds the labels of test nodes, -1 elsewhere."""
    snapshot = model.snapshot_
    before, after = Prediction(snapshot.raw[None]), Prediction(snapshot.calibrated[None])
    held = snapshot.held[None]
    stages, soft = seconds_by_stage(snapshot.rows), any(map(is_soft, snapshot.rows))
    adopted = int((snapshot.adopted_round > 0).sum())
    return {
        "classes": [str(name) for name in model.classes_],
        "nodes": snapshot.nodes,
        "given": int((snapshot.given >= 0).sum()),
        "held": int((snapshot.held >= 0).sum()),
        "adopted": adopted,
        "adopted_in_all": adopted if soft else int(snapshot.candidate_log.taken.sum()),
        "soft": soft,
        "rounds": model.n_iter_,
        "chosen": snapshot.chosen,
        "ended": model.termination_condition_,
        "validation": {
            "accuracy": float(metrics.accuracy(before, held)),
            "raw": float((snapshot.said[0] == snapshot.held)[snapshot.held >= 0].double().mean()),
            "error_before": float(metrics.calibration_error(before, held, 10)),
            "error_after": float(metrics.calibration_error(after, held, 10)),
        },
        "test": None if truth is None or not (truth >= 0).any() else _test(model, truth),
        "seconds": {**{stage: round(value, 3) for stage, value in stages.items()}, "total": round(seconds, 3)},
    }


def _test(model: SelfTrainingClassifier, truth: Tensor) -> dict[str, Any]:
    snapshot = model.snapshot_
    asked = truth >= 0
    after = Prediction(snapshot.calibrated[None])
    adopted = asked & (snapshot.adopted_round > 0)
    return {
        "nodes": int(asked.sum()),
        "accuracy": float(metrics.accuracy(after, truth[None])),
        "raw": float((snapshot.said[0] == truth)[asked].double().mean()),
        "error": float(metrics.calibration_error(after, truth[None], 10)),
        "adopted": int(adopted.sum()),
        "adopted_right": int((adopted & (snapshot.target == truth)).sum()),
    }


def exam(labels: Tensor, classes: list[str], model: SelfTrainingClassifier, test: Tensor) -> Tensor:
    """The class numbers of test nodes long [N], -1 elsewhere; C where the model never learned the class: always wrong.

    `labels` long [N] number the names in `classes`; `test` bool [N].
    """
    own = [str(name) for name in model.classes_]
    place = torch.tensor([own.index(name) if name in own else len(own) for name in classes] or [-1])
    return torch.where(test & (labels >= 0), place[labels.clamp_min(0)], -1)
