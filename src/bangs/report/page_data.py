"""Page data: a run as the plain numbers and words that a page draws."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from bangs.core import metrics
from bangs.core.intervals import wilson
from bangs.core.types import Prediction
from bangs.report.headline import headline
from bangs.report.leaderboard import HEAD, averaged, leaderboard
from bangs.report.node_data import node_data, short
from bangs.report.run_data import RunData
from bangs.runs.history import is_soft
from bangs.runs.snapshot import Snapshot

BINS = 10


def page_data(run_data: RunData) -> dict[str, Any]:
    """All that the page's script needs, as JSON holds it."""
    snapshot, truth = run_data.snapshot, run_data.truth
    rounds = [_round(run_data, index) for index in range(len(run_data.rows))]
    out: dict[str, Any] = {
        "kind": run_data.kind,
        "name": run_data.name,
        "classes": run_data.classes,
        "headline": headline(run_data),
        "rounds": rounds,
        "chosen": _chosen(run_data),
        "runs": len(run_data.rows[0]["validation"]),
        "score": _score_name(run_data),
        "values": _values(run_data),
        "soft": any(map(is_soft, run_data.rows)),
        "seconds": _seconds(run_data),
        "averaged": bool(run_data.result.get("folds")) or averaged(run_data.result.get("leaderboard", [])) > 1,
        "leaderboard": {"head": list(HEAD), "rows": leaderboard(run_data.result.get("leaderboard", []))},
        "config": _flat(run_data.config),
        "environment": _flat(run_data.environment),
    }
    if snapshot is None:
        return out
    target, of = _marked(snapshot, truth, len(run_data.rows) > 1)
    out["reliability"] = _reliability(snapshot, target, of)
    out["confusion"] = _confusion(snapshot, target, of)
    return out | node_data(run_data, snapshot)


def _round(run_data: RunData, index: int) -> dict[str, Any]:
    """One round over all runs: means, and the spread of accuracies."""
    row, snapshot, truth = run_data.rows[index], run_data.snapshot, run_data.truth
    test = row.get("test")
    if test is None and truth is not None and snapshot is not None:
        test = [float((snapshot.round_labels[index] == truth)[truth >= 0].double().mean())]
    right = [share for share in row.get("pseudo_accuracy") or [] if share is not None]
    adopted = [0.0] * len(run_data.classes)
    known, hits = 0, 0
    if is_soft(row):
        adopted = _soft_by_class(run_data, index)
    for own in row["adopted"]:
        for node, label in zip(own["node"], own["label"], strict=True) if isinstance(own, dict) else ():
            adopted[label] += 1 / len(row["adopted"])
            if truth is not None and truth[node] >= 0:
                known, hits = known + 1, hits + int(truth[node] == label)
    return {
        "round": row["round"],
        "validation": _spread(row["validation"], _count(snapshot, "held")),
        "test": None if test is None else _spread(test, 0 if truth is None else int((truth >= 0).sum())),
        "labelled": statistics.fmean(row["labelled"]),
        "adopted": [round(count, 2) for count in adopted],
        "right": statistics.fmean(right) if right else None,
        "new_right": hits / known if known else None,
        "marked": known,
        "seconds": {stage: round(value, 4) for stage, value in row["seconds"].items()},
    }


def _soft_by_class(run_data: RunData, index: int) -> list[float]:
    """How many nodes had a soft label in a round, by its most likely class; the mean over runs [C]."""
    first, now = (run_data.rows[at]["class_counts"] for at in (0, index))
    return [
        statistics.fmean(own[c] - before[c] for before, own in zip(first, now, strict=True))
        for c in range(len(run_data.classes))
    ]


def _count(snapshot: Snapshot | None, name: str) -> int:
    return 0 if snapshot is None else int((getattr(snapshot, name) >= 0).sum())


def _spread(values: Sequence[float], nodes: int) -> dict[str, float]:
    """The mean over runs, and a range around it: one standard deviation, or of one run on some nodes Wilson's."""
    mean = statistics.fmean(values)
    if len(values) > 1:
        low, high = mean - statistics.stdev(values), mean + statistics.stdev(values)
    else:
        low, high = wilson(mean, nodes) if nodes else (mean, mean)
    return {"mean": mean, "low": low, "high": high, "nodes": nodes if len(values) == 1 else 0}


