"""The checks of settings and the initial weights that all architectures share."""

import math
from dataclasses import dataclass, fields
from typing import ClassVar, Protocol

from torch import nn

from bangs.core.rng import Streams
from bangs.nn.ensemble import Network
from bangs.utils.setting_checks import check_integer, check_number

_SIZES = ("hidden", "layers", "heads", "hops", "steps", "order", "samples")
_WITHIN = {
    **dict.fromkeys(("dropout", "input_dropout", "drop_node"), "[0, 0.999]"),
    **dict.fromkeys(("consistency", "decay"), "[0, inf)"),
    **dict.fromkeys(("loops", "theta", "sharpening"), "(0, inf)"),
    "alpha": "(0, 1]",
}


@dataclass(frozen=True)
class Checked:
    """Checks the settings of an architecture: sizes from 1, rates in [0, 0.999], scales above 0."""

    weighted: ClassVar[bool] = True  # whether edge weights are used

    def __post_init__(self) -> None:
        for setting in fields(self):
            name, value = f"{type(self).__name__}.{setting.name}", getattr(self, setting.name)
            if setting.name in _SIZES:
                check_integer(name, value, least=1)
            elif setting.name in _WITHIN:
                check_number(name, value, within=_WITHIN[setting.name])


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
