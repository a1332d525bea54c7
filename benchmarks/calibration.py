"""Calibration: how honest every calibrator makes a trained teacher, on nodes it has not seen.

    python benchmarks/calibration.py [--datasets cora citeseer pubmed] [--seeds 10] [--model gcn] [--json]

One teacher per seed is trained; every calibrator is fitted on the validation nodes of all seeds at once and marked on
the test nodes. Errors are in percent; seconds are those of one call for all seeds, the better of two: of processor
time on a CPU, which a busy machine does not stretch, else of the clock.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bangs import metrics
from bangs.errors import BangsError
from bangs.graphs import datasets, splits
from bangs.learners.calibration import CALIBRATORS, CaGCN, Calibrator
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


def measure(name: str, part: Calibrator, prediction: Prediction, task: Task, test: Tensor) -> dict[str, Any]:
    """One row: the mean and standard deviation over seeds of every measure, and the seconds of a call."""
    seconds = []
    clock = time.process_time if task.device.type == "cpu" else time.perf_counter
    for _ in range(2):
        begin = clock()
        calibrated = part(prediction, task)
        if task.device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(clock() - begin)
    row: dict[str, Any] = {"calibrator": name, "part": repr(part), "seconds": min(seconds)}
    for measured, of in MEASURES.items():
        value = of(calibrated, test) * (100 if measured in PERCENT else 1)
        row[measured] = {"mean": value.mean().item(), "std": value.std(correction=0).item()}
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    head = ["dataset", "calibrator", "NLL", "Brier", "ECE", "ECE, equal mass", "classwise ECE", "accuracy", "seconds"]
    lines = ["| " + " | ".join(head) + " |", "|---" * 2 + "|---:" * (len(head) - 2) + "|"]
    for row in rows:
        cells = [row["dataset"], row["calibrator"]]
        cells += [f"{row[name]['mean']:.4f} ± {row[name]['std']:.4f}" for name in ("nll", "brier")]
        cells += [f"{row[name]['mean']:.1f} ± {row[name]['std']:.1f}" for name in ("ece", "ece_mass", "classwise_ece")]
        cells += [f"{row['accuracy']['mean']:.1f}", f"{row['seconds']:.3f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["cora", "citeseer", "pubmed"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--model", default="gcn")
    parser.add_argument("--preset", default="tuned")
    parser.add_argument("--data", type=Path, help="the folder of the datasets; else BANGS_DATA")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="small products; more threads often only wait")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    parts: dict[str, Calibrator] = {name: make() for name, make in CALIBRATORS.items()}
    parts["cagcn, margin 0"] = CaGCN(margin=0.0)
    rows = []
    for dataset in arguments.datasets:
        prediction, task, test = teachers(
            dataset, arguments.seeds, arguments.model, arguments.preset, arguments.data, arguments.device
        )
        for name, part in parts.items():
            rows.append({"dataset": dataset, **measure(name, part, prediction, task, test)})
            if not arguments.json:
                print(f"{dataset}: {name} done", file=sys.stderr)
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
