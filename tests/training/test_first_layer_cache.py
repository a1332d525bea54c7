"""A first layer that training and validation share equals separate ones."""

from dataclasses import replace

import pytest
import torch

from bangs.core.rng import Streams
from bangs.core.types import Task
from bangs.graphs import splits
from bangs.graphs.datasets import synthetic
from bangs.nn.dropout import dropout_masks
from bangs.nn.loss import Targets
from bangs.nn.models import GCN, SGC
from bangs.training.first_layer_cache import FirstLayer, shared_first_layer
from bangs.training.trainer import Trainer

SEEDS = (3, 1, 2)
CPU = torch.device("cpu")


@pytest.fixture(scope="module", params=["sparse", "dense"])
def task(request):
    data = synthetic.citation(200, classes=3, features=24)
    if request.param == "dense":
        data.x = data.x.to_dense()
    return Task.of(data, splits.per_class(data.y, 5, 30, None, SEEDS))


def learner(task, model, *, once, **settings):
    made = Trainer(model, epochs=25, patience=25, **settings).prepare(task)
    made.network.hops_first = once
    return made


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    "model", [GCN(hidden=8, dropout=0.0), GCN(hidden=8, dropout=0.0, layers=3), GCN(layers=1), SGC()]
)
def test_losses_and_gradients_are_those_of_the_whole_graph(task, model, whole):
    prepared = learner(task, model, once=True).prepared
    network = model.build(24, 3, Streams(SEEDS))
    targets = [Targets(target, torch.rand(target.shape)) for target in (task.given.target, task.validation)]
    train_nodes, val_nodes = shared_first_layer(prepared, network.hops, *targets, whole=whole)
    for part, part_targets in zip((train_nodes, val_nodes), targets, strict=True):
        losses, gradients = [], []
        for subgraph, its_targets in ((part.subgraph, part.targets), (prepared.whole, part_targets)):
            network.zero_grad()
            losses.append(network.loss(subgraph, its_targets, dropout_masks(SEEDS, CPU), None))
            losses[-1].sum().backward() if part is train_nodes else None
            gradients.append([value.grad for value in network.parameters()])
        torch.testing.assert_close(*losses)
        for one, other in zip(*gradients, strict=True) if part is train_nodes else ():
            torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("settings", [{"subgraph": "whole"}, {"model": GCN(hidden=8, dropout=0.0)}])
def test_training_ends_with_the_same_weights(task, settings):
    val_layers = {"model": GCN(hidden=8), **settings}
    teachers = [learner(task, once=once, **val_layers).fit(task.given, Streams(SEEDS)) for once in (True, False)]
    for name, value in teachers[0].weights.items():
        torch.testing.assert_close(value, teachers[1].weights[name], atol=1e-4, rtol=1e-3)
    assert torch.equal(teachers[0].epochs, teachers[1].epochs)


def test_a_layer_is_taken_again_when_its_weight_has_changed_and_not_before(task):
    made = learner(task, GCN(hidden=8), once=True)
    layer = FirstLayer.of(made.prepared, task.given.target[0].argsort().numpy()[-5:])
    weight = made.network.weight[0]
    first = layer(weight)
    assert layer(weight) is first
    made.network.load({name: 2 * value for name, value in made.network.weights().items()})
    torch.testing.assert_close(layer(weight), 2 * first)
    session = made._session(task.given, None)
    session.begin(SEEDS, None)
    session.epoch()
    torch.testing.assert_close(layer(weight), replace(layer, _cached=None)(weight))


def test_a_run_alone_learns_what_it_learns_in_a_batch(task):
    in_batch = learner(task, GCN(hidden=8), once=True, subgraph="whole").fit(task.given, Streams(SEEDS))
    alone = task.only([1])
    teacher = learner(alone, GCN(hidden=8), once=True, subgraph="whole").fit(alone.given, Streams(SEEDS[1:2]))
    for name, value in teacher.weights.items():
        torch.testing.assert_close(value[0], in_batch.weights[name][1], atol=1e-5, rtol=1e-4)
