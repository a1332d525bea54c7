"""Hints: what a fit keeps to say which nodes to label next."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from bangs.core.types import Prediction, Task
from bangs.estimator.fitted import FittedMember
from bangs.estimator.folds import mean_of_runs
from bangs.estimator.inference import apply
from bangs.estimator.linear import LinearTrainer, PropagatedLinear
from bangs.estimator.members import View
from bangs.runs.snapshot import Snapshot
from bangs.suggestion.points import merged

SPACES = 3  # of linear members, the heaviest, that make the points


def with_hints(snapshot: Snapshot, members: Sequence[FittedMember], tasks: Mapping[View, Task]) -> Snapshot:
    """The snapshot with the points of its nodes [N, 64] and the disagreement of the models of all folds [N]."""
    spaces: dict[tuple[PropagatedLinear, View], tuple[Tensor, float]] = {}
    total, sharp = 0.0, torch.zeros(snapshot.nodes)
    mean = torch.zeros(snapshot.nodes, snapshot.classes)
    for own in members:
        said = _said(own, tasks[own.view], snapshot.classes, spaces)
        probs = said.probs
        sharp += own.weight * (probs * said.log_probs.clamp_min(-100)).sum(-1).mean(0).cpu()
        mean += own.weight * mean_of_runs(said).probs[0].cpu()
        total += own.weight
    mean, sharp = mean / total, sharp / total
    apart = (sharp - torch.xlogy(mean, mean).sum(1)).clamp_min(0)
    if not spaces:  # neural networks only: the propagated features of the first view
        view, task = next(iter(tasks.items()))
        spaces[PropagatedLinear(), view] = (LinearTrainer().prepare(task).inputs, 1.0)
    heaviest = sorted(spaces.values(), key=lambda own: -own[1])[:SPACES]
    points = merged([inputs.cpu() for inputs, _ in heaviest], [weight for _, weight in heaviest])
    return replace(snapshot, points=points.half(), disagreement=apart)


def _said(
    own: FittedMember, task: Task, classes: int, spaces: dict[tuple[PropagatedLinear, View], tuple[Tensor, float]]
) -> Prediction:
    """What every model of a member says [R, N, C]; notes the inputs of linear ones."""
    if not isinstance(own.architecture, PropagatedLinear):
        return Prediction(apply(own.architecture, own.weights, classes, task.graph, task.device))
    learner = LinearTrainer(own.architecture).prepare(task)  # its inputs are there already
    before = spaces.get((own.architecture, own.view), (learner.inputs, 0.0))[1]
    spaces[own.architecture, own.view] = (learner.inputs, before + own.weight)
    return learner.predict({name: value.to(task.device) for name, value in own.weights.items()}, task.graph)
