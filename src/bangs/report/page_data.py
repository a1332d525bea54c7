"""Page data: the facts of a run for its page, as JSON-able values."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from bangs.core import metrics
from bangs.core.intervals import wilson
from bangs.core.types import Prediction
from bangs.estimator.explanation_facts import heaviest
from bangs.report.headline import headline
from bangs.report.leaderboard import HEAD, leaderboard
from bangs.report.node_data import node_data, round_digits
from bangs.report.run_data import RunData
from bangs.runs.history_rows import is_soft
from bangs.runs.snapshot import Snapshot

BINS = 10


def page_data(run_data: RunData) -> dict[str, Any]:
    """All facts for the script of the page, as a JSON-able dict."""
    snapshot, truth = run_data.snapshot, run_data.truth
    model = heaviest(run_data.result.get("leaderboard", []))
    rounds = [_round(run_data, index) for index in range(len(run_data.rows))]
    data: dict[str, Any] = {
        "kind": run_data.kind,
        "name": run_data.name,
        "classes": run_data.classes,
        "headline": headline(run_data),
        "rounds": rounds,
        "chosen": [snapshot.chosen]
        if snapshot is not None and run_data.kind == "fit"
        else [int(index) for index in run_data.result.get("chosen_round", [0])],
        "runs": len(run_data.rows[0]["validation"]),
        "score": _score_name(run_data),
        "values": _values(run_data),
        "soft": any(map(is_soft, run_data.rows)),
        "seconds": {stage: float(value) for stage, value in run_data.result["seconds"].items()},
        "folds": bool(run_data.result.get("folds")),
        "model": None if model is None else asdict(model),
        "leaderboard": {"head": list(HEAD), "rows": leaderboard(run_data.result.get("leaderboard", []))},
        "config": _flatten(_configuration(run_data.config)),
        "environment": _flatten(run_data.environment),
    }
    if snapshot is None:
        return data
    target, source = _reference_labels(snapshot, truth, len(run_data.rows) > 1)
    data["reliability"] = _reliability(snapshot, target, source)
    data["confusion"] = _confusion(snapshot, target, source)
    return data | node_data(run_data, snapshot)


def _round(run_data: RunData, index: int) -> dict[str, Any]:
    """One round over all runs: means, and the spread of accuracies."""
    row, snapshot, truth = run_data.rows[index], run_data.snapshot, run_data.truth
    test = row.get("test")
    if test is None and truth is not None and snapshot is not None:
        test = [float((snapshot.round_labels[index] == truth)[truth >= 0].double().mean())]
    shares = [share for share in row.get("pseudo_accuracy") or [] if share is not None]
    adopted = [0.0] * len(run_data.classes)
    compared, correct = 0, 0
    if is_soft(row):  # nodes with a soft label by most likely class, mean over runs
        counts = list(zip(run_data.rows[0]["class_counts"], row["class_counts"], strict=True))
        adopted = [statistics.fmean(now[c] - first[c] for first, now in counts) for c in range(len(adopted))]
    for adoption in row["adopted"]:
        for node, label in zip(adoption["node"], adoption["label"], strict=True) if isinstance(adoption, dict) else ():
            adopted[label] += 1 / len(row["adopted"])
            if truth is not None and truth[node] >= 0:
                compared, correct = compared + 1, correct + int(truth[node] == label)
    return {
        "round": row["round"],
        "validation": _spread(row["validation"], _count(snapshot, "held")),
        "test": None if test is None else _spread(test, 0 if truth is None else int((truth >= 0).sum())),
        "labelled": statistics.fmean(row["labelled"]),
        "adopted": [round(count, 2) for count in adopted],
        "right": statistics.fmean(shares) if shares else None,
        "new_right": correct / compared if compared else None,
        "marked": compared,
        "seconds": {stage: round(value, 4) for stage, value in row["seconds"].items()},
    }


def _count(snapshot: Snapshot | None, name: str) -> int:
    return 0 if snapshot is None else int((getattr(snapshot, name) >= 0).sum())


def _spread(values: Sequence[float], nodes: int) -> dict[str, float]:
    """The mean over runs and a range: ± one standard deviation, or the Wilson interval of a single run."""
    mean = statistics.fmean(values)
    if len(values) > 1:
        low, high = mean - statistics.stdev(values), mean + statistics.stdev(values)
    else:
        low, high = wilson(mean, nodes) if nodes else (mean, mean)
    return {"mean": mean, "low": low, "high": high, "nodes": nodes if len(values) == 1 else 0}


def _score_name(run_data: RunData) -> str:
    fit = run_data.kind == "fit"
    name = str(run_data.config.get("parts", {}).get("selector") if fit else run_data.result.get("method", ""))
    if name == "banzhaf" or name.startswith("bangs"):
        return "Banzhaf value"
    return {"confidence": "confidence", "agreement": "confidence", "random": "random number"}.get(name, "score")


def _values(run_data: RunData) -> list[dict[str, Any]]:
    """Scores of the adopted and the other nodes of each round, and the lowest adopted score; of the first run."""
    values = []
    for row in run_data.rows[1:]:
        index = row["round"]
        if run_data.snapshot is not None:
            scored_nodes = run_data.snapshot.scored_nodes
            lines = scored_nodes.where(scored_nodes.round == index)
            taken, left = lines.score[lines.taken].tolist(), lines.score[~lines.taken].tolist()
        else:
            adopted = row["adopted"][0]
            taken, left = (adopted["score"] if isinstance(adopted, dict) else []), []
        if taken:
            values.append({"round": index, "taken": round_digits(taken), "left": round_digits(left), "cut": min(taken)})
    return values


def _reference_labels(snapshot: Snapshot, truth: Tensor | None, several: bool) -> tuple[Tensor, str]:
    """Labels to compare predictions with [N], -1 = none, and a description of their nodes: test nodes if any."""
    if truth is not None:
        target = torch.where(snapshot.known < 0, truth, -1)
        if (target >= 0).any():
            return target, f"{int((target >= 0).sum()):,} nodes whose labels were not read for learning"
    if snapshot.folds:
        return snapshot.held, f"{_count(snapshot, 'held'):,} held-out labels"
    chose = "which also chose the round" if several else "which also decided when training stopped"
    return snapshot.held, f"{_count(snapshot, 'held'):,} validation nodes, {chose}"


def _reliability(snapshot: Snapshot, target: Tensor, source: str) -> dict[str, Any]:
    curves: dict[str, Any] = {"of": source}
    for name, logits in zip(("before", "after"), _reference_logits(snapshot, target), strict=True):
        bins = metrics.reliability(Prediction(logits[None]), target[None], BINS)
        rows = zip(bins.confidence[0].tolist(), bins.accuracy[0].tolist(), bins.count[0].tolist(), strict=True)
        curves[name] = {
            "error": float(bins.error),
            "bins": [{"confidence": c, "accuracy": a, "count": n, "interval": wilson(a, n)} for c, a, n in rows if n],
        }
    return curves


def _reference_logits(snapshot: Snapshot, target: Tensor) -> tuple[Tensor, Tensor]:
    """Logits before and after calibration [N, C]; of held nodes by models that have not learned them."""
    if target is not snapshot.held or snapshot.unseen is None:
        return snapshot.raw, snapshot.calibrated
    pair = snapshot.raw.clone(), snapshot.calibrated.clone()
    for logits, judged in zip(pair, snapshot.judged[:2], strict=True):
        logits[snapshot.held >= 0] = judged.to(logits.dtype)
    return pair


def _confusion(snapshot: Snapshot, target: Tensor, source: str) -> dict[str, Any]:
    unknown = target >= snapshot.classes  # the class has no training node, so it has no row
    after = _reference_logits(snapshot, target)[1]
    counts = metrics.confusion(Prediction(after[None]), torch.where(unknown, -1, target)[None])[0]
    left = f"; {int(unknown.sum()):,} of a class the model has not learned are left out" if unknown.any() else ""
    return {"of": source + left, "counts": counts.tolist()}


def _configuration(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The configuration; without the setting `scale` where the columns of the tables say how each was scaled."""
    columns, settings = config.get("columns", {}), dict(config.get("settings", {}))
    if settings.get("scale") != "none" or not (columns.get("columns") or columns.get("structural") is not None):
        return config
    del settings["scale"]
    return {**config, "settings": settings}


def _flatten(value: Any, name: str = "") -> list[list[str]]:
    """Nested settings as rows of (name, value), for a table."""
    if isinstance(value, Mapping):
        return [row for key, item in value.items() for row in _flatten(item, f"{name} · {key}" if name else str(key))]
    if isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        return [row for number, item in enumerate(value, 1) for row in _flatten(item, f"{name} {number}")]
    if isinstance(value, list) and name.endswith("notes"):
        return [[name, "\n".join(map(str, value))]]
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return [[name, text if len(text) <= 400 else f"{text[:400]}…"]]
