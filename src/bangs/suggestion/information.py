"""Information: the k-bounded Banzhaf value of a label that is not known yet."""

import torch
from torch import Tensor

from bangs.core.rng import Streams
from bangs.suggestion.situation import Situation
from bangs.valuation.banzhaf import Marginals
from bangs.valuation.information import Information

CANDIDATES = 100  # players: nodes whose labels would lower the variance most
WORLDS = 8  # draws of all candidates' labels from the model's probabilities
SAMPLES = 16  # coalitions a world
SURE = 0.95  # the probability of its class at a node with a label


def information_values(situation: Situation) -> Tensor:
    """The expected value of every candidate's label: float [N], −inf where a node is no candidate.

    A label is worth what it adds to U(S) = H(p̄) − mean_j H(p_j) over coalitions S of at most `count` − 1 other
    candidates, with Ĥ(S) = P X̂(S) as in `Information`; row i of X̂ is the logit of a label. Labels of candidates are
    drawn from the model's probabilities, all at once in every world, and values are means over worlds: the expectation
    over the model's own classes.
    """
    rough = situation.given.gain(situation.places, situation.risky_mass)
    size = min(CANDIDATES, int(situation.pool.sum()))
    players = rough.masked_fill(~situation.pool, -1).topk(size).indices
    rng = Streams(tuple(situation.seed + world for world in range(WORLDS))).at("worlds")
    p = situation.probs.float()
    label = situation.label.clamp_min(0).expand(WORLDS, -1).clone()
    for own, generator in zip(label, rng.generators(), strict=True):
        own[players] = torch.multinomial(p[players], 1, generator=generator)[:, 0]
    game = Information.of(
        situation.operator,
        _signal(label, situation.classes),
        situation.known.expand(WORLDS, -1),
        players.expand(WORLDS, -1),
        seeds=tuple(rng.at("nodes").numbers()),
    )
    values = Marginals(SAMPLES)(game, min(situation.count, size), rng.at("coalitions").generators())
    score = torch.full((situation.nodes,), float("-inf"))
    score[players] = values.mean.mean(0).float()
    return score


def _signal(label: Tensor, classes: int) -> Tensor:
    """Logits of known labels [R, N, C], centred: the label's class has probability `SURE`."""
    height = torch.tensor(SURE / (1 - SURE) * max(classes - 1, 1)).log()
    return torch.nn.functional.one_hot(label, classes).float() * height
