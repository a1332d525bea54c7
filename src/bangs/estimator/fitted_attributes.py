"""FittedAttributes: the members, the snapshot and the attributes of a fitted classifier."""

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
from bangs.estimator.candidate_search import Ensemble
from bangs.estimator.candidates import VIEWS
from bangs.estimator.folds import mean_of_runs
from bangs.estimator.inference import apply, calibrate_logits, calibrate_unseen
from bangs.estimator.linear import LinearTrainer, PropagatedLinear
from bangs.estimator.members import View
from bangs.estimator.node_features import STRUCTURE_WIDTH
from bangs.graphs.edges import EdgeList
from bangs.graphs.store import StoreReference
from bangs.nn.models import Architecture
from bangs.runs.snapshot import Snapshot
from bangs.suggestion.node_vectors import merged

Array = npt.NDArray[Any]

_OF_HEAVIEST = (  # fields that a snapshot has from the heaviest member
    *("target", "adopted_round", "round_labels", "round_confidence", "scored_nodes"),
    *("chosen", "rows", "belief", "weight"),
)
MAX_SPACES = 3  # feature spaces of the heaviest linear members, from which the points of a snapshot are made


@dataclass(frozen=True, eq=False)
class FittedMember:
    """R models of one candidate, and their weight in the average."""

    name: str
    view: View
    architecture: Architecture
    weight: float
    temperature: float  # of the mean of its models
    weights: dict[str, Tensor]  # parameters, each [R, …], or [1, …] where the models share it

    def to_plain(self) -> dict[str, Any]:
        """All but the weights, for JSON."""
        return {
            "name": self.name,
            "view": self.view,
            "weight": self.weight,
            "temperature": self.temperature,
            "architecture": saved_parameters.to_json(self.architecture),
        }


def fitted_members(ensemble: Ensemble) -> list[FittedMember]:
    """The members of an ensemble, ready to predict other graphs."""
    temperatures = (ensemble.temperatures * ensemble.fold_mean_factor).tolist()
    return [
        FittedMember(member.name, member.view, member.architecture, weight, temperature, member.weights)
        for member, weight, temperature in zip(ensemble.members, ensemble.weights.tolist(), temperatures, strict=True)
    ]


def read_members(
    saved: Sequence[Mapping[str, Any]],
    weights: Mapping[str, Tensor],
    features: int,
    classes: int,
    architecture: Architecture | None,
) -> list[FittedMember]:
    """The members of a file, from what `to_plain` returned and their weights `number.name`; everything is checked.

    An architecture of the user is given, since a file cannot hold it.
    """
    out = []
    for number, facts in enumerate(saved):
        prefix = f"{number}."
        member_weights = {name.removeprefix(prefix): t for name, t in weights.items() if name.startswith(prefix)}
        part = architecture
        if part is None:
            part = saved_parameters.from_json("model", facts["architecture"], {})
        view, weight, temperature = facts["view"], float(facts["weight"]), float(facts["temperature"])
        if view not in VIEWS or not 0 < weight <= 1 or not 0 < temperature < float("inf"):
            raise InvalidInput(f"its member {number} sees {view!r} with weight {weight} and temperature {temperature}")
        width = {"features": features, "structure": STRUCTURE_WIDTH, "both": features + STRUCTURE_WIDTH}[view]
        saved_parameters.check_weights(part, member_weights, width, classes)
        out.append(FittedMember(str(facts["name"]), view, part, weight, temperature, member_weights))
    if not out or len(out) != len({name.split(".")[0] for name in weights}):
        raise InvalidInput("its members are not those its weights belong to")
    return out


def snapshot_of(
    graph: Any, store_reference: StoreReference | None, held: Tensor, ensemble: Ensemble, calibrate: Calibrator
) -> Snapshot:
    """The fit as one run: rounds and pseudo-labels of the heaviest member, calibrated predictions of all.

    `graph` is the fitted one, and `store_reference` says where it is on disk; held is long [N].
    """
    heaviest, mean = ensemble.heaviest, ensemble.mean
    snapshot = Snapshot(
        graph=_edges(graph) if store_reference is None else store_reference,
        given=torch.where(heaviest.adopted_round == 0, heaviest.target, -1),
        held=held.cpu(),
        raw=mean,
        calibrated=mean,
        unseen=ensemble.unseen if bool((held >= 0).any()) else None,
        **{name: getattr(heaviest, name) for name in _OF_HEAVIEST},
    )
    calibrated = calibrate_logits(snapshot, snapshot.raw, graph, calibrate)
    unseen_calibrated = None if snapshot.unseen is None else calibrate_unseen(snapshot, calibrate)
    return replace(snapshot, calibrated=calibrated, unseen_calibrated=unseen_calibrated)


def with_points(snapshot: Snapshot, members: Sequence[FittedMember], tasks: Mapping[View, Task]) -> Snapshot:
    """The snapshot with the points of its nodes [N, 64] and the disagreement of the models of all folds [N].

    Suggestions of nodes to label next need them. The disagreement is H(mean of p) − mean of H(p) over the models.
    """
    spaces: dict[tuple[PropagatedLinear, View], float] = {}  # what linear members learn from, and their weight
    total, negative_entropy = 0.0, torch.zeros(snapshot.nodes)
    mean = torch.zeros(snapshot.nodes, snapshot.classes)
    for member in members:
        task, model = tasks[member.view], member.architecture
        if isinstance(model, PropagatedLinear):
            spaces[model, member.view] = spaces.get((model, member.view), 0.0) + member.weight
            on_device = {name: value.to(task.device) for name, value in member.weights.items()}
            prediction = LinearTrainer(model).prepare(task).predict(on_device, task.graph)  # its inputs are cached
        else:
            prediction = Prediction(apply(model, member.weights, snapshot.classes, task.graph, task.device))
        entropies = (prediction.probs * prediction.log_probs.clamp_min(-100)).sum(-1)
        negative_entropy += member.weight * entropies.mean(0).cpu()
        mean += member.weight * mean_of_runs(prediction).probs[0].cpu()
        total += member.weight
    mean, negative_entropy = mean / total, negative_entropy / total
    disagreement = (negative_entropy - torch.xlogy(mean, mean).sum(1)).clamp_min(0)
    if not spaces:  # neural networks only: the propagated features of the first view
        spaces[PropagatedLinear(), next(iter(tasks))] = 1.0
    heaviest = sorted(spaces.items(), key=lambda space: -space[1])[:MAX_SPACES]
    inputs = [LinearTrainer(model).prepare(tasks[view]).inputs.cpu() for (model, view), _ in heaviest]
    points = merged(inputs, [weight for _, weight in heaviest])
    return replace(snapshot, points=points.half(), disagreement=disagreement)


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
        return {
            f"{n}.{name}": value for n, member in enumerate(self.members_) for name, value in member.weights.items()
        }

    @property
    def labels_(self) -> Array:
        """The labels the chosen model learned from [N]; where it had none: -1, "" among words, None among bools."""
        target = self.snapshot_.target.numpy()
        named = self.classes_[np.maximum(target, 0)]
        if self.classes_.dtype.kind == "b":
            named = named.astype(object)
        unknown: Any = {"U": "", "O": None}.get(named.dtype.kind, -1)
        return np.asarray(np.where(target >= 0, named, unknown))

    @property
    def labeled_iter_(self) -> Array:
        """The round in which each node got its label [N]: 0 = given, t = adopted in round t, -1 = none."""
        return self.snapshot_.adopted_round.numpy().copy()

    @property
    def history_(self) -> list[dict[str, Any]]:
        """One row per round, round 0 first."""
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
