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

from bangs.errors import InvalidInput, UnknownName
from bangs.types import Prediction, Task

HOTTEST, COLDEST = 100.0, 0.01  # temperatures stay between these


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
        _check_prior(self)

    def __call__(self, prediction: Prediction, task: Task) -> Prediction:
        temperature = self.fit(prediction, task)
        return Prediction(prediction.logits / temperature[:, None, None].to(prediction.logits.dtype))

    def fit(self, prediction: Prediction, task: Task) -> Tensor:
        """The temperature of every run: float64 [R]."""
        return _temperature(_sample(prediction, task, self.prior))


@dataclass(frozen=True)
class Vector:
    """Vector scaling: softmax(w ⊙ z + b) with w, b ∈ R^C per run (Guo et al., 2017). May change labels.

    Damped Newton steps on the convex loss, from w = 1, b = 0, with the penalty ridge/2 · (|w − 1|² + |b|²), which
    also settles the constant that softmax leaves free in b. (The published GATS code never trains b; we do.)
    """

    prior: float = 1.0
    ridge: float = 1e-4

    def __post_init__(self) -> None:
        _check_prior(self)
        if self.ridge <= 0:
            raise InvalidInput(f"Vector.ridge must be positive, got {self.ridge}; it makes the solution unique")

    def __call__(self, prediction: Prediction, task: Task) -> Prediction:
        weight, bias = (part[:, None].to(prediction.logits.dtype) for part in self.fit(prediction, task))
        return Prediction(weight * prediction.logits + bias)

    def fit(self, prediction: Prediction, task: Task) -> tuple[Tensor, Tensor]:
        """Weights and biases of every run: float64 [R, C] each."""
        return _vector(_sample(prediction, task, self.prior), self.ridge)


@dataclass(frozen=True)
class ETS:
    """Ensemble temperature scaling: q = w₁ softmax(z/T) + w₂ softmax(z) + w₃/C (Zhang et al., 2020). Keeps every label.

    T by temperature scaling, then w on the simplex by minimising the cross-entropy, which is convex: every step is
    the better of an EM step, which never gets worse, and Newton steps, which end the search. The logits that come
    out are log q.
    """

    prior: float = 1.0

    def __post_init__(self) -> None:
        _check_prior(self)

    def __call__(self, prediction: Prediction, task: Task) -> Prediction:
        temperature, weights = self.fit(prediction, task)
        logits = prediction.logits
        parts = _ensemble(logits, temperature.to(logits.dtype))
        return Prediction(torch.logsumexp(parts + weights.log().to(logits.dtype)[:, None, None], dim=-1))

    def fit(self, prediction: Prediction, task: Task) -> tuple[Tensor, Tensor]:
        """Temperature [R] and weights [R, 3] of every run, float64."""
        sample = _sample(prediction, task, self.prior)
        temperature = _temperature(sample)
        return temperature, _mixture(_ensemble(sample.logits, temperature).exp(), sample.target)


CALIBRATORS: dict[str, Callable[..., Calibrator]] = {
    "none": Uncalibrated,
    "temperature": Temperature,
    "vector": Vector,
    "ets": ETS,
}


def calibrator(name: str) -> Calibrator:
    """The calibrator of that name with its defaults."""
    if name not in CALIBRATORS:
        raise UnknownName("calibrator", name, CALIBRATORS)
    return CALIBRATORS[name]()


@dataclass(frozen=True, eq=False)
class _Sample:
    """The validation nodes of every run, padded to V with nodes of no weight."""

    logits: Tensor  # float64 [R, V, C]
    target: Tensor  # float64 [R, V, C], soft targets; a run sums to 1


