"""Every architecture against its PyG twin, or against the formula on a small graph."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as stock_layers
from torch_geometric.data import Data
from torch_geometric.nn import GCN2Conv, GCNConv, SGConv

from bangs.core.rng import Streams
from bangs.errors import InvalidInput
from bangs.graphs.sparse import adjacency
from bangs.nn.dropout import DropoutMasks
from bangs.nn.ensemble import Network, Separate
from bangs.nn.loss import Targets
from bangs.nn.models import APPNP, GAT, GCN, GCNII, GIN, GRAND, MODELS, SGC, Architecture, GraphSAGE, grand
from bangs.nn.subgraphs import PreparedGraph
from tests.conftest import two_rings


def built(model: Architecture, graph: Data, runs: int = 2, classes: int = 3) -> tuple[Network, Tensor]:
    """A network with random biases and its logits."""
    network = model.build(graph.x.shape[1], classes, Streams(tuple(range(runs))))
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "bias" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
        return network, network(PreparedGraph.of(graph, runs, network.loops, network.normalise).whole)


@pytest.fixture(params=["plain", "weighted", "directed"])
def graph(request) -> Data:
    data = two_rings(18, seed=3)
    if request.param == "weighted":
        data.edge_weight = torch.rand(data.num_edges, generator=torch.Generator().manual_seed(0)) + 0.1
    if request.param == "directed":
        data.edge_index = data.edge_index[:, :20]
    return data


@torch.no_grad()
@pytest.mark.parametrize("loops", [1.0, 2.0])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_gcn_equals_stock_gcnconv(graph, loops, layers):
    """PyG forgets `improved` where a graph has no edge weights, so it gets ones."""
    edge_weight = torch.ones(graph.num_edges) if graph.get("edge_weight") is None else graph.edge_weight
    network, logits = built(GCN(hidden=5, layers=layers, loops=loops), graph)
    weights = network.weights()
    for run in range(2):
        h = graph.x
        for layer in range(layers):
            weight, bias = weights[f"weight.{layer}"][run], weights[f"bias.{layer}"][run, 0]
            stock = GCNConv(*weight.shape, improved=loops == 2)
            stock.lin.weight.copy_(weight.T)
            stock.bias.copy_(bias)
            h = stock(h.relu() if layer else h, graph.edge_index, edge_weight)
        torch.testing.assert_close(logits[run], h)


@torch.no_grad()
def test_graphsage_on_a_path_of_three_nodes():
    """h' = W·mean over v, v again and its neighbours: DGL's 'gcn' aggregation on a graph that has self-loops."""
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [4.0, 2.0]])
    path = Data(x=x, edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    mean = torch.stack([(2 * x[0] + x[1]) / 3, (x[0] + 2 * x[1] + x[2]) / 4, (x[1] + 2 * x[2]) / 3])
    network, logits = built(GraphSAGE(layers=1), path)
    weights = network.weights()
    for run in range(2):
        torch.testing.assert_close(logits[run], mean @ weights["weight.0"][run] + weights["bias.0"][run])


@torch.no_grad()
def test_graphsage_of_two_layers_row_by_row(graph):
    network, logits = built(GraphSAGE(hidden=5), graph)
    weights = network.weights()
    edge_weight = graph.get("edge_weight")
    edge_weight = torch.ones(graph.num_edges) if edge_weight is None else edge_weight

    def aggregate(h: Tensor) -> Tensor:
        rows = []
        for node in range(len(h)):
            into = graph.edge_index[1] == node
            share = edge_weight[into]
            total = 2 * h[node] + (share[:, None] * h[graph.edge_index[0, into]]).sum(0)
            rows.append(total / (2 + share.sum()))
        return torch.stack(rows)

    for run in range(2):
        h = aggregate(graph.x) @ weights["weight.0"][run] + weights["bias.0"][run]
        h = aggregate(h.relu()) @ weights["weight.1"][run] + weights["bias.1"][run]
        torch.testing.assert_close(logits[run], h)


@torch.no_grad()
@pytest.mark.parametrize("hops", [1, 2, 4])
def test_sgc_equals_stock_sgconv(graph, hops):
    network, logits = built(SGC(hops=hops), graph)
    weights = network.weights()
    for run in range(2):
        stock = SGConv(2, 3, K=hops)
        stock.lin.weight.copy_(weights["weight"][run].T)
        stock.lin.bias.copy_(weights["bias"][run, 0])
        torch.testing.assert_close(logits[run], stock(graph.x, graph.edge_index, graph.get("edge_weight")))


@torch.no_grad()
@pytest.mark.parametrize("layers", [2, 3])
def test_the_embedding_is_the_last_hidden_layer(graph, layers):
    """H = relu(Â X W + b), and relu(Â H W' + b') where there is a layer more."""
    network, _ = built(GCN(hidden=5, layers=layers), graph)
    embedding = network.embed(PreparedGraph.of(graph, 2, network.loops, network.normalise).whole)
    matrix, weights = torch.as_tensor(adjacency(graph, 2.0, "symmetric").toarray()), network.weights()
    h = graph.x.expand(2, -1, -1)
    for layer in range(layers - 1):
        h = (matrix @ h @ weights[f"weight.{layer}"] + weights[f"bias.{layer}"]).relu()
    assert embedding.shape == (2, 18, 5)
    torch.testing.assert_close(embedding, h)


@torch.no_grad()
@pytest.mark.parametrize("model", [GCN(layers=1), SGC(), GAT(layers=1)])
def test_where_no_hidden_layer_is_to_be_had_the_logits_are_the_embedding(graph, model):
    network, logits = built(model, graph)
    subgraph = PreparedGraph.of(graph, 2, network.loops, network.normalise).whole
    torch.testing.assert_close(network.embed(subgraph), logits)


@torch.no_grad()
@pytest.mark.parametrize("model", [GCNII(hidden=5, layers=3), GRAND(hidden=5), APPNP(hidden=5, steps=3)])
def test_the_last_weights_make_logits_of_the_embedding(graph, model):
    network, logits = built(model, graph)
    weights = network.weights()
    last, bias = ("last", "last_bias") if isinstance(model, GCNII) else ("predict.second", "predict.second_bias")
    embedding = network.embed(PreparedGraph.of(graph, 2, network.loops, network.normalise).whole)
    assert embedding.shape == (2, 18, 5)
    more = start = weights[bias].expand(-1, 18, -1)
    for _ in range(model.steps if isinstance(model, APPNP) else 0):  # which propagates its bias too
        matrix = torch.as_tensor(adjacency(graph, network.loops, network.normalise).toarray())
        more = (1 - model.alpha) * matrix @ more + model.alpha * start
    torch.testing.assert_close(embedding @ weights[last] + more, logits)


@torch.no_grad()
def test_a_users_module_may_return_its_embedding(graph):
    class Halves(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(2, 6), nn.Linear(6, 3)

        def embed(self, x, edge_index):
            return self.first(x).relu()

        def forward(self, x, edge_index):
            return self.second(self.embed(x, edge_index))

    for build, width in ((Halves, 6), (lambda: stock_layers.GraphSAGE(2, 6, 2, 3), 3)):
        network = Separate(build, Streams((0, 1)))
        subgraph = PreparedGraph.of(graph, 2, network.loops, network.normalise).whole
        assert network.embed(subgraph).shape == (2, 18, width)
        assert network(subgraph).shape == (2, 18, 3)


def perceptron(weights: dict[str, Tensor], run: int, x: Tensor) -> Tensor:
    h = (x @ weights["predict.first"][run] + weights["predict.first_bias"][run]).relu()
    return h @ weights["predict.second"][run] + weights["predict.second_bias"][run]


@torch.no_grad()
@pytest.mark.parametrize(("steps", "alpha"), [(10, 0.1), (1, 0.5), (3, 1.0)])
def test_appnp_equals_stock_appnp(graph, steps, alpha):
    network, logits = built(APPNP(hidden=6, steps=steps, alpha=alpha), graph)
    stock = stock_layers.APPNP(K=steps, alpha=alpha)
    for run in range(2):
        start = perceptron(network.weights(), run, graph.x)
        torch.testing.assert_close(logits[run], stock(start, graph.edge_index, graph.get("edge_weight")))


@torch.no_grad()
def test_gcnii_equals_stock_gcn2conv(graph):
    settings = GCNII(hidden=6, layers=4, alpha=0.2, theta=0.7)
    network, logits = built(settings, graph)
    weights = network.weights()
    for run in range(2):
        start = h = (graph.x @ weights["first"][run] + weights["first_bias"][run]).relu()
        for layer in range(4):
            stock = GCN2Conv(6, settings.alpha, settings.theta, layer + 1)
            stock.weight1.copy_(weights[f"weight.{layer}"][run])
            h = stock(h, start, graph.edge_index, graph.get("edge_weight")).relu()
        torch.testing.assert_close(logits[run], h @ weights["last"][run] + weights["last_bias"][run])


def test_the_convolutions_of_gcnii_decay_by_a_factor_of_their_own():
    network = GCNII(hidden=5, layers=2, decay=7.0).build(4, 3, Streams((0,)))
    factors = {name: network.decay(name) for name, _ in network.named_parameters()}
    deep = {"weight.0", "weight.1"}
    assert factors == {
        name: 7.0 if name in deep else 1.0 for name in (*deep, "first", "first_bias", "last", "last_bias")
    }


@torch.no_grad()
@pytest.mark.parametrize("order", [1, 5])
def test_grand_spreads_by_the_mean_of_matrix_powers(graph, order):
    network, logits = built(GRAND(hidden=6, order=order), graph)
    matrix = torch.as_tensor(adjacency(graph, 1.0, "symmetric").toarray())
    spread = sum(torch.linalg.matrix_power(matrix, power) @ graph.x for power in range(order + 1)) / (order + 1)
    for run in range(2):
        torch.testing.assert_close(logits[run], perceptron(network.weights(), run, spread))


@pytest.mark.parametrize("kept", [None, torch.tensor([0.0, 2.0]).repeat(9)[None, :, None]], ids=["all", "some"])
def test_grand_takes_columns_together_or_apart_to_the_last_bit(graph, kept, monkeypatch):
    graph.x = torch.randn(18, 3 * grand.CPU_COLUMNS - 7, generator=torch.Generator().manual_seed(0))
    network, _ = built(GRAND(hidden=6, order=3), graph, runs=1)
    subgraph = PreparedGraph.of(graph, 1, network.loops, network.normalise).whole
    apart = network._propagate(subgraph, subgraph.features.dense(), kept)
    monkeypatch.setattr(grand, "CPU_COLUMNS", graph.x.shape[1])
    assert torch.equal(apart, network._propagate(subgraph, subgraph.features.dense(), kept))


@torch.no_grad()
def test_grand_with_noise_drops_whole_nodes():
    """With no other dropout and nobody to spread to, a node's features are either gone or doubled."""
    graph = two_rings()
    graph.edge_index = graph.edge_index[:, :0]
    settings = GRAND(hidden=6, order=1, drop_node=0.5, input_dropout=0.0, dropout=0.0)
    network, _ = built(settings, graph)
    subgraph = PreparedGraph.of(graph, 2, network.loops, network.normalise).whole
    logits = network(subgraph, DropoutMasks(Streams((1, 2)).generators()))
    for run in range(2):
        gone = perceptron(network.weights(), run, torch.zeros_like(graph.x))
        doubled = perceptron(network.weights(), run, 2 * graph.x)
        is_gone = torch.isclose(logits[run], gone).all(1)
        is_doubled = torch.isclose(logits[run], doubled).all(1)
        assert (is_gone ^ is_doubled).all()
        assert is_gone.any()
        assert is_doubled.any()


