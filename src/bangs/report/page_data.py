"""Facts: a run_data as the plain numbers and words that a page draws."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from bangs.core import metrics
from bangs.core.types import Prediction
from bangs.estimator.explain import influences, neighbours, origins
from bangs.report.headline import headline
from bangs.report.node_layout import places
from bangs.report.run_data import RunData
from bangs.runs.snapshot import Snapshot

SHOWN = 1200  # nodes on the map
LISTED = 5000  # pseudo-labels in the table
NEIGHBOURS = 12
INFLUENCES = 5
BINS = 10
EXPLAINED = 2500  # nodes with their neighbours and influences


def facts(run_data: RunData) -> dict[str, Any]:
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
        "seconds": _seconds(run_data),
        "config": _flat(run_data.config or _settings(run_data.result)),
        "environment": _flat(run_data.environment),
    }
    if snapshot is None:
        return out
    target, of = _marked(snapshot, truth)
    shown = _shown(snapshot)
    out["reliability"] = _reliability(snapshot, target, of)
    out["confusion"] = _confusion(snapshot, target, of)
    out |= _nodes(run_data, snapshot, shown)
    return out


def _round(run_data: RunData, index: int) -> dict[str, Any]:
    """One round over all runs: means, and the spread of accuracies."""
    row, snapshot, truth = run_data.rows[index], run_data.snapshot, run_data.truth
    test = row.get("test")
    if test is None and truth is not None and snapshot is not None:
        test = [float((snapshot.said[index] == truth)[truth >= 0].double().mean())]
    right = [share for share in row.get("pseudo_accuracy") or [] if share is not None]
    adopted = [0.0] * len(run_data.classes)
    known, hits = 0, 0
    for own in row["adopted"]:
        for node, label in zip(own["node"], own["label"], strict=True) if isinstance(own, dict) else ():
            adopted[label] += 1 / len(row["adopted"])
            if truth is not None and truth[node] >= 0:
                known, hits = known + 1, hits + int(truth[node] == label)
    return {
        "round": row["round"],
        "validation": _spread(row["validation"]),
        "test": None if test is None else _spread(test),
        "labelled": statistics.fmean(row["labelled"]),
        "adopted": [round(count, 2) for count in adopted],
        "right": statistics.fmean(right) if right else None,
        "new_right": hits / known if known else None,
        "marked": known,
        "seconds": {stage: round(value, 4) for stage, value in row["seconds"].items()},
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"mean": statistics.fmean(values), "sd": statistics.stdev(values) if len(values) > 1 else 0.0}


def _chosen(run_data: RunData) -> list[int]:
    if run_data.snapshot is not None and run_data.kind == "fit":
        return [run_data.snapshot.chosen]
    return [int(index) for index in run_data.result.get("chosen_round", [0])]


def _score_name(run_data: RunData) -> str:
    word = (
        run_data.config.get("parts", {}).get("selector")
        if run_data.kind == "fit"
        else run_data.result.get("method", "")
    )
    if word == "banzhaf" or str(word).startswith("bangs"):
        return "Banzhaf value"
    return {"confidence": "confidence", "agreement": "confidence", "random": "random number"}.get(str(word), "score")


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
            out.append({"round": index, "taken": _short(taken), "left": _short(left), "cut": min(taken)})
    return out


def _seconds(run_data: RunData) -> dict[str, float]:
    found = run_data.result.get("seconds", {})
    return {stage: float(value) for stage, value in found.items()} if isinstance(found, dict) else {}


def _marked(snapshot: Snapshot, truth: Tensor | None) -> tuple[Tensor, str]:
    """Labels to mark predictions by [N], -1 = none; and whose they are: test nodes if there are any."""
    if truth is not None:
        target = torch.where((snapshot.given < 0) & (snapshot.held < 0), truth, -1)
        if (target >= 0).any():
            return target, f"{int((target >= 0).sum()):,} nodes whose labels were not read for learning"
    return snapshot.held, f"{int((snapshot.held >= 0).sum()):,} validation nodes, which also chose the round"


def _reliability(snapshot: Snapshot, target: Tensor, of: str) -> dict[str, Any]:
    out: dict[str, Any] = {"of": of}
    for name, logits in (("before", snapshot.raw), ("after", snapshot.calibrated)):
        found = metrics.reliability(Prediction(logits[None]), target[None], BINS)
        bins = zip(found.confidence[0].tolist(), found.accuracy[0].tolist(), found.count[0].tolist(), strict=True)
        out[name] = {
            "error": float(found.error),
            "bins": [{"confidence": c, "accuracy": a, "count": n} for c, a, n in bins if n],
        }
    return out


def _confusion(snapshot: Snapshot, target: Tensor, of: str) -> dict[str, Any]:
    unknown = target >= snapshot.classes  # of a class that no training node has: such a node has no row
    counts = metrics.confusion(Prediction(snapshot.calibrated[None]), torch.where(unknown, -1, target)[None])[0]
    left = f"; {int(unknown.sum()):,} of a class the model has not learned are left out" if unknown.any() else ""
    return {"of": of + left, "counts": counts.tolist()}


def _shown(snapshot: Snapshot) -> Tensor:
    """The nodes on the map, long, sorted: all, or 1,200, labelled and adopted ones first and others by chance."""
    if snapshot.nodes <= SHOWN:
        return torch.arange(snapshot.nodes)
    rank = torch.rand(snapshot.nodes, generator=torch.Generator().manual_seed(0))
    first = (snapshot.given >= 0).float() * 2 + (snapshot.adopted_round > 0).float()
    # a third is kept for nodes that have no label at all
    labelled = (rank + first).argsort(descending=True)[: 2 * SHOWN // 3]
    labelled = labelled[first[labelled] > 0]
    others = rank.clone()
    others[labelled] = -1
    more = others.argsort(descending=True)[: SHOWN - len(labelled)]
    return torch.cat([labelled, more]).sort().values


def _nodes(run_data: RunData, snapshot: Snapshot, shown: Tensor) -> dict[str, Any]:
    """The map, the pseudo-labels and the surroundings of nodes; every node named once, in `nodes`."""
    truth = run_data.truth
    taken = snapshot.candidate_log.where(snapshot.candidate_log.taken)
    listed = taken.where(torch.arange(len(taken)) < LISTED)
    explained = list(dict.fromkeys([*shown.tolist(), *listed.node.tolist()]))[:EXPLAINED]
    around = dict(zip(explained, neighbours(snapshot, explained, NEIGHBOURS), strict=True))
    reasons = influences(snapshot, explained, INFLUENCES)
    named = set(shown.tolist()) | set(listed.node.tolist()) | set(explained)
    for node, (strongest, _, _) in zip(explained, reasons, strict=True):
        named.update(one.node for one in around[node][0])
        named.update(one.node for one in strongest)
    order = sorted(named)
    place = {node: index for index, node in enumerate(order)}
    spots = places(snapshot.raw[shown])
    spot = dict(zip(shown.tolist(), spots.tolist(), strict=True))
    here = torch.tensor(order)
    confidence, label = snapshot.calibrated[here].softmax(-1).max(-1)
    known = snapshot.given[here].maximum(snapshot.held[here])
    origin = [("given", "held", "adopted", "predicted").index(own) for own in origins(snapshot, here)]
    return {
        "total": snapshot.nodes,
        "shown": len(shown),
        "nodes": {
            "name": [run_data.names[node] for node in order],
            "label": label.tolist(),
            "known": known.tolist(),
            "origin": origin,
            "adopted_round": snapshot.adopted_round[here].tolist(),
            "confidence": _short(confidence.tolist(), 4),
            "truth": None if truth is None else truth[order].tolist(),
            "xy": [[round(value, 4) for value in spot[node]] if node in spot else None for node in order],
        },
        "around": {
            str(place[node]): {
                "neighbours": [[place[one.node], round(one.weight, 4)] for one in around[node][0]],
                "degree": around[node][1],
                "influences": [
                    [place[one.node], round(one.share, 4), one.label, one.adopted_round] for one in strongest
                ],
                "support": _short(support, 4),
                "reach": round(reach, 4),
                "said": snapshot.said[:, node].tolist(),
                "sure": _short(snapshot.sure[:, node].tolist(), 3),
            }
            for node, (strongest, support, reach) in zip(explained, reasons, strict=True)
        },
        "pseudo": {
            "total": len(taken),
            "node": [place[node] for node in listed.node.tolist()],
            "round": listed.round.tolist(),
            "label": listed.label.tolist(),
            "before": _short(listed.raw_confidence.tolist(), 4),
            "confidence": _short(listed.confidence.tolist(), 4),
            "value": _short(listed.score.tolist()),
            "stderr": [None if math.isnan(value) else value for value in _short(listed.stderr.tolist())],
            "used": (snapshot.adopted_round[listed.node] == listed.round).tolist(),
            "right": None if truth is None else _right(truth[listed.node], listed.label),
        },
    }


def _right(truth: Tensor, label: Tensor) -> list[bool | None]:
    return [None if own < 0 else own == said for own, said in zip(truth.tolist(), label.tolist(), strict=True)]


def _settings(result: Mapping[str, Any]) -> dict[str, Any]:
    """The settings among the entries of an experiment's result."""
    figures = {"raw", "validation", "best_test", "last", "chosen_round", "rounds", "seconds"}
    return {key: value for key, value in result.items() if key not in figures}


def _flat(value: Any, place: str = "") -> list[list[str]]:
    """Nested settings as rows of (place, value), for a table."""
    if isinstance(value, Mapping):
        return [row for key, item in value.items() for row in _flat(item, f"{place} · {key}" if place else str(key))]
    if isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        return [row for number, item in enumerate(value, 1) for row in _flat(item, f"{place} {number}")]
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return [[place, text if len(text) <= 400 else f"{text[:400]}…"]]


def _short(values: Sequence[float], digits: int = 5) -> list[float]:
    """Numbers with few digits, since a page carries thousands of them."""
    return [float(f"{value:.{digits}g}") for value in values]
