"""Graph self-training: few labels in, calibrated predictions and a reason for every pseudo-label out."""

from bangs.classifier import SelfTrainingClassifier
from bangs.errors import BangsError, InvalidInput, UnknownName
from bangs.experiments.experiment import Experiment
from bangs.learners.training import Trainer
from bangs.loop import Method, SelfTrainer
from bangs.methods import METHODS, Budget, method
from bangs.types import Labels, Prediction, Ranking, Round, Split, Task

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
