"""Seconds an epoch of the GCN: ours against the plain loop, one seed and ten at once.

    python benchmarks/training.py [--json] [--datasets cora pubmed] [--presets paper tuned] [--labels given half soft]

An epoch is one step of Adam and one look at the validation nodes. `given` has the labels that came with the graph,
`half` those and half of the free nodes, as late rounds have them, `soft` a distribution for every free node. All take
turns in one process with as many threads; the ratio is the time of the plain loop, one seed after the other, over ours.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.core.types import Labels, Task
from bangs.graphs import splits
from bangs.training.presets import trainer
from bangs.training.trainer import Trainer
from measuring import Times, graph, in_turns, options, peak_of, show
from plain_training import PlainGCN, PlainTraining


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--datasets", nargs="+", default=["cora", "pubmed"])
    parser.add_argument("--presets", nargs="+", default=["paper", "tuned"])
    parser.add_argument("--labels", nargs="+", choices=["given", "half", "soft"], default=["given", "half", "soft"])
    parser.add_argument("--epochs", type=int, default=10, help="epochs a turn")
    parser.add_argument("--runs", type=int, default=10, help="seeds at once")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rows = []
    for wanted in args.datasets:
        name, data = graph(wanted)
        for preset in args.presets:
            for labels in args.labels:
                case = {"dataset": name, "preset": preset, "labels": labels}
                settings = trainer("gcn", preset, epochs=args.epochs, patience=10**6)
                rows += [case | row for row in measure(data, settings, labels, args.runs, args.repeats)]
    show(rows, args.json, unit=f"seconds an epoch; medians of {args.repeats}")


def measure(data: Data, settings: Trainer, labels: str, runs: int, repeats: int) -> list[dict[str, Any]]:
    """One row for the plain loop, one for ours with one seed, and one for ours with many at once."""
    acts = {
        "plain": _plain(data, settings, labels),
        "bangs": _ours(data, settings, labels, 1),
        f"bangs, {runs} seeds at once": _ours(data, settings, labels, runs),
    }
    peaks = {name: peak_of(act) for name, act in acts.items()}
    times = in_turns(acts, repeats, scales=dict.fromkeys(acts, 1 / settings.epochs))
    rows = []
    for (name, time), count in zip(times.items(), (1, 1, runs), strict=True):
        plain = times["plain"]
        one_by_one = Times(1.0, [count * t for t in plain.clock], [count * t for t in plain.processor])
        row = {"system": name, "runs": count, **time.against(one_by_one), "peak_bytes": peaks[name]}
        rows.append(row | {"cpu_seconds_a_seed": time.cpu_seconds / count})
    return rows


def _ours(data: Data, settings: Trainer, labels: str, runs: int) -> Callable[[], Any]:
    task = Task.of(data, splits.default(data, [0] * runs), data.get("num_classes"))
    learner, train_nodes = settings.prepare(task), labelled(task, data, labels)
    return lambda: learner.fit(train_nodes, Streams(tuple(range(runs))))


def _plain(data: Data, settings: Trainer, labels: str) -> Callable[[], Any]:
    task = Task.of(data, splits.default(data, [0]), data.get("num_classes"))
    taught = labelled(task, data, labels)
    target, validation = taught.target[0], task.validation[0]
    belief = None if taught.belief is None else taught.belief[0]
    model = settings.model
    torch.manual_seed(0)
    network = PlainGCN(data.x.shape[1], task.classes, model)
    training = PlainTraining(data, network, settings.lr, settings.weight_decay)

    def epochs() -> None:
        for _ in range(settings.epochs):
            training.epoch(target, validation, belief)

    return epochs


def labelled(task: Task, data: Data, labels: str) -> Labels:
    """The given labels, those and half of the free nodes, as late rounds have them, or those and soft ones for all."""
    if labels == "given":
        return task.given
    free = ~task.given.known & ~task.held & (data.y >= 0)
    if labels == "soft":
        drawn = torch.randn(task.nodes, task.classes, generator=torch.Generator().manual_seed(0)).softmax(-1)
        return task.given.adopt(free, drawn.expand(task.runs, -1, -1), 1.0, 1)
    half = free & (torch.rand(task.nodes, generator=torch.Generator().manual_seed(0)) < 0.5)
    return task.given.adopt(half, data.y.clamp_min(0).expand_as(half), 1.0, 1)


if __name__ == "__main__":
    main()
