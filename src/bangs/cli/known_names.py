"""Every name a command understands, by kind, with a sentence on each."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from bangs.calibration.calibrators import CALIBRATORS
from bangs.experiments.suites.read import read_suite, suite_files
from bangs.graphs.datasets.by_name import DATASETS
from bangs.nn.models import MODELS
from bangs.selftraining.methods import METHODS
from bangs.valuation.banzhaf import ESTIMATORS

KINDS: dict[str, Callable[[], dict[str, str]]] = {
    "datasets": lambda: {name: dataset.description for name, dataset in DATASETS.items()},
    "methods": lambda: _documented(METHODS),
    "models": lambda: _documented(MODELS),
    "calibrators": lambda: _documented(CALIBRATORS),
    "suites": lambda: {name: read_suite(path).title for name, path in suite_files().items()},
    "estimators": lambda: {name: _first_sentence(make(None)) for name, make in ESTIMATORS.items()},
}


def _documented(parts: Mapping[str, Callable[..., Any]]) -> dict[str, str]:
    return {name: _first_sentence(part) for name, part in parts.items()}


def _first_sentence(part: Any) -> str:
    return (inspect.getdoc(part) or "").split("\n")[0]
