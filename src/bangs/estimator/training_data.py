"""Training data: the graph and the labels of a fit, and which labels are held out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.core.types import Task
from bangs.errors import InvalidInput
from bangs.estimator.candidates import Candidate, linear_candidates
from bangs.estimator.class_weights import are_uneven, class_weights, random_sample_weights, uneven_note, were_chosen
from bangs.estimator.folds import DEFAULT_FOLDS, Folds, check_folds
from bangs.estimator.inputs import Inputs
from bangs.estimator.label_inputs import Classes, check_class_names, labelled
from bangs.estimator.members import View
from bangs.estimator.node_features import view_of
from bangs.graphs.splits import validation_split
from bangs.graphs.store import Store
from bangs.selftraining.loop import Method


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What a fit learns from: a graph without labels, labels, and which of these are held out."""

    graph: Any  # a Data without y, or a StoredGraph
    labels: Tensor  # long [N], all labels that some model learns from; -1 = none
    folds: Folds
    classes: Classes
    class_weights: Tensor  # float64 [C], how much a label of each class counts where models learn
    held_class_weights: Tensor  # float64 [C], and where they are judged
    notes: tuple[str, ...]


def training_data(
    inputs: Inputs,
    *,
    seed: int,
    folds: int | None,
    validation: float | None,
    class_weight: Any = "auto",
    keep: Any = (),
) -> TrainingData:
    """What a fit learns from.

    If `folds` is given, labels are split into so many folds. Else validation nodes of the data are held out from one
    model, or the share `validation` of every class, or a quarter if the graph stays on disk. Else there are four folds.
    Labels in `keep` are classes, even if they look like "no label".
    """
    check_folds(folds)
    graph, stored = inputs.graph, isinstance(inputs.source, Store)
    target, classes, split = labelled(inputs.source, inputs.y, int(graph.num_nodes or 0))
    check_class_names(classes, keep)
    names = _class_names(inputs.source, classes)
    if len(classes) < 2:
        raise InvalidInput(f"the labels hold one class only, {names[0]!r}; a classifier needs at least two")
    has_validation = split is not None and bool(split.val.any())
    if folds is not None or not (has_validation or validation is not None or stored):
        known = target if split is None else torch.where(split.train[0] | split.val[0], target, -1)
        dealt = Folds.of(known, folds or DEFAULT_FOLDS, seed)
        weights = class_weights(class_weight, classes, known)
        return TrainingData(
            graph, known, dealt, classes, weights, weights, _notes(dealt, folds or DEFAULT_FOLDS, names)
        )
    cut = validation_split(target, split, [seed], 0.25 if validation is None else validation, names)
    given, held = torch.where(cut.train, target, -1), torch.where(cut.val, target, -1)
    if not (cut.train.any() and len(target[cut.train[0]].unique()) > 1):
        raise InvalidInput("the training labels hold one class only; a classifier needs at least two")
    # given and held labels may have other class shares, so they are balanced apart
    weights, held_weights = (class_weights(class_weight, classes, part[0]) for part in (given, held))
    return TrainingData(graph, given[0], Folds(given, held, True), classes, weights, held_weights, ())


def tasks_of(
    data: TrainingData, candidates: Sequence[Candidate], names: Any, seed: int, device: torch.device
) -> dict[View, Task]:
    """The task of every view that some candidate has of the graph."""
    views = dict.fromkeys(candidate.view for candidate in candidates)
    return {view: data.folds.task(view_of(data.graph, view, names, seed), data.class_weights, device) for view in views}


def settle_class_weights(
    data: TrainingData, tasks: Mapping[View, Task], source: Any, seeds: Sequence[int]
) -> tuple[TrainingData, dict[View, Task]]:
    """The same with class weights that suit how the labels were drawn, as `class_weight="auto"` finds them.

    Uneven labels that look chosen by class stay balanced, and so do those of which none can be held out, and those of
    almost all nodes. Others, and those of a graph on disk, count as a random sample.
    """
    labels = data.folds.all_labels
    if not are_uneven(labels):
        return data, dict(tasks)
    has_held_out, stored, chosen = data.folds.has_held_out, isinstance(source, Store), None
    if has_held_out and not stored:
        view = next(iter(tasks))
        candidate = linear_candidates(tasks[view].graph, Method(rounds=0), "raw", (view,))[0]
        learner = candidate.trainer.prepare(tasks[view])
        prediction = learner.fit(tasks[view].given, Streams(tuple(seeds))).predict(tasks[view].graph)
        chosen = were_chosen(prediction, tasks[view].validation, labels)
    balanced = not (stored and has_held_out) if chosen is None else chosen
    note = uneven_note(labels, _class_names(source, data.classes), chosen, balanced)
    data = replace(data, notes=(*data.notes, note))
    if balanced:
        return data, dict(tasks)
    parts = data.labels, data.folds.held.amax(0)
    weights, held_weights = (random_sample_weights(part, len(data.classes)) for part in parts)
    data = replace(data, class_weights=weights, held_class_weights=held_weights)
    given = {view: data.folds.given_labels(data.class_weights).to(task.device) for view, task in tasks.items()}
    return data, {view: replace(task, given=given[view]) for view, task in tasks.items()}


def _class_names(source: Any, classes: Classes) -> list[Any]:
    """The names of the classes; a `Data` from tables has numbers as classes, and their names in `class_names`."""
    names = source.get("class_names") if isinstance(source, Data) else None
    return classes.tolist() if names is None else [names[number] for number in classes.tolist()]


def _notes(folds: Folds, wanted: int, classes: Sequence[Any]) -> tuple[str, ...]:
    """What the user should know about the folds."""
    out = []
    single = folds.single_label_classes
    if single and folds.has_held_out:
        names = ", ".join(repr(str(classes[label])) for label in single[:5])
        more = f" and {len(single) - 5} more" if len(single) > 5 else ""
        out.append(
            f"one label only for {names}{more}: all models learn it, so no accuracy is known for "
            f"{'this class' if len(single) == 1 else 'these classes'}"
        )
    if not folds.has_held_out:
        out.append("most classes have one label only, so no label is held back: accuracy is not known")
    elif folds.runs < wanted:
        out.append(f"{folds.runs} folds instead of {wanted}, since only {folds.runs} labels can judge")
    return tuple(out)
