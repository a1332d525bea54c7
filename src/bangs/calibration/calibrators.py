"""Calibration: making a classifier's probabilities honest after training, by fits to the validation labels.

A calibrator takes logits [R, N, C] of a frozen classifier and gives others; every run is fitted by itself, all
runs at once, in float64 and to convergence, for the problems here are convex.

With few or perfectly separable validation labels the maximum of the likelihood lies at infinity. Therefore the
model's own probabilities count as `prior` further validation nodes: the n labels are fitted as the soft targets

    t_i = (n · onehot(y_i) + prior · softmax(z_i)) / (n + prior),

which leaves every problem convex, pulls towards "no change", weighs 1/500 on a usual validation set, and gives
"no change" where a run has no validation nodes at all. `prior=0` is plain maximum likelihood.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from bangs.calibration import scaling
from bangs.calibration.graph_calibrators import GATS, CaGCN
from bangs.calibration.proven import ProvenTemperature
from bangs.calibration.scaling import Sample, check_prior, cooled
from bangs.core.choice_checks import check_name
from bangs.core.number_checks import check_number
from bangs.core.types import CHUNK, Prediction, Task
from bangs.errors import InvalidInput


class Calibrator(Protocol):
    """Better probabilities for the same nodes, fitted on the validation labels of the task."""

    def __call__(self, prediction: Prediction, task: Task) -> Prediction: ...


@dataclass(frozen=True)
class Uncalibrated:
    """The prediction as it came."""

    def __call__(self, prediction: Prediction, task: Task) -> Prediction:
        return prediction


@dataclass(frozen=True)
class Temperature:
    """Temperature scaling: softmax(z / T) with one T per run (Guo et al., 2017). Keeps every label.

    The likelihood is concave in 1/T, so T is found by Newton steps inside a shrinking bracket, from 0.01 to 100.
    """

    prior: float = 1.0

    def __post_init__(self) -> None:
        check_prior(type(self).__name__, self.prior)

    def __call__(self, prediction: Prediction, task: Task) -> Prediction:
        return cooled(prediction, self.fit(prediction, task))

    def fit(self, prediction: Prediction, task: Task) -> Tensor:
        """The temperature of every run: float64 [R]."""
        sample = Sample.of(prediction, task, self.prior)
        return scaling.temperature(sample.logits, sample.target)


@dataclass(frozen=True)
class Vector:
    """Vector scaling: softmax(w ⊙ z + b) with w, b ∈ R^C per run (Guo et al., 2017). May change labels.

    2C numbers are many for a few validation nodes. So temperature scaling comes first, and w and b depart from it
    against the penalty ridge/2n · (|w − 1|² + |b|²): with ten nodes they hardly can, with hundreds little holds them.
    The loss is convex; damped Newton steps. (The published GATS code never trains b; we do.)
    """

    prior: float = 1.0
    ridge: float = 10.0

    def __post_init__(self) -> None:
        check_prior(type(self).__name__, self.prior)
        if self.ridge <= 0:
            raise InvalidInput(f"Vector.ridge must be positive, got {self.ridge}; it makes the solution unique")

    def __call__(self, prediction: Prediction, task: Task) -> Prediction:
        weight, bias = (part[:, None].to(prediction.logits.dtype) for part in self.fit(prediction, task))
        return Prediction(weight * prediction.logits + bias)

    def fit(self, prediction: Prediction, task: Task) -> tuple[Tensor, Tensor]:
        """Weights and biases of every run: float64 [R, C] each."""
        sample = Sample.of(prediction, task, self.prior)
        temperature = scaling.temperature(sample.logits, sample.target)[:, None]
        ridge = self.ridge / sample.held.sum(1).clamp(min=1)
        weight, bias = scaling.vector(sample.logits / temperature[..., None], sample.target, ridge.double())
        return weight / temperature, bias


@dataclass(frozen=True)
class ETS:
    """Ensemble temperature scaling: q = w₁ softmax(z/T) + w₂ softmax(z) + w₃/C (Zhang et al., 2020). Keeps every label.

    T by temperature scaling, then w on the simplex by minimising the cross-entropy, which is convex: every step is
    the better of an EM step, which never gets worse, and Newton steps, which end the search. w₁ + w₂ is at least
    `floor`: where w₃ were all, as it is for a model no better than chance, every label would be lost. The logits that
    come out are log q.
    """

    prior: float = 1.0
    floor: float = 0.05

    def __post_init__(self) -> None:
        check_prior(type(self).__name__, self.prior)
        check_number("ETS.floor", self.floor, within="(0, 1]")

    def __call__(self, prediction: Prediction, task: Task) -> Prediction:
        temperature, weights = self.fit(prediction, task)
        out = torch.empty_like(prediction.logits)
        for start in range(0, out.shape[1], CHUNK):  # in pieces, since the members take three times the room
            logits = prediction.logits[:, start : start + CHUNK].transpose(1, 2).contiguous()
            members = _members(logits, temperature.to(logits.dtype))
            mixed = torch.logsumexp(members + weights.log().to(logits.dtype)[..., None, None], dim=1)
            out[:, start : start + CHUNK] = mixed.transpose(1, 2)
        return Prediction(out)

    def fit(self, prediction: Prediction, task: Task) -> tuple[Tensor, Tensor]:
        """Temperature [R] and weights [R, 3] of every run, float64."""
        sample = Sample.of(prediction, task, self.prior)
        temperature = scaling.temperature(sample.logits, sample.target)
        weights = scaling.mixture(_members(sample.logits, temperature).exp(), sample.target)
        return temperature, _floored(weights, self.floor)


CALIBRATORS: dict[str, Callable[..., Calibrator]] = {
    "none": Uncalibrated,
    "temperature": Temperature,
    "proven": ProvenTemperature,
    "vector": Vector,
    "ets": ETS,
    "cagcn": CaGCN,
    "gats": GATS,
}


def calibrator(name: str) -> Calibrator:
    """The calibrator of that name with its defaults."""
    check_name("calibrator", name, CALIBRATORS)
    return CALIBRATORS[name]()


def _floored(weights: Tensor, floor: float) -> Tensor:
    """The weights [R, 3] where w₁ + w₂ is at least the floor; else the floor is shared as w₁ and w₂ were, or alike."""
    sharp = weights[:, :2]
    mass = sharp.sum(1, keepdim=True)
    raised = torch.where(mass > 0, sharp / mass.clamp_min(1e-300), 0.5) * floor
    lifted = torch.cat([raised, torch.full_like(mass, 1 - floor)], 1)
    return torch.where(mass < floor, lifted, weights)


def _members(logits: Tensor, temperature: Tensor) -> Tensor:
    """Log-probabilities of the three members of ETS: [R, 3, C, V] from [R, C, V] and [R]."""
    plain = logits.log_softmax(1)
    level = torch.full_like(plain, 1 / plain.shape[1]).log()
    return torch.stack([(logits / temperature[:, None, None]).log_softmax(1), plain, level], 1)
