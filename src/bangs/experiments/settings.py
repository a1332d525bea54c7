"""Check the settings of an experiment: one rule per field."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from functools import partial
from typing import Any, Literal, get_args

from bangs.calibration.calibrators import CALIBRATORS
from bangs.errors import InvalidInput, UnknownName
from bangs.nn.models import MODELS
from bangs.selftraining.defaults import CHOICES
from bangs.selftraining.methods import METHODS
from bangs.training.presets import PRESETS
from bangs.training.trainer import Trainer
from bangs.utils.limits import MAX_COUNT, MAX_FANOUT
from bangs.valuation.banzhaf import ESTIMATORS
from bangs.valuation.influence import Normalisation

Recipe = Literal["budget", "paper", "authors"]  # where the settings of a method come from
VALIDATION_SHARE = 0.15  # of all nodes, with `share`
VALIDATION_NODES = 500  # default with `per_class`


def _one_of(known: Collection[str], name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a name in quotes, one of {', '.join(known)}, got {value!r}")
    if value not in known:
        raise UnknownName(name, value, known)


def _integer(minimum: int, name: str, value: Any) -> None:
    if type(value) is not int or not minimum <= value <= MAX_COUNT:
        raise InvalidInput(f"{name} must be a whole number from {minimum} to {MAX_COUNT:,}, got {value!r}")


def _share(name: str, value: Any) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise InvalidInput(f"{name} must be a number from 0 to 1, got {value!r}")


def _training_share(name: str, value: Any) -> None:
    if type(value) not in (int, float) or not 0.0 < value < 1.0 - VALIDATION_SHARE:
        maximum = f"{1 - VALIDATION_SHARE:g}, as {VALIDATION_SHARE:g} are for validation"
        raise InvalidInput(f"{name} must be a number between 0 and {maximum}, got {value!r}")


def _dataset(name: str, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{name} must be a name or a path in quotes, got {value!r}")


def _seeds(name: str, value: Any) -> None:
    if not isinstance(value, list | tuple) or any(type(seed) is not int for seed in value):
        raise InvalidInput(f"{name} must be whole numbers, got {value!r}")
    if not value:
        raise InvalidInput("an experiment needs at least one seed")
    if len(set(value)) < len(value):
        raise InvalidInput(f"seeds must differ, got {list(value)}")


def _fanout(name: str, value: Any) -> None:
    if (
        not isinstance(value, list | tuple)
        or not value
        or any(type(count) is not int or not -1 <= count <= MAX_FANOUT or not count for count in value)
    ):
        raise InvalidInput(
            f"{name} must list the neighbours heard at each hop, such as [10, 10], −1 for all, got {value!r}"
        )


def _changes(name: str, value: Any) -> None:
    known = {field.name for field in fields(Trainer)} - {"model", "batches"}
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{name} must be a table of training settings, got {value!r}")
    for key in value:
        if key not in known:
            raise UnknownName("training setting", str(key), known)
        if isinstance(value[key], int) and abs(value[key]) > MAX_COUNT:
            raise InvalidInput(f"{name}.{key} must be at most {MAX_COUNT:,}, got {value[key]}")
    Trainer(**value)  # checks the values


# each rule gets the name of its field and a value, and raises if the value is not valid; a None is not checked
RULES: dict[str, Callable[[str, Any], None]] = {
    "dataset": _dataset,
    "method": partial(_one_of, METHODS),
    "model": partial(_one_of, MODELS),
    "preset": partial(_one_of, PRESETS),
    "recipe": partial(_one_of, get_args(Recipe)),
    "seeds": _seeds,
    "rounds": partial(_integer, 0),
    "k": partial(_integer, 0),
    "candidates": partial(_integer, 0),
    "normalise": partial(_one_of, get_args(Normalisation)),
    "push": _share,
    "ppr_steps": partial(_integer, 1),
    "estimator": partial(_one_of, ESTIMATORS),
    "per_class": partial(_integer, 1),
    "validation_nodes": partial(_integer, 1),
    "samples": partial(_integer, 1),
    "calibrator": partial(_one_of, CALIBRATORS),
    "teacher": partial(_one_of, CHOICES["teacher"]),
    "pool": partial(_one_of, CHOICES["pool"]),
    "memory": partial(_one_of, CHOICES["memory"]),
    "noise": _share,
    "share": _training_share,
    "batch_size": partial(_integer, 1),
    "fanout": _fanout,
    "pieces": partial(_integer, 1),
    "changes": _changes,
}
