"""Strategies by name: how good every node is to label next, once some are taken."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bangs.core.choice_checks import check_name
from bangs.core.rng import Streams
from bangs.errors import InvalidInput
from bangs.suggestion.coverage import k_centre, pagerank, typical
from bangs.suggestion.error_reduction import expected_errors
from bangs.suggestion.information import information_values
from bangs.suggestion.situation import Situation

Strategy = Callable[[Situation, Sequence[int]], Tensor]

UNCERTAIN = 0.25  # share of the pool that counts as uncertain


def random(situation: Situation, taken: Sequence[int]) -> Tensor:
    """A random number for every node."""
    return Streams((situation.seed,)).at("suggest").rand(situation.nodes)[0]


def entropy(situation: Situation, taken: Sequence[int]) -> Tensor:
    """The entropy of the prediction, less what taken nodes would teach."""
    return situation.entropy * situation.news(taken)


def margin(situation: Situation, taken: Sequence[int]) -> Tensor:
    """How close the two likeliest classes are, less what taken nodes would teach."""
    return situation.margin * situation.news(taken)


def disagreement(situation: Situation, taken: Sequence[int]) -> Tensor:
    """How much the models of the folds differ, less what taken nodes would teach.

    H(mean of p) − mean of H(p) over the models, in nats: what a label would tell about which of them is right.
    """
    if situation.disagreement is None:
        raise InvalidInput(
            "the model does not hold what its folds say one by one; fit it again, or choose another strategy"
        )
    return situation.disagreement * situation.news(taken)


def k_centre_uncertain(situation: Situation, taken: Sequence[int]) -> Tensor:
    """As k-centre, among the quarter of the nodes with the highest entropy."""
    pool = situation.entropy[situation.pool]
    bound = pool.quantile(1 - UNCERTAIN) if len(pool) <= 2**23 else pool.mean()
    return torch.where(situation.entropy >= bound, k_centre(situation, taken), 0.0)


def typical_error(situation: Situation, taken: Sequence[int]) -> Tensor:
    """As typical, the size of a cluster being the number of errors expected in it."""
    return typical(situation, taken, situation.risk)


def dense_entropy(situation: Situation, taken: Sequence[int]) -> Tensor:
    """Entropy times the density of nodes around, less what taken nodes would teach."""
    z = situation.places
    return situation.entropy * ((z @ situation.mass.float()) * z).sum(1) * situation.news(taken)


def variance(situation: Situation, taken: Sequence[int]) -> Tensor:
    """How much a label lowers the variance of a linear model over all nodes without one."""
    return situation.after(taken).gain(situation.places, situation.mass)


def error(situation: Situation, taken: Sequence[int]) -> Tensor:
    """How much a label lowers the variance of a linear model where predictions may be wrong; greedy over a batch."""
    return situation.after(taken).gain(situation.places, situation.risky_mass)


def uncertain_error(situation: Situation, taken: Sequence[int]) -> Tensor:
    """As error, times the entropy of the node: a label the model could guess teaches little."""
    return error(situation, taken) * situation.entropy


def lookahead(situation: Situation, taken: Sequence[int]) -> Tensor:
    """By how much the expected number of errors falls with one more label, over the model's own classes."""
    return expected_errors(situation, taken, error(situation, taken))


def typical_lookahead(situation: Situation, taken: Sequence[int]) -> Tensor:
    """As lookahead, among nodes near the middle of clusters that have no label yet."""
    return expected_errors(situation, taken, typical_error(situation, taken))


def uncertain_lookahead(situation: Situation, taken: Sequence[int]) -> Tensor:
    """As lookahead, among nodes that uncertain-error puts first."""
    return expected_errors(situation, taken, uncertain_error(situation, taken))


def information(situation: Situation, taken: Sequence[int]) -> Tensor:
    """The k-bounded Banzhaf value of the node's label in the information game, over the model's own classes."""
    values: Tensor = situation.cached(information_values)
    # a value below zero is no better where little is new
    return torch.where(values > 0, values * situation.news(taken), values)


STRATEGIES: dict[str, Strategy] = {
    "random": random,
    "entropy": entropy,
    "margin": margin,
    "disagreement": disagreement,
    "pagerank": pagerank,
    "k-centre": k_centre,
    "k-centre-uncertain": k_centre_uncertain,
    "typical": typical,
    "typical-error": typical_error,
    "dense-entropy": dense_entropy,
    "variance": variance,
    "error": error,
    "uncertain-error": uncertain_error,
    "lookahead": lookahead,
    "typical-lookahead": typical_lookahead,
    "uncertain-lookahead": uncertain_lookahead,
    "information": information,
}
DEFAULT = "uncertain-lookahead"


def strategy(name: str) -> Strategy:
    """The strategy of that name."""
    check_name("strategy", name, STRATEGIES)
    return STRATEGIES[name]
