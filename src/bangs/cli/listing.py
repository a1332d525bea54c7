"""`bangs list`: the names a command understands."""

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from bangs.cli import options
from bangs.cli.console import Voice
from bangs.errors import UnknownName
from bangs.experiments.suite_file import read_suite, suite_files
from bangs.graphs.datasets import DATASETS
from bangs.learners.calibration import CALIBRATORS
from bangs.learners.models import MODELS
from bangs.methods import METHODS
from bangs.valuation import banzhaf


def _first_sentence(part: Any) -> str:
    return (inspect.getdoc(part) or "").split("\n")[0]


def _documented(parts: Mapping[str, Callable[..., Any]]) -> dict[str, str]:
    return {name: _first_sentence(part) for name, part in parts.items()}


KINDS: dict[str, Callable[[], dict[str, str]]] = {
    "datasets": lambda: {name: dataset.description for name, dataset in DATASETS.items()},
    "methods": lambda: _documented(METHODS),
    "models": lambda: _documented(MODELS),
    "calibrators": lambda: _documented(CALIBRATORS),
    "suites": lambda: {name: read_suite(path).title for name, path in suite_files().items()},
    "estimators": lambda: {name: _first_sentence(make(None)) for name, make in banzhaf.ESTIMATORS.items()},
}


def listing(
    kind: Annotated[str, typer.Argument(help="datasets, methods, models, calibrators, suites or estimators")],
    as_json: options.Json = False,
) -> None:
    """The names the other commands understand.

    Example: bangs list methods
    """
    if kind not in KINDS:
        raise UnknownName("list", kind, KINDS)
    names = KINDS[kind]()
    if as_json:
        print(json.dumps({kind: names}))
        return
    voice = Voice()
    width = max(map(len, names))
    for name, words in names.items():
        voice.say(f"{name:<{width}}  {words}")
