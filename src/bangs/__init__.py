"""Graph self-training: few labels in, calibrated predictions and a reason for every pseudo-label out."""

import ast
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what the package offers; at run time each name is imported when it is first used
    from bangs.calibration.calibrators import CALIBRATORS, ETS, Temperature, Uncalibrated, Vector
    from bangs.calibration.crossfit import Crossfit
    from bangs.calibration.graph_calibrators import GATS, CaGCN
    from bangs.core import metrics
    from bangs.core.rng import Streams
    from bangs.core.types import Labels, Prediction, Ranking, Round, Split, Task
    from bangs.errors import BangsError, InvalidInput, UnknownName
    from bangs.estimator.classifier import SelfTrainingClassifier
    from bangs.estimator.cross_validation import LabelMask, cross_validate
    from bangs.estimator.fit_checkpoints import FitCheckpoints
    from bangs.estimator.node_rows import NodeRows
    from bangs.experiments.experiment import Experiment
    from bangs.experiments.reproduce import reproduce
    from bangs.graphs import splits
    from bangs.graphs.augmentations import DropEdges, DropFeatures, Noise, Same
    from bangs.graphs.datasets.synthetic import citation
    from bangs.graphs.pagerank import PPR, ExactPPR
    from bangs.graphs.pagerank_push import Push
    from bangs.graphs.store import Store
    from bangs.nn.ensemble import Network, Separate
    from bangs.nn.models import APPNP, GAT, GCN, GCNII, GIN, GRAND, MODELS, SGC, GraphSAGE
    from bangs.report.model_page import write_report
    from bangs.runs import RunFolder, read_run
    from bangs.selection.quotas import Above, Balanced, Everyone, Nobody, Top, TopPerClass
    from bangs.selection.scores import Agreement, Alone, Banzhaf, Chance, Confidence, Logit
    from bangs.selftraining.budget import Budget
    from bangs.selftraining.loop import Method, SelfTrainer, State
    from bangs.selftraining.loss_weights import Balance, BanzhafWeight, Certainty, Product
    from bangs.selftraining.methods import METHODS, method
    from bangs.selftraining.published_settings import authors, paper
    from bangs.selftraining.soft_labels import Sharpen
    from bangs.selftraining.uncertainty import InformationGain, Transition
    from bangs.training.augmented_prediction import Dropout
    from bangs.training.neighbour_sampling import Sampling
    from bangs.training.trainer import Trainer
    from bangs.utils.threads import deterministic_kernels
    from bangs.valuation.banzhaf import (
        ESTIMATORS,
        MSR,
        WLS,
        Exact,
        Game,
        Generators,
        Gradient,
        Marginals,
        MeanField,
        Values,
    )

__version__ = "0.1.0"

__all__ = [
    "APPNP",
    "CALIBRATORS",
    "ESTIMATORS",
    "ETS",
    "GAT",
    "GATS",
    "GCN",
    "GCNII",
    "GIN",
    "GRAND",
    "METHODS",
    "MODELS",
    "MSR",
    "PPR",
    "SGC",
    "WLS",
    "Above",
    "Agreement",
    "Alone",
    "Balance",
    "Balanced",
    "BangsError",
    "Banzhaf",
    "BanzhafWeight",
    "Budget",
    "CaGCN",
    "Certainty",
    "Chance",
    "Confidence",
    "Crossfit",
    "DropEdges",
    "DropFeatures",
    "Dropout",
    "Everyone",
    "Exact",
    "ExactPPR",
    "Experiment",
    "FitCheckpoints",
    "Game",
    "Generators",
    "Gradient",
    "GraphSAGE",
    "InformationGain",
    "InvalidInput",
    "LabelMask",
    "Labels",
    "Logit",
    "Marginals",
    "MeanField",
    "Method",
    "Network",
    "Nobody",
    "NodeRows",
    "Noise",
    "Prediction",
    "Product",
    "Push",
    "Ranking",
    "Round",
    "RunFolder",
    "Same",
    "Sampling",
    "SelfTrainer",
    "SelfTrainingClassifier",
    "Separate",
    "Sharpen",
    "Split",
    "State",
    "Store",
    "Streams",
    "Task",
    "Temperature",
    "Top",
    "TopPerClass",
    "Trainer",
    "Transition",
    "Uncalibrated",
    "UnknownName",
    "Values",
    "Vector",
    "authors",
    "citation",
    "cross_validate",
    "deterministic_kernels",
    "method",
    "metrics",
    "paper",
    "read_run",
    "reproduce",
    "splits",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `bangs --help` does not wait for torch."""
    if name not in __all__:
        raise AttributeError(f"module 'bangs' has no attribute '{name}'")
    try:
        module = import_module(_homes()[name])
    except AttributeError as reason:  # of a broken package; Python would only say that bangs has no such name
        raise ImportError(f"bangs.{name} cannot be imported: {reason}") from reason
    value = globals()[name] = getattr(module, name, None) or import_module(f"{module.__name__}.{name}")
    return value


@cache
def _homes() -> dict[str, str]:
    """The module that each public name comes from, read from the imports above."""
    parts = ast.walk(ast.parse(Path(__file__).read_text(encoding="utf-8")))
    imports = [own for own in parts if isinstance(own, ast.ImportFrom)]
    return {alias.name: str(own.module) for own in imports for alias in own.names}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
