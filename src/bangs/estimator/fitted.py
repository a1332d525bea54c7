"""Fitted: what a fit leaves, members that predict together, a snapshot to ask questions of, and its attributes."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bangs.calibration.calibrators import Calibrator
from bangs.core.types import Prediction, Task
from bangs.errors import InvalidInput
from bangs.estimator import saved_parameters
from bangs.estimator.candidates import VIEWS
from bangs.estimator.contest import Ensemble
from bangs.estimator.folds import mean_of_runs
from bangs.estimator.inference import apply, calibrate_beside, calibrate_judged
from bangs.estimator.linear import LinearTrainer, PropagatedLinear
from bangs.estimator.members import View
from bangs.estimator.stacking import mixture
from bangs.estimator.views import STRUCTURE, view_of
from bangs.graphs.edges import EdgeList
from bangs.graphs.store import StoreReference
from bangs.nn.models import Architecture
from bangs.runs.snapshot import Snapshot
from bangs.suggestion.points import merged

Array = npt.NDArray[Any]

SPACES = 3  # of linear members, the heaviest, that make the points of a snapshot


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
        shape = saved_parameters.spell(self.architecture)
        facts = {"name": self.name, "view": self.view, "weight": self.weight, "temperature": self.temperature}
        return {**facts, "architecture": shape}


def fitted_members(found: Ensemble) -> list[FittedMember]:
    """What predicts other graphs, from members that have been fitted."""
    scales = (found.temperatures * found.fold_mean_factor).tolist()
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
        part = own if own is not None else saved_parameters.read("model", facts["architecture"], {})
        view, weight, scale = facts["view"], float(facts["weight"]), float(facts["temperature"])
        if view not in VIEWS or not 0 < weight <= 1 or not 0 < scale < float("inf"):
            raise InvalidInput(f"its member {number} sees {view!r} with weight {weight} and temperature {scale}")
        width = {"features": features, "structure": STRUCTURE, "both": features + STRUCTURE}[view]
        saved_parameters.check_weights(part, mine, width, classes)
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
    return mixture(logs, torch.tensor([own.weight for own in members], dtype=torch.float64))


def snapshot_of(
    graph: Any, where: StoreReference | None, held: Tensor, found: Ensemble, calibrate: Calibrator
) -> Snapshot:
    """The fit as one run: rounds and pseudo-labels of the heaviest member, calibrated predictions of all.

    `graph` is the learned one and `where` the store that has it; held is long [N].
    """
    leader = found.leader
    known = leader.adopted_round == 0
    plain = Snapshot(
        graph=_edges(graph) if where is None else where,
        given=torch.where(known, leader.target, -1),
        held=held.cpu(),
        target=leader.target,
        adopted_round=leader.adopted_round,
        raw=found.mean,
        calibrated=found.mean,
        round_labels=leader.round_labels,
        round_confidence=leader.round_confidence,
        candidate_log=leader.candidate_log,
        chosen=leader.chosen,
        rows=leader.rows,
        belief=leader.belief,
        weight=leader.weight,
        unseen=found.unseen if bool((held >= 0).any()) else None,
    )
    calibrated = calibrate_beside(plain, plain.raw, graph, calibrate)
    judged = None if plain.unseen is None else calibrate_judged(plain, calibrate)
    return replace(plain, calibrated=calibrated, unseen_calibrated=judged)


def with_points(snapshot: Snapshot, members: Sequence[FittedMember], tasks: Mapping[View, Task]) -> Snapshot:
    """The snapshot with the points of its nodes [N, 64] and the disagreement of the models of all folds [N].

    They say which nodes to label next.
    """
    spaces: dict[tuple[PropagatedLinear, View], tuple[Tensor, float]] = {}
    total, sharp = 0.0, torch.zeros(snapshot.nodes)
    mean = torch.zeros(snapshot.nodes, snapshot.classes)
    for own in members:
        prediction = _predict(own, tasks[own.view], snapshot.classes, spaces)
        probs = prediction.probs
        sharp += own.weight * (probs * prediction.log_probs.clamp_min(-100)).sum(-1).mean(0).cpu()
        mean += own.weight * mean_of_runs(prediction).probs[0].cpu()
        total += own.weight
    mean, sharp = mean / total, sharp / total
    apart = (sharp - torch.xlogy(mean, mean).sum(1)).clamp_min(0)
    if not spaces:  # neural networks only: the propagated features of the first view
        view, task = next(iter(tasks.items()))
        spaces[PropagatedLinear(), view] = (LinearTrainer().prepare(task).inputs, 1.0)
    heaviest = sorted(spaces.values(), key=lambda own: -own[1])[:SPACES]
    points = merged([inputs.cpu() for inputs, _ in heaviest], [weight for _, weight in heaviest])
    return replace(snapshot, points=points.half(), disagreement=apart)


def _predict(
    own: FittedMember, task: Task, classes: int, spaces: dict[tuple[PropagatedLinear, View], tuple[Tensor, float]]
) -> Prediction:
    """What every model of a member says [R, N, C]; notes the inputs of linear ones."""
    if not isinstance(own.architecture, PropagatedLinear):
        return Prediction(apply(own.architecture, own.weights, classes, task.graph, task.device))
    learner = LinearTrainer(own.architecture).prepare(task)  # its inputs are there already
    before = spaces.get((own.architecture, own.view), (learner.inputs, 0.0))[1]
    spaces[own.architecture, own.view] = (learner.inputs, before + own.weight)
    return learner.predict({name: value.to(task.device) for name, value in own.weights.items()}, task.graph)


def _edges(graph: Any) -> EdgeList:
    """The graph without features, on the CPU."""
    weight = graph.get("edge_weight")
    edges = graph.edge_index.cpu()
    return EdgeList(edges, int(graph.num_nodes or 0), None if weight is None else weight.cpu())


class FittedAttributes:
    """Attributes that follow from the snapshot and the members of a fit."""

    snapshot_: Snapshot
    members_: list[FittedMember]
    classes_: Array  # [C]

    @property
    def weights_(self) -> dict[str, Tensor]:
        """The weights of every member by its number and their name, each [R, …] over the folds."""
        return {f"{n}.{name}": value for n, own in enumerate(self.members_) for name, value in own.weights.items()}

    @property
    def labels_(self) -> Array:
        """The labels the chosen model learned from [N]; -1, "" among words or None among bools, where it had none."""
        target = self.snapshot_.target.numpy()
        named = self.classes_[np.maximum(target, 0)]
        if self.classes_.dtype.kind == "b":
            named = named.astype(object)
        unknown: Any = {"U": "", "O": None}.get(named.dtype.kind, -1)
        found: Array = np.where(target >= 0, named, unknown)
        return found

    @property
    def labeled_iter_(self) -> Array:
        """The round in which each node got its label [N]: 0 = given, t = adopted in round t, -1 = none."""
        return self.snapshot_.adopted_round.numpy().copy()

    @property
    def history_(self) -> list[dict[str, Any]]:
        """One row a round, round 0 first."""
        return deepcopy(self.snapshot_.rows)

    @property
    def best_iter_(self) -> int:
        """The round whose student predicts."""
        return self.snapshot_.chosen

    @property
    def validation_score_(self) -> float:
        """Accuracy on labels that the models had not learned; NaN where none could be held back."""
        logits, _, label = self.snapshot_.judged
        return float((logits.argmax(-1) == label).double().mean()) if len(label) else float("nan")
