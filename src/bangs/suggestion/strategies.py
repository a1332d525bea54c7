"""Strategies by name: a score of every node to label next, after some nodes are taken."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bangs.core.rng import Streams
from bangs.errors import InvalidInput
from bangs.suggestion.coverage import k_centre, pagerank, typical
from bangs.suggestion.error_reduction import expected_error_reduction
from bangs.suggestion.expected_banzhaf_values import expected_banzhaf_values
from bangs.suggestion.strategy_input import StrategyInput
from bangs.utils.setting_checks import check_name

Strategy = Callable[[StrategyInput, Sequence[int]], Tensor]

UNCERTAIN_SHARE = 0.25  # share of the pool that counts as uncertain


def random(inputs: StrategyInput, taken: Sequence[int]) -> Tensor:
    """A random number for every node."""
    return Streams((inputs.seed,)).at("suggest").rand(inputs.nodes)[0]


def entropy(inputs: StrategyInput, taken: Sequence[int]) -> Tensor:
    """The entropy of the prediction; lower near taken nodes."""
    return inputs.entropy * inputs.novelty(taken)


def margin(inputs: StrategyInput, taken: Sequence[int]) -> Tensor:
    """How close the two likeliest classes are; lower near taken nodes."""
    return inputs.margin * inputs.novelty(taken)


def disagreement(inputs: StrategyInput, taken: Sequence[int]) -> Tensor:
    """How much the models of the folds differ; lower near taken nodes.

    H(mean of p) − mean of H(p) over the models, in nats: the information of a label about which of them is right.
    """
    if inputs.disagreement is None:
        raise InvalidInput(
            "the model does not hold the disagreement of its folds; fit it again, or choose another strategy"
        )
    return inputs.disagreement * inputs.novelty(taken)


def k_centre_uncertain(inputs: StrategyInput, taken: Sequence[int]) -> Tensor:
    """As k-centre, among the quarter of the nodes with the highest entropy."""
    pool = inputs.entropy[inputs.pool]
    bound = pool.quantile(1 - UNCERTAIN_SHARE) if len(pool) <= 2**23 else pool.mean()
    return torch.where(inputs.entropy >= bound, k_centre(inputs, taken), 0.0)


def typical_error(inputs: StrategyInput, taken: Sequence[int]) -> Tensor:
    """As typical, where the size of a cluster is the expected number of errors in it."""
    return typical(inputs, taken, inputs.risk)


def dense_entropy(inputs: StrategyInput, taken: Sequence[int]) -> Tensor:
    """Entropy times the density of nodes around it; lower near taken nodes."""
    z = inputs.points
    return inputs.entropy * ((z @ inputs.gram.float()) * z).sum(1) * inputs.novelty(taken)


def variance(inputs: StrategyInput, taken: Sequence[int]) -> Tensor:
    """How much a label lowers the variance of a linear model over all nodes without one."""
    return inputs.posterior_with(taken).gain(inputs.points, inputs.gram)


def error(inputs: StrategyInput, taken: Sequence[int]) -> Tensor:
    """How much a label lowers the variance of a linear model where predictions may be wrong; greedy over a batch."""
    return inputs.posterior_with(taken).gain(inputs.points, inputs.risk_gram)


def uncertain_error(inputs: StrategyInput, taken: Sequence[int]) -> Tensor:
    """As error, times the entropy of the node: a label that the model can guess adds little."""
    return error(inputs, taken) * inputs.entropy


def lookahead(inputs: StrategyInput, taken: Sequence[int]) -> Tensor:
    """The expected decrease of the number of errors, with the label drawn from the predicted probabilities."""
    return expected_error_reduction(inputs, taken, error(inputs, taken))


def typical_lookahead(inputs: StrategyInput, taken: Sequence[int]) -> Tensor:
    """As lookahead, among nodes near the centres of clusters without a label."""
    return expected_error_reduction(inputs, taken, typical_error(inputs, taken))


def uncertain_lookahead(inputs: StrategyInput, taken: Sequence[int]) -> Tensor:
    """As lookahead, among the best nodes of uncertain-error."""
    return expected_error_reduction(inputs, taken, uncertain_error(inputs, taken))


def information(inputs: StrategyInput, taken: Sequence[int]) -> Tensor:
    """The k-bounded Banzhaf value of the label in the information game, drawn from the predicted probabilities."""
    values: Tensor = inputs.cached(expected_banzhaf_values)
    # a negative value must not rise where novelty is low
    return torch.where(values > 0, values * inputs.novelty(taken), values)


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
