"""Fitted: what a fit leaves, members that predict together and a snapshot to ask questions of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from bangs.calibration.calibrators import Calibrator
from bangs.core.types import Prediction
from bangs.errors import InvalidInput
from bangs.estimator import serialization
from bangs.estimator.candidates import VIEWS
from bangs.estimator.contest import Ensemble
from bangs.estimator.folds import mean_of_runs
from bangs.estimator.inference import apply, calibrate_beside, calibrate_judged
from bangs.estimator.members import View
from bangs.estimator.stacking import mixed
from bangs.estimator.views import STRUCTURE, view_of
from bangs.graphs.edges import EdgeList
from bangs.graphs.store import StoreReference
from bangs.nn.models import Architecture
from bangs.runs.snapshot import Snapshot


@dataclass(frozen=True, eq=False)
class FittedMember:
    """R models of one kind, and how much they count among others."""

    name: str
    view: View
    architecture: Architecture
    weight: float
    temperature: float  # of the mean of its models
    weights: dict[str, Tensor]  # each [R, …], or [1, …] where the models share it

    def to_plain(self) -> dict[str, Any]:
        """All but the weights, for JSON."""
        shape = serialization.spell(self.architecture)
        facts = {"name": self.name, "view": self.view, "weight": self.weight, "temperature": self.temperature}
        return {**facts, "architecture": shape}


def fitted_members(found: Ensemble) -> list[FittedMember]:
    """What predicts other graphs, from members that have been fitted."""
    scales = (found.temperatures * found.sharper).tolist()
    return [
        FittedMember(own.name, own.view, own.architecture, weight, scale, own.weights)
        for own, weight, scale in zip(found.members, found.weights.tolist(), scales, strict=True)
    ]


def read_members(
    told: Sequence[Mapping[str, Any]],
    weights: Mapping[str, Tensor],
    features: int,
    classes: int,
    own: Architecture | None,
) -> list[FittedMember]:
    """The members of a file, from what `to_plain` told and their weights `number.name`; everything is checked."""
    out = []
    for number, facts in enumerate(told):
        prefix = f"{number}."
        mine = {name.removeprefix(prefix): t for name, t in weights.items() if name.startswith(prefix)}
        part = own if own is not None else serialization.read("model", facts["architecture"], {})
        view, weight, scale = facts["view"], float(facts["weight"]), float(facts["temperature"])
        if view not in VIEWS or not 0 < weight <= 1 or not 0 < scale < float("inf"):
            raise InvalidInput(f"its member {number} sees {view!r} with weight {weight} and temperature {scale}")
        width = {"features": features, "structure": STRUCTURE, "both": features + STRUCTURE}[view]
        serialization.check_weights(part, mine, width, classes)
        out.append(FittedMember(str(facts["name"]), view, part, weight, scale, mine))
    if not out or len(out) != len({name.split(".")[0] for name in weights}):
        raise InvalidInput("its members are not those its weights belong to")
    return out


def averaged(
    members: Sequence[FittedMember], classes: int, graph: Any, names: Any, seed: int, place: torch.device
) -> Tensor:
    """The log of the mean of all members' probabilities for every node of a graph: float [N, C]."""
    views = {view: view_of(graph, view, names, seed) for view in dict.fromkeys(own.view for own in members)}
    logs = [
        mean_of_runs(Prediction(apply(own.architecture, own.weights, classes, views[own.view], place))).logits[0]
        / own.temperature
        for own in members
    ]
    if len(logs) == 1:
        return logs[0]
    return mixed(logs, torch.tensor([own.weight for own in members], dtype=torch.float64))


def snapshot_of(graph: Any, labels: Tensor, held: Tensor, found: Ensemble) -> Snapshot:
    """The fit as one run, not calibrated: rounds and pseudo-labels of the heaviest member, predictions of all.

    `graph` is the learned one or where a store has it; labels and held are long [N].
    """
    leader = found.leader
    known = leader.adopted_round == 0
    return Snapshot(
        graph=graph if isinstance(graph, StoreReference) else _edges(graph),
        given=torch.where(known, leader.target, -1),
        held=held.cpu(),
        target=leader.target,
        adopted_round=leader.adopted_round,
        raw=found.mean,
        calibrated=found.mean,
        said=leader.said,
        sure=leader.sure,
        candidate_log=leader.candidate_log,
        chosen=leader.chosen,
        rows=leader.rows,
        belief=leader.belief,
        weight=leader.weight,
        unseen=found.unseen if bool((held >= 0).any()) else None,
    )


def calibrated_snapshot(plain: Snapshot, calibrate: Calibrator, graph: Any) -> Snapshot:
    """The same run with calibrated predictions, of judged nodes without help of their own labels."""
    calibrated = calibrate_beside(plain, plain.raw, graph, calibrate)
    judged = None if plain.unseen is None else calibrate_judged(plain, calibrate)
    return replace(plain, calibrated=calibrated, unseen_calibrated=judged)


def _edges(graph: Any) -> EdgeList:
    """The graph without features, on the CPU."""
    weight = graph.get("edge_weight")
    edges = graph.edge_index.cpu()
    return EdgeList(edges, int(graph.num_nodes or 0), None if weight is None else weight.cpu())
