"""Node data of a page: predictions, positions, neighbours and influences of single nodes."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bangs.estimator.explanation_facts import influences, neighbours, origins, relative_weights
from bangs.report.node_layout import positions
from bangs.report.run_data import RunData
from bangs.runs.snapshot import Snapshot
from bangs.suggestion.suggest import Suggestions, suggest

MAX_LISTED = 50_000  # nodes in the table and the search of the page
MAX_DRAWN = 1200  # nodes on the map, unless more have a given or held label
MAX_LABELLED_DRAWN = 6000  # nodes with a given or held label on the map
MAX_EXPLAINED = 2500  # nodes with their neighbours and influences
MAX_PSEUDO_LABELS = 5000
MAX_NEIGHBOURS = 12
MAX_INFLUENCES = 5
MAX_SUGGESTED = 20  # nodes to label next
ORIGINS = ("given", "held", "adopted", "predicted", "soft")  # the page stores their index


def node_data(run_data: RunData, snapshot: Snapshot) -> dict[str, Any]:
    """The nodes of the page with their neighbourhoods, the map and the pseudo-labels; a node is its list position."""
    taken = snapshot.scored_nodes.where(snapshot.scored_nodes.taken)
    pseudo = taken.where(torch.arange(len(taken)) < MAX_PSEUDO_LABELS)
    listed = _listed(snapshot, pseudo.node)
    drawn = _drawn(snapshot, listed)
    suggested = _suggested(run_data, snapshot)
    next_nodes = [suggestion.row for suggestion in suggested.nodes] if suggested else []
    explained = [*next_nodes, *pseudo.node[: MAX_EXPLAINED // 2].tolist(), *drawn.tolist()]
    explained = list(dict.fromkeys(explained))[:MAX_EXPLAINED]
    around = neighbours(snapshot, explained, MAX_NEIGHBOURS)
    reasons = influences(snapshot, explained, MAX_INFLUENCES)
    mentioned = set(next_nodes) | {neighbour.node for nearest, _ in around for neighbour in nearest}
    mentioned |= {neighbour.node for strongest, _, _ in reasons for neighbour in strongest}
    listed = torch.tensor(sorted(mentioned.union(listed.tolist())))
    position_of = {node: index for index, node in enumerate(listed.tolist())}
    return {
        "total": snapshot.nodes,
        "drawn": [position_of[node] for node in drawn.tolist()],
        "nodes": _columns(run_data, snapshot, listed),
        "around": {
            str(position_of[node]): {
                "neighbours": [[position_of[neighbour.node], round(neighbour.weight, 4)] for neighbour in nearest],
                "degree": degree,
                "influences": [
                    [position_of[neighbour.node], round(neighbour.share, 4), neighbour.label, neighbour.adopted_round]
                    for neighbour in strongest
                ],
                "support": round_digits(support, 4),
                "reach": round(reach, 4),
                "predicted": snapshot.round_labels[:, node].tolist(),
                "sure": round_digits(snapshot.round_confidence[:, node].tolist(), 3),
            }
            for node, (nearest, degree), (strongest, support, reach) in zip(explained, around, reasons, strict=True)
        },
        "pseudo": {
            "total": len(taken),
            "node": [position_of[node] for node in pseudo.node.tolist()],
            "round": pseudo.round.tolist(),
            "label": pseudo.label.tolist(),
            "before": round_digits(pseudo.raw_confidence.tolist(), 4),
            "confidence": round_digits(pseudo.confidence.tolist(), 4),
            "value": round_digits(pseudo.score.tolist()),
            "stderr": [None if math.isnan(value) else value for value in round_digits(pseudo.stderr.tolist())],
            "used": (snapshot.adopted_round[pseudo.node] == pseudo.round).tolist(),
            "right": None
            if run_data.truth is None
            else [
                None if true < 0 else true == label
                for true, label in zip(run_data.truth[pseudo.node].tolist(), pseudo.label.tolist(), strict=True)
            ],
        },
        "next": None
        if not suggested
        else {
            "node": [position_of[suggestion.row] for suggestion in suggested.nodes],
            "reason": [suggestion.reason for suggestion in suggested.nodes],
            "order": suggested.order,
            "notes": suggested.notes,
        },
    }


def _suggested(run_data: RunData, snapshot: Snapshot) -> Suggestions | None:
    """Nodes to label next; None for an experiment, a model without embeddings, or if every node has a label."""
    known = snapshot.known >= 0
    hidden = torch.zeros_like(known) if run_data.truth is None else run_data.truth >= 0
    if run_data.kind != "fit" or snapshot.points is None or bool((known | hidden).all()):
        return None
    seed = int(run_data.config.get("seed", 0))
    return suggest(snapshot, run_data.names, run_data.classes, MAX_SUGGESTED, seed=seed, exclude=hidden)


def _listed(snapshot: Snapshot, pseudo: Tensor) -> Tensor:
    """The nodes of the page, long, sorted: all, or 50,000: first those with a label, then random ones."""
    if snapshot.nodes <= MAX_LISTED:
        return torch.arange(snapshot.nodes)
    priority = _priority(snapshot)
    priority[pseudo] = 2
    return (priority + _random(snapshot)).topk(MAX_LISTED).indices.sort().values


def _drawn(snapshot: Snapshot, listed: Tensor) -> Tensor:
    """The nodes on the map, long, sorted: all given and held ones, then random adopted ones, then random others.

    At least a third of 1,200 are nodes without a label of any kind.
    """
    if len(listed) <= MAX_DRAWN:
        return listed
    priority, chance = _priority(snapshot)[listed], _random(snapshot)[listed]
    known = listed[priority >= 3][:MAX_LABELLED_DRAWN]
    adopted = (priority == 1).nonzero().flatten()
    adopted = adopted[chance[adopted].argsort(descending=True)][: max(0, 2 * MAX_DRAWN // 3 - len(known))]
    unlabelled = (priority == 0).nonzero().flatten()
    free_count = max(MAX_DRAWN - len(known) - len(adopted), MAX_DRAWN // 3)
    unlabelled = unlabelled[chance[unlabelled].argsort(descending=True)][:free_count]
    return torch.cat([known, listed[adopted], listed[unlabelled]]).sort().values


def _priority(snapshot: Snapshot) -> Tensor:
    """3 = given or held, 1 = adopted with a hard label, 0 = any other: float [N]."""
    adopted = (snapshot.adopted_round > 0) & (snapshot.belief is None)
    return torch.where(snapshot.known >= 0, 3.0, adopted.float())


def _random(snapshot: Snapshot) -> Tensor:
    """A random number in [0, 1) per node, with a fixed seed: float [N]."""
    return torch.rand(snapshot.nodes, generator=torch.Generator().manual_seed(0))


def _columns(run_data: RunData, snapshot: Snapshot, listed: Tensor) -> dict[str, Any]:
    """The columns of the listed nodes, one list per column."""
    truth = run_data.truth
    best = snapshot.calibrated[listed].softmax(-1).topk(min(2, snapshot.classes), dim=1)
    position = (1000 * torch.from_numpy(positions(snapshot.raw[listed]))).round().long()
    names = run_data.names
    all_nodes = len(listed) == snapshot.nodes
    columns = {
        "name": [str(name) for name in names] if all_nodes else [str(names[node]) for node in listed.tolist()],
        "label": best.indices[:, 0].tolist(),
        "confidence": round_digits(best.values[:, 0].tolist(), 4),
        "second": best.indices[:, -1].tolist(),
        "second_confidence": round_digits(best.values[:, -1].tolist(), 3),
        "known": snapshot.known[listed].tolist(),
        "origin": [ORIGINS.index(origin) for origin in origins(snapshot, listed)],
        "adopted_round": snapshot.adopted_round[listed].tolist(),
        "truth": None if truth is None else truth[listed].tolist(),
        "x": position[:, 0].tolist(),
        "y": position[:, 1].tolist(),
    }
    if snapshot.belief is not None:
        believed = snapshot.belief[listed].topk(min(2, snapshot.classes), dim=1)
        columns["soft"] = [
            [*pair, *round_digits(shares, 3)]
            for pair, shares in zip(believed.indices.tolist(), believed.values.tolist(), strict=True)
        ]
        columns["weight"] = round_digits(relative_weights(snapshot)[listed].tolist(), 3)
    return columns


def round_digits(values: Sequence[float], digits: int = 5) -> list[float]:
    """Numbers with few significant digits, to keep the page small."""
    return [float(f"{value:.{digits}g}") for value in values]
