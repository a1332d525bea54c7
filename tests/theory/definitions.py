"""The paper's definitions in plain numpy, as close to its text as can be; nothing here comes from `bangs`."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from math import comb, sqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Coalition = frozenset[int]
Game = dict[Coalition, float]  # what each coalition of at most k players is worth


def scale_free(nodes: int, links: int, seed: int) -> Array:
    """Adjacency [N, N] of a connected graph with hubs: each new node links to `links` old ones, by their degree."""
    rng = np.random.default_rng(seed)
    adjacency = np.zeros((nodes, nodes))
    adjacency[: links + 1, : links + 1] = 1 - np.eye(links + 1)
    for node in range(links + 1, nodes):
        degree = adjacency[:node, :node].sum(1)
        friends = rng.choice(node, links, replace=False, p=degree / degree.sum())
        adjacency[node, friends] = adjacency[friends, node] = 1
    return adjacency


def planted(
    nodes: int, classes: int, degree: float, seed: int, homophily: float = 0.8
) -> tuple[Array, NDArray[np.int_]]:
    """Adjacency [N, N] and classes [N] of a graph in which `homophily` of the links join equal classes."""
    rng = np.random.default_rng(seed)
    label = rng.integers(classes, size=nodes)
    alike = degree * homophily * classes / nodes
    apart = degree * (1 - homophily) * classes / (nodes * (classes - 1))
    chance = np.where(label[:, None] == label, alike, apart)
    upper = np.triu(rng.random((nodes, nodes)) < chance, 1).astype(float)
    return upper + upper.T, label


def row_normalised(adjacency: Array) -> Array:
    """Ã = D̂⁻¹(A + I): row j is one step of the walk from j. [N, N]"""
    loops = adjacency + np.eye(len(adjacency))
    return loops / loops.sum(1, keepdims=True)


def symmetric(adjacency: Array) -> Array:
    """D̂^(-1/2) (A + I) D̂^(-1/2), the propagation of a usual GCN. [N, N]"""
    loops = adjacency + np.eye(len(adjacency))
    root = np.sqrt(loops.sum(1))
    return loops / root[:, None] / root


def pagerank(step: Array, restart: float) -> Array:
    """α (I − (1−α) Ã)⁻¹ of Def. 3.2, by a dense inverse. [N, N]"""
    return restart * np.linalg.inv(np.eye(len(step)) - (1 - restart) * step)


def stationary(adjacency: Array) -> Array:
    """Where the walk is after infinitely many steps: nodes in proportion to their degree. [N]"""
    degree = adjacency.sum(1) + 1
    return degree / degree.sum()


def total_variation(one: Array, other: Array) -> Array:
    """½ Σ |p − q| along the last axis."""
    return 0.5 * np.abs(one - other).sum(-1)


def normalised(score: Array) -> Array:
    """Rows that sum to one, from scores [N, N] ≥ 0."""
    return score / score.sum(1, keepdims=True)


def softmax(logits: Array) -> Array:
    """Probabilities along the last axis."""
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def entropy(probs: Array) -> Array:
    """−Σ p log p along the last axis, 0 log 0 = 0."""
    return -(probs * np.log(np.where(probs > 0, probs, 1))).sum(-1)


def mutual_information(joint: Array) -> float:
    """Σ p(x, y) log p(x, y) / (p(x) p(y)) of a table [X, Y] that sums to one."""
    independent = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    some = joint > 0
    return float((joint[some] * np.log(joint[some] / independent[some])).sum())


def objective(probs: Array) -> Array:
    """Eq. 2: H(mean_j p_j) − mean_j H(p_j) for predictions [..., N, C]."""
    return entropy(probs.mean(-2)) - entropy(probs).mean(-1)


def coalitions(players: Iterable[int], largest: int) -> list[Coalition]:
    """All sets of at most `largest` of the players, small ones first."""
    some = list(players)
    return [frozenset(members) for size in range(largest + 1) for members in combinations(some, size)]


def banzhaf(game: Game, players: int, k: int) -> Array:
    """Def. 3.3: mean of U(S ∪ i) − U(S) over all S without i of at most k − 1 players. [players]"""
    values = []
    for i in range(players):
        others = [j for j in range(players) if j != i]
        values.append(np.mean([game[S | {i}] - game[S] for S in coalitions(others, k - 1)]))
    return np.array(values)


def orders(players: int, k: int) -> int:
    """n_s of Def. 3.3: the number of sets S over which a player's value is a mean."""
    return sum(comb(players - 1, m - 1) for m in range(1, k + 1))


def distinguishability(game: Game, players: int, i: int, j: int, m: int) -> float:
    """Δ^(m): mean of U(S ∪ i) − U(S ∪ j) over the sets S of m − 1 players other than i and j."""
    others = [p for p in range(players) if p not in (i, j)]
    return float(np.mean([game[frozenset(S) | {i}] - game[frozenset(S) | {j}] for S in combinations(others, m - 1)]))


def margin(players: int, k: int) -> float:
    """The corrected margin of Thm 3.2 for τ = 1: (2A + B) / √(2 (4A + B))."""
    below, at = sum(comb(players - 2, m - 1) for m in range(1, k)), comb(players - 2, k - 1)
    return (2 * below + at) / sqrt(2 * (4 * below + at))


def printed_margin(players: int, k: int) -> float:
    """The margin printed in Thm 3.2 for τ = 1: √A."""
    return sqrt(sum(comb(players - 2, m - 1) for m in range(1, k)))


@dataclass(frozen=True)
class Setting:
    """A random graph, a teacher's noisy logits, the labelled nodes and the candidates: the most confident others."""

    adjacency: Array  # [N, N]
    logits: Array  # [N, C]
    labelled: NDArray[np.bool_]  # [N]
    candidates: NDArray[np.int_]  # [players]

    @classmethod
    def random(cls, seed: int, *, known: int = 6, players: int = 10, nodes: int = 60, classes: int = 3) -> "Setting":
        rng = np.random.default_rng(1000 + seed)
        adjacency, label = planted(nodes, classes, 4.0, seed)
        logits = 3.0 * np.eye(classes)[label] + rng.standard_normal((nodes, classes))
        labelled = np.zeros(nodes, dtype=bool)
        labelled[rng.choice(nodes, known, replace=False)] = True
        confidence = np.where(labelled, -1.0, softmax(logits).max(1))
        return cls(adjacency, logits, labelled, np.argsort(-confidence)[:players])

    def estimate(self, members: Coalition, reach: Array, *, mass: bool = False) -> Array:
        """Ĥ(S) of Def. 3.2 for PageRank `reach`; `mass` divides row j by the mass that reached it. [N, C]"""
        sources = self.labelled.copy()
        sources[self.candidates[list(members)]] = True
        estimate = reach[:, sources] @ self.logits[sources]
        if mass:
            arrived = reach[:, sources].sum(1, keepdims=True)
            estimate = np.divide(estimate, arrived, out=np.zeros_like(estimate), where=arrived > 1e-12)
        return estimate

    def game(self, k: int, *, mass: bool = False) -> Game:
        """Û of Eq. 4 for all sets of at most k candidates."""
        reach = pagerank(row_normalised(self.adjacency), 0.15)
        return {
            S: float(objective(softmax(self.estimate(S, reach, mass=mass)[~self.labelled])))
            for S in coalitions(range(len(self.candidates)), k)
        }


def best(score: Array, k: int) -> Coalition:
    """The k players with the largest score."""
    return frozenset(np.argsort(-score, kind="stable")[:k].tolist())
