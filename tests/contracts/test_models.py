"""What every architecture promises: R models as one, each by itself, on any sound graph."""

from dataclasses import fields, replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.core.types import Labels, Split, Task
from bangs.graphs.sparse import to_torch
from bangs.nn import models
from bangs.nn.ensemble import Network
from bangs.nn.loss import Targets
from bangs.nn.models import MODELS, Architecture
from bangs.nn.subgraphs import PreparedGraph, per_run_subgraph
from bangs.training.trainer import Trainer
from tests.conftest import masks, two_rings

SEEDS = (3, 5, 7)
CLASSES = 3
SMALL = {"gcnii": {"layers": 4, "hidden": 16}, "gat": {"heads": 2}, "grand": {"order": 3}}  # to save seconds
LOCAL = ("gcn", "graphsage", "sgc", "gat", "gin")  # a node sees only so many hops
WEIGHTED = ("gcn", "graphsage", "sgc", "appnp", "gcnii", "grand")  # listen to edge weights


@pytest.fixture(params=sorted(MODELS))
def model(request) -> Architecture:
    return MODELS[request.param](**SMALL.get(request.param, {}))


def quiet(model: Architecture) -> Architecture:
    """The same model without dropout of any kind."""
    rates = {one.name for one in fields(model)} & {"dropout", "input_dropout", "drop_node"}
    return replace(model, **dict.fromkeys(rates, 0.0))


def build(model: Architecture, graph: Data, seeds: tuple[int, ...] = SEEDS) -> Network:
    return model.build(graph.x.shape[1], CLASSES, Streams(seeds))


def whole(network: Network, graph: Data, runs: int = len(SEEDS)):
    return PreparedGraph.of(graph, runs, network.loops, network.normalise).whole


@torch.no_grad()
def logits_of(model: Architecture, graph: Data, seeds: tuple[int, ...] = SEEDS) -> Tensor:
    network = build(model, graph, seeds)
    return network(whole(network, graph, len(seeds)))


def wide(nodes: int = 20, density: float = 0.1) -> tuple[Data, Data]:
    """Two rings with few features among many, dense and sparse."""
    dense, sparse = two_rings(nodes), two_rings(nodes)
    x = sp.random_array((nodes, 30), density=density, format="csr", rng=0, dtype=np.float32)
    dense.x, sparse.x = torch.as_tensor(x.toarray()), to_torch(x)
    return dense, sparse


def test_logits_have_a_row_per_run_and_node(model):
    logits = logits_of(model, two_rings(14))
    assert logits.shape == (3, 14, CLASSES)
    assert logits.dtype == torch.float32
    assert torch.isfinite(logits).all()


@torch.no_grad()
def test_a_run_alone_equals_the_run_in_a_batch(model):
    torch.testing.assert_close(logits_of(model, two_rings(), (5,))[0], logits_of(model, two_rings())[1])


@torch.no_grad()
def test_with_dropout_on_the_whole_graph_too(model):
    for graph in wide():
        together, alone = build(model, graph), build(model, graph, (5,))
        seen, in_batch = masks(5), masks(*SEEDS)
        for _ in range(2):
            single = alone(whole(alone, graph, 1), seen)
            torch.testing.assert_close(single[0], together(whole(together, graph), in_batch)[1])


@torch.no_grad()
def test_dropout_of_rate_zero_is_none(model):
    graph = two_rings()
    network = build(quiet(model), graph)
    torch.testing.assert_close(network(whole(network, graph), masks(*SEEDS)), network(whole(network, graph)))


@torch.no_grad()
def test_a_runs_logits_depend_on_its_own_weights_only(model):
    graph = two_rings()
    network = build(model, graph)
    before = network(whole(network, graph))
    weights = network.weights()
    for value in weights.values():
        value[1] += 1
    network.load(weights)
    after = network(whole(network, graph))
    assert torch.equal(after[[0, 2]], before[[0, 2]])
    assert not torch.allclose(after[1], before[1])


def test_a_runs_loss_moves_its_own_weights_and_all_of_them(model):
    graph = two_rings()
    network = build(quiet(model), graph)
    target = (torch.arange(24) % CLASSES).expand(3, -1)
    loss = network.loss(whole(network, graph), Targets(target, torch.ones(3, 24)), masks(*SEEDS), None)
    assert loss.shape == (3,)
    loss[1].backward()
    for parameter in network.parameters():
        assert not parameter.grad[[0, 2]].any()
        assert parameter.grad[1].any()


