"""Ranks: time, memory and network of training in batches and of selection, shared by processes under torchrun.

    python benchmarks/ranks.py [--nodes 30000,100000,300000] [--ranks 1,2] [--epochs 3] [--threads 1] [--json]

Stores made from seed 0, ten edges a node, 64 features, 16 classes; a GCN of 128 hidden numbers trained in batches of
1,024 of 10,000 labelled nodes (fan-out 10, 10), each in four pieces whoever shares them; then the default estimator's
16 coalitions value 100 candidates whose columns are pushed (k = 50). Every case is a torchrun of its own; times are the
first rank's, and of an epoch the least of all, by the clock and (`cpu_`) by the processor, which others' work
does not lengthen and from which the exponents come. `step_bytes` and `look_bytes`
are handed to all-reduce by every rank in each step and in each look at the validation nodes, `select_bytes` in each
selection. Last, the exponents of the growth in nodes.
"""

import json
import math
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bangs.core.types import Split, Task
from bangs.distributed import ranks
from bangs.graphs.pagerank_push import Push
from bangs.graphs.store import Store, convert_from
from bangs.nn.models import GCN
from bangs.training.neighbour_sampling import Sampling
from bangs.training.trainer import Learner, Trainer
from bangs.valuation.banzhaf import DEFAULT, ESTIMATORS
from bangs.valuation.distributed_information import share
from bangs.valuation.information import Information
from measuring import options, peak_bytes, power, show

LABELLED = 10_000
PLAYERS, K = 100, 50
GROWN = ("cpu_epoch_seconds", "cpu_select_seconds", "peak_bytes", "step_bytes", "select_bytes")


def count_traffic() -> Counter[str]:
    """The "bytes" that this process hands to the others from now on."""
    traffic, message = Counter[str](), ranks._message

    def counted(x: Tensor) -> Tensor:
        traffic["bytes"] += x.numel() * x.element_size()
        return message(x)

    ranks._message = counted
    return traffic


def worker(path: Path, epochs: int) -> dict[str, Any]:
    """What this rank sees of one case."""
    store = Store.open(path)
    train, val, test = (store.get(name)[None] for name in ("train_mask", "val_mask", "test_mask"))
    task = Task.of(store, Split(train, val, test), store.num_classes)  # type: ignore[arg-type]
    sampling = Sampling(1024, (10, 10), pieces=4)
    learner = Trainer(GCN(128), epochs=1, batches=sampling).prepare(task)
    traffic = count_traffic()
    seconds, busy, spent = zip(*(_epoch(learner, task, number, traffic) for number in range(epochs)), strict=True)
    steps = math.ceil(int(train.sum()) / sampling.size)
    look = 4 * int(val.sum()) * store.num_classes if ranks.world_size() > 1 else 0
    began, began_busy, before = time.perf_counter(), time.process_time(), traffic["bytes"]
    _select(task, store)
    return {
        "nodes": store.num_nodes,
        "edges": len(task.graph.into.nodes),
        "ranks": ranks.world_size(),
        "epoch_seconds": min(seconds),
        "cpu_epoch_seconds": min(busy),
        "select_seconds": time.perf_counter() - began,
        "cpu_select_seconds": time.process_time() - began_busy,
        "peak_bytes": peak_bytes(),
        "step_bytes": (spent[-1] - look) // steps,
        "look_bytes": look,
        "select_bytes": traffic["bytes"] - before,
    }


def _epoch(learner: Learner, task: Task, number: int, traffic: Counter[str]) -> tuple[float, float, int]:
    """Seconds by the clock and by the processor, and bytes, of one epoch and its look."""
    session = learner._session(task.given, None)
    session.begin([number], None)
    began, busy, before = time.perf_counter(), time.process_time(), traffic["bytes"]
    session.train(1, patient=True)
    return time.perf_counter() - began, time.process_time() - busy, traffic["bytes"] - before


def _select(task: Task, store: Store) -> None:
    """The values of the candidates under made-up logits that are right three times in four."""
    random = torch.Generator().manual_seed(0)
    logits = torch.randn(1, store.num_nodes, store.num_classes, generator=random)
    logits[0, torch.arange(store.num_nodes), store.y.clamp(min=0)] += 3
    known = task.given.known
    players = logits.softmax(-1).amax(-1).masked_fill(known, -1).topk(PLAYERS).indices
    game = Information.of(Push()(task.graph), logits, known, players, normalise="mass")
    ESTIMATORS[DEFAULT](None)(share(game), K, [torch.Generator().manual_seed(1)])


def case(path: Path, count: int, epochs: int, threads: int) -> dict[str, Any]:
    """The first rank's row of a torchrun with so many ranks."""
    with tempfile.NamedTemporaryFile() as file:
        words = ["--worker", str(path), file.name, "--epochs", str(epochs), "--threads", str(threads)]
        launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(count), __file__, *words]
        subprocess.run(launch, check=True, capture_output=True)
        row: dict[str, Any] = json.loads(Path(file.name).read_text())
    return row


def exponents(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The slopes of log y on log nodes, for every number of ranks."""
    slopes = {}
    for count in sorted({row["ranks"] for row in rows}):
        group = [row for row in rows if row["ranks"] == count]
        for name in GROWN:
            if all(row[name] > 0 for row in group) and len(group) > 1:
                slope = power([row["nodes"] for row in group], [row[name] for row in group])
                slopes[f"{name}, {count} ranks"] = round(slope, 2)
    return slopes


def main() -> None:
    parser = options(__doc__, repeats=None)
    parser.add_argument("--nodes", default="30000,100000,300000")
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--worker", nargs=2, help="a store and the file for the row; used by the script itself")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.worker:
        with ranks.process_group(torch.device("cpu")):
            row = worker(Path(args.worker[0]), args.epochs)
            if ranks.is_first():
                Path(args.worker[1]).write_text(json.dumps(row))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for nodes in map(int, args.nodes.split(",")):
            store = Path(folder) / str(nodes)
            convert_from(f"synthetic:nodes={nodes},edges={10 * nodes},train={LABELLED},val={LABELLED}", store)
            rows += [case(store, int(count), args.epochs, args.threads) for count in args.ranks.split(",")]
    show(rows, args.json, exponents=exponents(rows))


if __name__ == "__main__":
    main()