def _sample(prediction: Prediction, task: Task, prior: float) -> _Sample:
    held = task.held
    count = held.sum(1)
    nodes = held.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, : max(int(count.max()), 1)]
    logits = prediction.logits.take_along_dim(nodes[..., None], 1).double()
    label = task.validation.gather(1, nodes)
    own = logits.softmax(-1)
    total = count[:, None, None].double()
    hard = torch.nn.functional.one_hot(label.clamp(min=0), logits.shape[-1])
    soft = (total * hard + prior * own) / ((total + prior) * total).clamp(min=1e-300)
    target = torch.where(label[..., None] >= 0, soft, 0.0)
    # a run without validation nodes is fitted to its own probabilities: no change
    return _Sample(logits, torch.where(total > 0, target, own / own.shape[1]))


def _temperature(sample: _Sample) -> Tensor:
    """argmin_T of the cross-entropy for every run: float64 [R].

    In β = 1/T the slope Σ_i ⟨p_i(β) − t_i, z_i⟩ increases, so its root is bracketed; a Newton step that leaves the
    bracket, or does not halve the last one, is replaced by the bracket's (geometric) middle.
    """
    logits = sample.logits - sample.logits.amax(-1, keepdim=True)
    mass = sample.target.sum(-1)
    wanted = (sample.target * logits).sum((1, 2))
    low = torch.full_like(wanted, 1 / HOTTEST)
    high = torch.full_like(wanted, 1 / COLDEST)
    beta = torch.ones_like(wanted)
    last = high - low
    for _ in range(60):
        probs = (beta[:, None, None] * logits).softmax(-1)
        mean = (probs * logits).sum(-1)
        slope = (mass * mean).sum(1) - wanted
        curvature = (mass * ((probs * logits.square()).sum(-1) - mean.square())).sum(1)
        low, high = torch.where(slope <= 0, beta, low), torch.where(slope >= 0, beta, high)
        step = -slope / curvature.clamp(min=1e-300)
        newton = beta + step
        safe = (newton > low) & (newton < high) & (step.abs() <= last.abs() / 2)
        new = torch.where(slope == 0, beta, torch.where(safe, newton, (low * high).sqrt()))
        last, beta = new - beta, new
    return 1 / beta


def _vector(sample: _Sample, ridge: float) -> tuple[Tensor, Tensor]:
    """argmin over w, b of the cross-entropy plus the ridge, by Newton steps with Levenberg's damping: [R, C] each."""
    runs, _, classes = sample.logits.shape
    mass = sample.target.sum(-1, keepdim=True)
    start = torch.cat([sample.logits.new_ones(runs, classes), sample.logits.new_zeros(runs, classes)], -1)
    eye = torch.eye(2 * classes, dtype=start.dtype, device=start.device)

    def loss(point: Tensor) -> tuple[Tensor, Tensor]:
        weight, bias = point[:, None].chunk(2, -1)
        log_probs = (weight * sample.logits + bias).log_softmax(-1)
        return (ridge / 2) * (point - start).square().sum(-1) - (sample.target * log_probs).sum((1, 2)), log_probs.exp()

    point, damping = start, torch.full_like(start[:, 0], 1e-6)
    value, probs = loss(point)
    for _ in range(40):
        rest = mass * probs - sample.target
        slope = torch.cat([(rest * sample.logits).sum(1), rest.sum(1)], -1) + ridge * (point - start)
        pull = torch.cat([probs * sample.logits, probs], -1)
        heavy = mass * probs
        cross = torch.diag_embed((heavy * sample.logits).sum(1))
        square = torch.diag_embed((heavy * sample.logits.square()).sum(1))
        diagonal = torch.cat(
            [torch.cat([square, cross], -1), torch.cat([cross, torch.diag_embed(heavy.sum(1))], -1)], -2
        )
        curvature = diagonal - pull.transpose(1, 2) @ (mass * pull) + (ridge + damping[:, None, None]) * eye
        trial = point - torch.linalg.solve(curvature, slope)
        new_value, new_probs = loss(trial)
        better = new_value <= value
        point = torch.where(better[:, None], trial, point)
        value = torch.where(better, new_value, value)
        probs = torch.where(better[:, None, None], new_probs, probs)
        damping = torch.where(better, damping / 10, damping * 10).clamp(min=1e-12)
    weight, bias = point.chunk(2, -1)
    return weight, bias


