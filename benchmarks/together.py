"""Selection for many runs: all that fit valued together, beside one run after the other.

    python benchmarks/together.py [--datasets cora pubmed] [--runs 10] [--repeats 5] [--json]

One round's selection (K = 200, k = 100) of ten seeds, each with its own teacher, a tuned GCN calibrated on the
validation nodes: from the game's making to the values, on a GPU where there is one. A GPU is left waiting for launches
by one run at a time, a processor's cache holds one run best, which is why it never takes more. `group` is how many runs
are valued together, `ratio` is to one at a time, `apart` how far values differ from those of one at a time at most, as
a share of the largest.
"""

from functools import partial
from typing import Any
from unittest.mock import patch

import torch

from bangs.calibration.calibrators import Temperature
from bangs.core.rng import Streams
from bangs.core.types import Task
from bangs.graphs import splits
from bangs.graphs.pagerank import PPR
from bangs.training.presets import trainer
from bangs.valuation import information
from bangs.valuation.banzhaf import DEFAULT, ESTIMATORS, Values
from bangs.valuation.information import Information
from measuring import graph, in_turns, options, peak_of, show

PLAYERS, K = 200, 100


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--datasets", nargs="+", default=["cora", "pubmed"])
    parser.add_argument("--estimators", nargs="+", default=[DEFAULT, "wls"])
    parser.add_argument("--runs", type=int, default=10, help="seeds at once")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rows = []
    for dataset in args.datasets:
        name, game = first_round(dataset, args.runs)
        for estimator in args.estimators:
            rows += [{"graph": name, "runs": args.runs} | row for row in compared(game, estimator, args.repeats)]
    show(rows, args.json, unit=f"seconds of one selection for all runs; medians of {args.repeats}")


def first_round(dataset: str, runs: int) -> tuple[str, Information]:
    """The game that is played first, by the most confident nodes of every run."""
    name, data = graph(dataset)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    split = splits.default(data, range(runs))
    task = Task.of(data, split, data.get("num_classes")).to(device)
    teacher = trainer("gcn", "tuned").fit(task, task.given, Streams(tuple(range(runs))))
    prediction = Temperature()(teacher.predict(task.graph), task)
    pool = ~(split.train | split.val).to(device)
    players = prediction.confidence.masked_fill(~pool, -1).topk(PLAYERS, dim=1).indices
    return name, Information.of(PPR()(task.graph), prediction.logits, task.given.known, players)


def compared(game: Information, estimator: str, repeats: int) -> list[dict[str, Any]]:
    """A row for one run at a time, and one for all that fit together."""
    most = {"one at a time": {game.device.type: 1}, "together": {}}
    groups: dict[str, int] = {}

    def select(how: str) -> Values:
        with patch.object(information, "RUNS_AT_ONCE", most[how]):
            fresh = Information.of(game.operator, game.logits, game.known, game.nodes)
            groups[how] = fresh.runs_at_once
            generators = [torch.Generator(game.device).manual_seed(run) for run in range(game.runs)]
            return ESTIMATORS[estimator](None)(fresh, K, generators)

    acts = {how: partial(select, how) for how in most}
    times = in_turns(acts, repeats)
    alone = select("one at a time").mean
    return [
        {
            "estimator": estimator,
            "how": how,
            "group": groups[how],
            **times[how].against(times["one at a time"]),
            "peak_bytes": peak_of(acts[how]),
            "apart": float((select(how).mean - alone).abs().max() / alone.abs().max()),
        }
        for how in most
    ]


if __name__ == "__main__":
    main()
