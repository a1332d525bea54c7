"""Proven: calibration only where labels it was not fitted to say that it helps."""

from dataclasses import dataclass

import torch
from torch import Tensor

from bangs.calibration.scaling import shrunk_temperature
from bangs.core.types import Prediction, Task
from bangs.errors import InvalidInput

MILDEST, STRONGEST = 0.25, 4.0  # temperatures stay between these, so that no run is flattened


@dataclass(frozen=True)
class ProvenTemperature:
    """Temperature scaling where it is shown to help, else the prediction as it came. Keeps every label.

    The validation nodes of a run are dealt into `folds`; each fold's labels are scored with the temperature of the
    others. Where the mean log-probability gains, the temperature of all validation nodes is used. Temperatures are
    shrunk towards 1 by a normal prior of log T with standard deviation `spread`.
    """

    spread: float = 1.0
    folds: int = 5

    def __post_init__(self) -> None:
        if not 0 < self.spread < float("inf"):
            raise InvalidInput(f"ProvenTemperature.spread must be positive, got {self.spread}")
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
            if len(nodes) >= 2 * self.folds:
                found[run] = self._proven(prediction.logits[run, nodes].double(), task.validation[run, nodes])
        return found

    def _proven(self, logits: Tensor, label: Tensor) -> Tensor:
        """The temperature of V validation nodes, or 1; found for all of them and without each fold at once."""
        fold = torch.arange(len(label), device=label.device) % self.folds
        parts = torch.arange(self.folds + 1, device=label.device)
        without = torch.where(fold == parts[:, None], -1, label)  # the last part leaves nobody out
        everyone = Task(None, None, without, logits.shape[-1])  # type: ignore[arg-type]  # looks at no graph
        several = Prediction(logits.expand(len(parts), -1, -1))
        scale = shrunk_temperature(several, everyone, self.spread).clamp(MILDEST, STRONGEST)
        gain = _likely(logits / scale[fold][:, None], label) - _likely(logits, label)
        return scale[-1] if float(gain.mean()) > 0 else torch.ones_like(scale[-1])


def _likely(logits: Tensor, label: Tensor) -> Tensor:
    return logits.log_softmax(-1).gather(-1, label[:, None]).squeeze(-1)
