"""Graph self-training: few labels in, calibrated predictions and a reason for every pseudo-label out."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bangs.core.types import Labels, Prediction, Ranking, Round, Split, Task
    from bangs.errors import BangsError, InvalidInput, UnknownName
    from bangs.estimator.classifier import SelfTrainingClassifier
    from bangs.experiments.experiment import Experiment
    from bangs.selftraining.loop import Method, SelfTrainer
    from bangs.selftraining.methods import METHODS, Budget, method
    from bangs.training.trainer import Trainer

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

_HOMES = {
    "estimator.classifier": ("SelfTrainingClassifier",),
    "errors": ("BangsError", "InvalidInput", "UnknownName"),
    "experiments.experiment": ("Experiment",),
    "training.trainer": ("Trainer",),
    "selftraining.loop": ("Method", "SelfTrainer"),
    "selftraining.methods": ("METHODS", "Budget", "method"),
    "core.types": ("Labels", "Prediction", "Ranking", "Round", "Split", "Task"),
}


def __getattr__(name: str) -> Any:
    """A public name when it is first asked for: `bangs --help` waits for no torch, and suites need no pandas."""
    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"bangs.{home}"), name)
            return value
    raise AttributeError(f"module 'bangs' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
