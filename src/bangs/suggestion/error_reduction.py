"""Expected errors: how many predictions one more label would be expected to put right."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bangs.suggestion.posterior import NOISE
from bangs.suggestion.situation import Situation

CANDIDATES = 200  # nodes that are looked at
FLOOR = 0.01  # of the best rough score, below which a node comes after all others
LABELS = 5  # classes that a node may have, the likeliest
JUDGED = 500  # nodes whose errors are counted, drawn at random
NUMBERS = 2**24  # at once


def expected_errors(situation: Situation, taken: Sequence[int], rough: Tensor) -> Tensor:
    """By how much the mean of 1 − max_c p_jc over nodes j is expected to fall: float [N], −inf where not looked at.

    A label c at node i moves the prediction of node j by (e_c − p_i) k_ji / (k_ii + NOISE), k being the covariance
    of a linear model of the places after the known and taken labels; label c comes with probability p_ic. Looked at
    are the nodes with the highest `rough` score [N]. Where none with much of it would lower the mean, as where nearly
    all predictions are certain, the rough score decides.
    """
    after, z, p = situation.after(taken), situation.places, situation.probs.float()
    free = situation.pool.clone()
    free[list(taken)] = False
    candidates = rough.masked_fill(~free, float("-inf")).topk(min(CANDIDATES, int(free.sum()))).indices
    judged = situation.cached(_drawn)
    covariance = after.covariance.float()
    moves = z[candidates] @ covariance
    step = moves @ z[judged].T / ((moves * z[candidates]).sum(1) + NOISE)[:, None]  # [K, J]
    likely = p[candidates].topk(min(LABELS, situation.classes), dim=1)
    chance = likely.values / likely.values.sum(1, keepdim=True)  # [K, L]
    change = torch.eye(situation.classes)[likely.indices] - p[candidates][:, None]  # [K, L, C]
    current = p[judged]
    gains = torch.empty(len(candidates))
    size = max(1, NUMBERS // max(1, change[0].numel() * len(judged)))
    for begin in range(0, len(candidates), size):
        some = slice(begin, begin + size)
        moved = current + step[some][:, None, :, None] * change[some][:, :, None]  # [k, L, J, C]
        confidence = moved.clamp_(0, 1).amax(-1).mean(-1)  # [k, L]
        gains[some] = (chance[some] * confidence).sum(1)
    score = torch.full((situation.nodes,), float("-inf"))
    gains -= current.amax(1).mean()
    much = rough[candidates] >= FLOOR * rough[candidates].amax().clamp_min(0)
    score[candidates] = torch.where(much, gains, gains - 1) if bool((gains[much] > 0).any()) else rough[candidates]
    return score


def _drawn(situation: Situation) -> Tensor:
    """Nodes without a label, some of them drawn: long [J]."""
    free = (~situation.known).nonzero()[:, 0]
    if len(free) <= JUDGED:
        return free
    rows = np.random.default_rng(situation.seed).choice(len(free), JUDGED, replace=False)
    return free[torch.from_numpy(np.sort(rows))]
