"""Feature scaling: standardises the columns of an array if they have different units."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.graphs.feature_units import UNIT_RATIO, median_ratios, units_differ
from bangs.graphs.tables.read_options import SCALES
from bangs.utils.setting_checks import check_choice

MAX_UNIT = 1e4  # median deviation of columns above which, or below 1/1e4, networks learn badly from them
ROUNDING = 2e-7  # of float32, relative; a column that varies less is constant
_BLOCK = 64  # columns that are converted to float64 at a time


@dataclass(frozen=True, eq=False)
class FeatureScaling:
    """X becomes (X − mean) / scale; predictions on another graph use the numbers of the fitted one."""

    mean: Tensor  # float64 [F]
    scale: Tensor  # float64 [F]

    def __post_init__(self) -> None:
        if self.mean.dim() != 1 or self.mean.shape != self.scale.shape:
            raise InvalidInput(f"a scaling has shapes {list(self.mean.shape)} and {list(self.scale.shape)}, not [F]")
        if not (self.mean.isfinite().all() and self.scale.isfinite().all() and (self.scale > 0).all()):
            raise InvalidInput("a scaling has means that are not finite, or scales that are not positive")

    @classmethod
    def of(cls, x: Tensor, scale: str) -> "FeatureScaling | None":
        """The scaling of features X [N, F] by its name in `SCALES`; None = they are taken as they are."""
        check_choice("scale", scale, SCALES)
        if x.layout != torch.strided:
            if scale == "standard":
                raise InvalidInput(
                    "scale='standard' needs dense features, but X is sparse; give scale='auto' or 'none'"
                )
            return None
        if scale == "none":
            return None
        scaling = cls.standard(x) if scale == "standard" else cls.by_units(x)
        return scaling if bool((scaling.mean != 0).any() | (scaling.scale != 1).any()) else None

    @classmethod
    def standard(cls, x: Tensor) -> "FeatureScaling":
        """The scaling of X [N, F] to mean 0 and standard deviation 1; 0/1 columns stay as they are."""
        mean, deviation, indicator, _ = _statistics(x)
        return cls(mean.masked_fill(indicator, 0.0), deviation.masked_fill(indicator | (deviation == 0), 1.0))

    @classmethod
    def by_units(cls, x: Tensor) -> "FeatureScaling":
        """The standard scaling if the columns of X [N, F] have different units, or numbers far from 1.

        Else only columns of another unit than most are changed: they get the median deviation. The unit of a 0/1 column
        is 1, however rare its ones are.
        """
        mean, deviation, indicator, zeros = _statistics(x)
        large_beside_indicators = bool(indicator.any() and (deviation > UNIT_RATIO).any())
        varying = deviation[deviation > 0]
        extreme = len(varying) > 0 and not 1 / MAX_UNIT <= float(varying.median()) <= MAX_UNIT
        if extreme or large_beside_indicators or units_differ(deviation.numpy(), zeros.numpy()):
            return cls.standard(x)
        ratios = torch.from_numpy(median_ratios(deviation.numpy(), zeros.numpy()))
        return cls(mean.where(ratios != 1, 0.0), ratios)

    def __call__(self, x: Tensor) -> Tensor:
        """The scaled features: float32 [N, F], dense."""
        x = x.to_dense() if x.layout == torch.sparse_csr else x
        out = torch.empty_like(x)
        for columns in _blocks(x):
            mean, scale = (values[columns].to(x.device) for values in (self.mean, self.scale))
            out[:, columns] = ((x[:, columns].double() - mean) / scale).float()
        return out

    @property
    def note(self) -> str:
        """A sentence for the user."""
        changed = int(((self.mean != 0) | (self.scale != 1)).sum())
        count = f"{changed:,} of {len(self.scale):,}"
        return f"features have different or extreme units, so {count} are scaled; scale 'none' takes them as they are"


def _statistics(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Means, deviations, whether all are 0 or 1, and the share of zeros of all columns: [F] each."""
    parts = []
    for columns in _blocks(x):
        block = x[:, columns].cpu().double()
        zero, mean, deviation = block == 0, block.mean(0), block.std(0, correction=0)
        deviation = deviation.where(deviation > ROUNDING * mean.abs(), 0.0)
        parts.append((mean, deviation, (zero | (block == 1)).all(0), zero.double().mean(0)))
    mean, deviation, indicator, zeros = (torch.cat(columns) for columns in zip(*parts, strict=True))
    return mean, deviation, indicator, zeros


def _blocks(x: Tensor) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, x.shape[1], _BLOCK))
