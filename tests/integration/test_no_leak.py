"""No leak: test labels replaced by random ones, or hidden, change nothing that a learner does."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.types import Task
from bangs.errors import InvalidInput
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.experiments.experiment import Experiment, exam_of
from bangs.graphs.datasets import loading
from bangs.graphs.datasets.synthetic import citation
from bangs.graphs.splits import MASKS, mark, per_class
from bangs.selftraining.loop import State
from bangs.selftraining.methods import METHODS

SEEDS = (3, 7)
EXAM = ("test", "pseudo_accuracy", "seconds")  # of a history row: what only the exam knows, and the time


@cache
def citation_graph() -> Data:
    """A small citation network with a split of its own: 12 labelled, 24 for validation, 60 for the exam."""
    data = citation(nodes=120, classes=3, features=40, seed=1, mean_degree=5.0, homophily=0.9, signal=0.7)
    return mark(data, per_class(data.y, 4, 24, 60, [0]))


def relabelled(make: Callable[[Tensor], Tensor]) -> Data:
    """The graph with other labels wherever a learner should see none."""
    data = citation_graph().clone()
    unseen = ~(data.train_mask | data.val_mask)
    data.y = torch.where(unseen, make(data.y), data.y)
    assert not torch.equal(data.y, citation_graph().y)
    return data


def random(y: Tensor) -> Tensor:
    return torch.randint(0, 3, y.shape, generator=torch.Generator().manual_seed(5))


def hidden(y: Tensor) -> Tensor:
    return torch.full_like(y, -1)


def of_a_new_class(y: Tensor) -> Tensor:
    """One unseen node has a class that nobody else has."""
    data = citation_graph()
    first = int((~(data.train_mask | data.val_mask)).nonzero()[0])
    return torch.where(torch.arange(len(y)) == first, 9, y)


def experiment(method: str, **settings: Any) -> Experiment:
    common: dict[str, Any] = {"rounds": 2, "k": 8, "candidates": 16, "seeds": SEEDS, "changes": {"epochs": 20}}
    return Experiment(dataset="citation", method=method, **{**common, **settings})


def states_of(method: str, data: Data) -> list[State]:
    """Every round of a method whose learner sees what the experiment shows it of the data."""
    of, states = experiment(method), list[State]()
    of.self_trainer([states.append]).fit(Task.of(data, of._split(data), 3), SEEDS)
    return states


@cache
def undisturbed(method: str) -> list[State]:
    return states_of(method, citation_graph())


def assert_same_states(states: list[State], others: list[State]) -> None:
    """Adopted labels, their weights and reasons, chosen rounds and predictions are equal bit by bit."""
    assert len(states) == len(others)
    for one, other in zip(states, others, strict=True):
        for name in ("target", "weight", "adopted_round"):
            assert torch.equal(getattr(one.labels, name), getattr(other.labels, name))
        assert torch.equal(one.prediction.logits, other.prediction.logits)
        assert torch.equal(one.validation, other.validation)
        assert torch.equal(one.best_round, other.best_round)
        assert torch.equal(one.running, other.running)
        assert (one.adoption is None) == (other.adoption is None)
        if one.adoption is not None and other.adoption is not None:
            assert torch.equal(one.adoption.chosen, other.adoption.chosen)
            assert torch.equal(one.adoption.confidence, other.adoption.confidence)
            assert torch.equal(one.adoption.ranking.score, other.adoption.ranking.score)


@pytest.mark.parametrize("change", [random, hidden, of_a_new_class])
@pytest.mark.parametrize("method", METHODS)
def test_no_method_learns_from_labels_it_must_not_see(method: str, change: Callable[[Tensor], Tensor]) -> None:
    assert_same_states(undisturbed(method), states_of(method, relabelled(change)))


def test_the_scores_of_the_experiment_depend_on_them() -> None:
    """What does change is the mark, so the labels were really others."""
    of = experiment("bangs")
    right, wrong = (of.run(data=data, device="cpu") for data in (citation_graph(), relabelled(random)))
    assert right["chosen_round"] == wrong["chosen_round"]
    assert right["validation"]["mean"] > wrong["validation"]["mean"] + 20
    for one, other in zip(right["rounds"], wrong["rounds"], strict=True):
        assert {key: one[key] for key in one if key not in EXAM} == {
            key: other[key] for key in other if key not in EXAM
        }


def test_an_exam_without_answers_is_refused_before_anything_is_learned() -> None:
    with pytest.raises(InvalidInput, match="no test node of run 0 has a label, so nothing can be marked"):
        experiment("bangs").run(data=relabelled(hidden), device="cpu")


@pytest.mark.parametrize(
    "settings", [{}, {"noise": 0.3}, {"share": 0.1}, {"pool": "open"}, {"pool": "unused"}, {"teacher": "best"}]
)
def test_a_task_holds_no_trace_of_them(settings: dict[str, Any]) -> None:
    """Whatever part is added one day: what a learner is given is the same, bit by bit."""
    of = experiment("bangs", **settings)
    data = citation_graph()
    if "share" in settings:  # a split of its own, drawn from all labelled nodes
        split = of._split(data)
        unseen = ~(split.train | split.val).any(0)
    else:
        unseen = ~(data.train_mask | data.val_mask)
    other = data.clone()
    other.y = torch.where(unseen, (data.y + 1) % 3, data.y)
    assert_same_task(of.task(data), of.task(other))


def assert_same_task(one: Task, other: Task) -> None:
    assert "y" not in one.graph
    assert set(one.graph.keys()) == set(other.graph.keys()) <= {"x", "edge_index", "edge_weight", "num_nodes"}
    assert torch.equal(one.graph.x.to_dense(), other.graph.x.to_dense())
    assert torch.equal(one.graph.edge_index, other.graph.edge_index)
    assert torch.equal(one.given.target, other.given.target)
    assert torch.equal(one.given.weight, other.given.weight)
    assert torch.equal(one.validation, other.validation)
    assert one.classes == other.classes


def from_file(folder: Path, y: Tensor) -> Data:
    """The graph with other labels, read from an .npz file, which does not say how many classes there are."""
    data, file = citation_graph(), folder / "graph.npz"
    masks = {name: data[name].numpy() for name in MASKS}
    np.savez(file, x=data.x.to_dense().numpy(), edge_index=data.edge_index.numpy(), y=y.numpy(), **masks)
    return loading.load(file)


@pytest.mark.parametrize(
    "settings", [{}, {"noise": 0.3}, {"share": 0.1}, {"method": "drgst"}, {"method": "m3s"}, {"pool": "unused"}]
)
def test_a_test_label_of_a_new_class_changes_no_run(settings: dict[str, Any], tmp_path: Path) -> None:
    """The number of classes is that of the training and validation labels, unless the dataset declares it."""
    of = experiment(**{"method": "bangs", **settings})
    split = of._split(citation_graph())
    unseen = int((~(split.train | split.val).any(0) & split.test.all(0)).nonzero()[0])
    new = citation_graph().y.clone()
    new[unseen] = 3
    one, other = (of.run(data=from_file(tmp_path, y), device="cpu") for y in (citation_graph().y, new))
    for mine, theirs in zip(one["rounds"], other["rounds"], strict=True):
        assert {key: mine[key] for key in mine if key not in EXAM} == {
            key: theirs[key] for key in theirs if key not in EXAM
        }
    assert one["chosen_round"] == other["chosen_round"]


def test_a_class_of_test_nodes_only_moves_no_number_of_another(tmp_path: Path) -> None:
    """As in a store made from tables, whose classes are numbered in the order of their names."""
    of, data = experiment("bangs"), citation_graph()
    apart = torch.tensor([0, 2, 3])[data.y]  # 1 is a class that only one test node has
    apart[int(data.test_mask.nonzero()[0])] = 1
    graph = from_file(tmp_path, apart)
    task, exam = of.task(graph), exam_of(of, graph)
    assert_same_task(task, of.task(from_file(tmp_path, data.y)))
    truth = exam.answers[0, data.test_mask]
    assert truth[0] == task.classes  # which no model predicts, so it counts as wrong
    assert torch.equal(truth[1:], data.y[data.test_mask][1:])


def test_a_class_that_the_dataset_declares_is_learned_even_if_only_the_exam_has_it() -> None:
    data = citation_graph().clone()
    data.num_classes = 5
    assert experiment("bangs").task(data).classes == 5


@pytest.mark.parametrize("change", [random, hidden, of_a_new_class])
def test_the_classifier_learns_the_same(change: Callable[[Tensor], Tensor]) -> None:
    def fitted(data: Data) -> SelfTrainingClassifier:
        return SelfTrainingClassifier(
            method="hard", validation=0.25, rounds=2, k=8, epochs=20, random_state=0, device="cpu"
        ).fit(data)

    one, other = fitted(citation_graph()), fitted(relabelled(change))
    assert np.array_equal(one.predict_proba(), other.predict_proba())
    assert torch.equal(one.snapshot_.target, other.snapshot_.target)
    assert one.snapshot_.chosen == other.snapshot_.chosen
