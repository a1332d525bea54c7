"""One thread against two on a CPU: how far logits come apart, and whether the same nodes are adopted.

    python benchmarks/threads.py [--json] [--datasets synthetic citeseer cora] [--methods bangs cpl m3s] [--rounds 5]

Each case is one seed of `Experiment(dataset, method, teacher="best")`. `first` is the largest difference of the first
models' logits, `largest` that of any round; `adopted` says in which round the adopted nodes first differ, and how many
of them, and `before` how far the logits of the rounds before were apart: beyond rounding, if no tie was the cause.
"""

import sys

import torch

from bangs.experiments.experiment import Experiment
from bangs.graphs.datasets import loading
from bangs.selftraining.loop import State
from measuring import options, show


def main() -> None:
    parser = options(__doc__, repeats=None)
    parser.add_argument("--datasets", nargs="+", default=["synthetic", "citeseer", "cora"])
    parser.add_argument("--methods", nargs="+", default=["bangs", "cpl", "m3s"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rows = []
    for dataset in args.datasets:
        data = loading.load(dataset)
        for method in args.methods:
            of = Experiment(dataset=dataset, method=method, rounds=args.rounds, seeds=(args.seed,), teacher="best")
            task = of.task(data)
            lives: list[list[State]] = [[], []]
            for count, states in enumerate(lives, 1):
                torch.set_num_threads(count)
                of.self_trainer([states.append]).fit(task, of.seeds)
            rows.append({"dataset": dataset, "method": method, **compared(*lives)})
            print(rows[-1], file=sys.stderr, flush=True)
    show(rows, args.json, unit="one thread against two; largest difference of logits")


def compared(one: list[State], two: list[State]) -> dict[str, object]:
    """How far two lives of a run come apart."""
    pairs = list(zip(one, two, strict=False))
    apart = [float((a.prediction.logits - b.prediction.logits).abs().max()) for a, b in pairs]
    other = [int((a.labels.adopted != b.labels.adopted).sum()) // 2 for a, b in pairs]
    first = next((round for round, count in enumerate(other) if count), None)
    adopted = "same" if first is None else f"{other[first]} of round {first} differ"
    before = "" if first is None else f"{max(apart[:first]):.1g}"
    result = {"first": f"{apart[0]:.1g}", "largest": f"{max(apart):.1g}", "rounds": len(pairs) - 1}
    return {**result, "adopted": adopted, "before": before}


if __name__ == "__main__":
    main()
