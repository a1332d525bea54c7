"""Calibration: how honest every calibrator makes a trained teacher, on nodes it has not seen.

    python benchmarks/calibration.py [--datasets cora citeseer pubmed] [--seeds 10] [--model gcn] [--json]
    python benchmarks/calibration.py --validation 5 10 20 50 --draws 20 --calibrators none temperature vector ets

One teacher per seed is trained; every calibrator is fitted on the validation nodes of all seeds at once and marked on
the test nodes. With `--validation` only so many validation nodes are left, drawn anew `--draws` times for every seed;
the teachers are the same. Errors are in percent; seconds are those of one call for all seeds, the fastest: of
processor time on a CPU, which a busy machine does not stretch, else of the clock.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bangs import metrics
from bangs.errors import BangsError, UnknownName
from bangs.graphs import datasets, splits
from bangs.learners.calibration import CALIBRATORS, CaGCN, Calibrator, Temperature
from bangs.learners.presets import trainer
from bangs.rng import Streams
from bangs.types import Prediction, Task

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


def teachers(dataset: str, seeds: int, model: str, preset: str, folder: Path | None, device: str) -> Any:
    """The predictions of one teacher per seed, its task, and the targets of the test nodes [R, N]."""
    data = datasets.load(dataset, folder)
    split = splits.default(data, range(seeds))
    task = Task.of(data, split, int(data.num_classes)).to(device)
    teacher = trainer(model, preset).fit(task, task.given, Streams(tuple(range(seeds))))
    return teacher.predict(task.graph), task, torch.where(split.test, data.y, -1).to(device)


def fewer(task: Task, count: int, draw: int) -> Task:
    """The task with `count` of the validation nodes of every run, drawn at random."""
    random = Streams(tuple(range(task.runs))).at("validation", draw).rand(task.nodes).to(task.device)
    rank = torch.where(task.held, random, 2.0).argsort(1).argsort(1)
    return replace(task, validation=torch.where(rank < count, task.validation, -1))


def measure(part: Calibrator, prediction: Prediction, tasks: list[Task], test: Tensor) -> dict[str, Any]:
    """One row: the mean and standard deviation of every measure over seeds and tasks, and the seconds of a call."""
    seconds = []
    values: dict[str, list[Tensor]] = {name: [] for name in MEASURES}
    clock = time.process_time if tasks[0].device.type == "cpu" else time.perf_counter
    for task in tasks if len(tasks) > 1 else 2 * tasks:
        begin = clock()
        calibrated = part(prediction, task)
        if task.device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(clock() - begin)
        for name, of in MEASURES.items():
            values[name].append(of(calibrated, test) * (100 if name in PERCENT else 1))
    row: dict[str, Any] = {"part": repr(part), "seconds": min(seconds)}
    for name, parts in values.items():
        value = torch.cat(parts)
        row[name] = {"mean": value.mean().item(), "std": value.std(correction=0).item()}
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    head = [
        "dataset",
        "validation nodes",
        "calibrator",
        "NLL",
        "Brier",
        "ECE",
        "ECE, equal mass",
        "classwise ECE",
        "accuracy",
        "seconds",
    ]
    lines = ["| " + " | ".join(head) + " |", "|---" * 3 + "|---:" * (len(head) - 3) + "|"]
    for row in rows:
        cells = [row["dataset"], str(row["validation"]), row["calibrator"]]
        cells += [f"{row[name]['mean']:.4f} ± {row[name]['std']:.4f}" for name in ("nll", "brier")]
        cells += [f"{row[name]['mean']:.1f} ± {row[name]['std']:.1f}" for name in ("ece", "ece_mass", "classwise_ece")]
        cells += [f"{row['accuracy']['mean']:.1f}", f"{row['seconds']:.3f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["cora", "citeseer", "pubmed"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--calibrators", nargs="+", default=[*CALIBRATORS, "cagcn, margin 0"])
    parser.add_argument("--validation", nargs="+", type=int, help="how many validation nodes to leave")
    parser.add_argument("--draws", type=int, default=1, help="of those validation nodes")
    parser.add_argument("--model", default="gcn")
    parser.add_argument("--preset", default="tuned")
    parser.add_argument("--data", type=Path, help="the folder of the datasets; else BANGS_DATA")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="small products; more threads often only wait")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    known: dict[str, Calibrator] = {name: make() for name, make in CALIBRATORS.items()}
    known |= {"cagcn, margin 0": CaGCN(margin=0.0), "temperature, prior 0": Temperature(prior=0.0)}
    for name in arguments.calibrators:
        if name not in known:
            raise UnknownName("calibrator", name, known)
    rows = []
    for dataset in arguments.datasets:
        prediction, task, test = teachers(
            dataset, arguments.seeds, arguments.model, arguments.preset, arguments.data, arguments.device
        )
        for count in arguments.validation or [None]:
            tasks = [task] if count is None else [fewer(task, count, draw) for draw in range(arguments.draws)]
            left = int(tasks[0].held.sum(1).min())
            for name in arguments.calibrators:
                row = measure(known[name], prediction, tasks, test)
                rows.append({"dataset": dataset, "validation": left, "calibrator": name, **row})
                print(f"{dataset}, {left} validation nodes: {name} done", file=sys.stderr)
    if arguments.json:
        print(json.dumps({"model": arguments.model, "seeds": arguments.seeds, "rows": rows}))
    else:
        print(table(rows))
    return 0


def _mean_confidence(prediction: Prediction, target: Tensor) -> Tensor:
    counted = target >= 0
    return (prediction.confidence.double() * counted).sum(1) / counted.sum(1)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BangsError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
