"""Checks of what a score, quota, calibrator or soft-label part returns, since users may write their own."""

import torch
from torch import Tensor

from bangs.core.types import Prediction, Ranking
from bangs.errors import InvalidInput


def check_ranking(found: object, pool: Tensor) -> Ranking:
    """The ranking a score returned; it must have a number for every node of the pool, bool [R, N]."""
    if not isinstance(found, Ranking):
        raise InvalidInput(f"a score must return a Ranking, got {type(found).__name__}; write Ranking(score)")
    if found.score.shape != pool.shape:
        raise InvalidInput(f"a score must have the shape [R, N] = {list(pool.shape)}, got {list(found.score.shape)}")
    if (found.score.isnan() & pool).any():
        raise InvalidInput("a score must be a number for every node of the pool, -inf to leave a node out, got NaN")
    return found


def check_mask(found: object, pool: Tensor) -> Tensor:
    """The mask a quota returned: bool [R, N], the shape of the pool."""
    if not isinstance(found, Tensor) or found.dtype != torch.bool or found.shape != pool.shape:
        got = f"{found.dtype} {list(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        raise InvalidInput(f"a quota must return a mask, torch.bool [R, N] = {list(pool.shape)}, got {got}")
    return found


def check_soft_labels(found: object, raw: Prediction) -> Tensor:
    """The soft labels a part returned: float [R, N, C], a distribution over the classes for every node."""
    if not isinstance(found, Tensor) or found.shape != raw.logits.shape or not found.is_floating_point():
        got = f"{found.dtype} {list(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        raise InvalidInput(
            f"`believe` must return probabilities, float [R, N, C] = {list(raw.logits.shape)}, got {got}"
        )
    if not (found >= 0).all() or not torch.allclose(found.sum(-1), found.new_ones(()), atol=1e-3):
        raise InvalidInput("`believe` must return probabilities: numbers of at least 0 that sum to 1 for every node")
    return found


def check_calibrated(found: object, raw: Prediction) -> Prediction:
    """The prediction a calibrator returned, for the same runs, nodes and classes."""
    if not isinstance(found, Prediction):
        raise InvalidInput(
            f"a calibrator must return a Prediction, got {type(found).__name__}; write Prediction(logits)"
        )
    if found.logits.shape != raw.logits.shape:
        raise InvalidInput(
            f"a calibrator must keep the shape [R, N, C] = {list(raw.logits.shape)}, got {list(found.logits.shape)}"
        )
    return found
