"""Re-runs: how far scores move where equal settings and seeds run again with sums in another order."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from bangs.experiments.results import Result, matching, results_in
from bangs.utils.text import escape_markdown, markdown_table, plain_name

FOLDER = "reruns"  # of second runs, beside the rows of the first
_ONE_SIDE = 1.96  # deviations that 2.5 % of a normal law exceed


@dataclass(frozen=True)
class Rerun:
    """A run and the same run again: settings and seeds are equal, the order of sums is not."""

    first: Result
    second: Result
    common: int  # seeds of both
    seeds: tuple[int, ...]  # those of them whose rounds differ

    @property
    def dataset(self) -> str:
        return plain_name(self.first.config["dataset"])

    @property
    def place(self) -> str:
        """The commit and the device of the second run."""
        it = self.second.environment
        return f"{str(it.get('commit'))[:10]}, {it.get('device')}"

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
        """Those where a seed moved."""
        return list(dict.fromkeys(rerun.dataset for rerun in self.reruns if rerun.seeds))

    def deviation(self, dataset: str, protocol: str) -> float:
        """Root mean square of what a seed's score moves by; where it is unknown, of the dataset that moves most."""
        if not self.datasets:
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
        common = [seed for seed in after if seed in before]
        moved = tuple(seed for seed in common if _rounds(after[seed]) != _rounds(before[seed]))
        if common:
            found.append(Rerun(first, second, len(common), moved))
    return Spread(tuple(found))


def _rounds(row: Mapping[str, Any]) -> tuple[Any, Any]:
    return row["validation"], row["test"]


_ABOUT = f"""\
Runs with equal settings and seeds differ where sums have another order, and training makes rounding grow
([Determinism](determinism.md#how-rounding-grows)). The rows in `results/{FOLDER}/` are runs done again at another
commit; the `README.md` there says what differs, in some files also the numbers that dropout drew. On the same card most
seeds come back bit by bit. Below is what the score of a seed that does not moves by, in points: the root mean square,
by rule."""
_JUDGED = """\
A difference of two methods over n seeds is called *not beyond re-runs* where it is within 1.96 · √(2/n) times the root
mean square of its graph, whatever its t-test says: the range of 95 % of re-runs of both, if every seed moves. Graphs
without re-runs are judged by the one that moves most. For ten seeds a difference must exceed:"""


def section(spread: Spread, protocols: Sequence[str], called: dict[str, str]) -> str:
    """The part of the page that tells what re-runs move."""
    places = dict.fromkeys((rerun.dataset, rerun.place) for rerun in spread.reruns)
    names = {dataset: escape_markdown(called.get(dataset, dataset)) for dataset, _ in places}
    moved = []
    for dataset, place in places:
        own = Spread(tuple(rerun for rerun in spread.reruns if (rerun.dataset, rerun.place) == (dataset, place)))
        counts = [len(own.reruns), sum(one.common for one in own.reruns), sum(len(one.seeds) for one in own.reruns)]
        sizes = [f"{own.deviation(dataset, rule):.2f}" if own.datasets else "–" for rule in protocols]
        moved.append([names[dataset], escape_markdown(place), *map(str, counts), *sizes])
    needed = [
        [names[dataset], *(f"{spread.range(dataset, rule, 10):.2f}" for rule in protocols)]
        for dataset in spread.datasets
    ]
    table = markdown_table(["", "done again at", "runs", "seeds", "that moved", *protocols], moved)
    parts = ["## Spread over re-runs", _ABOUT, table, _JUDGED, markdown_table(["", *protocols], needed)]
    return "\n\n".join(parts)
