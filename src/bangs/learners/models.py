"""Architectures by name: each a frozen dataclass of settings that builds R models as one network."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Protocol

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GINConv

from bangs.errors import InvalidInput
from bangs.graphs.sparse import Normalise
from bangs.learners.batches import Features, Field
from bangs.learners.dense import times
from bangs.learners.ensemble import Network, Separate, cross_entropy
from bangs.learners.noise import Noise
from bangs.rng import Streams

_SIZES = ("hidden", "layers", "heads", "hops", "steps", "order", "samples")
_RATES = ("dropout", "input_dropout", "drop_node")
_POSITIVE = ("loops", "theta", "sharpening")


@dataclass(frozen=True)
class _Settings:
    """What all architectures check: sizes from 1, rates in [0, 1), scales above 0."""

    def __post_init__(self) -> None:
        for own in fields(self):
            value, rule = getattr(self, own.name), None
            if own.name in _SIZES and value < 1:
                rule = "at least 1"
            elif own.name in _RATES and not 0 <= value <= 0.999:
                rule = "in [0, 0.999]"
            elif own.name in _POSITIVE and not 0 < value < math.inf:
                rule = "positive"
            elif own.name == "alpha" and not 0 < value <= 1:
                rule = "in (0, 1]"
            elif own.name == "consistency" and not 0 <= value < math.inf:
                rule = "at least 0"
            if rule is not None:
                raise InvalidInput(f"{type(self).__name__}.{own.name} must be {rule}, got {value}")


class Architecture(Protocol):
    """Settings of a model; `build` makes R of them with fresh weights."""

    def build(self, features: int, classes: int, rng: Streams) -> Network: ...


@dataclass(frozen=True)
class GCN(_Settings):
    """Graph convolutions (Kipf & Welling 2017): H' = σ(Â H W + b), Â = D^-½(A + loops·I)D^-½.

    The paper's code adds self-loops twice, hence `loops = 2` (PyG's `improved=True` with unit edge weights).
    """

    hidden: int = 128
    layers: int = 2
    dropout: float = 0.3
    input_dropout: float = 0.0
    loops: float = 2.0

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return _Convolutions(self, features, classes, rng, "symmetric")


@dataclass(frozen=True)
class GraphSAGE(_Settings):
    """Mean aggregation (Hamilton et al. 2017) in DGL's 'gcn' form, as in the paper: H' = σ(D⁻¹(A + 2I) H W + b)."""

    hidden: int = 128
    layers: int = 2
    dropout: float = 0.3
    input_dropout: float = 0.3
    loops: float = 2.0

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return _Convolutions(self, features, classes, rng, "row")


@dataclass(frozen=True)
class SGC(_Settings):
    """Simplified convolution (Wu et al. 2019): logits = Â^hops X W + b."""

    hops: int = 2
    dropout: float = 0.0
    loops: float = 1.0

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return _Simple(self, features, classes, rng)


@dataclass(frozen=True)
class APPNP(_Settings):
    """Predict then propagate (Gasteiger et al. 2019): Z⁰ = MLP(X), Z' = (1−alpha) Â Z + alpha Z⁰, `steps` times."""

    hidden: int = 64
    dropout: float = 0.5
    input_dropout: float = 0.5
    steps: int = 10
    alpha: float = 0.1

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return _Personalised(self, features, classes, rng)


@dataclass(frozen=True)
class GCNII(_Settings):
    """Deep convolutions with initial residual and identity mapping (Chen et al. 2020).

    H' = σ(((1−alpha) Â H + alpha H⁰)((1−β_l) I + β_l W_l)), β_l = log(theta / l + 1).
    """

    hidden: int = 64
    layers: int = 16
    dropout: float = 0.6
    alpha: float = 0.1
    theta: float = 0.5

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return _Deep(self, features, classes, rng)


@dataclass(frozen=True)
class GRAND(_Settings):
    """Random propagation with consistency (Feng et al. 2020).

    Each of `samples` views drops whole nodes (rate `drop_node`), averages Â⁰X … Â^order X and runs an MLP; the loss is
    the mean cross-entropy plus `consistency` times the squared distance of every view to the sharpened mean.
    """

    hidden: int = 32
    order: int = 8
    samples: int = 4
    drop_node: float = 0.5
    input_dropout: float = 0.5
    dropout: float = 0.5
    consistency: float = 1.0
    sharpening: float = 0.5

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return _RandomPropagation(self, features, classes, rng)


@dataclass(frozen=True)
class GAT(_Settings):
    """Graph attention (Veličković et al. 2018) on stock PyG layers; heads concatenated, averaged at the end.

    Edge weights are not looked at.
    """

    hidden: int = 8
    heads: int = 8
    layers: int = 2
    dropout: float = 0.6

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return Separate(lambda: _Attention(self, features, classes), rng)


