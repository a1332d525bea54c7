"""The convex problems behind calibration, solved for all runs at once, in float64 and to convergence.

The class axis comes before the nodes, [R, C, V]: a softmax over a short last axis is ten times slower on a CPU. A run
that has converged no longer changes, so it gives the same numbers alone and in a batch.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from bangs.core.types import Prediction, Task
from bangs.errors import InvalidInput
from bangs.utils.setting_checks import check_number

MIN_TEMPERATURE, MAX_TEMPERATURE = 0.01, 100.0
EPSILON = 1e-300  # avoids division by zero and log(0)
_CHECK_EVERY = 3  # iterations between two checks of convergence, which make a GPU wait


@dataclass(frozen=True, eq=False)
class ValidationSample:
    """The validation nodes of every run, padded to V with nodes of no weight."""

    nodes: Tensor  # long [R, V]
    held: Tensor  # bool [R, V], false for padding
    label: Tensor  # long [R, V], arbitrary for padding
    logits: Tensor  # float64 [R, C, V]
    target: Tensor  # float64 [R, C, V], soft targets times the node's weight; a run sums to 1

    @classmethod
    def of(cls, prediction: Prediction, task: Task, prior: float) -> "ValidationSample":
        """The validation labels, with the model's own probabilities counting as `prior` further nodes.

        Over the n validation nodes of a run the targets are t_i = (n·onehot(y_i) + prior·softmax(z_i)) / (n + prior),
        each of weight 1/n. A run without validation nodes is fitted to its own probabilities, which changes nothing.
        """
        held = task.held
        count = held.sum(1)
        width = max(int(count.max()), 1)
        nodes = held.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :width]
        logits = prediction.logits.take_along_dim(nodes[..., None], 1).transpose(1, 2).double().contiguous()
        inside = held.gather(1, nodes)
        label = task.validation.gather(1, nodes).clamp(min=0)
        probs = logits.softmax(1)
        total = count[:, None, None].double()
        hard = torch.zeros_like(logits).scatter(1, label[:, None], 1.0)
        soft = (total * hard + prior * probs) / ((total + prior) * total).clamp(min=EPSILON)
        target = torch.where(inside[:, None], soft, 0.0)
        return cls(nodes, inside, label, logits, torch.where(total > 0, target, probs / width))


def shrunk_temperature(prediction: Prediction, task: Task, spread: float, label_weight: Tensor | float = 1.0) -> Tensor:
    """The most probable temperature of every run given its V validation labels: float64 [R].

    Labels may have weights [V].

    The prior of log T is normal around 0 with standard deviation `spread`, so few labels leave T near 1.
    """
    sample = ValidationSample.of(prediction, task, 0.0)
    nodes = task.held.sum(1).clamp_min(1).double()
    return temperature(sample.logits, sample.target * label_weight, 1 / (spread**2 * nodes))


def divide_logits(prediction: Prediction, temperature: Tensor) -> Prediction:
    """The logits divided by the temperature of the run [R], or of the node [R, N]."""
    scale = temperature.to(prediction.logits.dtype).reshape(len(temperature), -1, 1)
    return Prediction(prediction.logits / scale)


def check_prior(name: str, prior: float) -> None:
    """Raises `InvalidInput` if the weight of the model's own probabilities is no number, negative or not finite."""
    check_number(f"{name}.prior", prior)
    if not 0 <= prior < float("inf"):
        raise InvalidInput(f"{name}.prior must be a number of nodes, 0 or more, got {prior}")


def temperature(logits: Tensor, target: Tensor, pull: Tensor | None = None) -> Tensor:
    """argmin_T of −Σ target · log softmax(logits / T) + pull/2 · (log T)²: float64 [R] from [R, C, V] twice and [R].

    In β = 1/T the slope Σ_i ⟨softmax(β z_i) − t_i, z_i⟩ increases, so its root is bracketed; a Newton step that
    leaves the bracket, or is not half as long as the one before, gives way to the bracket's geometric middle. The
    pull adds log β / β times `pull` to the slope.
    """
    logits = logits - logits.amax(1, keepdim=True)
    square = logits.square()
    mass = target.sum(1)
    wanted = (target * logits).sum((1, 2))
    low = torch.full_like(wanted, 1 / MAX_TEMPERATURE)
    high = torch.full_like(wanted, 1 / MIN_TEMPERATURE)
    beta = torch.ones_like(wanted)
    last = high - low
    done = torch.zeros_like(wanted, dtype=torch.bool)
    for iteration in range(80):
        probs = (beta[:, None, None] * logits).softmax(1)
        mean = (probs * logits).sum(1)
        slope = (mass * mean).sum(1) - wanted
        curvature = (mass * ((probs * square).sum(1) - mean.square())).sum(1)
        if pull is not None:
            slope = slope + pull * beta.log() / beta
            curvature = curvature + pull * (1 - beta.log()) / beta.square()
        low, high = torch.where(slope <= 0, beta, low), torch.where(slope >= 0, beta, high)
        step = -slope / curvature.clamp(min=EPSILON)
        newton = beta + step
        safe = (newton > low) & (newton < high) & (step.abs() <= last.abs() / 2)
        new = torch.where(slope == 0, beta, torch.where(safe, newton, (low * high).sqrt()))
        last, beta = new - beta, torch.where(done, beta, new)
        done = done | (last.abs() <= 1e-10 * beta)
        if iteration % _CHECK_EVERY == _CHECK_EVERY - 1 and bool(done.all()):
            break
    return 1 / beta


