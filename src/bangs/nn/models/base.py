"""The checks of settings and the initial weights that all architectures share."""

import math
from dataclasses import dataclass, fields
from typing import ClassVar, Protocol

from torch import nn

from bangs.core.number_checks import check_number, check_whole
from bangs.core.rng import Streams
from bangs.errors import InvalidInput
from bangs.nn.ensemble import Network

_SIZES = ("hidden", "layers", "heads", "hops", "steps", "order", "samples")
_RATES = ("dropout", "input_dropout", "drop_node")
_NOT_NEGATIVE = ("consistency", "decay")
_POSITIVE = ("loops", "theta", "sharpening")


@dataclass(frozen=True)
class Checked:
    """Checks the settings of an architecture: sizes from 1, rates in [0, 0.999], scales above 0."""

    weighted: ClassVar[bool] = True  # whether edge weights are used

    def __post_init__(self) -> None:
        for own in fields(self):
            value, rule = getattr(self, own.name), None
            if own.name in _SIZES:
                check_whole(f"{type(self).__name__}.{own.name}", value)
            elif own.name in (*_RATES, *_POSITIVE, *_NOT_NEGATIVE, "alpha"):
                check_number(f"{type(self).__name__}.{own.name}", value)
            if own.name in _SIZES and value < 1:
                rule = "at least 1"
            elif own.name in _RATES and not 0 <= value <= 0.999:
                rule = "in [0, 0.999]"
            elif own.name in _POSITIVE and not 0 < value < math.inf:
                rule = "positive"
            elif own.name == "alpha" and not 0 < value <= 1:
                rule = "in (0, 1]"
            elif own.name in _NOT_NEGATIVE and not 0 <= value < math.inf:
                rule = "at least 0"
            if rule is not None:
                raise InvalidInput(f"{type(self).__name__}.{own.name} must be {rule}, got {value}")


class Architecture(Protocol):
    """The settings of a model; `build` makes R models with fresh weights."""

    def build(self, features: int, classes: int, rng: Streams) -> Network: ...


def glorot(rng: Streams, rows: int, columns: int) -> nn.Parameter:
    """Uniform weights [R, rows, columns] of Glorot & Bengio (2010), drawn on the CPU so that devices agree."""
    bound = math.sqrt(6 / (rows + columns))
    return nn.Parameter(rng.rand(rows, columns).mul_(2).sub_(1).mul_(bound))


def uniform(rng: Streams, rows: int, columns: int, inputs: int | None = None) -> nn.Parameter:
    """Uniform weights [R, rows, columns] within ±1/√inputs, as in torch's linear layers; `inputs` defaults to rows."""
    bound = 1 / math.sqrt(inputs or rows)
    return nn.Parameter(rng.rand(rows, columns).mul_(2).sub_(1).mul_(bound))
