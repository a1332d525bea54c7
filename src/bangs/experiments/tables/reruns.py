"""Re-runs: how far scores move if the same settings and seeds run again with another summation order."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from bangs.experiments.results import Result, matching, results_in
from bangs.utils.text import escape_markdown, markdown_table, plain_name

FOLDER = "reruns"  # of second runs, beside the rows of the first
_NORMAL_QUANTILE = 1.96  # 97.5 % quantile of the standard normal distribution


@dataclass(frozen=True)
class Rerun:
    """A run and its repetition with the same settings and seeds, but another summation order."""

    first: Result
    second: Result
    common: int  # seeds of both
    seeds: tuple[int, ...]  # those of them whose rounds differ

    @property
    def dataset(self) -> str:
        return plain_name(self.first.config["dataset"])

    @property
    def machine(self) -> str:
        """The commit and the device of the second run."""
        environment = self.second.environment
        return f"{str(environment.get('commit'))[:10]}, {environment.get('device')}"


@dataclass(frozen=True)
class Spread:
    """How far scores move between re-runs."""

    reruns: tuple[Rerun, ...] = ()

    @property
    def datasets(self) -> list[str]:
        """The datasets where the score of a seed moved."""
        return list(dict.fromkeys(rerun.dataset for rerun in self.reruns if rerun.seeds))

    def deviation(self, dataset: str, protocol: str) -> float:
        """Root mean square of the moves of a seed's score; for an unknown dataset, the largest of all datasets."""
        if not self.datasets:
            return 0.0
        if dataset not in self.datasets:
            return max(self.deviation(known, protocol) for known in self.datasets)
        reruns = [rerun for rerun in self.reruns if rerun.dataset == dataset]
        scores = [(rerun.first.scores(protocol), rerun.second.scores(protocol), rerun.seeds) for rerun in reruns]
        moves = [second[seed] - first[seed] for first, second, seeds in scores for seed in seeds]
        return math.sqrt(fmean(move**2 for move in moves))

    def range(self, dataset: str, protocol: str, seeds: int) -> float:
        """The largest move of a mean difference of two methods over so many seeds, in 95 % of re-runs of both.

        Each mean moves by deviation / √seeds, and there are two of them.
        """
        return _NORMAL_QUANTILE * self.deviation(dataset, protocol) * math.sqrt(2 / seeds)


def spread_in(path: Path, results: Sequence[Result]) -> Spread:
    """The spread between the rows and the second runs in the folder `reruns` beside them."""
    files = sorted((path / FOLDER).glob("*.jsonl")) if path.is_dir() else []
    return spread_of((second for file in files for second in results_in(file)), results)


def spread_of(second_runs: Iterable[Result], results: Sequence[Result]) -> Spread:
    """The spread between second runs and first runs with the same settings; runs without rounds do not count.

    A seed with equal rounds in both runs had the same summation order and does not count either.
    """
    reruns = []
    for second in second_runs:
        first = matching(results, second.config)
        if first is None or not first.rows or not second.rows or first.rounds == 0:
            continue
        common = [seed for seed in second.rows if seed in first.rows]
        moved = tuple(
            seed
            for seed in common
            if any(first.rows[seed][key] != second.rows[seed][key] for key in ("validation", "test"))
        )
        if common:
            reruns.append(Rerun(first, second, len(common), moved))
    return Spread(tuple(reruns))


_ABOUT = f"""\
Runs with equal settings and seeds differ where sums have another order, and training makes rounding grow
([Determinism](determinism.md#how-rounding-grows)). The rows in `results/{FOLDER}/` are runs done again at another
commit; the `README.md` there says what differs, in some files also the numbers that dropout drew. On the same card most
seeds come back bit by bit. Below is what the score of a seed that does not moves by, in points: the root mean square,
by rule."""
_ABOUT_VERDICTS = """\
A difference of two methods over n seeds is called *not beyond re-runs* where it is within 1.96 · √(2/n) times the root
mean square of its graph, whatever its t-test says: the range of 95 % of re-runs of both, if every seed moves. Graphs
without re-runs are judged by the one that moves most. For ten seeds a difference must exceed:"""


def section(spread: Spread, protocols: Sequence[str], display_names: dict[str, str]) -> str:
    """The section of the page about re-runs."""
    groups = dict.fromkeys((rerun.dataset, rerun.machine) for rerun in spread.reruns)
    names = {dataset: escape_markdown(display_names.get(dataset, dataset)) for dataset, _ in groups}
    rows = []
    for dataset, machine in groups:
        reruns = [rerun for rerun in spread.reruns if (rerun.dataset, rerun.machine) == (dataset, machine)]
        group = Spread(tuple(reruns))
        counts = [len(reruns), sum(rerun.common for rerun in reruns), sum(len(rerun.seeds) for rerun in reruns)]
        deviations = [f"{group.deviation(dataset, rule):.2f}" if group.datasets else "–" for rule in protocols]
        rows.append([names[dataset], escape_markdown(machine), *map(str, counts), *deviations])
    thresholds = [
        [names[dataset], *(f"{spread.range(dataset, rule, 10):.2f}" for rule in protocols)]
        for dataset in spread.datasets
    ]
    table = markdown_table(["", "done again at", "runs", "seeds", "that moved", *protocols], rows)
    parts = ["## Spread over re-runs", _ABOUT, table, _ABOUT_VERDICTS, markdown_table(["", *protocols], thresholds)]
    return "\n\n".join(parts)
