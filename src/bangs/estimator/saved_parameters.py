"""Saved parameters: parameters and parts as JSON, and back without executing anything from a file."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bangs.calibration.calibrators import CALIBRATORS, calibrator
from bangs.calibration.crossfit import Crossfit
from bangs.core.rng import Streams
from bangs.errors import InvalidInput
from bangs.estimator.linear import LinearTrainer, PropagatedLinear
from bangs.graphs.pagerank import PPR, ExactPPR
from bangs.graphs.pagerank_push import Push
from bangs.nn.models import MODELS, Architecture
from bangs.selection.scores import Agreement, Alone, Banzhaf, Chance, Confidence
from bangs.training.neighbour_sampling import Sampling
from bangs.training.trainer import Trainer
from bangs.valuation import banzhaf

MAX_RUNS = 256  # models of one member in a file
MAX_TRUSTED_SIZE = 1024  # a larger setting needs a tensor of that size in the file

_PARTS: tuple[Any, ...] = (
    *MODELS.values(),
    *CALIBRATORS.values(),
    *(type(make(None)) for make in banzhaf.ESTIMATORS.values()),
    *(PropagatedLinear, LinearTrainer),
    *(Trainer, Sampling, Crossfit, Banzhaf, Confidence, Chance, Agreement, Alone, PPR, ExactPPR, Push),
)
KNOWN: dict[str, Any] = {part.__name__: part for part in _PARTS}


def to_json(value: Any) -> Any:
    """A parameter for JSON: plain values as they are, parts of bangs by name and settings, others by their repr."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, tuple | list):
        return [to_json(part) for part in value]
    if isinstance(value, Mapping):  # as pairs: the keys of a JSON object are words
        return {"dict": [[to_json(key), to_json(part)] for key, part in value.items()]}
    if is_dataclass(value) and KNOWN.get(type(value).__name__) is type(value):
        settings = {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
        if not any(isinstance(part, dict) and "own" in part for part in settings.values()):
            return {"part": type(value).__name__, "settings": settings}
    return {"own": repr(value)[:200]}


def from_json(name: str, value: Any, given: Mapping[str, Any]) -> Any:
    """The parameter that `to_json` wrote, or the one given by the caller."""
    if name in given:
        return given[name]
    if isinstance(value, list):
        return tuple(from_json(name, part, {}) for part in value)
    if not isinstance(value, dict):
        return value
    if "dict" in value:
        return {from_json(name, key, {}): from_json(name, part, {}) for key, part in value["dict"]}
    if "own" in value:
        raise InvalidInput(
            f"it was saved with a {name} of your own, {value['own']}, which a file cannot hold; "
            f"give it again: load(path, {name}=…)"
        )
    if value["part"] not in KNOWN:
        raise InvalidInput(f"its {name} is a {value['part']!r}, which this version of bangs does not know")
    return KNOWN[value["part"]](**{key: from_json(key, part, {}) for key, part in value["settings"].items()})


def check_calibrator(value: Any) -> None:
    """Raises where a saved calibrator is neither a known name nor a calibrator of bangs."""
    if isinstance(value, str):
        calibrator(value)
    elif type(value) not in (*CALIBRATORS.values(), Crossfit):
        raise InvalidInput(f"its calibrator is {value!r}, which cannot calibrate")


def check_weights(architecture: Architecture, weights: Mapping[str, Tensor], features: int, classes: int) -> None:
    """Raises where weights do not fit R models of the architecture: names, shapes, types, finite values."""
    largest = max([MAX_TRUSTED_SIZE, *(size for weight in weights.values() for size in weight.shape)])
    settings: dict[str, Any] = vars(architecture) if is_dataclass(architecture) else {}
    sizes = {"features": features, "classes": classes, **settings}
    for name, size in sizes.items():
        # checked before the network is built, which takes that much memory
        if isinstance(size, int) and size > largest:
            raise InvalidInput(f"it claims {name} = {size:,}, but its largest tensor has {largest:,}")
    runs = max((len(weight) for weight in weights.values() if weight.dim()), default=1)
    if not 1 <= runs <= MAX_RUNS:
        raise InvalidInput(f"it claims {runs:,} models of one kind, more than {MAX_RUNS:,}")
    expected = architecture.build(features, classes, Streams((0,) * runs)).weights()
    if expected.keys() != weights.keys():
        odd = sorted(expected.keys() ^ weights.keys())
        raise InvalidInput(f"its weights are not those of {architecture!r}: {odd[0]!r} is on one side only")
    for name, value in expected.items():
        weight = weights[name]
        if weight.shape != value.shape or weight.dtype != value.dtype:
            raise InvalidInput(
                f"weight '{name}' must be {value.dtype} of shape {list(value.shape)}, "
                f"got {weight.dtype} of shape {list(weight.shape)}"
            )
        if weight.is_floating_point() and not torch.isfinite(weight).all():
            raise InvalidInput(f"weight '{name}' holds NaN or infinity")
