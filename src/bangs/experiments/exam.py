"""Exam: the labels that an experiment is measured with; no learner has them."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.types import Split
from bangs.errors import InvalidInput
from bangs.graphs.fingerprint import fingerprint
from bangs.selftraining.loop import State


@dataclass(frozen=True, eq=False)
class Exam:
    """Compares predictions with labels that no learner sees."""

    answers: Tensor  # long [R, N], -1 = not a test node
    truth: Tensor  # long [R, N], -1 = unknown; of all nodes, for the accuracy of pseudo-labels

    @classmethod
    def of(cls, data: Data, split: Split) -> "Exam":
        """The exam of a labelled graph: its test nodes."""
        truth = data.y.expand(split.test.shape)
        answers = torch.where(split.test, truth, -1)
        if len(unlabelled := (answers < 0).all(1).nonzero().flatten()):
            raise InvalidInput(
                f"no test node of run {int(unlabelled[0])} has a label, so nothing can be marked; "
                "label some, or use bangs fit, which needs none"
            )
        return cls(answers, truth)

    def to(self, device: torch.device | str) -> "Exam":
        return Exam(self.answers.to(device), self.truth.to(device))

    @property
    def digest(self) -> str:
        """A digest of the labels; a run continues only if it has not changed."""
        return fingerprint(Data(answers=self.answers, truth=self.truth))

    def mark(self, state: State) -> dict[str, Any]:
        """Test accuracy and the share of correct pseudo-labels after a round, by run; None without pseudo-labels."""
        return self.mark_labels(state.prediction.label, torch.where(state.labels.adopted, state.labels.target, -1))

    def mark_labels(self, predicted: Tensor, pseudo: Tensor) -> dict[str, Any]:
        """The same from the predicted labels and the pseudo-labels (-1 = none), long [R, N] each."""
        adopted = (pseudo >= 0) & (self.truth >= 0)
        correct, count = (adopted & (pseudo == self.truth)).sum(1), adopted.sum(1)
        counted = self.answers >= 0
        accuracy = ((predicted == self.answers) & counted).sum(1).double() / counted.sum(1)
        shares = [r / n if n else None for r, n in zip(correct.tolist(), count.tolist(), strict=True)]
        return {"test": accuracy.tolist(), "pseudo_accuracy": shares}
