"""Error reduction: how much one more label is expected to lower the number of wrong predictions."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bangs.suggestion.posterior import NOISE
from bangs.suggestion.strategy_input import StrategyInput

MAX_CANDIDATES = 200  # nodes whose expected error reduction is computed
MIN_ROUGH_SCORE = 0.01  # share of the best rough score; candidates below it come last
MAX_LABELS = 5  # likeliest classes of a candidate that are considered
MAX_SAMPLED_NODES = 500  # nodes over which errors are averaged
MAX_FLOATS = 2**24  # in one tensor


def expected_error_reduction(inputs: StrategyInput, taken: Sequence[int], rough: Tensor) -> Tensor:
    """The expected decrease of the mean of 1 − max_c p_jc over nodes j: float [N], −inf for other than candidates.

    A label c at node i moves the prediction of node j by (e_c − p_i) k_ji / (k_ii + NOISE), where k is the covariance
    of a linear model of the points after the known and taken labels; node i has label c with probability p_ic.
    Candidates are the nodes with the highest `rough` score [N]. If no good candidate lowers the mean, for example
    because nearly all predictions are certain, the rough score decides.
    """
    posterior, z, p = inputs.posterior_with(taken), inputs.points, inputs.probs.float()
    available = inputs.pool.clone()
    available[list(taken)] = False
    count = min(MAX_CANDIDATES, int(available.sum()))
    candidates = rough.masked_fill(~available, float("-inf")).topk(count).indices
    sample = inputs.cached(_sampled_nodes)
    projected = z[candidates] @ posterior.covariance.float()
    step = projected @ z[sample].T / ((projected * z[candidates]).sum(1) + NOISE)[:, None]  # [K, J]
    likeliest = p[candidates].topk(min(MAX_LABELS, inputs.classes), dim=1)
    label_probs = likeliest.values / likeliest.values.sum(1, keepdim=True)  # [K, L]
    change = torch.eye(inputs.classes)[likeliest.indices] - p[candidates][:, None]  # [K, L, C]
    current = p[sample]
    gains = torch.empty(count)
    size = max(1, MAX_FLOATS // max(1, change[0].numel() * len(sample)))
    for begin in range(0, count, size):
        chunk = slice(begin, begin + size)
        updated = current + step[chunk][:, None, :, None] * change[chunk][:, :, None]  # [k, L, J, C]
        confidence = updated.clamp_(0, 1).amax(-1).mean(-1)  # [k, L]
        gains[chunk] = (label_probs[chunk] * confidence).sum(1)
    gains -= current.amax(1).mean()
    good = rough[candidates] >= MIN_ROUGH_SCORE * rough[candidates].amax().clamp_min(0)
    score = torch.full((inputs.nodes,), float("-inf"))
    score[candidates] = torch.where(good, gains, gains - 1) if bool((gains[good] > 0).any()) else rough[candidates]
    return score


def _sampled_nodes(inputs: StrategyInput) -> Tensor:
    """A random sample of the nodes without a label: long [J]."""
    nodes = (~inputs.known).nonzero()[:, 0]
    if len(nodes) <= MAX_SAMPLED_NODES:
        return nodes
    rows = np.random.default_rng(inputs.seed).choice(len(nodes), MAX_SAMPLED_NODES, replace=False)
    return nodes[torch.from_numpy(np.sort(rows))]
