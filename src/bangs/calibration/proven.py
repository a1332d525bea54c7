"""Proven: calibration only where labels it was not fitted to say that it helps."""

from dataclasses import dataclass

import torch
from torch import Tensor

from bangs.calibration import scaling
from bangs.calibration.scaling import Sample, check_prior
from bangs.core.types import Prediction, Task
from bangs.errors import InvalidInput

MILDEST, STRONGEST = 0.25, 4.0  # temperatures stay between these, so that no run is flattened


@dataclass(frozen=True)
class ProvenTemperature:
    """Temperature scaling where it is shown to help, else the prediction as it came. Keeps every label.

    The validation nodes of a run are dealt into `folds`; each fold's labels are scored with the temperature of the
    others. Where the mean log-probability gains more than `errors` of its standard errors, the temperature of all
    validation nodes is used.
    """

    prior: float = 1.0
    folds: int = 5
    errors: float = 1.0

    def __post_init__(self) -> None:
        check_prior(type(self).__name__, self.prior)
        if self.folds < 2:
            raise InvalidInput(f"ProvenTemperature.folds must be at least 2, got {self.folds}")

    def __call__(self, prediction: Prediction, task: Task) -> Prediction:
        temperature = self.fit(prediction, task)
        return Prediction(prediction.logits / temperature[:, None, None].to(prediction.logits.dtype))

    def fit(self, prediction: Prediction, task: Task) -> Tensor:
        """The temperature of every run, 1 where none is shown to help: float64 [R]."""
        found = torch.ones(task.runs, dtype=torch.float64, device=task.device)
        for run in range(task.runs):
            nodes = task.held[run].nonzero().squeeze(1)
            if len(nodes) < 2 * self.folds:
                continue
            logits = prediction.logits[run, nodes].double()
            label = task.validation[run, nodes]
            fold = torch.arange(len(nodes), device=nodes.device) % self.folds
            before = _likely(logits, label)
            after = torch.empty_like(before)
            for own in range(self.folds):
                held = fold == own
                scale = self._temperature(logits[~held], label[~held])
                after[held] = _likely(logits[held] / scale, label[held])
            gain = after - before
            if float(gain.mean()) > self.errors * float(gain.std()) / len(gain) ** 0.5:
                found[run] = self._temperature(logits, label)
        return found

    def _temperature(self, logits: Tensor, label: Tensor) -> Tensor:
        everyone = Task(None, None, label[None], logits.shape[-1])  # type: ignore[arg-type]  # a sample looks at no graph
        sample = Sample.of(Prediction(logits[None]), everyone, self.prior)
        return scaling.temperature(sample.logits, sample.target)[0].clamp(MILDEST, STRONGEST)


def _likely(logits: Tensor, label: Tensor) -> Tensor:
    return logits.log_softmax(-1).gather(-1, label[:, None]).squeeze(-1)
