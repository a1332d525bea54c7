"""Training with a precomputed first hop equals training on the whole graph."""

import pytest
import torch

from bangs.core.rng import Streams
from bangs.core.types import Labels, Task
from bangs.graphs import splits
from bangs.graphs.datasets import synthetic
from bangs.nn.dropout import dropout_masks
from bangs.nn.loss import Targets
from bangs.nn.matmul import _MatmulInPieces
from bangs.nn.models import GCN, SGC
from bangs.training.precomputed_hop import FirstHop
from bangs.training.trainer import Trainer

SEEDS = (3, 1, 2)


@pytest.fixture(scope="module")
def task():
    data = synthetic.citation(300, classes=3, features=24)
    data.x = data.x.to_dense()
    split = splits.per_class(data.y, 5, 30, None, SEEDS)
    return Task.of(data, split)


def learner(task, model, *, ahead, **settings):
    made = Trainer(model, epochs=30, patience=30, **settings).prepare(task)
    made.first_hop = FirstHop.of(made.prepared) if ahead else None
    return made


@pytest.mark.parametrize("model", [GCN(dropout=0.0), GCN(dropout=0.0, layers=3), GCN(layers=1), SGC()])
def test_loss_and_gradient_are_those_of_the_whole_graph(task, model):
    made = learner(task, model, ahead=True)
    network = model.build(24, 3, Streams(SEEDS))
    results = []
    for target in (task.given.target, task.validation):
        targets = Targets(target, torch.rand(target.shape))
        target_nodes = made.first_hop.target_nodes(targets, network.hops)
        for subgraph, its_targets in ((target_nodes.subgraph, target_nodes.targets), (made.prepared.whole, targets)):
            network.zero_grad()
            loss = network.loss(subgraph, its_targets, dropout_masks(SEEDS, torch.device("cpu")), None)
            loss.sum().backward()
            results.append((loss.detach(), [value.grad.clone() for value in network.parameters()]))
        (loss, gradients), (expected, wanted) = results[-2:]
        assert torch.allclose(loss, expected, atol=1e-6)
        for one, other in zip(gradients, wanted, strict=True):
            assert torch.allclose(one, other, atol=1e-6)


def test_training_ends_with_the_same_weights(task):
    teachers = [
        learner(task, GCN(dropout=0.0, hidden=16), ahead=ahead)._train(task.given, Streams(SEEDS), None, None, None)
        for ahead in (True, False)
    ]
    for name, value in teachers[0].weights.items():
        assert torch.allclose(value, teachers[1].weights[name], atol=1e-4), name
    assert torch.equal(teachers[0].epochs, teachers[1].epochs)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_dropout_does_not_depend_on_other_runs(task):
    task = task.to("cuda")
    alone = learner(task.only([1]), GCN(hidden=16), ahead=True).fit(task.only([1]).given, Streams(SEEDS[1:2]))
    in_batch = learner(task, GCN(hidden=16), ahead=True).fit(task.given, Streams(SEEDS))
    for name, value in alone.weights.items():
        assert torch.allclose(value[0], in_batch.weights[name][1], atol=1e-4), name


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("model", [GCN(hidden=64), GCN(hidden=64, layers=3)])
def test_a_later_round_learns_what_a_fresh_learner_would(task, model):
    task = task.to("cuda")
    made = learner(task, model, ahead=True)
    for count in (2, 3, 40, 2):
        target = task.given.target.clone()
        target[:, target.shape[1] - count :] = 1
        labels = Labels(target, task.given.weight, task.given.adopted_round)
        teacher = made.fit(labels, Streams(SEEDS))
        fresh = learner(task, model, ahead=True).fit(labels, Streams(SEEDS))
        for name, value in teacher.weights.items():
            assert torch.equal(value, fresh.weights[name]), name


def test_runs_of_different_sizes_are_filled_up_with_nodes_of_no_target(task):
    target = task.given.target.clone()
    target[0, target[0].argmax() :] = -1
    part = FirstHop.of(learner(task, GCN(), ahead=False).prepared).target_nodes(
        Targets(target, torch.ones(target.shape)), 2
    )
    assert part.targets.target.shape[1] % 64 == 0
    assert torch.equal(part.targets.counts, (target >= 0).sum(1))


def test_features_that_stay_sparse_are_left_to_sparse_products():
    data = synthetic.citation(300, classes=3, features=2000)
    task = Task.of(data, splits.per_class(data.y, 5, 30, None, (0,)))
    assert FirstHop.of(Trainer().prepare(task).prepared) is None


def test_subgraphs_that_exceed_the_memory_limit_are_not_padded(task, monkeypatch):
    monkeypatch.setattr("bangs.training.precomputed_hop.MAX_BYTES", 100)
    made = learner(task, GCN(), ahead=True)
    assert made.first_hop.target_nodes(Targets(task.given.target, task.given.weight), 2) is None
    assert made.val_nodes.subgraph.runs == task.runs


def test_a_model_with_dropout_on_its_features_takes_its_hops_after():
    assert GCN().build(4, 2, Streams((0,))).hops_first
    assert not GCN(input_dropout=0.1).build(4, 2, Streams((0,))).hops_first


def test_a_gradient_summed_in_pieces_is_the_gradient():
    x, weight = torch.randn(3, 64, 5), torch.randn(3, 5, 80, requires_grad=True)
    outer = torch.randn(3, 64, 80)
    (x @ weight * outer).sum().backward()
    expected, weight.grad = weight.grad, None
    (_MatmulInPieces.apply(x, weight) * outer).sum().backward()
    assert torch.allclose(weight.grad, expected, atol=1e-5)
