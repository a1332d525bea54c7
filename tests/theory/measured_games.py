"""The tables of docs/results/theory.md about games of information, recomputed: one function a table."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from tests.theory.definitions import (
    Array,
    Coalition,
    Game,
    Setting,
    banzhaf,
    best,
    distinguishability,
    margin,
    objective,
    pagerank,
    row_normalised,
    softmax,
)

GAMES, PLAYERS, TAKEN = 60, 10, 4


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


@cache
def game_of(seed: int, known: int, mass: bool) -> Game:
    """One of the 60 games of information that the tables share."""
    return Setting.random(seed, known=known, players=PLAYERS).game(TAKEN, mass=mass)


@cache
def values_of(seed: int, known: int, mass: bool) -> tuple[float, ...]:
    """The values of its players."""
    return tuple(banzhaf(game_of(seed, known, mass), PLAYERS, TAKEN).tolist())


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
                game = game_of(seed, known, mass)
                single = np.array([game[frozenset({i})] for i in range(PLAYERS)])
                value = np.array(values_of(seed, known, mass))
                ways = (best(value, TAKEN), best(single, TAKEN), greedy(game, PLAYERS, TAKEN))
                found.append([regret(game, chosen, PLAYERS) for chosen in ways])
            mean, hit = np.mean(found, axis=0).tolist(), (np.array(found) < 1e-9).mean(0).tolist()
            rows.append(Regret(known, mass, *mean, *hit))
    return rows


@dataclass(frozen=True)
class Larger:
    """Regret against a greedy choice (0 = greedy, 1 = random) in games too large to list all sets."""

    mass: bool
    value: float
    single: float

    def line(self) -> str:
        rows = "divided by mass" if self.mass else "as defined"
        return f"| {rows} | {self.value:.2f} | {self.single:.2f} |"


@cache
def larger(games: int = 4, players: int = 60, k: int = 25, draws: int = 20) -> list[Larger]:
    """On graphs of 600 nodes, 25 of them labelled; values are means over drawn S of exact differences."""
    sizes = np.array([comb(players - 1, size) for size in range(k)], dtype=float)
    rows = []
    for mass in (False, True):
        found = []
        for seed in range(games):
            worth = _worth(Setting.random(seed, known=25, players=players, nodes=600, classes=5), mass)
            rng, every = np.random.default_rng(seed), np.eye(players, dtype=bool)
            value = np.zeros(players)
            for _ in range(draws):
                size, rank = rng.choice(k, p=sizes / sizes.sum()), rng.permutation(players)
                # for each player the first `size` others in one random order
                without = (rank < size + (rank[:, None] < size)) & ~every
                value += (worth(without | every) - worth(without)) / draws
            chosen = np.zeros(players, dtype=bool)
            for _ in range(k):
                chosen |= every[np.argmax(np.where(chosen, -np.inf, worth(chosen | every)))]
            random = np.array([np.isin(np.arange(players), rng.permutation(players)[:k]) for _ in range(100)])
            ways = [np.isin(np.arange(players), list(best(score, k))) for score in (value, worth(every))]
            top, base = float(worth(chosen[None])[0]), float(worth(random).mean())
            found.append((top - worth(np.array(ways))) / (top - base))
        rows.append(Larger(mass, *np.mean(found, axis=0).tolist()))
    return rows


def _worth(setting: Setting, mass: bool) -> Callable[[NDArray[np.bool_]], Array]:
    """Û of coalitions bool [B, players], the columns of the candidates propagated once."""
    reach = pagerank(row_normalised(setting.adjacency), 0.15)[~setting.labelled]
    base, arrived = reach[:, setting.labelled] @ setting.logits[setting.labelled], reach[:, setting.labelled].sum(1)
    columns, logits = reach[:, setting.candidates], setting.logits[setting.candidates]

    def worth(members: NDArray[np.bool_]) -> Array:
        estimate = base + np.einsum("jk,bk,kc->bjc", columns, members, logits, optimize=True)
        if mass:
            share = (arrived + members @ columns.T)[..., None]
            estimate = np.divide(estimate, share, out=np.zeros_like(estimate), where=share > 1e-12)
        return objective(softmax(estimate))

    return worth


@dataclass(frozen=True)
class Silence:
    """In how many games of information Thm 3.2 says something: pairs with τ > 0, games with τ > 0 for the k best."""

    known: int
    mass: bool
    pairs: float
    games: float
    share: float  # median margin of those games, as a share of the spread ‖U − mean U‖

    def line(self) -> str:
        rows = "divided by mass" if self.mass else "as defined"
        return f"| {self.known} of 60 | {rows} | {self.pairs:.0%} | {self.games:.0%} | {self.share:.1%} |"


@cache
def silence() -> list[Silence]:
    """Over the same 60 games as the regrets."""
    rows = []
    for known in (6, 20):
        for mass in (False, True):
            pairs, games, shares = [], [], []
            for seed in range(GAMES):
                game = game_of(seed, known, mass)
                order = np.argsort(-np.array(values_of(seed, known, mass))).tolist()
                tau = {
                    (a, b): min(distinguishability(game, PLAYERS, order[a], order[b], m) for m in range(1, TAKEN + 1))
                    for a, b in combinations(range(PLAYERS), 2)
                }
                across = min(t for (a, b), t in tau.items() if a < TAKEN <= b)
                pairs.append(np.mean([t > 0 for t in tau.values()]))
                games.append(across > 0)
                if across > 0:
                    shares.append(across * margin(PLAYERS, TAKEN) / (np.std(list(game.values())) * sqrt(len(game))))
            rows.append(Silence(known, mass, float(np.mean(pairs)), float(np.mean(games)), float(np.median(shares))))
    return rows


@dataclass(frozen=True)
class Bias:
    """Rank correlation of values and of what MSR tends to with sets of size k in its second mean."""

    known: int
    mass: bool
    mean: float
    least: float

    def line(self) -> str:
        rows = "divided by mass" if self.mass else "as defined"
        return f"| {self.known} of 60 | {rows} | {self.mean:.3f} | {self.least:.3f} |"


def msr_limit(game: Game, players: int, largest_without: int) -> Array:
    """What MSR tends to if every coalition is drawn: mean with i less mean without i, these of at most so many."""
    return np.array(
        [
            np.mean([game[S] for S in game if i in S])
            - np.mean([game[S] for S in game if i not in S and len(S) <= largest_without])
            for i in range(players)
        ]
    )


@cache
def biases() -> list[Bias]:
    """Over the same 60 games as the regrets."""
    rows = []
    for known in (6, 20):
        for mass in (False, True):
            alike = []
            for seed in range(GAMES):
                game = game_of(seed, known, mass)
                printed, value = msr_limit(game, PLAYERS, TAKEN), np.array(values_of(seed, known, mass))
                alike.append(float(spearmanr(printed, value).statistic))
            rows.append(Bias(known, mass, float(np.mean(alike)), min(alike)))
    return rows
