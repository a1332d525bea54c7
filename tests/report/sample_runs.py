"""Small runs for pages: a fit with odd names, one of soft labels, one that collapsed, an experiment of two seeds."""

from dataclasses import replace
from typing import Any

import torch

from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.report.fit_result import fit_result
from bangs.report.run_data import RunData
from bangs.runs.snapshot import Snapshot
from tests.conftest import two_rings
from tests.runs.test_snapshot_soft import with_beliefs

SCRIPT = "<script>alert(1)</script>"


def fitted(nodes: int = 60, rounds: int = 2) -> SelfTrainingClassifier:
    """A classifier on two rings whose first node and class have hostile names."""
    data = two_rings(nodes, 3)
    data.y = torch.where(torch.arange(nodes) < 24, data.y, -1)
    model = SelfTrainingClassifier(method="hard", validation=0.25, rounds=rounds, epochs=20).fit(data)
    model.node_names_[0] = SCRIPT
    model.node_names_[2] = "\u0645\u0631\u062d\u0628\u0627 7"  # written from right to left
    model.node_names_[1] = "'; DROP \\ \u2028 </script>"
    return model


def soft_run() -> RunData:
    """A fit whose chosen round learned from soft labels."""
    snapshot, _ = with_beliefs()
    return fit_run(snapshot=snapshot)


def collapsed_run() -> RunData:
    """A fit that predicts the same class for every node."""
    run_data = fit_run()
    assert run_data.snapshot is not None
    same = torch.zeros_like(run_data.snapshot.raw)
    same[:, 1] = 3.0
    return replace(run_data, snapshot=replace(run_data.snapshot, raw=same, calibrated=same))


def fit_run(nodes: int = 60, truth: bool = True, snapshot: Snapshot | None = None) -> RunData:
    model = fitted(nodes)
    if snapshot is not None:
        model.snapshot_ = snapshot
    snapshot = model.snapshot_
    known = snapshot.given.maximum(snapshot.held)
    answers = torch.where(known < 0, torch.arange(nodes) % 3, -1) if truth else None
    classes = ["</script><img src=x onerror=alert(2)>", 'b & "c"', "plain"]
    result = fit_result(model, answers, 1.5)
    return RunData(
        "fit",
        f"graph {SCRIPT}",
        snapshot.rows,
        {**result, "classes": classes},
        {"parts": {"selector": "banzhaf", "model": SCRIPT}, "columns": {"columns": [{"name": SCRIPT}]}},
        {"python": "3.11"},
        snapshot,
        answers,
        [str(name) for name in model.node_names_],
        classes,
    )


def experiment_rows() -> list[dict[str, Any]]:
    """Two seeds, two rounds, three classes."""
    empty = {name: [] for name in ("node", "label", "raw_confidence", "confidence", "score", "stderr")}
    first = {**empty, "node": [4, 5], "label": [0, 2], "score": [0.3, 0.1], "stderr": [0.01, 0.02]}
    second = {**empty, "node": [6], "label": [1], "score": [0.2], "stderr": [0.01]}
    common = {"epochs": [3, 4], "took_part": [True, True], "evaluations": 10, "class_counts": [[2, 2, 2], [2, 2, 2]]}
    return [
        {**common, "round": 0, "validation": [0.5, 0.6], "test": [0.4, 0.6], "labelled": [6, 6],
         "adopted": [empty, empty], "pseudo_accuracy": [None, None], "seconds": {"train": 0.5}},
        {**common, "round": 1, "validation": [0.7, 0.6], "test": [0.6, 0.6], "labelled": [8, 7],
         "adopted": [first, second], "pseudo_accuracy": [0.5, 1.0], "seconds": {"train": 0.5, "select": 0.1}},
    ]  # fmt: skip


def experiment_result() -> dict[str, Any]:
    figures = {"mean": 60.0, "std": 1.0, "per_seed": [59.0, 61.0]}
    return {
        "dataset": "synthetic",
        "method": "bangs",
        "model": "gcn",
        "k": 3,
        **dict.fromkeys(("raw", "validation", "best_test", "last"), figures),
        "chosen_round": [1, 0],
        "rounds": [],
        "seconds": {"train": 1.0, "select": 0.1, "calibrate": 0.0, "total": 1.4},
    }


def experiment_run() -> RunData:
    return RunData("run", "bangs on synthetic", experiment_rows(), experiment_result(), classes=["0", "1", "2"])
