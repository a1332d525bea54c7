"""The tables of docs/results/theory.md, recomputed: one function a table, one line a row."""

from dataclasses import dataclass
from fractions import Fraction
from math import comb, log, sqrt

import numpy as np
from scipy.optimize import minimize_scalar
from torch.func import jacrev, vmap

from tests.theory.definitions import Array, pagerank, row_normalised, scale_free, symmetric, total_variation
from tests.theory.measured_games import biases, larger, regrets, silence
from tests.theory.measured_students import premises
from tests.theory.networks import influence, inputs, linear, network, relu, weights

RESTART = 0.15


@dataclass(frozen=True)
class Influence:
    """Total variation between the influence in a network and the walk: the mean over nodes, and the largest."""

    network: str
    layers: int
    mean: float
    largest: float

    def line(self) -> str:
        return f"| {self.network} | {self.layers} | {self.mean:.3f} | {self.largest:.3f} |"


def influences() -> list[Influence]:
    """On one graph of 20 nodes with hubs; ReLU over 400 random inputs together, and one input at a time."""
    adjacency = scale_free(20, 2, seed=2)
    step, rows = row_normalised(adjacency), []
    for layers in (2, 3):
        walk = np.linalg.matrix_power(step, layers)
        jacobians = {
            name: vmap(jacrev(network(move, weights(layers, 3, hidden=16), gate)))(inputs(400, 3))
            for name, move, gate in (
                ("linear", step, linear),
                ("ReLU", step, relu),
                ("linear, symmetric", symmetric(adjacency), linear),
            )
        }
        kinds = {
            "linear": [jacobians["linear"][0]],
            "ReLU, expected over inputs": [jacobians["ReLU"].mean(0)],
            "ReLU, one input": list(jacobians["ReLU"][:20]),
            "linear, symmetric": [jacobians["linear, symmetric"][0]],
        }
        for name, some in kinds.items():
            far = np.array([total_variation(influence(one), walk) for one in some])
            rows.append(Influence(name, layers, float(far.mean()), float(far.max())))
    return rows


@dataclass(frozen=True)
class Depth:
    """Mean total variation between PageRank and a walk of L steps, without restarts and with them."""

    steps: int
    walk: float
    restarted: float

    def line(self) -> str:
        return f"| {self.steps} | {self.walk:.3f} | {self.restarted:.3f} |"


def depths(steps: tuple[int, ...] = (1, 2, 4, 10, 30, 400)) -> list[Depth]:
    """On one graph of 60 nodes with hubs, restarts with 0.15."""
    step = row_normalised(scale_free(60, 2, seed=0))
    exact, walk, state, rows = pagerank(step, RESTART), np.eye(60), np.eye(60), []
    for length in range(1, max(steps) + 1):
        walk = walk @ step
        state = (1 - RESTART) * step @ state + RESTART * np.eye(60)
        if length in steps:
            far = [float(total_variation(one, exact).mean()) for one in (walk, state)]
            rows.append(Depth(length, *far))
    return rows


@dataclass(frozen=True)
class Margin:
    """Thm 3.2 for K candidates: printed margin over the tight one; the error (RMS) a coalition may have, in τ."""

    players: int
    k: int
    printed: float
    error: float

    def line(self) -> str:
        return f"| {self.players} | {self.k} | {self.printed:.3f} | {self.error:.3f} τ |"


def margins() -> list[Margin]:
    """For the sizes of the paper's experiments, in whole numbers since 2^500 is no float."""
    rows = []
    for players, k in ((200, 100), (500, 100), (500, 400)):
        below, at = sum(comb(players - 2, m - 1) for m in range(1, k)), comb(players - 2, k - 1)
        tight = Fraction((2 * below + at) ** 2, 2 * (4 * below + at))
        number = sum(comb(players, size) for size in range(k + 1))
        rows.append(Margin(players, k, sqrt(below / tight), sqrt(tight / number)))
    return rows


def flipped(players: int, k: int, sizes: Array) -> Array:
    """Share of games whose order an error in the worst direction changes, by its size over the corrected margin.

    Drawn are Δ^(m) = τ (1 + exponential, mean ½), which is all that counts: n_s (φ_i − φ_j) = Σ w_m Δ^(m).
    """
    weight = np.array([(2 if m < k else 1) * comb(players - 2, m - 1) for m in range(1, k + 1)], dtype=float)
    apart = 1 + np.random.default_rng(0).exponential(0.5, (2000, k))
    return ((apart @ weight)[:, None] / weight.sum() < sizes).mean(0)


@dataclass(frozen=True)
class Constant:
    """κ of the entropy lemma for C classes, and the probability of the one class at which it is reached."""

    classes: int
    value: float
    share: float

    def line(self) -> str:
        return f"| {self.classes} | {self.value:.3f} | {self.share:.3f} | {'yes' if self.value <= 0.5 else '**no**'} |"


def constant(classes: int) -> Constant:
    """κ_C = max_a a (1−a) (log a/(1−a) + log(C−1))."""
    found = minimize_scalar(
        lambda a: -a * (1 - a) * (log(a / (1 - a)) + log(classes - 1)),
        bounds=(0.5, 1 - 1e-9),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return Constant(classes, float(-found.fun), float(found.x))


def constants() -> list[Constant]:
    return [constant(classes) for classes in (2, 3, 5, 6, 7, 18)]


TABLES = (influences, depths, silence, margins, regrets, larger, biases, constants, premises)
