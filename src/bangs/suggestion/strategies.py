"""Strategies by name: a score of every node to label next, after some nodes are taken."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bangs.core.choice_checks import check_name
from bangs.core.rng import Streams
from bangs.errors import InvalidInput
from bangs.suggestion.coverage import k_centre, pagerank, typical
from bangs.suggestion.error_reduction import expected_error_reduction
from bangs.suggestion.information import information_values
from bangs.suggestion.situation import Situation

Strategy = Callable[[Situation, Sequence[int]], Tensor]

UNCERTAIN_SHARE = 0.25  # share of the pool that counts as uncertain


def random(situation: Situation, taken: Sequence[int]) -> Tensor:
    """A random number for every node."""
    return Streams((situation.seed,)).at("suggest").rand(situation.nodes)[0]


def entropy(situation: Situation, taken: Sequence[int]) -> Tensor:
    """The entropy of the prediction; lower near taken nodes."""
    return situation.entropy * situation.novelty(taken)


def margin(situation: Situation, taken: Sequence[int]) -> Tensor:
    """How close the two likeliest classes are; lower near taken nodes."""
    return situation.margin * situation.novelty(taken)


def disagreement(situation: Situation, taken: Sequence[int]) -> Tensor:
    """How much the models of the folds differ; lower near taken nodes.

    H(mean of p) − mean of H(p) over the models, in nats: the information of a label about which of them is right.
    """
    if situation.disagreement is None:
        raise InvalidInput(
            "the model does not hold the disagreement of its folds; fit it again, or choose another strategy"
        )
    return situation.disagreement * situation.novelty(taken)


def k_centre_uncertain(situation: Situation, taken: Sequence[int]) -> Tensor:
    """As k-centre, among the quarter of the nodes with the highest entropy."""
    pool = situation.entropy[situation.pool]
    bound = pool.quantile(1 - UNCERTAIN_SHARE) if len(pool) <= 2**23 else pool.mean()
    return torch.where(situation.entropy >= bound, k_centre(situation, taken), 0.0)


def typical_error(situation: Situation, taken: Sequence[int]) -> Tensor:
    """As typical, where the size of a cluster is the expected number of errors in it."""
    return typical(situation, taken, situation.risk)


def dense_entropy(situation: Situation, taken: Sequence[int]) -> Tensor:
    """Entropy times the density of nodes around it; lower near taken nodes."""
    z = situation.points
    return situation.entropy * ((z @ situation.gram.float()) * z).sum(1) * situation.novelty(taken)


def variance(situation: Situation, taken: Sequence[int]) -> Tensor:
    """How much a label lowers the variance of a linear model over all nodes without one."""
    return situation.posterior_with(taken).gain(situation.points, situation.gram)


def error(situation: Situation, taken: Sequence[int]) -> Tensor:
    """How much a label lowers the variance of a linear model where predictions may be wrong; greedy over a batch."""
    return situation.posterior_with(taken).gain(situation.points, situation.risk_gram)


def uncertain_error(situation: Situation, taken: Sequence[int]) -> Tensor:
    """As error, times the entropy of the node: a label that the model can guess adds little."""
    return error(situation, taken) * situation.entropy


def lookahead(situation: Situation, taken: Sequence[int]) -> Tensor:
    """The expected decrease of the number of errors, with the label drawn from the predicted probabilities."""
    return expected_error_reduction(situation, taken, error(situation, taken))


def typical_lookahead(situation: Situation, taken: Sequence[int]) -> Tensor:
    """As lookahead, among nodes near the centres of clusters without a label."""
    return expected_error_reduction(situation, taken, typical_error(situation, taken))


def uncertain_lookahead(situation: Situation, taken: Sequence[int]) -> Tensor:
    """As lookahead, among the best nodes of uncertain-error."""
    return expected_error_reduction(situation, taken, uncertain_error(situation, taken))


def information(situation: Situation, taken: Sequence[int]) -> Tensor:
    """The k-bounded Banzhaf value of the label in the information game, drawn from the predicted probabilities."""
    values: Tensor = situation.cached(information_values)
    # a negative value must not rise where novelty is low
    return torch.where(values > 0, values * situation.novelty(taken), values)


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
