"""Feature scaling: standardises the columns of an array if they have different units."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from bangs.core.choice_checks import check_choice
from bangs.errors import InvalidInput
from bangs.graphs.feature_units import UNIT_RATIO, units_differ
from bangs.graphs.tables.read_options import SCALES

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
        return {"standard": cls.standard, "auto": cls.if_units_differ, "none": lambda _: None}[scale](x)

    @classmethod
    def standard(cls, x: Tensor) -> "FeatureScaling":
        """The scaling of X [N, F] to mean 0 and standard deviation 1; 0/1 and constant columns stay as they are."""
        mean, deviation, indicator, _ = _statistics(x)
        unchanged = indicator | ~_varies(mean, deviation)
        return cls(mean.masked_fill(unchanged, 0.0), deviation.masked_fill(unchanged, 1.0))

    @classmethod
    def if_units_differ(cls, x: Tensor) -> "FeatureScaling | None":
        """The standard scaling if the columns of X [N, F] have different units, else None.

        The unit of a 0/1 column is 1, however rare its ones are.
        """
        mean, deviation, indicator, zeros = _statistics(x)
        deviation = deviation.where(_varies(mean, deviation), 0.0)
        large_beside_indicators = bool(indicator.any() and (deviation > UNIT_RATIO).any())
        if large_beside_indicators or units_differ(deviation.numpy(), zeros.numpy()):
            return cls.standard(x)
        return None

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
        changed = self.scale[self.scale != 1]
        return (
            f"features have different units (standard deviations from {float(changed.min()):.3g} to "
            f"{float(changed.max()):.3g}), so they are standardised; scale 'none' takes them as they are"
        )


def _statistics(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Mean, standard deviation, whether all values are 0 or 1, and the share of zeros, of every column: [F]."""
    parts = []
    for columns in _blocks(x):
        block = x[:, columns].cpu().double()
        zero = block == 0
        parts.append((block.mean(0), block.std(0, correction=0), (zero | (block == 1)).all(0), zero.double().mean(0)))
    mean, deviation, indicator, zeros = (torch.cat(columns) for columns in zip(*parts, strict=True))
    return mean, deviation, indicator, zeros


def _blocks(x: Tensor) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, x.shape[1], _BLOCK))


def _varies(mean: Tensor, deviation: Tensor) -> Tensor:
    """Whether columns vary by more than rounding errors of float32."""
    return deviation > 1e-6 * mean.abs()
