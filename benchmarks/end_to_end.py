"""A whole BANGS run on one graph: ours against the plain implementation doing the same epochs.

    python benchmarks/end_to_end.py [--dataset cora] [--preset paper] [--rounds 40] [--repeats 5] [--every 10]
        [--first 0] [--json]

The plain twin (`plain_training.py`, `plain_selection.py`) works as the paper's pseudo-code says, on the CPU, one seed
after the other: as many epochs a round as ours had, 500 coalitions valued one by one. It trains one epoch in ten, which
is timed times ten, and has no accuracy to show; with `--every 1` it trains them all. Every repetition has seeds of its
own, from `--first` on, ours and plain take turns, and medians over repetitions are shown.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.calibration.calibrators import ETS
from bangs.core.types import Prediction
from bangs.experiments.experiment import Experiment, exam_of
from bangs.selftraining.loop import State
from bangs.training.epoch_loop import CapturedSession, EagerSession, TrainingSession
from bangs.utils.devices import choose_device
from measuring import Times, graph, options, peak_bytes, resident, show
from plain_selection import PlainSelection
from plain_training import PlainGCN, PlainTraining

K, TAKE = 200, 100


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--runs", type=int, default=1, help="seeds at once; the plain twin runs the first of them")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--every", type=int, default=10, help="the plain twin trains one epoch in so many")
    parser.add_argument("--without-plain", action="store_true", help="time ours only")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    name, data = graph(args.dataset)
    ours, plain = Account("bangs", args.runs), Account("plain", 1)
    for repeat in range(args.repeats):
        seeds = tuple(args.first + repeat * args.runs + run for run in range(args.runs))
        experiment = Experiment(
            dataset=name, method="bangs", preset=args.preset, seeds=seeds, rounds=args.rounds, candidates=K, k=TAKE
        )
        epochs = _ours(experiment, data, args.device, ours)
        if not args.without_plain:
            _plainly(replace(experiment, seeds=seeds[:1]), data, epochs, args.every, plain)
        print(f"seeds {seeds}: {ours.last()}; {plain.last()}", file=sys.stderr)
    case = {"dataset": name, "preset": args.preset, "rounds": len(epochs) - 1}
    accounts = [ours] if args.without_plain else [ours, plain]
    show(
        [case | account.row(plain if plain.times.clock else None) for account in accounts],
        args.json,
        ours=f"on {choose_device(args.device)}, {args.runs} seed(s) at once",
        plain=f"on the CPU, one seed, one epoch in {args.every}; the ratio is that of seconds a seed",
        repetitions=args.repeats,
    )


@dataclass
class Account:
    """What one system needed, repetition by repetition."""

    system: str
    runs: int

    def __post_init__(self) -> None:
        self.times, self.accuracy, self.epochs = Times(), [], []
        self.peak = 0

    def last(self) -> str:
        """The last repetition, in a line."""
        times = self.times
        return (
            f"{self.system} {times.clock[-1]:.1f} s, of the processor {times.processor[-1]:.1f}" if times.clock else ""
        )

    def row(self, plain: "Account | None") -> dict[str, Any]:
        row: dict[str, Any] = {"system": self.system, "runs": self.runs, "seconds": self.times.seconds}
        row |= {"seconds_a_seed": self.times.seconds / self.runs, "cpu_seconds": self.times.cpu_seconds}
        if plain is not None:
            row["ratio"] = self.runs * plain.times.seconds / self.times.seconds
            row["cpu_ratio"] = self.runs * plain.times.cpu_seconds / self.times.cpu_seconds
        return row | {
            "epochs": sum(self.epochs) / len(self.epochs) if self.epochs else None,
            "accuracy": sum(self.accuracy) / len(self.accuracy) if self.accuracy else None,
            "peak_bytes": self.peak,
        }


def _ours(experiment: Experiment, data: Data, device: str, account: Account) -> list[int]:
    """The epochs of every round of the first run."""
    epochs: list[int] = []
    fits: list[int] = []

    def count(state: State, row: Any) -> None:
        epochs.append(fits[-1] if state.took_part[0] else 0)

    before = resident()
    begin, busy = time.perf_counter(), time.process_time()
    with _counted(fits):
        result = experiment.run(device=device, data=data, observers=[count])
    account.times.clock.append(time.perf_counter() - begin)
    account.times.processor.append(time.process_time() - busy)
    account.peak = max(account.peak, peak_bytes() - before)
    account.accuracy.append(result["validation"]["mean"])
    account.epochs.append(sum(epochs))
    return epochs


@contextmanager
def _counted(fits: list[int]) -> Iterator[None]:
    """Inside, every fit adds the epochs that its first run trained for, until it lost patience."""
    train_of = {kind: kind.train for kind in (EagerSession, CapturedSession)}

    def counting(session: TrainingSession, limit: int, **options: bool) -> None:
        train_of[type(session)](session, limit, **options)
        fits.append(min(session.epochs, int(session.last_progress[0]) + session.settings.patience + 1))

    try:
        for kind in train_of:
            kind.train = counting
        yield
    finally:
        for kind, train in train_of.items():
            kind.train = train


def _plainly(experiment: Experiment, data: Data, epochs: list[int], every: int, account: Account) -> None:
    before = resident()
    plain = Plain(experiment, data, every)
    for number, count in enumerate(epochs):
        plain.round(number, count)
    account.times.clock.append(plain.seconds)
    account.times.processor.append(plain.cpu_seconds)
    account.peak = max(account.peak, peak_bytes() - before)
    account.epochs.append(sum(epochs))
    if every == 1:
        account.accuracy.append(plain.accuracy)


class Plain:
    """The paper's pseudo-code, written plainly, for one run; the first model teaches."""

    def __init__(self, experiment: Experiment, data: Data, every: int):
        self.data, self.every = data, every
        self.task, self.exam = experiment.task(data), exam_of(experiment, data)
        self.settings = experiment.self_trainer().trainer
        self.target, self.validation = self.task.given.target[0].clone(), self.task.validation[0]
        self.teacher: Tensor | None = None
        self.best, self.accuracy = -1.0, 0.0
        self.seconds = self.cpu_seconds = 0.0

    def round(self, number: int, epochs: int) -> None:
        """Select, adopt and train as many epochs, or one in `every` of them, which count as all."""
        begin, busy = time.perf_counter(), time.process_time()
        if self.teacher is not None:
            self._adopt(self.teacher, number)
        torch.manual_seed(number)
        model = self.settings.model
        network = PlainGCN(self.data.x.shape[1], self.task.classes, model)
        training = PlainTraining(self.data, network, self.settings.lr, self.settings.weight_decay)
        self._count(begin, busy, 1.0)
        begin, busy = time.perf_counter(), time.process_time()
        timed = max(1, epochs // self.every) if epochs else 0
        for _ in range(timed):
            training.epoch(self.target, self.validation)
        self._count(begin, busy, epochs / max(timed, 1))
        logits = training.logits()
        self.teacher = logits if self.teacher is None else self.teacher
        if training.best > self.best:
            predicted = logits.argmax(-1)[None]
            marks = self.exam.mark_labels(predicted, torch.full_like(predicted, -1))
            self.best, self.accuracy = training.best, 100 * float(marks["test"][0])

    def _adopt(self, teacher: Tensor, number: int) -> None:
        calibrated = ETS()(Prediction(teacher[None]), self.task)
        taken = (self.target >= 0) | (self.validation >= 0)
        players = calibrated.confidence[0].masked_fill(taken, -1).topk(min(K, int((~taken).sum()))).indices
        k = min(TAKE, len(players))
        values = PlainSelection()(self.task.graph, calibrated.logits[0], self.target >= 0, players, k, seed=number)
        chosen = players[values.topk(k).indices]
        self.target[chosen] = calibrated.label[0, chosen]

    def _count(self, begin: float, busy: float, times: float) -> None:
        self.seconds += times * (time.perf_counter() - begin)
        self.cpu_seconds += times * (time.process_time() - busy)


if __name__ == "__main__":
    main()
