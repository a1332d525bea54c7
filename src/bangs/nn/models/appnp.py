"""APPNP: a perceptron whose logits are propagated by personalised PageRank."""

from dataclasses import dataclass

from torch import Tensor

from bangs.core.rng import Streams
from bangs.nn.dropout import DropoutMasks
from bangs.nn.ensemble import Network
from bangs.nn.models.base import Checked
from bangs.nn.models.perceptron import Perceptron
from bangs.nn.subgraphs import Subgraph


@dataclass(frozen=True)
class APPNP(Checked):
    """Predict then propagate (Gasteiger et al. 2019): Z⁰ = MLP(X), Z' = (1−alpha) Â Z + alpha Z⁰, `steps` times."""

    hidden: int = 64
    dropout: float = 0.5
    input_dropout: float = 0.5
    steps: int = 10
    alpha: float = 0.1

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return _Personalised(self, features, classes, rng)


class _Personalised(Network):
    def __init__(self, settings: APPNP, features: int, classes: int, rng: Streams) -> None:
        super().__init__()
        self.settings = settings
        self.predict = Perceptron(features, settings.hidden, classes, rng)

    def forward(self, subgraph: Subgraph, masks: DropoutMasks | None = None) -> Tensor:
        product = subgraph.features.drop(masks, self.settings.input_dropout).matmul(self.predict.first)
        logits = self.predict.logits(self.predict.hidden(product), masks, self.settings.dropout)
        return self._propagate(subgraph, logits)

    def embed(self, subgraph: Subgraph) -> Tensor:
        # propagation is linear, so the hidden layer can be propagated like the logits
        return self._propagate(subgraph, self.predict.hidden(subgraph.features.matmul(self.predict.first)))

    def _propagate(self, subgraph: Subgraph, start: Tensor) -> Tensor:
        h = start
        for step in range(self.settings.steps):
            h = (1 - self.settings.alpha) * subgraph.propagate(step, h) + self.settings.alpha * start
        return h
