"""Training in batches against training on the whole graph: test accuracy over seeds, seconds and peak memory.

    python benchmarks/sampled.py [--datasets pubmed amazon_computers] [--seeds 5] [--size 512] [--fanout 10 10] [--json]

Every seed is fitted by itself with the tuned GCN and predicts all nodes. PubMed goes by its public split and by
5 / 15 / 80 %, the others by 5 / 15 / 80 % of their nodes. `peak_bytes` is the most that one fit and its prediction
took beyond what was there, the graph among it, with a C library that gives back what is freed (`GIVEN_BACK`);
`difference` is batches less whole, in points, with the standard error of the paired seeds.
"""

import gc
import math
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch_geometric.data import Data

from bangs.core import metrics
from bangs.core.rng import Streams
from bangs.core.types import Split, Task
from bangs.graphs import splits
from bangs.training.neighbour_sampling import Sampling
from bangs.training.presets import trainer
from bangs.training.trainer import Trainer
from measuring import graph, options, peak_of, show

# glibc keeps what is freed, above all of pieces of ever other sizes, so that its peak is not what was needed
GIVEN_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}


def main() -> None:
    if sys.platform == "linux" and not GIVEN_BACK.keys() <= os.environ.keys():
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **GIVEN_BACK})
    parser = options(__doc__, repeats=None)
    parser.set_defaults(threads=2)
    parser.add_argument("--datasets", nargs="+", default=["pubmed", "amazon_computers"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--size", type=int, default=512, help="labelled nodes a batch")
    parser.add_argument("--fanout", nargs="+", type=int, default=[10, 10])
    parser.add_argument("--memory", type=int, default=2**24, help="bytes for the logits of all nodes")
    parser.add_argument("--epochs", type=int, default=120)
    parser.add_argument("--patience", type=int, default=40)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    whole = trainer("gcn", "tuned", epochs=args.epochs, patience=args.patience)
    batches = replace(whole, batches=Sampling(args.size, tuple(args.fanout), args.memory))
    rows = []
    for name in args.datasets:
        name, data = graph(name)
        seeds = range(args.seeds)
        by_share = splits.by_share(data.y, 0.05, 0.15, seeds)
        cases = {"5/15/80": by_share}
        if splits.has_public(data):
            cases = {"public": splits.default(data, seeds), **cases}
        for split_name, split in cases.items():
            case = {"dataset": name, "split": split_name}
            rows += _compared(case, data, split, {"whole": whole, "batches": batches}, seeds)
    show(rows, args.json, unit="percent of test nodes; seconds and bytes a fit", batches=repr(batches.batches))


def _compared(
    case: dict[str, str], data: Data, split: Split, systems: dict[str, Trainer], seeds: Sequence[int]
) -> list[dict[str, Any]]:
    rows, score = [], {}
    for system, settings in systems.items():
        score[system], seconds, peaks, epochs = [], [], [], []
        for seed in seeds:
            result: dict[str, float] = {}
            peaks.append(peak_of(lambda: result.update(_fit(data, split.only([seed]), settings, seed))))  # noqa: B023
            gc.collect()
            score[system].append(result["test"])
            seconds.append(result["seconds"])
            epochs.append(result["epochs"])
        rows.append(
            {
                **case,
                "system": system,
                "test": statistics.fmean(score[system]),
                "std": statistics.stdev(score[system]),
                "seconds": statistics.fmean(seconds),
                "epochs": statistics.fmean(epochs),
                "peak_bytes": max(peaks),
            }
        )
    gaps = [batched - plain for batched, plain in zip(score["batches"], score["whole"], strict=True)]
    rows[-1]["difference"] = statistics.fmean(gaps)
    rows[-1]["stderr"] = statistics.stdev(gaps) / math.sqrt(len(gaps))
    rows[-1]["memory"] = rows[-1]["peak_bytes"] / rows[0]["peak_bytes"]
    return rows


def _fit(data: Data, split: Split, settings: Trainer, seed: int) -> dict[str, float]:
    begin = time.perf_counter()
    task = Task.of(data, split, data.get("num_classes"))
    teacher = settings.fit(task, task.given, Streams((seed,)))
    prediction = teacher.predict(task.graph)
    seconds = time.perf_counter() - begin
    answers = torch.where(split.test, data.y.expand(split.test.shape), -1)
    return {
        "test": 100 * float(metrics.accuracy(prediction, answers)),
        "seconds": seconds,
        "epochs": float(teacher.epochs),
    }


if __name__ == "__main__":
    main()
