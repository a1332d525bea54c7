"""GAT and GIN of PyG layers, run one after the other: the slow twins of our networks."""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GINConv

from bangs.core.rng import Streams
from bangs.nn.ensemble import Network, Separate
from bangs.nn.models import GAT, GIN


class StockGAT(nn.Module):
    def __init__(self, settings: GAT, features: int, classes: int) -> None:
        super().__init__()
        self.dropout = settings.dropout
        width = settings.hidden * settings.heads
        sizes = [features, *[width] * (settings.layers - 1)]
        self.layers = nn.ModuleList(
            GATConv(
                size,
                classes if layer == settings.layers - 1 else settings.hidden,
                heads=settings.heads,
                concat=layer < settings.layers - 1,
                dropout=settings.dropout,
                residual=settings.residual and layer > 0,
                add_self_loops=False,
            )
            for layer, size in enumerate(sizes)
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self._attend(x, with_self_loops(edge_index, x), len(self.layers))

    def embed(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = len(self.layers) - 1
        return self._attend(x, with_self_loops(edge_index, x), hidden).relu() if hidden else self(x, edge_index)

    def _attend(self, x: Tensor, edges: Tensor, layers: int) -> Tensor:
        for layer in range(layers):
            x = self.layers[layer](torch.dropout(x if layer == 0 else x.relu(), self.dropout, self.training), edges)
        return x


class StockGIN(nn.Module):
    def __init__(self, settings: GIN, features: int, classes: int) -> None:
        super().__init__()
        self.dropout = settings.dropout
        self.first = GINConv(nn.Linear(features, settings.hidden), eps=0.2, aggr="max")
        self.second = GINConv(nn.Linear(settings.hidden, classes), eps=0.2, aggr="max")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = torch.dropout(self.embed(x, edge_index), self.dropout, self.training)
        return self.second(h, with_self_loops(edge_index, x))

    def embed(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.first(torch.dropout(x, self.dropout, self.training), with_self_loops(edge_index, x)).tanh()


def with_self_loops(edge_index: Tensor, x: Tensor) -> Tensor:
    """The edges and one loop per node."""
    return torch.cat([edge_index, torch.arange(x.shape[0]).expand(2, -1)], dim=1)


def stock_twin(model: GAT | GIN, network: Network, features: int, classes: int) -> Separate:
    """Stock modules with the weights of a network along the run axis."""
    runs = len(next(network.parameters()))
    module = StockGAT if isinstance(model, GAT) else StockGIN
    stock = Separate(lambda: module(model, features, classes), Streams(tuple(range(runs))))
    stock.load(by_stock_names(model, network.weights()))
    return stock


def by_stock_names(model: GAT | GIN, found: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights or gradients of a network along the run axis, named and shaped as the stock module's, each [R, …]."""
    if isinstance(model, GIN):
        names = {"first": 0, "second": 1}
        weights = {f"{name}-nn-weight": found[f"weight.{layer}"].mT for name, layer in names.items()}
        biases = {f"{name}-nn-bias": found[f"bias.{layer}"][:, 0] for name, layer in names.items()}
        epsilons = {f"{name}-eps": torch.full((len(found["bias.0"]), 1), 0.2) for name in names}
        return {**weights, **biases, **epsilons}
    out = {}
    for layer in range(model.layers):
        out[f"layers-{layer}-lin-weight"] = found[f"weight.{layer}"].mT
        out[f"layers-{layer}-att_src"] = found[f"source.{layer}"][:, None]
        out[f"layers-{layer}-att_dst"] = found[f"target.{layer}"][:, None]
        out[f"layers-{layer}-bias"] = found[f"bias.{layer}"][:, 0]
        if layer and model.residual:
            out[f"layers-{layer}-res-weight"] = found[f"residual.{layer - 1}"].mT
    return out


def gradients(network: Network, logits: Tensor, grad_output: Tensor) -> dict[str, Tensor]:
    """What Σ grad_output·logits asks of every parameter."""
    names, parameters = zip(*network.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad((logits * grad_output).sum(), parameters), strict=True))


def irregular_graph(nodes: int = 40, seed: int = 0) -> Data:
    """A directed graph with hubs, loops, repeated edges, edge weights and a node by itself; few features are not 0."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(nodes - 1, (150,), generator=generator)
    target[:60] = target[:60] % 2
    source = torch.randint(nodes - 1, (150,), generator=generator)
    edges = torch.stack([source, target])
    edges = torch.cat([edges, edges[:, :20], torch.tensor([[3, 3, 4], [3, 3, 4]])], dim=1)
    x = torch.randn(nodes, 25, generator=generator)
    x[torch.rand(x.shape, generator=generator) > 0.15] = 0
    return Data(x=x, edge_index=edges, edge_weight=torch.rand(edges.shape[1], generator=generator))