def _ensemble(logits: Tensor, temperature: Tensor) -> Tensor:
    """Log-probabilities of the three members of ETS: [R, V, C, 3]."""
    plain = logits.log_softmax(-1)
    level = torch.full_like(plain, 1 / plain.shape[-1]).log()
    return torch.stack([(logits / temperature[:, None, None]).log_softmax(-1), plain, level], -1)


def _mixture(members: Tensor, target: Tensor) -> Tensor:
    """argmin over w on the simplex of −Σ target · log ⟨w, members⟩: float64 [R, 3] from [R, V, C, 3] and [R, V, C]."""
    members, target = members.flatten(1, 2), target.flatten(1, 2)

    def loss(weights: Tensor) -> Tensor:  # [R, S, 3] -> [R, S]
        mixed = torch.einsum("rsk,rmk->rsm", weights, members)
        return -torch.xlogy(target[:, None], mixed).sum(-1)

    weights = members.new_full((len(members), 3), 1 / 3)
    steps = torch.tensor([1.0, 0.5, 0.1], dtype=weights.dtype, device=weights.device)[:, None]
    for _ in range(25):
        mixed = torch.einsum("rk,rmk->rm", weights, members)
        ratio = torch.where(target > 0, target / mixed, 0.0)
        pull = torch.einsum("rm,rmk->rk", ratio, members)
        scaled = members * (ratio / mixed.clamp(min=1e-300)).sqrt()[..., None]
        curvature = scaled.transpose(1, 2) @ scaled
        newton = _quadratic_on_simplex(curvature, -pull - torch.einsum("rjk,rk->rj", curvature, weights))
        expected = weights * pull
        expected = torch.where(pull.sum(-1, keepdim=True) > 0, expected / expected.sum(-1, keepdim=True), weights)
        trials = torch.cat(
            [weights[:, None], expected[:, None], weights[:, None] + steps * (newton - weights)[:, None]], dim=1
        )
        best = loss(trials).argmin(-1)
        weights = trials.take_along_dim(best[:, None, None], 1).squeeze(1)
    return weights


def _quadratic_on_simplex(curvature: Tensor, slope: Tensor) -> Tensor:
    """argmin over w on the 3-simplex of ½ wᵀHw + gᵀw: [R, 3]; the best of the interior and the three edges."""

    def value(point: Tensor) -> Tensor:  # [R, S, 3] -> [R, S]
        return (point * (torch.einsum("rjk,rsk->rsj", curvature, point) / 2 + slope[:, None])).sum(-1)

    corner = torch.eye(3, dtype=slope.dtype, device=slope.device)
    way = corner.roll(-1, 0) - corner  # an edge from each corner to the next
    tilt = (way * (curvature + slope[:, None])).sum(-1)
    bend = (way * torch.einsum("rjk,sk->rsj", curvature, way)).sum(-1)
    edges = corner + (-tilt / bend.clamp(min=1e-300)).clamp(0, 1)[..., None] * way

    span = corner[1:] - corner[0]
    (a, b), (_, d) = torch.einsum("ij,rjk,lk->ilr", span, curvature, span)
    u, v = torch.einsum("ij,rj->ir", span, curvature[:, 0] + slope)
    solved = torch.stack([b * v - d * u, b * u - a * v], -1) / (a * d - b * b).clamp(min=1e-300)[:, None]
    inside = corner[0] + solved @ span
    inside = torch.where((inside >= 0).all(-1, keepdim=True), inside, edges[:, 0])
    points = torch.cat([inside[:, None], edges], 1)
    return points.take_along_dim(value(points).argmin(-1)[:, None, None], 1).squeeze(1)


def _check_prior(part: Temperature | Vector | ETS) -> None:
    if part.prior < 0:
        raise InvalidInput(f"{type(part).__name__}.prior must be at least 0 nodes, got {part.prior}")
