"""Checks of what the parts of a method return, since users may write their own parts."""

import torch
from torch import Tensor

from bangs.core.types import Prediction, Ranking
from bangs.errors import InvalidInput


def check_ranking(returned: object, pool: Tensor) -> Ranking:
    """The ranking a score returned; it must have a number for every node of the pool, bool [R, N]."""
    if not isinstance(returned, Ranking):
        raise InvalidInput(f"a score must return a Ranking, got {type(returned).__name__}; write Ranking(score)")
    if returned.score.shape != pool.shape:
        raise InvalidInput(f"a score must have the shape [R, N] = {list(pool.shape)}, got {list(returned.score.shape)}")
    if (returned.score.isnan() & pool).any():
        raise InvalidInput("a score must be a number for every node of the pool, -inf to leave a node out, got NaN")
    return returned


def check_mask(returned: object, pool: Tensor) -> Tensor:
    """The mask a quota returned: bool [R, N], the shape of the pool."""
    if not isinstance(returned, Tensor) or returned.dtype != torch.bool or returned.shape != pool.shape:
        got = f"{returned.dtype} {list(returned.shape)}" if isinstance(returned, Tensor) else type(returned).__name__
        raise InvalidInput(f"a quota must return a mask, torch.bool [R, N] = {list(pool.shape)}, got {got}")
    return returned


def check_soft_labels(returned: object, raw: Prediction) -> Tensor:
    """The soft labels a part returned: float [R, N, C], a distribution over the classes for every node."""
    if not isinstance(returned, Tensor) or returned.shape != raw.logits.shape or not returned.is_floating_point():
        got = f"{returned.dtype} {list(returned.shape)}" if isinstance(returned, Tensor) else type(returned).__name__
        raise InvalidInput(
            f"`believe` must return probabilities, float [R, N, C] = {list(raw.logits.shape)}, got {got}"
        )
    if not (returned >= 0).all() or not torch.allclose(returned.sum(-1), returned.new_ones(()), atol=1e-3):
        raise InvalidInput("`believe` must return probabilities: numbers of at least 0 that sum to 1 for every node")
    return returned


def check_calibrated(returned: object, raw: Prediction) -> Prediction:
    """The prediction a calibrator returned, for the same runs, nodes and classes."""
    if not isinstance(returned, Prediction):
        raise InvalidInput(
            f"a calibrator must return a Prediction, got {type(returned).__name__}; write Prediction(logits)"
        )
    if returned.logits.shape != raw.logits.shape:
        raise InvalidInput(
            f"a calibrator must keep the shape [R, N, C] = {list(raw.logits.shape)}, got {list(returned.logits.shape)}"
        )
    return returned
