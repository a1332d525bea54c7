"""Tasks: the graph and the labels a fit is given, and which labels judge it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.types import Task
from bangs.errors import InvalidInput
from bangs.estimator.candidates import Candidate
from bangs.estimator.folds import FOLDS, Folds, check_folds
from bangs.estimator.inputs import Inputs
from bangs.estimator.label_inputs import Classes, check_words, labelled
from bangs.estimator.members import View
from bangs.estimator.views import view_of
from bangs.graphs.splits import validation_split
from bangs.graphs.store import Store


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What a fit learns from: a graph without labels, labels long [N], and who is judged by which of them."""

    graph: Any  # a Data without y, or a StoredGraph
    labels: Tensor  # long [N], all that are learned from by some model; -1 = none
    folds: Folds
    classes: Classes
    notes: tuple[str, ...]

    @property
    def free(self) -> int:
        """How many nodes have no label."""
        return int((self.labels < 0).sum())


def training_data(given: Inputs, *, seed: int, folds: int | None, share: float | None, keep: Any = ()) -> TrainingData:
    """What a fit learns from.

    Validation nodes that the data bring judge one model, unless folds are asked for. Without them, labels are dealt
    into folds; or, if a share is given, that share of every class is held back. Of a graph on disk a quarter is held
    back unless folds are asked for. Labels in `keep` are classes, whatever they look like.
    """
    check_folds(folds)
    graph, stored = given.graph, isinstance(given.source, Store)
    target, classes, split = labelled(given.source, given.y, int(graph.num_nodes or 0))
    check_words(classes, keep)
    words = _words(given.source, classes)
    if len(classes) < 2:
        raise InvalidInput(f"the labels hold one class only, {words[0]!r}; a classifier needs at least two")
    own_validation = split is not None and bool(split.val.any())
    known = target if split is None else torch.where(split.train[0] | split.val[0], target, -1)
    if folds is not None or not (own_validation or share is not None or stored):
        made = Folds.of(known, folds or FOLDS, seed)
        return TrainingData(graph, known, made, classes, _told(made, folds or FOLDS, words))
    cut = validation_split(target, split, [seed], 0.25 if share is None else share, words)
    learned, held = torch.where(cut.train, target, -1), torch.where(cut.val, target, -1)
    if not (cut.train.any() and len(target[cut.train[0]].unique()) > 1):
        raise InvalidInput("the training labels hold one class only; a classifier needs at least two")
    return TrainingData(graph, learned[0], Folds(learned, held, True), classes, ())


def tasks_of(
    learned: TrainingData, tried: Sequence[Candidate], names: Any, seed: int, place: torch.device
) -> dict[View, Task]:
    """The task of every view that some candidate has of the graph."""
    views = dict.fromkeys(own.view for own in tried)
    count = len(learned.classes)
    return {view: learned.folds.task(view_of(learned.graph, view, names, seed), count, place) for view in views}


def _words(source: Any, classes: Classes) -> list[Any]:
    """What the classes are called: the numbers of a `Data` from tables by its `class_names`."""
    names = source.get("class_names") if isinstance(source, Data) else None
    return classes.tolist() if names is None else [names[number] for number in classes.tolist()]


def _told(made: Folds, asked: int, classes: Sequence[Any]) -> tuple[str, ...]:
    """What a person should know of the folds."""
    out = []
    if made.single_label_classes:
        names = ", ".join(repr(str(classes[label])) for label in made.single_label_classes[:5])
        more = f" and {len(made.single_label_classes) - 5} more" if len(made.single_label_classes) > 5 else ""
        out.append(
            f"one label only for {names}{more}: all models learn it, so no accuracy is known for "
            f"{'this class' if len(made.single_label_classes) == 1 else 'these classes'}"
        )
    if not made.has_held_out:
        out.append("no class has two labels, so no label can be held back: accuracy is not known")
    elif made.runs < asked:
        out.append(f"{made.runs} folds instead of {asked}, since only {made.runs} labels can judge")
    return tuple(out)
