"""GAT and GIN for R runs equal PyG layers run one after the other."""

import gc
import math
import weakref
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GINConv

from bangs import kernels
from bangs.core.rng import Streams
from bangs.errors import InvalidInput
from bangs.graphs.sparse import to_torch
from bangs.nn.ensemble import Network
from bangs.nn.models import GAT, GIN
from bangs.nn.subgraphs import PreparedGraph, Subgraph, per_run_subgraph
from bangs.training.neighbour_sampling import Sampling
from bangs.training.trainer import Trainer
from tests.conftest import masks, two_rings
from tests.nn.stock import by_stock_names, gradients, irregular_graph, stock_twin

SEEDS = (3, 5, 7)
CLASSES = 4
MODELS = {
    "gat": GAT(hidden=5, heads=3),
    "gat of one layer": GAT(heads=2, layers=1),
    "gat of three layers": GAT(hidden=33, heads=2, layers=3),
    "gat without residuals": GAT(hidden=5, heads=2, layers=3, residual=False),
    "gin": GIN(hidden=6),
}


@pytest.fixture(params=MODELS)
def model(request) -> GAT | GIN:
    return replace(MODELS[request.param], dropout=0.0)


def sparse(graph: Data) -> Data:
    changed = graph.clone()
    changed.x = to_torch(sp.csr_array(graph.x.numpy()))
    return changed


GRAPHS = {"rings": two_rings(), "crowd": irregular_graph(), "crowd with sparse features": sparse(irregular_graph())}


@pytest.fixture(params=GRAPHS)
def graph(request) -> Data:
    return GRAPHS[request.param]


def built(model: GAT | GIN, graph: Data, seeds: tuple[int, ...] = SEEDS) -> tuple[Network, Subgraph]:
    """A network with random biases, and the whole graph as it sees it."""
    network = model.build(graph.x.shape[1], CLASSES, Streams(seeds))
    with torch.no_grad():
        for layer, bias in enumerate(network.bias):
            bias.copy_(Streams(seeds).at("bias", layer).randn(*bias.shape[1:]))
    return network, PreparedGraph.of(graph, len(seeds), network.loops, network.normalise).whole


