"""Parts: what a score, quota or calibrator gave back, checked where it comes in, since anyone may have written it."""

import torch
from torch import Tensor

from bangs.core.types import Prediction, Ranking
from bangs.errors import InvalidInput


def ranked(found: object, pool: Tensor) -> Ranking:
    """What a score gave, where it has a number for every node of the pool, bool [R, N]."""
    if not isinstance(found, Ranking):
        raise InvalidInput(f"a score must give a Ranking, got {type(found).__name__}; write Ranking(score)")
    if found.score.shape != pool.shape:
        raise InvalidInput(f"a score must have the shape [R, N] = {list(pool.shape)}, got {list(found.score.shape)}")
    if (found.score.isnan() & pool).any():
        raise InvalidInput("a score must be a number for every node of the pool, -inf for one not to take, got NaN")
    return found


def taken(found: object, pool: Tensor) -> Tensor:
    """Whom a quota took: bool [R, N], as the pool is."""
    if not isinstance(found, Tensor) or found.dtype != torch.bool or found.shape != pool.shape:
        got = f"{found.dtype} {list(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        raise InvalidInput(f"a quota must give a mask, torch.bool [R, N] = {list(pool.shape)}, got {got}")
    return found


def believed(found: object, raw: Prediction) -> Tensor:
    """What soft labels a part gave: float [R, N, C], rows of probabilities."""
    if not isinstance(found, Tensor) or found.shape != raw.logits.shape or not found.is_floating_point():
        got = f"{found.dtype} {list(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        raise InvalidInput(f"`believe` must give probabilities, float [R, N, C] = {list(raw.logits.shape)}, got {got}")
    if not (found >= 0).all() or not torch.allclose(found.sum(-1), found.new_ones(()), atol=1e-3):
        raise InvalidInput("`believe` must give probabilities: numbers of at least 0 that sum to one for every node")
    return found


def calibrated(found: object, raw: Prediction) -> Prediction:
    """What a calibrator gave, where it speaks of the same runs, nodes and classes."""
    if not isinstance(found, Prediction):
        raise InvalidInput(f"a calibrator must give a Prediction, got {type(found).__name__}; write Prediction(logits)")
    if found.logits.shape != raw.logits.shape:
        raise InvalidInput(
            f"a calibrator must keep the shape [R, N, C] = {list(raw.logits.shape)}, got {list(found.logits.shape)}"
        )
    return found
