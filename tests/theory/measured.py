"""The tables of docs/theory.md, recomputed: one function a table, one a line of each."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import comb, log, sqrt

import numpy as np
from scipy.optimize import minimize_scalar

from theory.definitions import (
    Coalition,
    Game,
    banzhaf,
    best,
    information_game,
    pagerank,
    row_normalised,
    scale_free,
    total_variation,
)

GAMES, PLAYERS, TAKEN = 60, 10, 4
RESTART = 0.15


@dataclass(frozen=True)
class Regret:
    """Mean regret of three ways to choose 4 of 10 players (0 = best set, 1 = random), and how often each is best."""

    known: int
    mass: bool
    value: float
    single: float
    greedy: float
    value_best: float
    single_best: float
    greedy_best: float

    def line(self) -> str:
        rows = "divided by mass" if self.mass else "as defined"
        shares = (f"{x:.3f} ({y:.0%})" for x, y in self.pairs())
        return f"| {self.known} of 60 | {rows} | {' | '.join(shares)} |"

    def pairs(self) -> list[tuple[float, float]]:
        """(regret, share of games in which it is the best set) by value, by single utility, greedily."""
        return [
            (self.value, self.value_best),
            (self.single, self.single_best),
            (self.greedy, self.greedy_best),
        ]


def greedy(game: Game, players: int, k: int) -> Coalition:
    """k players, one after the other, each the one that adds most."""
    chosen: Coalition = frozenset()
    for _ in range(k):
        chosen = max((chosen | {i} for i in range(players) if i not in chosen), key=game.__getitem__)
    return chosen


def regret(game: Game, chosen: Coalition, players: int) -> float:
    """(best − chosen) / (best − mean) over the sets of that size."""
    worth = [game[frozenset(S)] for S in combinations(range(players), len(chosen))]
    return (max(worth) - game[chosen]) / (max(worth) - float(np.mean(worth)))


@cache
def regrets() -> list[Regret]:
    """Over 60 games of information each: few or many labels, rows of Ĥ as they are or divided by their mass."""
    rows = []
    for known in (6, 20):
        for mass in (False, True):
            found = []
            for seed in range(GAMES):
                game = information_game(seed, known=known, mass=mass, players=PLAYERS, k=TAKEN)
                single = np.array([game[frozenset({i})] for i in range(PLAYERS)])
                value = banzhaf(game, PLAYERS, TAKEN)
                ways = (best(value, TAKEN), best(single, TAKEN), greedy(game, PLAYERS, TAKEN))
                found.append([regret(game, chosen, PLAYERS) for chosen in ways])
            mean, hit = np.mean(found, axis=0).tolist(), (np.array(found) < 1e-9).mean(0).tolist()
            rows.append(Regret(known, mass, *mean, *hit))
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