def test_logits_embeddings_and_gradients_are_those_of_stock_layers(model, graph):
    network, subgraph = built(model, graph)
    stock = stock_twin(model, network, graph.x.shape[1], CLASSES)
    logits, expected = network(subgraph), stock(subgraph)
    torch.testing.assert_close(logits, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(network.embed(subgraph), stock.embed(subgraph), rtol=1e-5, atol=1e-5)
    grad_output = torch.randn(logits.shape, generator=torch.Generator().manual_seed(0))
    ours, theirs = (
        by_stock_names(model, gradients(network, logits, grad_output)),
        gradients(stock, expected, grad_output),
    )
    for name, gradient in theirs.items():
        torch.testing.assert_close(ours[name], gradient, rtol=1e-5, atol=1e-5, msg=lambda text, name=name: name + text)


def test_a_runs_gradient_is_the_same_in_a_batch(model, graph):
    together, subgraph = built(model, graph)
    alone, alone_subgraph = built(model, graph, SEEDS[1:2])
    grad_output = torch.randn(3, len(graph.x), CLASSES)
    in_batch = gradients(together, together(subgraph), grad_output)
    for name, gradient in gradients(alone, alone(alone_subgraph), grad_output[1:2]).items():
        torch.testing.assert_close(gradient[0], in_batch[name][1], rtol=1e-5, atol=1e-5)


def test_a_part_of_the_graph_gives_the_same_gradients(model, graph):
    network, subgraph = built(model, graph)
    nodes = np.array([0, 2, 9, 17])
    part = PreparedGraph.of(graph, 3, network.loops, network.normalise).k_hop_subgraph(nodes, network.hops)
    grad_output = torch.randn(3, 4, CLASSES)
    expected = gradients(network, network(subgraph)[:, nodes], grad_output)
    for name, gradient in gradients(network, network(part), grad_output).items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_with_dropout_every_run_draws_its_own_numbers(name, graph):
    model = replace(MODELS[name], dropout=0.5)
    together, subgraph = built(model, graph)
    alone, alone_subgraph = built(model, graph, SEEDS[1:2])
    grad_output = torch.randn(3, len(graph.x), CLASSES)
    dropped = together(subgraph, masks(*SEEDS))
    assert not torch.allclose(dropped, together(subgraph))
    in_batch = gradients(together, dropped, grad_output)
    for part, gradient in gradients(alone, alone(alone_subgraph, masks(SEEDS[1])), grad_output[1:2]).items():
        torch.testing.assert_close(gradient[0], in_batch[part][1], rtol=1e-5, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("name", MODELS)
def test_dropout_also_where_every_run_has_a_graph_of_its_own(name):
    graphs = [two_rings(seed=seed) for seed in range(3)]
    graphs[2].edge_index = graphs[2].edge_index[:, 5:30]
    network, subgraph = built(replace(MODELS[name], dropout=0.5), graphs[0])
    both = per_run_subgraph(graphs, network.loops, network.normalise, subgraph)
    assert torch.equal(network(both, masks(*SEEDS)), network(both, masks(*SEEDS)))
    torch.testing.assert_close(network(both, masks(*SEEDS, rate=0.0)), network(both))


def test_features_of_every_runs_own_graph_are_laid_over_one_another():
    graphs = [sparse(irregular_graph(seed=seed)) for seed in range(3)]
    for graph in graphs:
        graph.x = graphs[0].x
    network, subgraph = built(GIN(hidden=6), graphs[0])
    together = network(per_run_subgraph(graphs, network.loops, network.normalise, subgraph))
    for run, graph in enumerate(graphs):
        alone = network(PreparedGraph.of(graph, 3, network.loops, network.normalise).whole)
        torch.testing.assert_close(together[run], alone[run])


def test_what_a_network_caches_of_a_subgraph_is_freed_with_the_subgraph(model):
    for graph in GRAPHS.values():
        network, subgraph = built(model, graph)
        network(subgraph).sum().backward()
        pattern = weakref.ref(subgraph.hops[0].pattern)
        caches = [part for part in vars(network).values() if hasattr(part, "keyrefs")]
        del subgraph
        gc.collect()
        assert pattern() is None
        assert sum(map(len, caches)) == 0


def test_neither_learns_in_batches(model, task):
    with pytest.raises(InvalidInput, match="batches needs a model of a few hops"):
        Trainer(model, batches=Sampling()).prepare(task)


@torch.no_grad()
def test_gat_equals_layers_that_make_their_own_loops():
    graph = two_rings()
    network, subgraph = built(GAT(hidden=4, heads=3), graph)
    stock = by_stock_names(GAT(hidden=4, heads=3), network.weights())
    for run, logits in enumerate(network(subgraph)):
        first, second = GATConv(2, 4, heads=3), GATConv(12, CLASSES, heads=3, concat=False, residual=True)
        named = {name.replace("-", "."): value[run] for name, value in stock.items()}
        nn.ModuleDict({"layers": nn.ModuleList([first, second])}).load_state_dict(named)
        torch.testing.assert_close(logits, second(first(graph.x, graph.edge_index).relu(), graph.edge_index))


@torch.no_grad()
def test_gin_equals_its_formula():
    graph = two_rings()
    network, subgraph = built(GIN(hidden=5), graph)
    for run, logits in enumerate(network(subgraph)):
        h = graph.x
        for layer in range(2):
            best = torch.stack(
                [h[[node, *graph.edge_index[0, graph.edge_index[1] == node].tolist()]].amax(0) for node in range(24)]
            )
            h = (1.2 * h + best) @ network.weight[layer][run] + network.bias[layer][run]
            h = h if layer else h.tanh()
        torch.testing.assert_close(logits, h)


def spread(*tensors: Tensor) -> list[float]:
    return [tensor.abs().max().item() for tensor in tensors]


def test_first_weights_are_drawn_as_stock_layers_draw_them():
    """Uniform within Glorot's bound, or within one over the root of the inputs; every bound is nearly met."""
    gat = GAT(hidden=40, heads=8).build(500, 6, Streams((0, 1, 2)))
    bounds = [math.sqrt(6 / 820), math.sqrt(6 / 48), math.sqrt(6 / 326)]
    assert spread(gat.weight[0], gat.source[0], gat.residual[0]) == pytest.approx(bounds, rel=0.03)
    assert not any(bias.any() for bias in gat.bias)
    gin = GIN(hidden=60).build(100, 50, Streams((0, 1, 2)))
    bounds = [1 / 10, 1 / 10, 1 / math.sqrt(60), 1 / math.sqrt(60)]
    assert spread(gin.weight[0], gin.bias[0], gin.weight[1], gin.bias[1]) == pytest.approx(bounds, rel=0.05)
    stock = GINConv(nn.Linear(100, 60))
    assert spread(stock.nn.weight, stock.nn.bias) == pytest.approx([1 / 10, 1 / 10], rel=0.1)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
class TestOnGPU:
    @pytest.mark.parametrize("with_kernels", [True, False])
    def test_a_gpu_gives_the_logits_and_gradients_of_a_processor(self, model, graph, with_kernels, monkeypatch):
        if not with_kernels:
            monkeypatch.setattr(kernels, "serves", lambda *_: False)
        network, subgraph = built(model, graph)
        grad_output = torch.randn(3, len(graph.x), CLASSES)
        logits = network(subgraph)
        expected = gradients(network, logits, grad_output)
        on_gpu = network.to("cuda")
        ours = on_gpu(PreparedGraph.of(graph.clone().to("cuda"), 3, network.loops, network.normalise).whole)
        torch.testing.assert_close(ours.cpu(), logits, rtol=1e-4, atol=1e-4)
        for name, gradient in gradients(on_gpu, ours, grad_output.cuda()).items():
            torch.testing.assert_close(gradient.cpu(), expected[name], rtol=1e-3, atol=1e-3)

    @pytest.mark.parametrize("with_kernels", [True, False])
    def test_an_epoch_is_captured(self, model, task, with_kernels, monkeypatch):
        if not with_kernels:
            monkeypatch.setattr(kernels, "serves", lambda *_: False)
        learner = Trainer(replace(model, dropout=0.5), epochs=3).prepare(task.to("cuda"))
        learner.fit(learner.task.given, Streams(SEEDS))
        assert learner._captured_sessions[False, False].graph is not None