def test_grands_loss_is_cross_entropy_plus_distance_to_the_sharpened_mean():
    """The sharpened mean is what views are drawn to, and has no gradient of its own."""
    graph = two_rings()
    settings = GRAND(hidden=6, samples=3, consistency=0.7, sharpening=0.5, spread="features")
    network, _ = built(settings, graph)
    subgraph = PreparedGraph.of(graph, 2, network.loops, network.normalise).whole
    target, weight = torch.full((2, 24), -1), torch.ones(2, 24)
    target[:, :4] = torch.tensor([0, 1, 2, 0])
    loss = network.loss(subgraph, Targets(target, weight), DropoutMasks(Streams((1, 2)).generators()), None)
    source = DropoutMasks(Streams((1, 2)).generators())
    views = [network(subgraph, source).softmax(-1) for _ in range(3)]
    expected = []
    for run in range(2):
        mean = (sum(view[run] for view in views) / 3).detach()
        sharp = mean**2 / (mean**2).sum(1, keepdim=True)
        fit = sum(-view[run, torch.arange(4), target[run, :4]].log().mean() for view in views) / 3
        apart = sum(((view[run] - sharp) ** 2).sum(1).mean() for view in views) / 3
        expected.append(fit + 0.7 * apart)
    torch.testing.assert_close(loss, torch.stack(expected))
    gradients, theirs = (
        torch.autograd.grad(total, list(network.parameters())) for total in (loss.sum(), sum(expected))
    )
    torch.testing.assert_close(gradients, theirs)


