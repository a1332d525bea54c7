"""A method of one's own, for the commands: a score, a recipe, and a name.

    bangs run --method waiting --code examples/own_method.py --seeds 3 --rounds 5

Everything else is that of `confidence-calibrated`.
"""

from dataclasses import dataclass, replace

import torch

from bangs import METHODS, Budget, Method, Ranking, Round, method


@dataclass(frozen=True)
class Waiting:
    """Confident nodes whose neighbours still wait for a label: confidence × log(1 + unlabelled neighbours)."""

    def __call__(self, round: Round) -> Ranking:
        source, target = round.graph.edge_index
        unknown = (~round.labels.known).float()  # [R, N]
        waiting = torch.zeros_like(unknown).index_add(1, source, unknown[:, target])
        score = round.prediction.confidence * waiting.log1p()
        return Ranking(score.masked_fill(~round.pool, float("-inf")))


def waiting(budget: Budget) -> Method:
    """Confident nodes whose neighbours still wait for a label."""
    return replace(method("confidence-calibrated", budget), score=Waiting())


METHODS["waiting"] = waiting
