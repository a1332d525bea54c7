"""Re-runs: how far scores move where equal settings and seeds run again with sums in another order."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from bangs.experiments.results import Result, matching, results_in
from bangs.utils.text import plain_name

FOLDER = "reruns"  # of second runs, beside the rows of the first
_ONE_SIDE = 1.96  # deviations that 2.5 % of a normal law exceed


@dataclass(frozen=True)
class Rerun:
    """A run and the same run again: settings and seeds are equal, the order of sums is not."""

    first: Result
    second: Result
    seeds: tuple[int, ...]  # common ones whose rounds differ

    @property
    def dataset(self) -> str:
        return plain_name(self.first.config["dataset"])

    def moves(self, protocol: str) -> list[float]:
        """The second score less the first, in points, by seed."""
        before, after = self.first.scores(protocol), self.second.scores(protocol)
        return [after[seed] - before[seed] for seed in self.seeds]


@dataclass(frozen=True)
class Spread:
    """What scores move by between re-runs; differences within it are not shown."""

    reruns: tuple[Rerun, ...] = ()

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(rerun.dataset for rerun in self.reruns))

    def deviation(self, dataset: str, protocol: str) -> float:
        """Root mean square of what a seed's score moves by; where it is unknown, of the dataset that moves most."""
        if not self.reruns:
            return 0.0
        if dataset not in self.datasets:
            return max(self.deviation(known, protocol) for known in self.datasets)
        moves = [move for rerun in self.reruns if rerun.dataset == dataset for move in rerun.moves(protocol)]
        return math.sqrt(fmean(move**2 for move in moves))

    def range(self, dataset: str, protocol: str, seeds: int) -> float:
        """What a mean difference of two methods over so many seeds moves by at most, in 95 % of re-runs of both.

        Each mean moves by deviation / √seeds, and there are two of them.
        """
        return _ONE_SIDE * self.deviation(dataset, protocol) * math.sqrt(2 / seeds)


def spread_in(place: Path, results: Sequence[Result]) -> Spread:
    """The spread from the folder of second runs beside the rows; every file holds each run once."""
    files = sorted((place / FOLDER).glob("*.jsonl")) if place.is_dir() else []
    return spread_of((second for file in files for second in results_in(file)), results)


def spread_of(seconds: Iterable[Result], results: Sequence[Result]) -> Spread:
    """The spread between second runs and the first ones of the same settings; those without rounds do not count.

    A seed whose every round is the same in both had its sums in the same order, and says nothing.
    """
    found = []
    for second in seconds:
        first = matching(results, second.config)
        if first is None or not first.rows or not second.rows or len(first.rows[0]["validation"]) < 2:
            continue
        before, after = (dict(zip(one.seeds, one.rows, strict=True)) for one in (first, second))
        moved = [seed for seed in after if seed in before and _rounds(after[seed]) != _rounds(before[seed])]
        if moved:
            found.append(Rerun(first, second, tuple(moved)))
    return Spread(tuple(found))


def _rounds(row: object) -> tuple[object, object]:
    assert isinstance(row, dict)
    return row["validation"], row["test"]


_ABOUT = f"""\
Runs with equal settings and seeds differ where sums have another order: another commit's kernels, another number of
seeds in the batch. Training makes rounding grow ([Determinism](determinism.md#how-rounding-grows)). The rows in
`results/{FOLDER}/` are such second runs. What a score moves by, in points: the root mean square over seeds, the largest
mean of one run, and what a difference of two methods over ten seeds may move by in 95 % of re-runs (1.96 · √(2/10)
times the first). A difference within that range is called *not beyond re-runs*, whatever its t-test says. Graphs
without re-runs are judged by the graph that moves most."""


def section(spread: Spread, protocols: Sequence[str], called: dict[str, str]) -> str:
    """The part of the page that tells what re-runs move."""
    lines = []
    for dataset in spread.datasets:
        own = [rerun for rerun in spread.reruns if rerun.dataset == dataset]
        for rule in protocols:
            means = [abs(fmean(rerun.moves(rule))) for rerun in own]
            count = sum(len(rerun.seeds) for rerun in own)
            words = [called.get(dataset, dataset), f"'{rule}'", f"{len(own)}", f"{count}"]
            words += [
                f"{spread.deviation(dataset, rule):.2f}",
                f"{max(means):.2f}",
                f"{spread.range(dataset, rule, 10):.2f}",
            ]
            lines.append(f"| {' | '.join(words)} |")
    head = [
        *("", "rule", "runs", "seeds that moved", "one seed moves by", "largest mean of a run moves by"),
        "a difference over ten seeds must exceed",
    ]
    return "\n".join(
        [
            "## Spread over re-runs",
            "",
            _ABOUT,
            "",
            f"| {' | '.join(head)} |",
            f"| {' | '.join(['---'] * len(head))} |",
            *lines,
        ]
    )