def test_grand_spreads_its_hidden_layer_as_it_would_spread_features():
    """Nodes and features dropped before the hops: the narrow product takes them as the wide features would."""
    graph = two_rings()
    settings = GRAND(hidden=6, order=3, dropout=0.0)
    network, _ = built(settings, graph)
    subgraph = PreparedGraph.of(graph, 2, network.loops, network.normalise).whole
    fast = network(subgraph, DropoutMasks(Streams((1, 2)).generators()))
    source = DropoutMasks(Streams((1, 2)).generators())
    x = subgraph.features.drop(source, settings.input_dropout).dense()
    x = x * source.factors((24, 1), settings.drop_node)
    wide = network._propagate(subgraph, x)
    slow = [perceptron(network.weights(), run, wide[run]) for run in range(2)]
    torch.testing.assert_close(fast, torch.stack(slow))


def test_first_weights_are_glorot_uniform():
    weight = GCN(hidden=60).build(100, 5, Streams((1, 2))).weights()["weight.0"]
    bound = math.sqrt(6 / 160)
    assert weight.abs().max() <= bound
    assert weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
    assert weight.mean().abs() < 0.01


def test_every_model_has_a_name():
    assert set(MODELS) == {"gcn", "graphsage", "gat", "gin", "appnp", "sgc", "gcnii", "grand"}


