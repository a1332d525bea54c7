"""Teacher: R trained models and their predictions for any graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.core.types import Prediction
from bangs.nn.dropout import dropout_masks

if TYPE_CHECKING:
    from bangs.training.trainer import Learner


@dataclass(frozen=True, eq=False)
class Teacher:
    """R trained models."""

    learner: "Learner"
    weights: dict[str, Tensor]  # each [R, …]
    validation: Tensor  # float [R], accuracy on the validation nodes
    epochs: Tensor  # long [R], the epoch of the best weights
    sound: Tensor  # bool [R], False where training diverged
    early: dict[str, Tensor] | None = None  # the weights of an early epoch, to start a student from

    def predict(self, graph: Data | Sequence[Data]) -> Prediction:
        """Logits [R, N, C] of every node; a sequence holds one graph per run."""
        return self.learner.predict(self.weights, graph)

    def sample(self, graph: Data, rng: Streams, rate: float | None = None) -> Prediction:
        """Logits [R, N, C] of one pass with dropout, at the model's own rate or the one given."""
        return self.learner.predict(self.weights, graph, dropout_masks(rng.numbers(), self.learner.task.device, rate))

    def embed(self, graph: Data) -> Tensor:
        """The last hidden layer of every node: float [R, N, h]."""
        return self.learner.embed(self.weights, graph)

    @staticmethod
    def concat(learner: "Learner", teachers: Sequence["Teacher"]) -> "Teacher":
        """Teachers of one run each, as one teacher of all runs."""

        def cat(weights: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
            return {name: torch.cat([run_weights[name] for run_weights in weights]) for name in weights[0]}

        early = [teacher.early for teacher in teachers if teacher.early is not None]
        return Teacher(
            learner,
            cat([teacher.weights for teacher in teachers]),
            torch.cat([teacher.validation for teacher in teachers]),
            torch.cat([teacher.epochs for teacher in teachers]),
            torch.cat([teacher.sound for teacher in teachers]),
            cat(early) if early else None,
        )

    @staticmethod
    def where(run: Tensor, first: "Teacher", second: "Teacher") -> "Teacher":
        """The first teacher where run [R] is true, the second elsewhere."""

        def pick(one: Tensor, other: Tensor) -> Tensor:
            return torch.where(run.view(-1, *[1] * (one.dim() - 1)), one, other)

        return Teacher(
            first.learner,
            {name: pick(first.weights[name], second.weights[name]) for name in first.weights},
            pick(first.validation, second.validation),
            pick(first.epochs, second.epochs),
            pick(first.sound, second.sound),
            first.early if first.early is not None else second.early,
        )
