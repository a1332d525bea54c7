"""Graph self-training: few labels in, calibrated predictions and a reason for every pseudo-label out."""

from typing import TYPE_CHECKING, Any

from bangs.errors import BangsError, InvalidInput, UnknownName
from bangs.experiments.experiment import Experiment
from bangs.learners.training import Trainer
from bangs.loop import Method, SelfTrainer
from bangs.methods import METHODS, Budget, method
from bangs.types import Labels, Prediction, Ranking, Round, Split, Task

if TYPE_CHECKING:
    from bangs.classifier import SelfTrainingClassifier

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "BangsError",
    "Budget",
    "Experiment",
    "InvalidInput",
    "Labels",
    "Method",
    "Prediction",
    "Ranking",
    "Round",
    "SelfTrainer",
    "SelfTrainingClassifier",
    "Split",
    "Task",
    "Trainer",
    "UnknownName",
    "method",
]


def __getattr__(name: str) -> Any:
    """The classifier when it is asked for: only it needs pandas, which a machine that runs suites may lack."""
    if name == "SelfTrainingClassifier":
        from bangs.classifier import SelfTrainingClassifier

        return SelfTrainingClassifier
    raise AttributeError(f"module 'bangs' has no attribute '{name}'")