MISTAKES = {
    "a hidden layer of nothing": (GCN, {"hidden": 0}, "GCN.hidden must be at least 1, got 0"),
    "no layers": (GraphSAGE, {"layers": 0}, "GraphSAGE.layers must be at least 1, got 0"),
    "no hops": (SGC, {"hops": 0}, "SGC.hops must be at least 1, got 0"),
    "no steps": (APPNP, {"steps": 0}, "APPNP.steps must be at least 1, got 0"),
    "no heads": (GAT, {"heads": 0}, "GAT.heads must be at least 1, got 0"),
    "no order": (GRAND, {"order": 0}, "GRAND.order must be at least 1, got 0"),
    "no samples": (GRAND, {"samples": 0}, "GRAND.samples must be at least 1, got 0"),
    "dropout of everything": (GIN, {"dropout": 1.0}, "GIN.dropout must lie in [0, 0.999], got 1.0"),
    "negative dropout": (GAT, {"dropout": -0.1}, "GAT.dropout must lie in [0, 0.999], got -0.1"),
    "dropout of NaN": (GCN, {"dropout": math.nan}, "GCN.dropout must lie in [0, 0.999], got nan"),
    "features dropped for good": (GCN, {"input_dropout": 1.0}, "GCN.input_dropout must lie in [0, 0.999], got 1.0"),
    "nodes dropped for good": (GRAND, {"drop_node": 1.0}, "GRAND.drop_node must lie in [0, 0.999], got 1.0"),
    "no self-loops": (GCN, {"loops": 0.0}, "GCN.loops must be positive, got 0.0"),
    "self-loops of NaN": (SGC, {"loops": math.nan}, "SGC.loops must be positive, got nan"),
    "θ = 0": (GCNII, {"theta": 0.0}, "GCNII.theta must be positive, got 0.0"),
    "decay < 0": (GCNII, {"decay": -1.0}, "GCNII.decay must not be negative, got -1.0"),
    "sharpening by nothing": (GRAND, {"sharpening": 0.0}, "GRAND.sharpening must be positive, got 0.0"),
    "negative consistency": (GRAND, {"consistency": -1.0}, "GRAND.consistency must not be negative, got -1.0"),
    "α = 0": (APPNP, {"alpha": 0.0}, "APPNP.alpha must lie in (0, 1], got 0.0"),
    "α > 1": (GCNII, {"alpha": 1.1}, "GCNII.alpha must lie in (0, 1], got 1.1"),
    "α of NaN": (APPNP, {"alpha": math.nan}, "APPNP.alpha must lie in (0, 1], got nan"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_settings_that_make_no_sense_are_refused_where_they_are_written(mistake):
    model, settings, sentence = MISTAKES[mistake]
    with pytest.raises(InvalidInput) as error:
        model(**settings)
    assert str(error.value) == sentence


@pytest.mark.parametrize("name", sorted(MODELS))
def test_settings_at_the_edge_are_accepted(name):
    assert MODELS[name](dropout=0.0).dropout == 0
    assert MODELS[name](dropout=0.999).dropout == 0.999
