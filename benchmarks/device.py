"""An epoch on a GPU: with our kernels and with torch's, the kernels it consists of, and the share of bandwidth reached.

    python benchmarks/device.py [--json] [--datasets cora pubmed] [--presets paper tuned] [--models gcn] [--runs 10]
        [--precisions float32] [--adopted 0 2000] [--kernels 12] [--without matmul first_hop]

An epoch is one step of Adam and one look at the validation nodes for all seeds at once, replayed as one CUDA graph.
`adopted` nodes, drawn by chance for every seed, have labels besides those that came with the graph, as later rounds do.
`opening` is what a round costs up to the end of its first epoch: its labels are put where a captured graph reads them;
where the first hop is precomputed, its subgraphs are made and the epoch is captured anew.
`bandwidth` is what the sparse products of a GCN must read and write (each dense line once per entry, as no cache is
counted on) over the time of those products; the card's memory does 4.8 TB/s on an H200, its second-level cache more.
`--without` also measures all kernels but the dense ones (`kernels/matmul.py`), and no precomputed first hop.
"""

import itertools
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from time import perf_counter
from typing import Any
from unittest.mock import patch

import torch
from torch.profiler import ProfilerActivity, profile

from bangs import kernels
from bangs.core.types import Labels, Task
from bangs.graphs import splits
from bangs.nn.matmul import matmul_precision
from bangs.nn.subgraphs import Subgraph
from bangs.training.epoch_loop import CapturedSession
from bangs.training.precomputed_hop import PrecomputedHop
from bangs.training.presets import trainer
from bangs.training.trainer import Learner
from measuring import graph, in_turns, options, show, table

EPOCHS = 50  # a turn
WITHOUT = ("matmul", "first_hop")  # parts that can be switched off


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--datasets", nargs="+", default=["cora", "pubmed"])
    parser.add_argument("--presets", nargs="+", default=["paper", "tuned"])
    parser.add_argument("--models", nargs="+", default=["gcn"])
    parser.add_argument("--precisions", nargs="+", default=["float32"], help="of dense products: float32, tf32")
    parser.add_argument("--runs", type=int, default=10, help="seeds at once")
    parser.add_argument("--adopted", type=int, nargs="+", default=[0, 2000], help="nodes with labels besides the given")
    parser.add_argument("--kernels", type=int, default=12, help="kernels named in the profile of each case")
    parser.add_argument("--without", nargs="*", choices=WITHOUT, default=[], help="parts to measure an epoch without")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("device.py measures a GPU, and torch finds none here; benchmarks/training.py measures the processor")
    rows: list[dict[str, Any]] = []
    profiles = {}
    for wanted in args.datasets:
        name, data = graph(wanted)
        task = Task.of(data, splits.default(data, range(args.runs))).to("cuda")
        cases = itertools.product(args.models, args.presets, args.precisions, args.adopted)
        for model, preset, precision, adopted in cases:
            sessions, opening = {}, {}
            for system in ("torch", "bangs", *(f"bangs without {part}" for part in args.without)):
                with our_kernels(on=system != "torch"), without(system.rpartition(" ")[2]):
                    chosen = trainer(model, preset, name, epochs=64, precision=precision)
                    sessions[system], opening[system] = session(chosen.prepare(task), adopted)
            times = in_turns({system: replays(one) for system, one in sessions.items()}, args.repeats)
            for system, one in sessions.items():
                spent = spent_by_kernel(one)
                case = {"dataset": name, "model": model, "preset": preset, "precision": precision, "adopted": adopted}
                case |= {"system": system, "runs": args.runs}
                facts = {
                    "seconds": times[system].seconds / EPOCHS,
                    "ratio": times["torch"].seconds / times[system].seconds,
                    "kernels": sum(count for count, _ in spent.values()),
                    "busy_seconds": sum(seconds for _, seconds in spent.values()),
                    "opening_seconds": opening[system],
                    "peak_bytes": int(torch.cuda.max_memory_allocated()),
                }
                if system == "bangs":
                    profiles[f"{name}, {model}, {preset}, {precision}, {adopted} adopted"] = spent
                if system == "bangs" and model == "gcn":
                    products = sum(seconds for kernel, (_, seconds) in spent.items() if kernel == "_spmm")
                    facts["bandwidth"] = traffic(one) / products
                rows.append(case | facts)
    show(rows, args.json, unit=f"seconds an epoch of all seeds; medians of {args.repeats}")
    if not args.json:
        for title, spent in profiles.items():
            leading = sorted(spent.items(), key=lambda item: -item[1][1])[: args.kernels]
            lines = [
                {"microseconds": 1e6 * seconds, "calls": count, "kernel": kernel[:70]}
                for kernel, (count, seconds) in leading
            ]
            print(f"\n{title}, an epoch by kernel\n{table(lines)}")


