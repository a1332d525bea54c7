"""Warm start: what accuracy and how many epochs it costs or saves to begin students from trained weights.

    python benchmarks/warm_start.py [--datasets cora citeseer] [--seeds 5] [--rounds 6] [--json]

BANGS with the tuned GCN and the first model as teacher. A student starts from scratch, from its teacher's best weights,
or from the first model's weights at an early epoch. All seeds of a dataset run at once, each with the same splits and
random streams under every start, so differences are paired by seed. Epochs are those until a run's best weights, summed
over its rounds after the first model; `epochs_at_most` adds the whole patience of every student, which is the most that
can have been trained.
"""

import statistics
import sys
import time
from dataclasses import replace
from typing import Any

import torch
from torch_geometric.data import Data

from bangs.experiments.experiment import Experiment, exam_of
from bangs.selftraining.best_round import beats
from bangs.selftraining.loop import SelfTrainer, State
from measuring import graph, options, peak_bytes, resident, show

STARTS: dict[str, str | int] = {"fresh": "fresh", "teacher": "teacher", "epoch 100": 100}


def main() -> None:
    parser = options(__doc__, repeats=None)
    parser.add_argument("--datasets", nargs="+", default=["cora", "citeseer"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--preset", default="tuned")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rows = []
    for wanted in args.datasets:
        name, data = graph(wanted)
        experiment = Experiment(
            dataset=name, method="bangs", preset=args.preset, seeds=tuple(range(args.seeds)), rounds=args.rounds
        )
        measured: dict[str, Any] = {}
        for start, meaning in STARTS.items():
            measured[start] = measure(experiment, data, meaning)
            rows.append({"dataset": name, "start": start, **_compared(measured[start], measured["fresh"])})
            print(rows[-1], file=sys.stderr)
    show(rows, args.json, protocol=f"{args.seeds} seeds at once, {args.rounds} rounds, preset {args.preset}")


def measure(experiment: Experiment, data: Data, start: str | int) -> dict[str, Any]:
    """Accuracy at the best validation round and epochs by seed; seconds and memory of all seeds together."""
    task, exam = experiment.task(data), exam_of(experiment, data)
    best = torch.full((task.runs,), -1.0, dtype=torch.float64)
    accuracy = torch.zeros(task.runs, dtype=torch.float64)
    epochs, trained = torch.zeros(task.runs), torch.zeros(task.runs)

    def watch(state: State) -> None:
        better = beats(state.validation, best)
        accuracy[better] = torch.tensor(exam.mark(state)["test"], dtype=torch.float64)[better]
        best[better] = state.validation[better]
        if state.index:
            settings = state.student.learner.trainer
            took = state.took_part
            epochs.add_(state.student.epochs * took)
            trained.add_((state.student.epochs + settings.patience).clamp_max(settings.epochs) * took)

    recipe = experiment.self_trainer()
    before, begin, busy = resident(), time.perf_counter(), time.process_time()
    SelfTrainer(recipe.trainer, replace(recipe.method, start=start), (watch,)).fit(task, experiment.seeds)
    return {
        "accuracy": (100 * accuracy).tolist(),
        "epochs": epochs.tolist(),
        "trained": trained.tolist(),
        "seconds": time.perf_counter() - begin,
        "cpu_seconds": time.process_time() - busy,
        "peak_bytes": peak_bytes() - before,
    }


def _compared(result: dict[str, Any], fresh: dict[str, Any]) -> dict[str, Any]:
    """One row: means over seeds, and the paired difference to a fresh start with its standard error."""
    gap = [one - other for one, other in zip(result["accuracy"], fresh["accuracy"], strict=True)]
    return {
        "accuracy": statistics.fmean(result["accuracy"]),
        "gain": statistics.fmean(gap),
        "stderr": statistics.stdev(gap) / len(gap) ** 0.5 if len(gap) > 1 else 0.0,
        "epochs_to_best": statistics.fmean(result["epochs"]),
        "epochs_at_most": statistics.fmean(result["trained"]),
        "seconds": result["seconds"],
        "cpu_seconds": result["cpu_seconds"],
        "ratio": fresh["cpu_seconds"] / result["cpu_seconds"],
        "peak_bytes": result["peak_bytes"],
    }


if __name__ == "__main__":
    main()
