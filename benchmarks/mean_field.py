"""One mean-field pass against sampled marginals, where all free nodes are players: agreement and seconds.

    python benchmarks/mean_field.py [--datasets synthetic cora] [--samples 50] [--json]

The teacher is the tuned GCN of seed 0. Both estimate the k-bounded Banzhaf values of all free nodes in the information
game, k = half of them. `rank_correlation` is Spearman's; `noise` is that of two independent samples of marginals, which
no estimate can exceed by much; `top_tenth` is the share of the best tenth by marginals that is also the best tenth by
the mean field.
"""

import time
from typing import Any

import torch
from scipy.stats import spearmanr
from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.core.types import Round, Task
from bangs.graphs import splits
from bangs.selftraining.loss_weights import BanzhafWeight
from bangs.training.presets import trainer
from bangs.valuation.banzhaf import Estimator, Marginals, MeanField
from measuring import graph, options, show


def main() -> None:
    parser = options(__doc__, repeats=None)
    parser.add_argument("--datasets", nargs="+", default=["synthetic", "cora"])
    parser.add_argument("--samples", type=int, default=50, help="coalitions that marginals average over")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rows = []
    for wanted in args.datasets:
        name, data = graph(wanted)
        rows.append({"dataset": name, **measure(data, args.samples)})
    show(rows, args.json, unit="seconds of all values")


def measure(data: Data, samples: int) -> dict[str, Any]:
    """The agreement of the two estimates on one graph."""
    task = Task.of(data, splits.default(data, (0,)), data.get("num_classes"))
    teacher = trainer("gcn").fit(task, task.given, Streams((0,)))
    pool = ~(task.given.known | task.held)

    def values(estimate: Estimator, seed: int) -> tuple[torch.Tensor, float]:
        prediction = teacher.predict(task.graph)
        round = Round(1, task, task.given, prediction, prediction, pool, teacher, Streams((seed,)))
        begin = time.perf_counter()
        estimates = BanzhafWeight(estimate=estimate).values(round)[pool]
        return estimates, time.perf_counter() - begin

    quick, quick_seconds = values(MeanField(), 0)
    slow, slow_seconds = values(Marginals(samples), 1)
    repeated, _ = values(Marginals(samples), 2)
    tenth = len(quick) // 10
    best = [set(estimates.topk(tenth).indices.tolist()) for estimates in (quick, slow)]
    return {
        "players": len(quick),
        "rank_correlation": float(spearmanr(quick, slow).statistic),
        "noise": float(spearmanr(slow, repeated).statistic),
        "top_tenth": len(best[0] & best[1]) / tenth,
        "mean_field_seconds": quick_seconds,
        "marginals_seconds": slow_seconds,
        "ratio": slow_seconds / quick_seconds,
    }


if __name__ == "__main__":
    main()
