"""Looks: what a trained model says of a graph as it is, changed by a view, or through its own dropout."""

from dataclasses import dataclass

from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.core.types import Model, Prediction
from bangs.errors import InvalidInput
from bangs.graphs.views import Same, View


@dataclass(frozen=True)
class Dropout:
    """The graph as it is, seen with the model's dropout on: a draw of Monte Carlo dropout (Gal & Ghahramani 2016).

    At the rates the model was trained with, or at `rate` on every hidden layer and on features that the model drops.
    """

    rate: float | None = None

    def __post_init__(self) -> None:
        if self.rate is not None and not 0 <= self.rate <= 0.999:
            raise InvalidInput(f"Dropout.rate must be in [0, 0.999], got {self.rate}")


ModelView = View | Dropout


def look(model: Model, graph: Data, at: ModelView, rng: Streams) -> Prediction:
    """Logits [R, N, C] of one look; every run draws from its own stream."""
    if isinstance(at, Dropout):
        return model.sample(graph, rng, at.rate)
    if isinstance(at, Same):
        return model.predict(graph)
    return model.predict([at(graph, generator) for generator in rng.generators(graph.edge_index.device)])
