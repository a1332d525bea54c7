"""The shared types keep their invariants."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bangs.core.rng import Streams
from bangs.core.types import Labels, Prediction, Round, Split, Task
from bangs.errors import InvalidInput
from bangs.graphs.pagerank import PPR
from bangs.graphs.sparse import to_scipy


def rows(runs: int, nodes: int, low: int, high: int) -> st.SearchStrategy[Tensor]:
    row = st.lists(st.integers(low, high), min_size=nodes, max_size=nodes)
    return st.lists(row, min_size=runs, max_size=runs).map(torch.tensor)


@given(target=rows(2, 6, -1, 2), chosen=rows(2, 6, 0, 1), again=rows(2, 6, 0, 1), label=rows(2, 6, 0, 2))
@settings(max_examples=30, deadline=None)
def test_given_labels_never_change(target, chosen, again, label):
    given_labels = Labels.given(target)
    labels = given_labels.adopt(chosen.bool(), label, 0.5, 1).adopt(again.bool(), 2 - label, 0.25, 2)
    known = target >= 0
    assert torch.equal(labels.target[known], target[known])
    assert torch.equal(labels.weight[known], torch.ones(int(known.sum())))
    assert (labels.adopted_round[known] == 0).all()
    assert torch.equal(labels.adopted, (chosen | again).bool() & ~known)
    assert torch.equal(labels.known, labels.adopted | known)
    assert torch.equal(labels.known, labels.adopted_round >= 0)
    assert torch.equal(labels.known, labels.weight > 0)


def test_adopting_by_hand():
    labels = Labels.given(torch.tensor([[1, -1, -1, -1]]))
    assert labels.weight.tolist() == [[1, 0, 0, 0]]
    assert labels.adopted_round.tolist() == [[0, -1, -1, -1]]
    weight = torch.tensor([[9.0, 0.5, 0.25, 9.0]])
    after = labels.adopt(torch.tensor([[True, True, True, False]]), torch.tensor([[0, 0, 1, 1]]), weight, 4)
    assert after.target.tolist() == [[1, 0, 1, -1]]
    assert after.weight.tolist() == [[1, 0.5, 0.25, 0]]
    assert after.adopted_round.tolist() == [[0, 4, 4, -1]]
    assert labels.target.tolist() == [[1, -1, -1, -1]], "the labels before are left as they are"


def test_new_weights_reach_labelled_nodes_only():
    labels = Labels.given(torch.tensor([[0, -1, 1]])).weighted(torch.tensor([[0.5, 0.7, 2.0]]))
    assert labels.weight.tolist() == [[0.5, 0, 2.0]]
    assert labels.target.tolist() == [[0, -1, 1]]


def test_where_picks_whole_runs():
    first, second = Labels.given(torch.tensor([[0, 1], [0, 1]])), Labels.given(torch.tensor([[-1, -1], [-1, 1]]))
    mixed = Labels.where(torch.tensor([True, False]), first, second)
    assert mixed.target.tolist() == [[0, 1], [-1, 1]]
    assert mixed.weight.tolist() == [[1, 1], [0, 1]]
    assert mixed.adopted_round.tolist() == [[0, 0], [-1, 0]]
    ones, zeros = Prediction(torch.ones(2, 3, 2)), Prediction(torch.zeros(2, 3, 2))
    picked = Prediction.where(torch.tensor([False, True]), ones, zeros)
    assert picked.logits.mean((1, 2)).tolist() == [0, 1]


def test_a_prediction_by_hand():
    prediction = Prediction(torch.tensor([[[0.0, 0.0], [3.0, 1.0]]], dtype=torch.float64))
    high = 1 / (1 + torch.tensor(-2.0, dtype=torch.float64).exp().item())
    assert prediction.confidence.tolist() == [[0.5, pytest.approx(high)]]
    assert prediction.label[0, 1] == 0
    torch.testing.assert_close(prediction.log_probs.exp(), prediction.probs)
    torch.testing.assert_close(prediction.probs.sum(-1), torch.ones(1, 2, dtype=torch.float64))


def test_a_constant_added_to_a_nodes_logits_changes_nothing():
    logits = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    shifted = Prediction(logits + torch.arange(10.0).view(2, 5, 1))
    torch.testing.assert_close(shifted.probs, Prediction(logits).probs)
    assert torch.equal(shifted.label, Prediction(logits).label)


def test_a_split_repeats_and_gives_some_of_its_runs():
    node = torch.arange(6)
    split = Split.repeated(node < 2, node == 2, node > 3, runs=3)
    assert split.train.shape == (3, 6)
    split.train[0, 0] = False
    assert split.train[1, 0], "runs do not share memory"
    assert split.only([0, 2]).train.tolist() == [split.train[0].tolist(), split.train[2].tolist()]


def test_a_task_holds_no_label_but_those_of_training_and_validation(data_and_split):
    data, split = data_and_split
    task = Task.of(data, split)
    assert "y" not in task.graph
    assert set(task.graph.keys()) == {"x", "edge_index", "num_nodes"}
    assert torch.equal(task.given.target, torch.where(split.train, data.y, -1))
    assert torch.equal(task.validation, torch.where(split.val, data.y, -1))
    assert torch.equal(task.held, split.val)
    assert (task.runs, task.nodes, task.classes, task.device.type) == (3, 24, 2, "cpu")


def test_labels_of_test_nodes_are_not_read(data_and_split):
    data, split = data_and_split
    spoiled = data.clone()
    spoiled.y = torch.where(split.test[0], torch.randint(-5, 99, (24,)), data.y)
    assert Task.of(spoiled, split).classes == 2
    assert torch.equal(Task.of(spoiled, split).given.target, Task.of(data, split).given.target)


def test_runs_may_see_different_labels(data_and_split):
    data, split = data_and_split
    labels_per_run = data.y.expand(3, -1).clone()
    labels_per_run[1] = 1 - labels_per_run[1]
    data.y = labels_per_run
    task = Task.of(data, split)
    assert torch.equal(task.given.target[0], task.given.target[2])
    assert torch.equal(task.given.target[1, :4], 1 - task.given.target[0, :4])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64, torch.bool])
@pytest.mark.parametrize("sparse", [False, True])
def test_features_of_any_number_type_become_float32(data_and_split, dtype, sparse):
    data, split = data_and_split
    x = (data.x > 0.5).to(dtype)
    data.x = x.to_sparse_csr() if sparse else x
    graph = Task.of(data, split).graph
    assert graph.x.dtype == torch.float32
    features = torch.as_tensor(to_scipy(graph.x).toarray()) if sparse else graph.x
    assert torch.equal(features, x.float())


def test_edge_weights_come_along(data_and_split):
    data, split = data_and_split
    data.edge_weight = torch.rand(data.num_edges, dtype=torch.float64)
    graph = Task.of(data, split).graph
    torch.testing.assert_close(graph.edge_weight, data.edge_weight.float())


def test_the_users_graph_is_left_as_it_is(data_and_split):
    data, split = data_and_split
    before = {key: value.clone() for key, value in data.items()}
    task = Task.of(data, split)
    task.graph.extra = torch.zeros(1)
    assert set(data.keys()) == set(before)
    assert all(torch.equal(data[key], value) for key, value in before.items())


def test_moving_a_task_leaves_the_old_one_where_it_was(task):
    moved = task.to("meta")
    assert moved.device.type == moved.graph.x.device.type == moved.given.target.device.type == "meta"
    assert task.device.type == task.graph.x.device.type == task.graph.edge_index.device.type == "cpu"


def test_some_runs_of_a_task(task):
    some = task.only([2, 0])
    assert some.runs == 2
    assert some.graph is task.graph
    assert torch.equal(some.validation, task.validation[[2, 0]])
    assert torch.equal(some.given.weight, task.given.weight[[2, 0]])


def test_what_is_made_of_the_graph_is_made_once(task):
    assert task.cached(PPR(0.2)) is task.cached(PPR(0.2))
    assert task.cached(PPR(0.2)) is not task.cached(PPR(0.3))


def test_a_round_shows_the_tasks_graph(task):
    prediction = Prediction(torch.zeros(3, 24, 2))
    round = Round(1, task, task.given, prediction, prediction, ~task.held, None, Streams((1, 2, 3)))
    assert round.graph is task.graph


def test_facts_are_frozen(task):
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.given.target = task.validation


def test_an_overlapping_split_is_refused():
    node = torch.arange(6)
    with pytest.raises(InvalidInput, match="disjoint"):
        Split.repeated(node < 3, node == 2, node > 3, runs=1)