@dataclass(frozen=True)
class GIN(_Settings):
    """Isomorphism network (Xu et al. 2019) with max aggregation on stock PyG layers, as in the paper's table.

    h' = W(1.2 h_v + max over v and its neighbours) + b, tanh between the two layers. Edge weights are
    not looked at.
    """

    hidden: int = 128
    dropout: float = 0.3

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return Separate(lambda: _Isomorphism(self, features, classes), rng)


MODELS: dict[str, Callable[..., Architecture]] = {
    "gcn": GCN,
    "graphsage": GraphSAGE,
    "gat": GAT,
    "gin": GIN,
    "appnp": APPNP,
    "sgc": SGC,
    "gcnii": GCNII,
    "grand": GRAND,
}


class _Convolutions(Network):
    def __init__(
        self, settings: GCN | GraphSAGE, features: int, classes: int, rng: Streams, normalise: Normalise
    ) -> None:
        super().__init__()
        self.settings, self.loops, self.normalise, self.hops = settings, settings.loops, normalise, settings.layers
        sizes = [features, *[settings.hidden] * (settings.layers - 1), classes]
        self.weight = nn.ParameterList(
            _glorot(rng.at("init", layer), *sizes[layer : layer + 2]) for layer in range(settings.layers)
        )
        self.bias = nn.ParameterList(nn.Parameter(torch.zeros(len(rng), 1, size)) for size in sizes[1:])

    def stage(self, number: int, h: Features | Tensor, noise: Noise | None = None) -> Tensor:
        if isinstance(h, Features):
            return h.drop(noise, self.settings.input_dropout).times(self.weight[0])
        bias: Tensor = self.bias[number - 1]
        if number == len(self.weight):
            return h + bias
        hidden = (h + bias).relu() if noise is None else noise.activate(h, bias, self.settings.dropout)
        return times(hidden, self.weight[number])

    def embed(self, field: Field) -> Tensor:
        hidden = len(self.weight) - 1
        if hidden == 0:
            return super().embed(field)
        h = self.stage(0, field.features)
        for hop in range(hidden - 1):
            h = self.stage(hop + 1, field.propagate(hop, h))
        last: Tensor = field.propagate(hidden - 1, h) + self.bias[hidden - 1]
        return last.relu()


class _Simple(Network):
    def __init__(self, settings: SGC, features: int, classes: int, rng: Streams) -> None:
        super().__init__()
        self.settings, self.loops, self.hops = settings, settings.loops, settings.hops
        self.weight = _glorot(rng.at("init"), features, classes)
        self.bias = nn.Parameter(torch.zeros(len(rng), 1, classes))

    def stage(self, number: int, h: Features | Tensor, noise: Noise | None = None) -> Tensor:
        if isinstance(h, Features):
            return h.drop(noise, self.settings.dropout).times(self.weight)
        return h + self.bias if number == self.settings.hops else h


class _Perceptron(nn.Module):
    """Two layers on the features: [R, n, C]."""

    def __init__(self, features: int, hidden: int, classes: int, rng: Streams) -> None:
        super().__init__()
        self.first = _glorot(rng.at("init", "first"), features, hidden)
        self.second = _glorot(rng.at("init", "second"), hidden, classes)
        self.first_bias = nn.Parameter(torch.zeros(len(rng), 1, hidden))
        self.second_bias = nn.Parameter(torch.zeros(len(rng), 1, classes))

    def hidden(self, product: Tensor) -> Tensor:
        """The first layer of a product with its weights: [R, n, h]."""
        h: Tensor = (product + self.first_bias).relu()
        return h

    def forward(self, product: Tensor, noise: Noise | None, dropout: float) -> Tensor:
        h = self.hidden(product)
        return times(h if noise is None else noise.drop(h, dropout), self.second) + self.second_bias


class _Personalised(Network):
    def __init__(self, settings: APPNP, features: int, classes: int, rng: Streams) -> None:
        super().__init__()
        self.settings = settings
        self.predict = _Perceptron(features, settings.hidden, classes, rng)

    def forward(self, field: Field, noise: Noise | None = None) -> Tensor:
        product = field.features.drop(noise, self.settings.input_dropout).times(self.predict.first)
        return self._spread(field, self.predict(product, noise, self.settings.dropout))

    def embed(self, field: Field) -> Tensor:
        # propagation is linear, so the hidden layer may take the way that its logits take
        return self._spread(field, self.predict.hidden(field.features.times(self.predict.first)))

    def _spread(self, field: Field, start: Tensor) -> Tensor:
        h = start
        for step in range(self.settings.steps):
            h = (1 - self.settings.alpha) * field.propagate(step, h) + self.settings.alpha * start
        return h


