"""GRAND: a perceptron on randomly propagated features, whose views must agree."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from bangs.core.rng import Streams
from bangs.nn.dropout import DropoutMasks
from bangs.nn.ensemble import Network
from bangs.nn.loss import Targets
from bangs.nn.matmul import batched_matmul
from bangs.nn.models.base import Checked
from bangs.nn.models.batch_norm import BatchNorm
from bangs.nn.models.perceptron import Perceptron
from bangs.nn.subgraphs import Subgraph
from bangs.utils.setting_checks import check_choice

CPU_COLUMNS = 64  # that a CPU propagates together, so that they fit its cache


@dataclass(frozen=True)
class GRAND(Checked):
    """Random propagation with consistency (Feng et al. 2020).

    Each of `samples` views drops whole nodes (rate `drop_node`), averages Â⁰X … Â^order X and runs an MLP; the loss is
    the mean cross-entropy plus `consistency` times the squared distance of every view to the sharpened mean.

    `spread = "features"` is the published form: dropout on the features comes after the hops, so all features are
    propagated. `"hidden"` drops features before the hops; the hops then commute with the first weight and propagate
    `hidden` columns instead. With `batch_norm` the hidden layer is normalised over the nodes, and in the published form
    the propagated features too.
    """

    hidden: int = 32
    order: int = 8
    samples: int = 4
    drop_node: float = 0.5
    input_dropout: float = 0.5
    dropout: float = 0.5
    consistency: float = 1.0
    sharpening: float = 0.5
    batch_norm: bool = False
    spread: Literal["hidden", "features"] = "hidden"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("GRAND.spread", self.spread, ("hidden", "features"))

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return _RandomPropagation(self, features, classes, rng)


class _RandomPropagation(Network):
    def __init__(self, settings: GRAND, features: int, classes: int, rng: Streams) -> None:
        super().__init__()
        self.settings = settings
        self.predict = Perceptron(features, settings.hidden, classes, rng)
        published = settings.spread == "features"
        self.outer = BatchNorm(len(rng), features) if settings.batch_norm and published else None
        self.inner = BatchNorm(len(rng), settings.hidden) if settings.batch_norm else None

    def forward(self, subgraph: Subgraph, masks: DropoutMasks | None = None) -> Tensor:
        if masks is None:
            return self.predict.logits(self.embed(subgraph), None, self.settings.dropout)
        return self._views(subgraph, masks, 1, training=False)[0]

    def embed(self, subgraph: Subgraph) -> Tensor:
        weight = self.predict.first
        if self.outer is None:
            hidden = self.predict.hidden(self._propagate(subgraph, subgraph.features.matmul(weight)))
            return _normalise(self.inner, hidden, training=False)
        # propagation and normalisation are linear, so the narrow product can be propagated instead of the features
        factor, offset = self.outer.affine()
        product = self._propagate(subgraph, subgraph.features.matmul(factor.transpose(1, 2) * weight)) + offset @ weight
        return _normalise(self.inner, self.predict.hidden(product), training=False)

    def loss(self, subgraph: Subgraph, targets: Targets, masks: DropoutMasks, transition: Tensor | None) -> Tensor:
        views = self._views(subgraph, masks, self.settings.samples, training=True)
        fit = torch.stack([targets.cross_entropy(view, transition) for view in views]).mean(0)
        probs = torch.stack([view.softmax(-1) for view in views])
        sharp = probs.mean(0).pow(1 / self.settings.sharpening)
        sharp = (sharp / sharp.sum(-1, keepdim=True)).detach()
        return fit + self.settings.consistency * (probs - sharp).square().sum(-1).mean((0, 2))

    def _views(self, subgraph: Subgraph, masks: DropoutMasks, count: int, *, training: bool) -> list[Tensor]:
        """The logits [R, n, C] of random views of the features."""
        if self.settings.spread == "features":
            x = subgraph.features.dense()
            return [
                self._logits(self._features_product(subgraph, x, masks, training), masks, training)
                for _ in range(count)
            ]
        products = torch.cat([self._hidden_product(subgraph, masks) for _ in range(count)], dim=2)
        views = self._propagate(subgraph, products).chunk(count, dim=2)
        return [self._logits(view, masks, training) for view in views]

    def _logits(self, product: Tensor, masks: DropoutMasks, training: bool) -> Tensor:
        """The logits [R, n, C] of a view's product with the first weight [R, n, h]."""
        hidden = _normalise(self.inner, self.predict.hidden(product), training)
        return self.predict.logits(hidden, masks, self.settings.dropout)

    def _features_product(self, subgraph: Subgraph, x: Tensor, masks: DropoutMasks, training: bool) -> Tensor:
        """The published view of the features x [1 or R, n, F], times the first weight: [R, n, h]."""
        factors = masks.factors((x.shape[1], 1), self.settings.drop_node)
        propagated = _normalise(self.outer, self._propagate(subgraph, x, factors), training)
        x = masks.drop(propagated, self.settings.input_dropout)
        return batched_matmul(x, self.predict.first)

    def _hidden_product(self, subgraph: Subgraph, masks: DropoutMasks) -> Tensor:
        """A view's nodes and features dropped, times the first weight, before the hops: [R, n, h]."""
        product = subgraph.features.drop(masks, self.settings.input_dropout).matmul(self.predict.first)
        return product * masks.factors((product.shape[1], 1), self.settings.drop_node)

    def _propagate(self, subgraph: Subgraph, x: Tensor, factors: Tensor | None = None) -> Tensor:
        """The mean of Â⁰x … Â^order x, of x [1 or R, n, d] or of x times `factors` [R, n, 1].

        It is linear, so weights may be applied before or after.
        """
        if x.is_cuda:
            return self._mean_hop(subgraph, x if factors is None else x * factors)
        parts = x.tensor_split(-(-x.shape[2] // CPU_COLUMNS), dim=2)
        return torch.cat([self._mean_hop(subgraph, p if factors is None else p * factors) for p in parts], dim=2)

    def _mean_hop(self, subgraph: Subgraph, x: Tensor) -> Tensor:
        start = x.expand(subgraph.runs, -1, -1)
        x = subgraph.propagate(0, start)
        total = start + x
        for hop in range(1, self.settings.order):
            x = subgraph.propagate(hop, x)
            total += x
        return total.div_(self.settings.order + 1)


def _normalise(norm: BatchNorm | None, x: Tensor, training: bool) -> Tensor:
    if norm is None:
        return x
    return norm.normalise_batch(x) if training else norm(x)
