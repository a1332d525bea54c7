"""What the default tolerance of marginals costs on small graphs: docs/estimators.md states these bounds."""

import statistics

import pytest
from scipy.stats import spearmanr
from torch import Tensor

from bangs.core.rng import Streams
from bangs.core.types import Task
from bangs.graphs import splits
from bangs.graphs.datasets.synthetic import citation
from bangs.graphs.pagerank import PPR
from bangs.training.presets import trainer
from bangs.valuation.banzhaf import Marginals
from bangs.valuation.influence import Normalisation
from bangs.valuation.information import Information


@pytest.mark.parametrize("nodes", [60, 100, 200, 500])
def test_the_default_tolerance_keeps_the_order_and_moves_single_values_by_less_than_three_tenths(nodes: int) -> None:
    errors, shared = [], []
    for seed in range(1, 11):
        data = citation(nodes, 3, 40, seed=seed)
        task = Task.of(data, splits.per_class(data.y, 5, nodes // 5, None, (0,), scarce="half"), 3)
        logits = trainer("gcn", epochs=100).fit(task, task.given, Streams((0,))).predict(task.graph).logits
        for normalise in ("none", "mass"):
            exact, default = (values(task, logits, normalise, tolerance) for tolerance in (0.0, 0.3))
            errors.append(float((default - exact).abs().max() / exact.abs().max()))
            best = [set(value.topk(len(value) // 5).indices.tolist()) for value in (exact, default)]
            shared.append(len(best[0] & best[1]) / len(best[0]))
            assert spearmanr(exact, default).statistic > 0.97
    assert max(errors) < 0.3
    assert statistics.median(errors) < 0.03
    assert min(shared) > 0.8
    assert statistics.fmean(shared) > 0.98


def values(task: Task, logits: Tensor, normalise: Normalisation, tolerance: float) -> Tensor:
    """The values of all free nodes, by the default estimator. [players]"""
    players = (~(task.given.known | task.held)).nonzero()[:, 1][None]
    game = Information.of(
        task.cached(PPR()), logits, task.given.known, players, normalise=normalise, tolerance=tolerance
    )
    return Marginals(16)(game, players.shape[1] // 2, Streams((0,)).generators()).mean[0]