def test_equal_seeds_give_equal_weights_and_others_do_not(model):
    graph = two_rings()
    once, again = build(model, graph).weights(), build(model, graph).weights()
    assert all(torch.equal(once[name], again[name]) for name in once)
    twins = build(model, graph, (4, 4, 8)).weights()
    assert all(torch.equal(value[0], value[1]) for value in twins.values())
    assert any(not torch.equal(value[0], value[2]) for value in twins.values())


@torch.no_grad()
def test_sparse_features_equal_dense_ones(model):
    dense, sparse = wide()
    torch.testing.assert_close(logits_of(model, sparse), logits_of(model, dense))


@pytest.mark.parametrize("name", sorted(MODELS))
@torch.no_grad()
def test_the_part_of_the_graph_a_node_sees_gives_the_same_logits(name):
    for graph in (two_rings(), *wide()):
        network = build(MODELS[name](), graph)
        assert (network.hops is not None) == (name in LOCAL)
        if network.hops is None:
            continue
        prepared = PreparedGraph.of(graph, 3, network.loops, network.normalise)
        for nodes in ([0], [2, 3, 11], [1, 5, 6, 7, 8, 19]):
            part = network(prepared.k_hop_subgraph(np.array(nodes), network.hops))
            torch.testing.assert_close(part, network(prepared.whole)[:, nodes])


@torch.no_grad()
def test_runs_may_look_at_different_graphs(model):
    graphs = [two_rings(seed=seed) for seed in range(3)]
    graphs[2].edge_index = graphs[2].edge_index[:, 5:30]
    network = build(model, graphs[0])
    together = network(per_run_subgraph(graphs, network.loops, network.normalise, whole(network, graphs[0])))
    for run, graph in enumerate(graphs):
        torch.testing.assert_close(together[run], network(whole(network, graph))[run])


@torch.no_grad()
def test_an_isolated_node_is_decided_by_itself(model):
    graph = two_rings(12)
    graph.x = torch.cat([graph.x, torch.tensor([[1.0, -1.0], [0.5, 2.0]])])
    before = logits_of(model, graph)
    assert torch.isfinite(before).all()
    graph.x = graph.x.clone()
    graph.x[:12] = 7.0
    torch.testing.assert_close(logits_of(model, graph)[:, 12:], before[:, 12:])


@pytest.mark.parametrize("edges", [[[], []], [[0], [1]], [[2], [2]], [[0, 0, 1], [1, 1, 0]]])
def test_hardly_any_edges_are_enough(model, edges):
    graph = Data(x=torch.arange(12.0).view(4, 3) / 6, edge_index=torch.tensor(edges, dtype=torch.long))
    network = build(model, graph)
    subgraph = whole(network, graph)
    loss = network.loss(subgraph, Targets(torch.tensor([[0, 1, 2, -1]] * 3), torch.ones(3, 4)), masks(*SEEDS), None)
    loss.sum().backward()
    assert torch.isfinite(network(subgraph)).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in network.parameters())


@torch.no_grad()
def test_edge_weights_of_one_change_nothing(model):
    plain, weighted = two_rings(), two_rings()
    weighted.edge_weight = torch.ones(weighted.num_edges)
    torch.testing.assert_close(logits_of(model, weighted), logits_of(model, plain))


@pytest.mark.parametrize("name", WEIGHTED)
@torch.no_grad()
def test_an_edge_of_weight_zero_is_no_edge(name):
    fewer, weighted = two_rings(), two_rings()
    fewer.edge_index = fewer.edge_index[:, :-9]
    weighted.edge_weight = torch.ones(weighted.num_edges)
    weighted.edge_weight[-9:] = 0
    torch.testing.assert_close(logits_of(MODELS[name](), weighted), logits_of(MODELS[name](), fewer))
    assert not torch.allclose(logits_of(MODELS[name](), weighted), logits_of(MODELS[name](), two_rings()))


@torch.no_grad()
def test_the_order_of_the_nodes_does_not_matter(model):
    graph = two_rings()
    order = torch.randperm(24, generator=torch.Generator().manual_seed(0))
    place = torch.empty_like(order).scatter(0, order, torch.arange(24))
    shuffled = Data(x=graph.x[order], edge_index=place[graph.edge_index])
    torch.testing.assert_close(logits_of(model, shuffled), logits_of(model, graph)[:, order], rtol=1e-4, atol=1e-5)


