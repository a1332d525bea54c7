"""Calibration: how honest every calibrator makes a trained teacher, on nodes it has not seen.

    python benchmarks/calibration.py [--datasets cora citeseer pubmed] [--seeds 10] [--model gcn] [--json]
    python benchmarks/calibration.py --validation 5 10 20 50 --draws 20 --calibrators none temperature vector ets

One teacher per seed is trained; every calibrator is fitted on the validation nodes of all seeds at once and marked on
the test nodes. With `--validation` only so many validation nodes are left, drawn anew `--draws` times for every seed;
the teachers are the same. Measures are means ± standard deviations over seeds and draws, errors in percent; seconds
are those of one call for all seeds.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.calibration.calibrators import CALIBRATORS, CaGCN, Calibrator, Temperature
from bangs.core import metrics
from bangs.core.rng import Streams
from bangs.core.types import Prediction, Task
from bangs.errors import BangsError, UnknownName
from bangs.graphs import splits
from bangs.training.presets import trainer
from measuring import graph, in_turns, options, peak_of, show

MEASURES: dict[str, Callable[[Prediction, Tensor], Tensor]] = {
    "nll": metrics.negative_log_likelihood,
    "brier": metrics.brier,
    "ece": metrics.calibration_error,
    "ece_mass": lambda prediction, target: metrics.calibration_error(prediction, target, binning="mass"),
    "classwise_ece": metrics.classwise_calibration_error,
    "accuracy": metrics.accuracy,
    "confidence": lambda prediction, target: _mean_confidence(prediction, target),
}
PERCENT = ("ece", "ece_mass", "classwise_ece", "accuracy", "confidence")


def main() -> None:
    parser = options(__doc__, repeats=1)
    parser.add_argument("--datasets", nargs="+", default=["cora", "citeseer", "pubmed"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--calibrators", nargs="+", default=[*CALIBRATORS, "cagcn, margin 0"])
    parser.add_argument("--validation", nargs="+", type=int, help="how many validation nodes to leave")
    parser.add_argument("--draws", type=int, default=1, help="of those validation nodes")
    parser.add_argument("--model", default="gcn")
    parser.add_argument("--preset", default="tuned")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    parts = chosen(args.calibrators)
    rows = []
    for wanted in args.datasets:
        name, data = graph(wanted)
        prediction, task, test = teachers(data, args.seeds, args.model, args.preset, args.device)
        for count in args.validation or [None]:
            tasks = [task] if count is None else [fewer(task, count, draw) for draw in range(args.draws)]
            case = {"dataset": name, "validation": int(tasks[0].held.sum(1).min())}
            rows += [case | row for row in measure(parts, prediction, tasks, test, args.repeats)]
            print(f"{name}, {case['validation']} validation nodes: done", file=sys.stderr)
    show(rows, args.json, protocol=f"{args.model}, preset {args.preset}, {args.seeds} seeds at once")


def chosen(names: list[str]) -> dict[str, Calibrator]:
    """The calibrators of those names."""
    known: dict[str, Calibrator] = {name: make() for name, make in CALIBRATORS.items()}
    known |= {"cagcn, margin 0": CaGCN(margin=0.0), "temperature, prior 0": Temperature(prior=0.0)}
    for name in names:
        if name not in known:
            raise UnknownName("calibrator", name, known)
    return {name: known[name] for name in names}


def teachers(data: Data, seeds: int, model: str, preset: str, device: str) -> tuple[Prediction, Task, Tensor]:
    """The predictions of one teacher per seed, its task, and the targets of the test nodes [R, N]."""
    split = splits.default(data, range(seeds))
    task = Task.of(data, split, data.get("num_classes")).to(device)
    teacher = trainer(model, preset).fit(task, task.given, Streams(tuple(range(seeds))))
    return teacher.predict(task.graph), task, torch.where(split.test, data.y, -1).to(device)


def fewer(task: Task, count: int, draw: int) -> Task:
    """The task with `count` of the validation nodes of every run, drawn at random."""
    random = Streams(tuple(range(task.runs))).at("validation", draw).rand(task.nodes).to(task.device)
    rank = torch.where(task.held, random, 2.0).argsort(1).argsort(1)
    return replace(task, validation=torch.where(rank < count, task.validation, -1))


def measure(
    parts: dict[str, Calibrator], prediction: Prediction, tasks: list[Task], test: Tensor, repeats: int
) -> list[dict[str, Any]]:
    """A row a calibrator: every measure over seeds and tasks, and what one call takes; they take turns."""
    acts = {name: (lambda part=part: part(prediction, tasks[0])) for name, part in parts.items()}
    times = in_turns(acts, repeats)
    return [
        {
            "calibrator": name,
            **_marks(part, prediction, tasks, test),
            "seconds": times[name].seconds,
            "cpu_seconds": times[name].cpu_seconds,
            "peak_bytes": peak_of(acts[name]),
        }
        for name, part in parts.items()
    ]


def _marks(part: Calibrator, prediction: Prediction, tasks: list[Task], test: Tensor) -> dict[str, Any]:
    values: dict[str, list[Tensor]] = {name: [] for name in MEASURES}
    for task in tasks:
        calibrated = part(prediction, task)
        for name, of in MEASURES.items():
            values[name].append(of(calibrated, test) * (100 if name in PERCENT else 1))
    every = {name: torch.cat(value) for name, value in values.items()}
    return {name: {"mean": value.mean().item(), "std": value.std(correction=0).item()} for name, value in every.items()}


def _mean_confidence(prediction: Prediction, target: Tensor) -> Tensor:
    counted = target >= 0
    return (prediction.confidence.double() * counted).sum(1) / counted.sum(1)


if __name__ == "__main__":
    try:
        main()
    except BangsError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
