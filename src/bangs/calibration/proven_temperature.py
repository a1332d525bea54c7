"""Temperature scaling that is used only where cross-validation shows that it helps."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from bangs.calibration.logit_scaling import divide_logits, shrunk_temperature
from bangs.core.types import Prediction, Task
from bangs.utils.setting_checks import check_integer, check_number

MIN_TEMPERATURE, MAX_TEMPERATURE = 0.25, 4.0  # so that no prediction becomes uniform


@dataclass(frozen=True)
class ProvenTemperature:
    """Temperature scaling where it is shown to help, else the unchanged prediction. Keeps every label.

    The validation nodes of a run are divided into `folds`; each fold's labels are scored with the temperature of the
    others. Where the mean log-probability gains, the temperature of all validation nodes is used. Temperatures are
    shrunk towards 1 by a normal prior of log T with standard deviation `spread`.
    """

    spread: float = 1.0
    folds: int = 5

    def __post_init__(self) -> None:
        check_number("ProvenTemperature.spread", self.spread, within="(0, inf)")
        check_integer("ProvenTemperature.folds", self.folds, least=2)

    def __call__(self, prediction: Prediction, task: Task) -> Prediction:
        return divide_logits(prediction, self.fit(prediction, task))

    def fit(self, prediction: Prediction, task: Task) -> Tensor:
        """The temperature of every run, 1 where none is shown to help: float64 [R]."""
        temperature = torch.ones(task.runs, dtype=torch.float64, device=task.device)
        for run in range(task.runs):
            nodes = task.held[run].nonzero().squeeze(1)
            if len(nodes) >= 2 * self.folds:
                temperature[run] = self._proven(prediction.logits[run, nodes].double(), task.validation[run, nodes])
        return temperature

    def _proven(self, logits: Tensor, label: Tensor) -> Tensor:
        """The temperature of V validation nodes, or 1; fitted to all of them and without each fold at once."""
        fold = torch.arange(len(label), device=label.device) % self.folds
        parts = torch.arange(self.folds + 1, device=label.device)
        without = torch.where(fold == parts[:, None], -1, label)  # the last row leaves no fold out
        tasks = Task(None, None, without, logits.shape[-1])  # type: ignore[arg-type]  # the graph is not used
        predictions = Prediction(logits.expand(len(parts), -1, -1))
        scale = shrunk_temperature(predictions, tasks, self.spread).clamp(MIN_TEMPERATURE, MAX_TEMPERATURE)
        before = cross_entropy(logits, label, reduction="none")
        after = cross_entropy(logits / scale[fold][:, None], label, reduction="none")
        return scale[-1] if float((before - after).mean()) > 0 else torch.ones_like(scale[-1])
