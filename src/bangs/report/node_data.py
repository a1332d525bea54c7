"""Node data: what a page knows of single nodes: predictions, positions, neighbours and influences."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bangs.estimator.reasons import influences, neighbours, origins, relative_weights
from bangs.report.node_layout import positions
from bangs.report.run_data import RunData
from bangs.runs.snapshot import Snapshot
from bangs.suggestion.suggest import Suggestions, suggest

LISTED = 50_000  # nodes in the page, all of them in the table and found by the search
DRAWN = 1200  # nodes on the map at first, unless more are given or held
LARGEST_MAP = 6000  # nodes on the map at most
EXPLAINED = 2500  # nodes with their neighbours and influences
PSEUDO = 5000  # pseudo-labels in their table
NEIGHBOURS = 12
INFLUENCES = 5
SUGGESTED = 20  # nodes to label next
ORIGINS = ("given", "held", "adopted", "predicted", "soft")  # as the page numbers them


def node_data(run_data: RunData, snapshot: Snapshot) -> dict[str, Any]:
    """The nodes of the page, its map, its pseudo-labels and what surrounds nodes; nodes are positions in the list."""
    taken = snapshot.candidate_log.where(snapshot.candidate_log.taken)
    pseudo = taken.where(torch.arange(len(taken)) < PSEUDO)
    listed = _listed(snapshot, pseudo.node)
    drawn = _drawn(snapshot, listed)
    suggested = _suggested(run_data, snapshot)
    next_nodes = [own.row for own in suggested.nodes] if suggested else []
    explained = [*next_nodes, *pseudo.node[: EXPLAINED // 2].tolist(), *drawn.tolist()]
    explained = list(dict.fromkeys(explained))[:EXPLAINED]
    around = neighbours(snapshot, explained, NEIGHBOURS)
    reasons = influences(snapshot, explained, INFLUENCES)
    mentioned = set(next_nodes) | {one.node for near, _ in around for one in near}
    mentioned |= {one.node for strongest, _, _ in reasons for one in strongest}
    listed = torch.tensor(sorted(mentioned.union(listed.tolist())))
    position_of = {node: index for index, node in enumerate(listed.tolist())}
    return {
        "total": snapshot.nodes,
        "drawn": [position_of[node] for node in drawn.tolist()],
        "nodes": _columns(run_data, snapshot, listed),
        "around": {
            str(position_of[node]): {
                "neighbours": [[position_of[one.node], round(one.weight, 4)] for one in near],
                "degree": degree,
                "influences": [
                    [position_of[one.node], round(one.share, 4), one.label, one.adopted_round] for one in strongest
                ],
                "support": short(support, 4),
                "reach": round(reach, 4),
                "predicted": snapshot.round_labels[:, node].tolist(),
                "sure": short(snapshot.round_confidence[:, node].tolist(), 3),
            }
            for node, (near, degree), (strongest, support, reach) in zip(explained, around, reasons, strict=True)
        },
        "pseudo": {
            "total": len(taken),
            "node": [position_of[node] for node in pseudo.node.tolist()],
            "round": pseudo.round.tolist(),
            "label": pseudo.label.tolist(),
            "before": short(pseudo.raw_confidence.tolist(), 4),
            "confidence": short(pseudo.confidence.tolist(), 4),
            "value": short(pseudo.score.tolist()),
            "stderr": [None if math.isnan(value) else value for value in short(pseudo.stderr.tolist())],
            "used": (snapshot.adopted_round[pseudo.node] == pseudo.round).tolist(),
            "right": None if run_data.truth is None else _right(run_data.truth[pseudo.node], pseudo.label),
        },
        "next": None
        if not suggested
        else {
            "node": [position_of[own.row] for own in suggested.nodes],
            "reason": [own.reason for own in suggested.nodes],
            "notes": suggested.notes,
        },
    }


def _suggested(run_data: RunData, snapshot: Snapshot) -> Suggestions | None:
    """Nodes to label next; None of an experiment, of a model without points, and where every node has a label."""
    known = snapshot.known >= 0
    hidden = torch.zeros_like(known) if run_data.truth is None else run_data.truth >= 0
    if run_data.kind != "fit" or snapshot.points is None or bool((known | hidden).all()):
        return None
    return suggest(snapshot, run_data.names, run_data.classes, SUGGESTED, exclude=hidden)


def _listed(snapshot: Snapshot, pseudo: Tensor) -> Tensor:
    """The nodes of the page, long, sorted: all, or 50,000 with labelled and held ones first and others by chance."""
    if snapshot.nodes <= LISTED:
        return torch.arange(snapshot.nodes)
    first = _priority(snapshot)
    first[pseudo] = 2
    return (first + _chance(snapshot)).topk(LISTED).indices.sort().values


def _drawn(snapshot: Snapshot, listed: Tensor) -> Tensor:
    """The nodes on the map, long, sorted: all given and held ones, then adopted ones, then others by chance.

    A third of 1,200 is kept for nodes without a label of any kind.
    """
    if len(listed) <= DRAWN:
        return listed
    first, chance = _priority(snapshot)[listed], _chance(snapshot)[listed]
    known = listed[first >= 3][:LARGEST_MAP]
    adopted = (first == 1).nonzero().flatten()
    adopted = adopted[chance[adopted].argsort(descending=True)][: max(0, 2 * DRAWN // 3 - len(known))]
    free = (first == 0).nonzero().flatten()
    room = max(DRAWN - len(known) - len(adopted), DRAWN // 3)
    free = free[chance[free].argsort(descending=True)][:room]
    return torch.cat([known, listed[adopted], listed[free]]).sort().values


def _priority(snapshot: Snapshot) -> Tensor:
    """3 = given or held, 1 = adopted with a hard label, 0 = any other: float [N]."""
    adopted = (snapshot.adopted_round > 0) & (snapshot.belief is None)
    return torch.where(snapshot.known >= 0, 3.0, adopted.float())


def _chance(snapshot: Snapshot) -> Tensor:
    """A number in [0, 1) for every node, always the same: float [N]."""
    return torch.rand(snapshot.nodes, generator=torch.Generator().manual_seed(0))


def _columns(run_data: RunData, snapshot: Snapshot, listed: Tensor) -> dict[str, Any]:
    """What the page knows of every listed node, a list each."""
    truth = run_data.truth
    best = snapshot.calibrated[listed].softmax(-1).topk(min(2, snapshot.classes), dim=1)
    position = (1000 * torch.from_numpy(positions(snapshot.raw[listed]))).round().long()
    names = run_data.names
    every = len(listed) == snapshot.nodes
    columns = {
        "name": [str(name) for name in names] if every else [str(names[node]) for node in listed.tolist()],
        "label": best.indices[:, 0].tolist(),
        "confidence": short(best.values[:, 0].tolist(), 4),
        "second": best.indices[:, -1].tolist(),
        "second_confidence": short(best.values[:, -1].tolist(), 3),
        "known": snapshot.known[listed].tolist(),
        "origin": [ORIGINS.index(own) for own in origins(snapshot, listed)],
        "adopted_round": snapshot.adopted_round[listed].tolist(),
        "truth": None if truth is None else truth[listed].tolist(),
        "x": position[:, 0].tolist(),
        "y": position[:, 1].tolist(),
    }
    if snapshot.belief is not None:
        believed = snapshot.belief[listed].topk(min(2, snapshot.classes), dim=1)
        columns["soft"] = [
            [*pair, *short(shares, 3)]
            for pair, shares in zip(believed.indices.tolist(), believed.values.tolist(), strict=True)
        ]
        columns["weight"] = short(relative_weights(snapshot)[listed].tolist(), 3)
    return columns


def _right(truth: Tensor, label: Tensor) -> list[bool | None]:
    return [None if true < 0 else true == own for true, own in zip(truth.tolist(), label.tolist(), strict=True)]


def short(values: Sequence[float], digits: int = 5) -> list[float]:
    """Numbers with few digits, since a page carries thousands of them."""
    return [float(f"{value:.{digits}g}") for value in values]
