"""Expected errors: how many predictions one more label would be expected to put right."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bangs.suggestion.situation import Situation

CANDIDATES = 200  # nodes that are looked at, those with the largest gain
JUDGED = 1000  # nodes whose errors are counted, drawn at random
NUMBERS = 2**24  # at once


def expected_errors(situation: Situation, taken: Sequence[int]) -> Tensor:
    """By how much the mean of 1 − max_c p_jc over nodes j is expected to fall: float [N], −inf where not looked at.

    A label c at node i moves the prediction of node j by (e_c − p_i) k_ji / (k_ii + noise), k being the covariance
    of a linear model of the places after the known and taken labels; label c comes with probability p_ic.
    """
    after, z, p = situation.after(taken), situation.places, situation.probs.float()
    rough = after.gain(z, situation.risky_mass)
    free = situation.pool.clone()
    free[list(taken)] = False
    candidates = rough.masked_fill(~free, -1).topk(min(CANDIDATES, int(free.sum()))).indices
    judged = _drawn(situation)
    covariance = after.covariance.float()
    k = z[candidates] @ covariance @ z[judged].T  # [K, J]
    own = ((z[candidates] @ covariance) * z[candidates]).sum(1)
    step = k / (own + after.noise)[:, None]
    gains = torch.empty(len(candidates))
    classes = torch.eye(situation.classes)
    size = max(1, NUMBERS // max(1, situation.classes**2 * len(judged)))
    before = p[judged].amax(1).sum()
    for begin in range(0, len(candidates), size):
        some = slice(begin, begin + size)
        own_probs = p[candidates[some]]  # [k, C]
        change = classes[None] - own_probs[:, None]  # [k, C label, C]
        moved = p[judged][None, None] + step[some][:, None, :, None] * change[:, :, None]  # [k, C, J, C]
        sure = moved.clamp(0, 1).amax(-1).sum(-1)  # [k, C]
        gains[some] = (own_probs * (sure - before)).sum(1) / len(judged)
    score = torch.full((situation.nodes,), float("-inf"))
    score[candidates] = gains
    return score


def _drawn(situation: Situation) -> Tensor:
    """Nodes without a label, some of them drawn: long [J]."""
    free = (~situation.known).nonzero()[:, 0]
    if len(free) <= JUDGED:
        return free
    rows = np.random.default_rng(situation.seed).choice(len(free), JUDGED, replace=False)
    return free[torch.from_numpy(np.sort(rows))]
