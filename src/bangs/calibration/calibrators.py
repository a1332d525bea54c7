"""Calibrators: better probabilities from the logits [R, N, C] of a trained classifier, fitted to validation labels.

Every run is fitted by itself, all runs at once, in float64 and to convergence, since the problems here are convex.

With few or perfectly separable validation labels the maximum of the likelihood lies at infinity. So the model's own
probabilities count as `prior` further validation nodes: the n labels are fitted as the soft targets

    t_i = (n · onehot(y_i) + prior · softmax(z_i)) / (n + prior).

Every problem stays convex and is pulled towards "no change", with weight 1/500 on a validation set of 500 nodes. A run
without validation nodes is not changed. `prior=0` is plain maximum likelihood.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from bangs.calibration import logit_scaling
from bangs.calibration.graph_calibrators import GATS, CaGCN
from bangs.calibration.logit_scaling import EPSILON, ValidationSample, check_prior, divide_logits
from bangs.calibration.proven_temperature import ProvenTemperature
from bangs.core.types import CHUNK, Prediction, Task
from bangs.utils.setting_checks import check_name, check_number


class Calibrator(Protocol):
    """Better probabilities for the same nodes, fitted on the validation labels of the task."""

    def __call__(self, prediction: Prediction, task: Task) -> Prediction: ...


@dataclass(frozen=True)
class Uncalibrated:
    """The prediction, unchanged."""

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
        return divide_logits(prediction, self.fit(prediction, task))

    def fit(self, prediction: Prediction, task: Task) -> Tensor:
        """The temperature of every run: float64 [R]."""
        sample = ValidationSample.of(prediction, task, self.prior)
        return logit_scaling.temperature(sample.logits, sample.target)


@dataclass(frozen=True)
class Vector:
    """Vector scaling: softmax(w ⊙ z + b) with w, b ∈ R^C per run (Guo et al., 2017). May change labels.

    2C numbers are many for a few validation nodes. So temperature scaling comes first, and departures from it have
    the penalty ridge/2n · (|w − 1|² + |b|²), which is strong for ten nodes and weak for hundreds. The loss is convex
    and is minimised by damped Newton steps. (The published GATS code never trains b; we do.)
    """

    prior: float = 1.0
    ridge: float = 10.0

    def __post_init__(self) -> None:
        check_prior(type(self).__name__, self.prior)
        check_number("Vector.ridge", self.ridge, within="(0, inf)")  # it makes the solution unique

    def __call__(self, prediction: Prediction, task: Task) -> Prediction:
        weight, bias = (part[:, None].to(prediction.logits.dtype) for part in self.fit(prediction, task))
        return Prediction(weight * prediction.logits + bias)

    def fit(self, prediction: Prediction, task: Task) -> tuple[Tensor, Tensor]:
        """Weights and biases of every run: float64 [R, C] each."""
        sample = ValidationSample.of(prediction, task, self.prior)
        temperature = logit_scaling.temperature(sample.logits, sample.target)[:, None]
        ridge = self.ridge / sample.held.sum(1).clamp(min=1)
        weight, bias = logit_scaling.vector(sample.logits / temperature[..., None], sample.target, ridge.double())
        return weight / temperature, bias


@dataclass(frozen=True)
class ETS:
    """Ensemble temperature scaling: q = w₁ softmax(z/T) + w₂ softmax(z) + w₃/C (Zhang et al., 2020). Keeps every label.

    T comes from temperature scaling. Then w on the simplex minimises the cross-entropy, which is convex: every step is
    the better of an EM step, which never increases the loss, and Newton steps, which converge fast. w₁ + w₂ is at least
    `floor`: with w₃ = 1, the optimum for a model no better than chance, all classes were equal. The logits are log q.
    """

    prior: float = 1.0
    floor: float = 0.05

    def __post_init__(self) -> None:
        check_prior(type(self).__name__, self.prior)
        check_number("ETS.floor", self.floor, within="(0, 1]")

    def __call__(self, prediction: Prediction, task: Task) -> Prediction:
        temperature, weights = self.fit(prediction, task)
        out = torch.empty_like(prediction.logits)
        for start in range(0, out.shape[1], CHUNK):  # in chunks, since the members take three times the memory
            logits = prediction.logits[:, start : start + CHUNK].transpose(1, 2).contiguous()
            members = _members(logits, temperature.to(logits.dtype))
            mixed = torch.logsumexp(members + weights.log().to(logits.dtype)[..., None, None], dim=1)
            out[:, start : start + CHUNK] = mixed.transpose(1, 2)
        return Prediction(out)

    def fit(self, prediction: Prediction, task: Task) -> tuple[Tensor, Tensor]:
        """Temperature [R] and weights [R, 3] of every run, float64."""
        sample = ValidationSample.of(prediction, task, self.prior)
        temperature = logit_scaling.temperature(sample.logits, sample.target)
        weights = logit_scaling.mixture(_members(sample.logits, temperature).exp(), sample.target)
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
    """The weights [R, 3], with w₁ + w₂ raised to the floor in their ratio; equally if both are 0."""
    scaled = weights[:, :2]
    mass = scaled.sum(1, keepdim=True)
    raised = torch.where(mass > 0, scaled / mass.clamp_min(EPSILON), 0.5) * floor
    floored = torch.cat([raised, torch.full_like(mass, 1 - floor)], 1)
    return torch.where(mass < floor, floored, weights)


def _members(logits: Tensor, temperature: Tensor) -> Tensor:
    """Log-probabilities of the three members of ETS: [R, 3, C, V] from [R, C, V] and [R]."""
    unscaled = logits.log_softmax(1)
    uniform = torch.full_like(unscaled, 1 / unscaled.shape[1]).log()
    return torch.stack([(logits / temperature[:, None, None]).log_softmax(1), unscaled, uniform], 1)