class _Deep(Network):
    def __init__(self, settings: GCNII, features: int, classes: int, rng: Streams) -> None:
        super().__init__()
        self.settings = settings
        self.first = _glorot(rng.at("init", "first"), features, settings.hidden)
        self.first_bias = nn.Parameter(torch.zeros(len(rng), 1, settings.hidden))
        self.weight = nn.ParameterList(
            _glorot(rng.at("init", layer), settings.hidden, settings.hidden) for layer in range(settings.layers)
        )
        self.last = _glorot(rng.at("init", "last"), settings.hidden, classes)
        self.last_bias = nn.Parameter(torch.zeros(len(rng), 1, classes))

    def forward(self, field: Field, noise: Noise | None = None) -> Tensor:
        h = self._hidden(field, noise)
        return times(h if noise is None else noise.drop(h, self.settings.dropout), self.last) + self.last_bias

    def embed(self, field: Field) -> Tensor:
        return self._hidden(field, None)

    def _hidden(self, field: Field, noise: Noise | None) -> Tensor:
        rate = self.settings.dropout
        start = h = (field.features.drop(noise, rate).times(self.first) + self.first_bias).relu()
        for layer, weight in enumerate(self.weight):
            h = h if noise is None else noise.drop(h, rate)
            share = math.log(self.settings.theta / (layer + 1) + 1)
            mixed = (1 - self.settings.alpha) * field.propagate(layer, h) + self.settings.alpha * start
            h = ((1 - share) * mixed + share * times(mixed, weight)).relu()
        return h


class _RandomPropagation(Network):
    def __init__(self, settings: GRAND, features: int, classes: int, rng: Streams) -> None:
        super().__init__()
        self.settings = settings
        self.predict = _Perceptron(features, settings.hidden, classes, rng)

    def forward(self, field: Field, noise: Noise | None = None) -> Tensor:
        settings = self.settings
        if noise is None:
            return self._read(self._spread(field, field.features.times(self.predict.first)), None)
        x = field.features.dense()
        x = x * noise.factors((x.shape[1], 1), settings.drop_node)
        x = noise.drop(self._spread(field, x), settings.input_dropout)
        return self._read(times(x, self.predict.first), noise)

    def embed(self, field: Field) -> Tensor:
        return self.predict.hidden(self._spread(field, field.features.times(self.predict.first)))

    def loss(self, field: Field, target: Tensor, weight: Tensor, noise: Noise, transition: Tensor | None) -> Tensor:
        views = [self(field, noise) for _ in range(self.settings.samples)]
        fit = torch.stack([cross_entropy(view, target, weight, transition) for view in views]).mean(0)
        probs = torch.stack([view.softmax(-1) for view in views])
        sharp = probs.mean(0).pow(1 / self.settings.sharpening)
        sharp = (sharp / sharp.sum(-1, keepdim=True)).detach()
        return fit + self.settings.consistency * (probs - sharp).square().sum(-1).mean((0, 2))

    def _spread(self, field: Field, x: Tensor) -> Tensor:
        """The mean of Â⁰x … Â^order x; linear, so weights may be applied before or after."""
        total = x = x.expand(field.runs, -1, -1)
        for hop in range(self.settings.order):
            x = field.propagate(hop, x)
            total = total + x
        return total / (self.settings.order + 1)

    def _read(self, product: Tensor, noise: Noise | None) -> Tensor:
        logits: Tensor = self.predict(product, noise, self.settings.dropout)
        return logits


class _Attention(nn.Module):
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
                residual=layer > 0,
                add_self_loops=False,
            )
            for layer, size in enumerate(sizes)
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self._attend(x, _looped(edge_index, x), len(self.layers))

    def embed(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = len(self.layers) - 1
        return self._attend(x, _looped(edge_index, x), hidden).relu() if hidden else self(x, edge_index)

    def _attend(self, x: Tensor, edges: Tensor, layers: int) -> Tensor:
        for layer in range(layers):
            x = self.layers[layer](torch.dropout(x if layer == 0 else x.relu(), self.dropout, self.training), edges)
        return x


class _Isomorphism(nn.Module):
    def __init__(self, settings: GIN, features: int, classes: int) -> None:
        super().__init__()
        self.dropout = settings.dropout
        self.first = GINConv(nn.Linear(features, settings.hidden), eps=0.2, aggr="max")
        self.second = GINConv(nn.Linear(settings.hidden, classes), eps=0.2, aggr="max")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = torch.dropout(self.embed(x, edge_index), self.dropout, self.training)
        logits: Tensor = self.second(h, _looped(edge_index, x))
        return logits

    def embed(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h: Tensor = self.first(torch.dropout(x, self.dropout, self.training), _looped(edge_index, x)).tanh()
        return h


def _looped(edge_index: Tensor, x: Tensor) -> Tensor:
    """The edges and one loop per node; PyG's own way asks the GPU for a count, which cannot be captured."""
    return torch.cat([edge_index, torch.arange(x.shape[0], device=x.device).expand(2, -1)], dim=1)


def _glorot(rng: Streams, rows: int, columns: int) -> nn.Parameter:
    """Uniform weights [R, rows, columns] of Glorot & Bengio (2010), drawn on the CPU so that devices agree."""
    bound = math.sqrt(6 / (rows + columns))
    return nn.Parameter(rng.rand(rows, columns).mul_(2).sub_(1).mul_(bound))