@contextmanager
def our_kernels(*, on: bool) -> Iterator[None]:
    """Our kernels on or off, as BANGS_KERNELS says it to any command."""
    os.environ["BANGS_KERNELS"] = "1" if on else "0"
    kernels.ready.cache_clear()
    try:
        yield
    finally:
        del os.environ["BANGS_KERNELS"]
        kernels.ready.cache_clear()


@contextmanager
def without(part: str) -> Iterator[None]:
    """One of the parts switched off; other words switch nothing off."""
    with ExitStack() as patches:
        if part == "matmul":
            patches.enter_context(patch("bangs.kernels.matmul.supports", lambda x, weight: False))
        if part == "first_hop":
            patches.enter_context(patch("bangs.training.precomputed_hop.FirstHop.of", lambda prepared: None))
        yield


def session(learner: Learner, adopted: int) -> tuple[CapturedSession, float]:
    """A session whose epoch is captured, and the median seconds to open one of three rounds after the first."""
    with matmul_precision(learner.trainer.precision):
        opened(learner, labelled(learner.task, adopted, 0))
        rounds = [opened(learner, labelled(learner.task, adopted, number)) for number in (1, 2, 3)]
        one = rounds[-1][0]
        one.train(EPOCHS)
        one.begin(one.numbers, None)
    return one, median(seconds for _, seconds in rounds)


def opened(learner: Learner, labels: Labels) -> tuple[CapturedSession, float]:
    """A round's session after its first epoch, and the seconds it took."""
    torch.cuda.synchronize()
    start = perf_counter()
    one = learner._session(labels, None)
    assert isinstance(one, CapturedSession)
    one.begin(list(range(learner.task.runs)), None)
    one.train(1)
    torch.cuda.synchronize()
    return one, perf_counter() - start


def labelled(task: Task, adopted: int, number: int) -> Labels:
    """The given labels and those of nodes drawn by chance."""
    target = task.given.target.clone()
    for run, labels in enumerate(target):
        random = torch.Generator().manual_seed(100 * number + run)
        labels[torch.randperm(len(labels), generator=random)[:adopted].to(labels.device)] = 0
    return Labels(target, task.given.weight, task.given.adopted_round)


def replays(one: CapturedSession) -> Any:
    def act() -> None:
        for _ in range(EPOCHS):
            one.graph.replay()  # type: ignore[union-attr]

    return act


def spent_by_kernel(one: CapturedSession) -> dict[str, tuple[float, float]]:
    """Kernel -> how often an epoch calls it, and its seconds."""
    act = replays(one)
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        act()
        torch.cuda.synchronize()
    return {entry.key: (entry.count / EPOCHS, entry.device_time_total / EPOCHS / 1e6) for entry in seen.key_averages()}


def traffic(one: CapturedSession) -> float:
    """Bytes the sparse products of an epoch of the GCN read and write."""
    hidden, classes = (int(weight.shape[2]) for weight in one.network.weight)  # type: ignore[union-attr]
    looked = _bytes(one.val_nodes.subgraph, hidden, classes)
    taught = _bytes(one.train_nodes.subgraph, hidden, classes)
    return looked + 2 * taught  # the train_nodes's products are done once more for its gradient


def _bytes(subgraph: Subgraph, hidden: int, classes: int) -> float:
    widths = [classes] if isinstance(subgraph, PrecomputedHop) else [hidden, classes]
    products = [(subgraph.hops[min(hop, len(subgraph.hops) - 1)], width) for hop, width in enumerate(widths)]
    if not isinstance(subgraph.features.stored, torch.Tensor):
        products.append((subgraph.features.stored, hidden))
    return sum(4.0 * (len(matrix.values) * (width + 2) + matrix.shape[0] * width) for matrix, width in products)


if __name__ == "__main__":
    main()
