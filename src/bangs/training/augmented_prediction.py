"""Predictions of a trained model under a view: of an augmented graph, or with dropout on (Monte Carlo dropout)."""

from dataclasses import dataclass

from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.core.types import Model, Prediction
from bangs.graphs.augmentations import Same, View
from bangs.utils.setting_checks import check_number


@dataclass(frozen=True)
class Dropout:
    """The unchanged graph with the model's dropout on: one sample of Monte Carlo dropout (Gal & Ghahramani 2016).

    Uses the rates of training, or `rate` for every layer that has dropout.
    """

    rate: float | None = None

    def __post_init__(self) -> None:
        if self.rate is not None:
            check_number("Dropout.rate", self.rate, within="[0, 0.999]")


ModelView = View | Dropout


def predict_view(model: Model, graph: Data, view: ModelView, rng: Streams) -> Prediction:
    """Logits [R, N, C] of one view; every run draws from its own stream."""
    if isinstance(view, Dropout):
        return model.sample(graph, rng, view.rate)
    if isinstance(view, Same):
        return model.predict(graph)
    return model.predict([view(graph, generator) for generator in rng.generators(graph.edge_index.device)])