def vector(logits: Tensor, target: Tensor, ridge: Tensor) -> tuple[Tensor, Tensor]:
    """argmin over w, b of −Σ target · log softmax(w ⊙ z + b) + ridge/2 · (|w − 1|² + |b|²): float64 [R, C] each.

    `ridge` is positive, float64 [R]; it also settles the constant that softmax leaves free in b.

    Newton steps with Levenberg's damping: a step that increases the loss is not taken, and the next is shorter.
    """
    runs, classes, _ = logits.shape
    mass = target.sum(1, keepdim=True)
    square = logits.square()
    start = torch.cat([logits.new_ones(runs, classes), logits.new_zeros(runs, classes)], -1)
    eye = torch.eye(2 * classes, dtype=start.dtype, device=start.device)

    def loss(point: Tensor) -> tuple[Tensor, Tensor]:
        weight, bias = point[..., None].chunk(2, 1)
        log_probs = (weight * logits + bias).log_softmax(1)
        penalty = (ridge / 2) * (point - start).square().sum(-1)
        return penalty - (target * log_probs).sum((1, 2)), log_probs.exp()

    point, damping = start, torch.full_like(start[:, 0], 1e-8)
    done = torch.zeros(runs, dtype=torch.bool, device=start.device)
    value, probs = loss(point)
    for iteration in range(80):
        weighted = mass * probs
        residual = weighted - target
        slope = torch.cat([(residual * logits).sum(-1), residual.sum(-1)], -1) + ridge[:, None] * (point - start)
        ww, wb, bb = (torch.diag_embed(part.sum(-1)) for part in (weighted * square, weighted * logits, weighted))
        diagonal = torch.cat([torch.cat([ww, wb], -1), torch.cat([wb, bb], -1)], -2)
        pull = torch.cat([probs * logits, probs], 1)
        curvature = diagonal - pull @ (mass * pull).transpose(1, 2) + (ridge + damping)[:, None, None] * eye
        step = torch.linalg.solve(curvature, slope)
        done = done | ((slope * step).sum(-1) <= 1e-18)
        trial = point - step
        new_value, new_probs = loss(trial)
        better = new_value <= value + 1e-15
        taken = better & ~done
        point = torch.where(taken[:, None], trial, point)
        value = torch.where(taken, new_value, value)
        probs = torch.where(taken[:, None, None], new_probs, probs)
        damping = torch.where(better, damping / 10, damping * 10).clamp(min=1e-12)
        if iteration % _CHECK_EVERY == _CHECK_EVERY - 1 and bool(done.all()):
            break
    weight, bias = point.chunk(2, -1)
    return weight, bias


def mixture(members: Tensor, target: Tensor) -> Tensor:
    """argmin over w on the simplex of −Σ target · log ⟨w, members⟩: float64 [R, 3] from [R, 3, C, V] and [R, C, V].

    Every step is the best of an EM step, which never increases the loss, and of Newton steps on the simplex, which
    converge fast, also to an optimum on a face.
    """
    members, target = members.flatten(2), target.flatten(1)

    def loss(weights: Tensor) -> Tensor:  # [R, S, 3] -> [R, S]
        return -(target[:, None] * (weights @ members).clamp(min=EPSILON).log()).sum(-1)

    weights = members.new_full((len(members), 3), 1 / 3)
    steps = torch.tensor([1.0, 0.5, 0.1], dtype=weights.dtype, device=weights.device)[:, None]
    done = torch.zeros(len(members), dtype=torch.bool, device=weights.device)
    for iteration in range(80):
        here = weights[:, None]
        mixed = (here @ members).clamp(min=EPSILON)
        scaled = members / mixed
        pull = (scaled @ target[..., None]).squeeze(-1)
        curvature = scaled @ (scaled * target[:, None]).transpose(1, 2)
        newton = _quadratic_on_simplex(curvature, -pull - (curvature @ weights[..., None]).squeeze(-1))
        expected = weights * pull
        expected = expected / expected.sum(-1, keepdim=True)
        trials = torch.cat([here, expected[:, None], here + steps * (newton[:, None] - here)], dim=1)
        losses = loss(trials)
        best = losses.argmin(-1, keepdim=True)
        weights = torch.where(done[:, None], weights, trials.take_along_dim(best[..., None], 1).squeeze(1))
        done = done | (losses[:, 0] - losses.gather(1, best).squeeze(1) <= 1e-15)
        if iteration % _CHECK_EVERY == _CHECK_EVERY - 1 and bool(done.all()):
            break
    return weights


def _quadratic_on_simplex(curvature: Tensor, slope: Tensor) -> Tensor:
    """argmin over w on the 3-simplex of ½ wᵀHw + gᵀw: [R, 3]; the best of the interior and the three edges."""
    corner = torch.eye(3, dtype=slope.dtype, device=slope.device)
    edge = corner.roll(-1, 0) - corner  # from each corner to the next
    edge_slope = (edge * (curvature + slope[:, None])).sum(-1)
    edge_curvature = (edge * (edge @ curvature)).sum(-1)
    edges = corner + (-edge_slope / edge_curvature.clamp(min=EPSILON)).clamp(0, 1)[..., None] * edge

    span = corner[1:] - corner[0]
    (a, b), (_, d) = (span @ curvature @ span.T).permute(1, 2, 0)
    u, v = ((curvature[:, 0] + slope) @ span.T).T
    solved = torch.stack([b * v - d * u, b * u - a * v], -1) / (a * d - b * b).clamp(min=EPSILON)[:, None]
    inside = corner[0] + solved @ span
    inside = torch.where((inside >= 0).all(-1, keepdim=True), inside, edges[:, 0])

    points = torch.cat([inside[:, None], edges], 1)
    value = (points * (points @ curvature / 2 + slope[:, None])).sum(-1)
    return points.take_along_dim(value.argmin(-1)[:, None, None], 1).squeeze(1)