def test_a_model_is_a_value_whose_repr_rebuilds_it(model):
    assert eval(repr(model), vars(models)) == model
    assert hash(model) == hash(replace(model))
    assert replace(model, dropout=0.123) != model


def trained(model: Architecture, task: Task, seeds: tuple[int, ...], epochs: int) -> Tensor:
    trainer = Trainer(model, epochs=epochs, subgraph="whole")
    return trainer.fit(task, task.given, Streams(seeds)).predict(task.graph).logits


@pytest.mark.parametrize("dropout", [False, True])
def test_a_run_trained_alone_equals_the_run_trained_in_a_batch(model, task, dropout):
    model = model if dropout else quiet(model)
    together, alone = trained(model, task, SEEDS, epochs=3), trained(model, task.only([1]), SEEDS[1:2], epochs=3)
    torch.testing.assert_close(alone[0], together[1], rtol=1e-3, atol=1e-4)


def test_every_model_learns_the_small_graph(model, task, data_and_split):
    data, split = data_and_split
    teacher = Trainer(model, lr=0.05, epochs=25).fit(task, task.given, Streams(SEEDS))
    assert teacher.sound.all()
    label = teacher.predict(task.graph).label
    assert (label == data.y)[split.train].float().mean() > 0.9
    assert teacher.validation.min() >= 5 / 6


def test_every_model_can_be_sampled_with_dropout(model, task):
    teacher = Trainer(replace(model, dropout=0.5), epochs=2).fit(task, task.given, Streams(SEEDS))
    first = teacher.sample(task.graph, Streams((1, 2, 3))).logits
    assert first.shape == (3, 24, 2)
    assert torch.equal(first, teacher.sample(task.graph, Streams((1, 2, 3))).logits)
    assert not torch.allclose(first, teacher.sample(task.graph, Streams((4, 5, 6))).logits)


def test_every_model_can_be_sampled_at_another_rate(model, task):
    teacher = Trainer(quiet(model), epochs=2).fit(task, task.given, Streams(SEEDS))
    still, dropped = (teacher.sample(task.graph, Streams(SEEDS), rate).logits for rate in (0.0, 0.5))
    torch.testing.assert_close(still, teacher.predict(task.graph).logits)
    assert torch.equal(dropped, teacher.sample(task.graph, Streams(SEEDS), 0.5).logits)
    hidden = not isinstance(model, models.SGC)  # which has no layer to drop from, and no features dropped in training
    assert torch.allclose(dropped, still, rtol=1e-3, atol=1e-4) != hidden


@torch.no_grad()
def test_every_model_has_an_embedding_of_every_node(model):
    graph = two_rings()
    network, alone = build(model, graph), build(model, graph, (5,))
    embedding = network.embed(whole(network, graph))
    assert embedding.shape[:2] == (3, 24)
    assert torch.isfinite(embedding).all()
    torch.testing.assert_close(alone.embed(whole(alone, graph, 1))[0], embedding[1])


def test_training_leaves_given_labels_as_they_are(model, task):
    before = Labels(task.given.target.clone(), task.given.weight.clone(), task.given.adopted_round.clone())
    Trainer(model, epochs=1).fit(task, task.given, Streams(SEEDS))
    assert torch.equal(task.given.target, before.target)
    assert torch.equal(task.given.weight, before.weight)


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("entries", ["nowhere", "far from the labelled nodes"])
def test_it_learns_from_sparse_features_without_an_entry_to_see(model, entries: str, runs: int) -> None:
    data, node = two_rings(30), torch.arange(30)
    x = np.zeros((30, 50), dtype=np.float32)
    if entries != "nowhere":
        x[20:23, 4] = 1.0
    data.x = to_torch(sp.csr_array(x))
    split = Split.repeated(node < 4, (node >= 4) & (node < 8), node >= 8, runs)
    teacher = Trainer(model, epochs=3).fit(Task.of(data, split), Task.of(data, split).given, Streams(SEEDS[:runs]))
    assert teacher.sound.all()
    assert torch.isfinite(teacher.predict(Task.of(data, split).graph).logits).all()
