"""What the default tolerance of marginals costs on small graphs: docs/estimators.md states these bounds."""

import pytest
from torch import Tensor

from bangs.core.rng import Streams
from bangs.core.types import Task
from bangs.graphs import splits
from bangs.graphs.datasets.synthetic import citation
from bangs.graphs.pagerank import PPR
from bangs.training.presets import trainer
from bangs.valuation.banzhaf import Marginals
from bangs.valuation.information import Information


@pytest.mark.parametrize("normalise", ["none", "mass"])
@pytest.mark.parametrize("nodes", [60, 100, 200, 500])
def test_the_default_tolerance_keeps_the_best_fifth_and_moves_values_by_a_fifth_at_most(
    nodes: int, normalise: str
) -> None:
    data = citation(nodes, 3, 40, seed=1)
    task = Task.of(data, splits.per_class(data.y, 5, nodes // 5, None, (0,), scarce="half"), 3)
    prediction = trainer("gcn", epochs=100).fit(task, task.given, Streams((0,))).predict(task.graph)
    players = (~(task.given.known | task.held)).nonzero()[:, 1][None]

    def values(tolerance: float) -> Tensor:
        operator = task.cached(PPR())
        known = task.given.known
        game = Information.of(operator, prediction.logits, known, players, normalise=normalise, tolerance=tolerance)
        return Marginals(16)(game, players.shape[1] // 2, Streams((0,)).generators()).mean[0]

    exact, default = values(0.0), values(0.3)
    assert float((default - exact).abs().max()) < 0.2 * float(exact.abs().max())
    best = [set(own.topk(len(own) // 5).indices.tolist()) for own in (exact, default)]
    assert len(best[0] & best[1]) >= 0.95 * len(best[0])
