"""Expected Banzhaf values: the k-bounded Banzhaf value of a label that is not known yet."""

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from bangs.core.rng import Streams
from bangs.suggestion.strategy_input import StrategyInput
from bangs.valuation.banzhaf import Marginals
from bangs.valuation.information import Information

MAX_CANDIDATES = 100  # players: nodes whose labels would lower the variance most
LABEL_DRAWS = 8  # draws of the labels of all candidates from the predicted probabilities
COALITIONS = 16  # per draw
LABEL_CONFIDENCE = 0.95  # the probability of its class at a node with a label


def expected_banzhaf_values(inputs: StrategyInput) -> Tensor:
    """The expected value of the label of every candidate: float [N], −inf for other nodes.

    The value of a label is what it adds to U(S) = H(p̄) − mean_j H(p_j) over coalitions S of at most `count` − 1 other
    candidates, with Ĥ(S) = P X̂(S) as in `Information`; row i of X̂ is the logit of a label. The labels of all
    candidates are drawn from the predicted probabilities, and values are means over these draws.
    """
    rough = inputs.posterior.gain(inputs.points, inputs.risk_gram)
    size = min(MAX_CANDIDATES, int(inputs.pool.sum()))
    players = rough.masked_fill(~inputs.pool, -1).topk(size).indices
    rng = Streams(tuple(inputs.seed + draw for draw in range(LABEL_DRAWS))).at("worlds")
    p = inputs.probs.float()
    label = inputs.label.clamp_min(0).expand(LABEL_DRAWS, -1).clone()
    for draw, generator in zip(label, rng.generators(), strict=True):
        draw[players] = torch.multinomial(p[players], 1, generator=generator)[:, 0]
    # under these logits a label has probability LABEL_CONFIDENCE
    logit = torch.tensor(LABEL_CONFIDENCE / (1 - LABEL_CONFIDENCE) * max(inputs.classes - 1, 1)).log()
    game = Information.of(
        inputs.operator,
        one_hot(label, inputs.classes).float() * logit,
        inputs.known.expand(LABEL_DRAWS, -1),
        players.expand(LABEL_DRAWS, -1),
        seeds=tuple(rng.at("nodes").numbers()),
    )
    values = Marginals(COALITIONS)(game, min(inputs.count, size), rng.at("coalitions").generators())
    score = torch.full((inputs.nodes,), float("-inf"))
    score[players] = values.mean.mean(0).float()
    return score
