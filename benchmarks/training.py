"""Seconds an epoch of the GCN: ours against the plain loop, one seed and ten at once.

python benchmarks/training.py [--json] [--datasets cora pubmed] [--epochs 20]
"""

import torch

from bangs.graphs import splits
from bangs.learners.presets import trainer
from bangs.learners.training import Learner
from bangs.rng import Streams
from bangs.types import Labels, Task
from measuring import graph, median_seconds, options, peak_bytes, show
from plain_training import PlainGCN, PlainTraining


def main() -> None:
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=["cora", "pubmed"])
    parser.add_argument("--presets", nargs="+", default=["paper", "tuned"])
    parser.add_argument("--epochs", type=int, default=20, help="epochs a timing")
    parser.add_argument("--runs", type=int, default=10)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    rows = []
    for name in asked.datasets:
        name, data = graph(name)
        for preset in asked.presets:
            for labelled in ("given", "half"):
                rows += _case(name, data, preset, labelled, asked)
    show(rows, asked.json, unit="seconds an epoch; ratio = plain, one seed after the other, over ours")


def _case(name, data, preset, labelled, asked):
    one = Task.of(data, splits.default(data, [0]), int(data.num_classes))
    labels = _labels(one, data, labelled)
    settings = trainer("gcn", preset, epochs=asked.epochs, patience=10**6)
    plain = _plain(data, settings)
    target, validation = labels.target[0], one.validation[0]

    def plainly():
        for _ in range(asked.epochs):
            plain.epoch(target, validation)

    slow = median_seconds(plainly, asked.repeats) / asked.epochs
    case = {"dataset": name, "preset": preset, "labels": labelled}
    rows = [{**case, "system": "plain", "runs": 1, "seconds": slow, "ratio": 1.0, "peak_bytes": peak_bytes()}]
    for runs in (1, asked.runs):
        task = Task.of(data, splits.default(data, [0] * runs), int(data.num_classes))
        learner = settings.prepare(task)
        lesson = _labels(task, data, labelled)
        fast = median_seconds(lambda: _fit(learner, lesson, runs), asked.repeats) / asked.epochs  # noqa: B023
        rows.append(
            {
                **case,
                "system": "bangs",
                "runs": runs,
                "seconds": fast,
                "ratio": slow * runs / fast,
                "peak_bytes": peak_bytes(),
            }
        )
    return rows


def _fit(learner: Learner, labels: Labels, runs: int) -> None:
    learner.fit(labels, Streams(tuple(range(runs))))


def _plain(data, settings) -> PlainTraining:
    model = settings.model
    torch.manual_seed(0)
    network = PlainGCN(data.x.shape[1], model.hidden, int(data.num_classes), model.dropout, model.input_dropout)
    return PlainTraining(data, network, settings.lr, settings.weight_decay)


def _labels(task: Task, data, labelled: str) -> Labels:
    """The given labels, or those and half of the free nodes, as late rounds have them."""
    if labelled == "given":
        return task.given
    free = ~task.given.known & ~task.held & (data.y >= 0)
    half = free & (torch.rand(task.nodes, generator=torch.Generator().manual_seed(0)) < 0.5)
    return task.given.adopt(half, data.y.clamp_min(0).expand_as(half), 1.0, 1)


if __name__ == "__main__":
    main()
