"""Tasks: the graph and the labels of a fit, and which labels are held out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.number_checks import check_number
from bangs.core.types import Task
from bangs.errors import InvalidInput
from bangs.estimator.candidates import Candidate, are_uneven
from bangs.estimator.feature_views import view_of
from bangs.estimator.folds import DEFAULT_FOLDS, Folds, check_folds
from bangs.estimator.inputs import Inputs
from bangs.estimator.label_inputs import Classes, check_class_names, labelled
from bangs.estimator.members import View
from bangs.graphs.splits import validation_split
from bangs.graphs.store import Store


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What a fit learns from: a graph without labels, labels, and which of these are held out."""

    graph: Any  # a Data without y, or a StoredGraph
    labels: Tensor  # long [N], all labels that some model learns from; -1 = none
    folds: Folds
    classes: Classes
    class_weights: Tensor  # float64 [C], how much a label of each class counts
    notes: tuple[str, ...]


def training_data(
    inputs: Inputs,
    *,
    seed: int,
    folds: int | None,
    validation: float | None,
    class_weight: Any = "balanced",
    keep: Any = (),
) -> TrainingData:
    """What a fit learns from.

    If `folds` is given, labels are split into so many folds. Else validation nodes of the data are held out from one
    model, or the share `validation` of every class, or a quarter if the graph stays on disk. Else there are four folds.
    Class weights are those of scikit-learn: "balanced", None for equal ones, or a dict. Labels in `keep` are classes,
    even if they look like "no label".
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
        weights = _class_weights(class_weight, classes, known)
        notes = _fold_notes(dealt, folds or DEFAULT_FOLDS, names) + _uneven_notes(class_weight, known, names)
        return TrainingData(graph, known, dealt, classes, weights, notes)
    cut = validation_split(target, split, [seed], 0.25 if validation is None else validation, names)
    given, held = torch.where(cut.train, target, -1), torch.where(cut.val, target, -1)
    if not (cut.train.any() and len(target[cut.train[0]].unique()) > 1):
        raise InvalidInput("the training labels hold one class only; a classifier needs at least two")
    known = torch.where(cut.val[0], held[0], given[0])
    weights, notes = _class_weights(class_weight, classes, known), _uneven_notes(class_weight, known, names)
    return TrainingData(graph, given[0], Folds(given, held, True), classes, weights, notes)


def tasks_of(
    data: TrainingData, candidates: Sequence[Candidate], names: Any, seed: int, device: torch.device
) -> dict[View, Task]:
    """The task of every view that some candidate has of the graph."""
    views = dict.fromkeys(candidate.view for candidate in candidates)
    return {view: data.folds.task(view_of(data.graph, view, names, seed), data.class_weights, device) for view in views}


def check_class_weight(class_weight: Any) -> None:
    """Raises where `class_weight` is neither "balanced" nor None nor a dict of positive numbers."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        raise InvalidInput(f"class_weight must be 'balanced', None or a dict, got {class_weight!r}")
    for name, weight in class_weight.items():
        check_number(f"class_weight of class {name!r}", weight, within="(0, inf)")


def _class_weights(class_weight: Any, classes: Classes, labels: Tensor) -> Tensor:
    """How much a label of each class counts: float64 [C], from the labels long [N]. Only their ratios matter."""
    check_class_weight(class_weight)
    if class_weight == "balanced":
        counts = torch.bincount(labels[labels >= 0], minlength=len(classes))
        return counts.sum() / (len(classes) * counts.clamp_min(1).double())
    given = {} if class_weight is None else dict(class_weight)
    weights = [float(given.pop(name, 1.0)) for name in classes.tolist()]
    if given:
        known = ", ".join(map(repr, classes.tolist()))
        raise InvalidInput(f"class_weight names class {next(iter(given))!r}; the labels have {known}")
    return torch.tensor(weights, dtype=torch.float64)


def _class_names(source: Any, classes: Classes) -> list[Any]:
    """The names of the classes; a `Data` from tables has numbers as classes, and their names in `class_names`."""
    names = source.get("class_names") if isinstance(source, Data) else None
    return classes.tolist() if names is None else [names[number] for number in classes.tolist()]


def _fold_notes(folds: Folds, wanted: int, classes: Sequence[Any]) -> tuple[str, ...]:
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


def _uneven_notes(class_weight: Any, labels: Tensor, classes: Sequence[Any]) -> tuple[str, ...]:
    """What the user should know if classes have different numbers of labels long [N], and all count alike."""
    if class_weight != "balanced" or not are_uneven(labels):
        return ()
    counts = torch.bincount(labels[labels >= 0])
    most, median = int(counts.argmax()), int(counts[counts > 0].median())
    return (
        f"class {str(classes[most])!r} has {counts[most]:,} labels, the median class {median:,}; all classes count "
        "alike in training; if the labels are a random sample of the nodes, compare with --class-weight none "
        "(class_weight=None)",
    )
