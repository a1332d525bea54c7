"""The table of docs/results/theory.md about the premise, recomputed: Û against students that were really taught."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from scipy.stats import spearmanr, t
from torch import Tensor

from tests.theory.definitions import (
    Array,
    Game,
    Setting,
    banzhaf,
    best,
    coalitions,
    distinguishability,
    margin,
    objective,
    pagerank,
    planted,
    row_normalised,
    softmax,
)

GRAPHS, NODES, LABELLED, CLASSES, FEATURES, PLAYERS, TAKEN = 20, 150, 12, 3, 8, 8, 4
DECAY, STEPS = 0.5, 15


@dataclass(frozen=True)
class Case:
    """One graph: what Û is for every coalition of at most 4 of 8 candidates, and what its student became."""

    forecast: Game  # Û
    worth: Game  # U of the students
    same: float  # share of unlabelled nodes to which Û and the student give one class
    unchanged: float  # the same for the teacher and the student
    slope: float  # the largest slope of a student's loss that is left

    @property
    def error(self) -> float:
        """‖Û − U‖ over all coalitions."""
        return float(np.linalg.norm([self.forecast[S] - self.worth[S] for S in self.worth]))


def learned(x: Tensor, label: Tensor, taught: Tensor) -> tuple[Tensor, float]:
    """Logits [B, N, C] of linear layers that have learned the sets bool [B, N], and the largest slope left.

    A sum of cross-entropies with a penalty on the weights has one minimum, so there is no noise of training.
    """
    some = taught.any(0)
    own, target = x[some], torch.nn.functional.one_hot(label[some], CLASSES).double()
    share = taught[:, some].double()
    weight = torch.zeros(len(taught), x.shape[1], CLASSES, dtype=torch.float64)
    penalty = DECAY * torch.eye(x.shape[1] * CLASSES, dtype=torch.float64)
    slope = weight
    for _ in range(STEPS):  # Newton's method
        probs = (own @ weight).softmax(-1)
        slope = own.T @ ((probs - target) * share[..., None]) + DECAY * weight
        spread = torch.diag_embed(probs) - probs[..., None] * probs[..., None, :]
        bend = torch.einsum("bn,bncd,nf,ng->bfcgd", share, spread, own, own).reshape(len(taught), *penalty.shape)
        weight = weight - torch.linalg.solve(bend + penalty, slope.flatten(1)).view_as(weight)
    return x @ weight, float(slope.abs().max())


@cache
def case(seed: int, confident: bool) -> Case:
    """Features are class means and noise; teacher and students are one hop and one layer, as in Appendix B.5."""
    rng = np.random.default_rng(2000 + seed)
    adjacency, truth = planted(NODES, CLASSES, 4.0, seed)
    features = rng.standard_normal((CLASSES, FEATURES))[truth] + 1.5 * rng.standard_normal((NODES, FEATURES))
    x, label = torch.tensor(row_normalised(adjacency) @ features), torch.tensor(truth)
    labelled = np.isin(np.arange(NODES), rng.choice(NODES, LABELLED, replace=False))
    known = torch.tensor(labelled)
    teacher = learned(x, label, known[None])[0][0]
    trust = softmax(teacher.numpy()).max(1) if confident else rng.random(NODES)
    candidates = np.argsort(-np.where(labelled, -1.0, trust))[:PLAYERS]
    setting = Setting(adjacency, teacher.numpy(), labelled, candidates)
    sets = coalitions(range(PLAYERS), TAKEN)
    taught = known.repeat(len(sets), 1)
    for row, members in zip(taught, sets, strict=True):
        row[candidates[list(members)]] = True
    students, slope = learned(x, torch.where(known, label, teacher.argmax(-1)), taught)
    reach = pagerank(row_normalised(adjacency), 0.15)
    classes = students[:, ~known].argmax(-1).numpy()
    forecast = np.stack([setting.estimate(members, reach)[~labelled].argmax(-1) for members in sets])
    worth = objective(softmax(students[:, ~known].numpy()))
    return Case(
        setting.game(TAKEN),
        dict(zip(sets, worth.tolist(), strict=True)),
        float((forecast == classes).mean()),
        float((teacher[~known].argmax(-1).numpy() == classes).mean()),
        slope,
    )


def tau_across(game: Game) -> float:
    """The smallest Δ^(m) between a player among the k best by value and one who is not, m = 1 … k."""
    top = best(banzhaf(game, PLAYERS, TAKEN), TAKEN)
    pairs = [(i, j) for i in top for j in range(PLAYERS) if j not in top]
    return min(distinguishability(game, PLAYERS, i, j, m) for i, j in pairs for m in range(1, TAKEN + 1))


def rank_correlation(one: Game, other: Game, size: int | None = None) -> float:
    """Rank correlation over all sets, or over those of one size."""
    sets = [S for S in one if size is None or len(S) == size]
    return float(spearmanr([one[S] for S in sets], [other[S] for S in sets]).statistic)


@dataclass(frozen=True)
class Premise:
    """Û against students, over 20 graphs: means, and where there are two numbers half of the 95 % interval."""

    candidates: str
    every: tuple[float, float]  # rank correlation of Û with the students' utility
    size: tuple[float, float]  # of |S| with it
    within: tuple[float, float]  # of Û with it, among sets of 4
    shared: tuple[float, float]  # share of the k best by value, of Û and of the students' utility
    same: float
    unchanged: float
    speaks: int  # graphs with ‖Û − U‖ below the margin of Thm 3.2 for the k best

    def line(self) -> str:
        pairs = (f"{mean:.2f} ± {half:.2f}" for mean, half in (self.every, self.size, self.within, self.shared))
        same = f"{self.same:.0%} | {self.unchanged:.0%} | {self.speaks} of {GRAPHS}"
        return f"| {self.candidates} | {' | '.join(pairs)} | {same} |"


@cache
def premises() -> list[Premise]:
    """Candidates are the most confident nodes, or drawn at random."""
    rows = []
    for name, confident in (("most confident", True), ("at random", False)):
        cases = [case(seed, confident) for seed in range(GRAPHS)]
        found = []
        for own in cases:
            top = [best(banzhaf(game, PLAYERS, TAKEN), TAKEN) for game in (own.forecast, own.worth)]
            size = {S: float(len(S)) for S in own.worth}
            shares = [
                rank_correlation(own.forecast, own.worth),
                rank_correlation(size, own.worth),
                rank_correlation(own.forecast, own.worth, TAKEN),
            ]
            found.append([*shares, len(top[0] & top[1]) / TAKEN])
        speaks = sum(tau_across(own.worth) * margin(PLAYERS, TAKEN) > own.error for own in cases)
        same = [float(np.mean([own.same for own in cases])), float(np.mean([own.unchanged for own in cases]))]
        rows.append(Premise(name, *map(interval, np.array(found).T), *same, speaks))
    return rows


def interval(values: Array) -> tuple[float, float]:
    """Mean and half of the 95 % interval."""
    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(half)