def _chosen(run_data: RunData) -> list[int]:
    if run_data.snapshot is not None and run_data.kind == "fit":
        return [run_data.snapshot.chosen]
    return [int(index) for index in run_data.result.get("chosen_round", [0])]


def _score_name(run_data: RunData) -> str:
    fit = run_data.kind == "fit"
    word = str(run_data.config.get("parts", {}).get("selector") if fit else run_data.result.get("method", ""))
    if word == "banzhaf" or word.startswith("bangs"):
        return "Banzhaf value"
    return {"confidence": "confidence", "agreement": "confidence", "random": "random number"}.get(word, "score")


def _values(run_data: RunData) -> list[dict[str, Any]]:
    """Scores of a round's nodes, taken and left, and the cut between them; of the first run."""
    out = []
    for row in run_data.rows[1:]:
        index = row["round"]
        if run_data.snapshot is not None:
            candidate_log = run_data.snapshot.candidate_log
            here = candidate_log.where(candidate_log.round == index)
            taken, left = here.score[here.taken].tolist(), here.score[~here.taken].tolist()
        else:
            own = row["adopted"][0]
            taken, left = (own["score"] if isinstance(own, dict) else []), []
        if taken:
            out.append({"round": index, "taken": short(taken), "left": short(left), "cut": min(taken)})
    return out


def _seconds(run_data: RunData) -> dict[str, float]:
    found = run_data.result.get("seconds", {})
    return {stage: float(value) for stage, value in found.items()} if isinstance(found, dict) else {}


def _marked(snapshot: Snapshot, truth: Tensor | None, several: bool) -> tuple[Tensor, str]:
    """Labels to compare predictions with [N], -1 = none; and whose they are: of test nodes if there are any."""
    if truth is not None:
        target = torch.where(snapshot.known < 0, truth, -1)
        if (target >= 0).any():
            return target, f"{int((target >= 0).sum()):,} nodes whose labels were not read for learning"
    if snapshot.folds:
        return snapshot.held, f"{_count(snapshot, 'held'):,} labels, each judged by models that had not learned it"
    chose = "which also chose the round" if several else "which also decided when training stopped"
    return snapshot.held, f"{_count(snapshot, 'held'):,} validation nodes, {chose}"


def _reliability(snapshot: Snapshot, target: Tensor, of: str) -> dict[str, Any]:
    out: dict[str, Any] = {"of": of}
    for name, logits in zip(("before", "after"), _marked_logits(snapshot, target), strict=True):
        found = metrics.reliability(Prediction(logits[None]), target[None], BINS)
        bins = zip(found.confidence[0].tolist(), found.accuracy[0].tolist(), found.count[0].tolist(), strict=True)
        out[name] = {
            "error": float(found.error),
            "bins": [{"confidence": c, "accuracy": a, "count": n, "interval": wilson(a, n)} for c, a, n in bins if n],
        }
    return out


def _marked_logits(snapshot: Snapshot, target: Tensor) -> tuple[Tensor, Tensor]:
    """Logits before and after calibration [N, C]; of judged nodes by models that have not learned them."""
    if target is not snapshot.held or snapshot.unseen is None:
        return snapshot.raw, snapshot.calibrated
    pair = snapshot.raw.clone(), snapshot.calibrated.clone()
    for whole, judged in zip(pair, snapshot.judged[:2], strict=True):
        whole[snapshot.held >= 0] = judged.to(whole.dtype)
    return pair


def _confusion(snapshot: Snapshot, target: Tensor, of: str) -> dict[str, Any]:
    unknown = target >= snapshot.classes  # of a class that no training node has: such a node has no row
    after = _marked_logits(snapshot, target)[1]
    counts = metrics.confusion(Prediction(after[None]), torch.where(unknown, -1, target)[None])[0]
    left = f"; {int(unknown.sum()):,} of a class the model has not learned are left out" if unknown.any() else ""
    return {"of": of + left, "counts": counts.tolist()}


def _flat(value: Any, name: str = "") -> list[list[str]]:
    """Nested settings as rows of (name, value), for a table."""
    if isinstance(value, Mapping):
        return [row for key, item in value.items() for row in _flat(item, f"{name} · {key}" if name else str(key))]
    if isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        return [row for number, item in enumerate(value, 1) for row in _flat(item, f"{name} {number}")]
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return [[name, text if len(text) <= 400 else f"{text[:400]}…"]]
