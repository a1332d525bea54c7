"""Lay out the results of a suite as a table, beside the published numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

from bangs.errors import UnknownName
from bangs.experiments.evaluation_protocols import PROTOCOLS
from bangs.experiments.results import Result, matching
from bangs.experiments.suites.suite import FIGURES, TIMED, Cell, Suite
from bangs.experiments.tables.reruns import Spread
from bangs.experiments.tables.significance import Comparison, holm, paired, stars
from bangs.runs.history_rows import STAGES
from bangs.utils.text import plain_name


@dataclass(frozen=True)
class Entry:
    """One number of the table."""

    mean: float
    std: float | None = None
    seeds: tuple[int, ...] = ()
    values: tuple[float, ...] = ()  # by seed; empty for a published number
    rank: int = 0  # 1 = best of the line, 2 = second, 0 = neither or not ranked
    stars: str = ""
    run: str = ""
    note: str = ""  # printed beside it

    @classmethod
    def of(cls, scores: Mapping[int, float], run: str) -> "Entry":
        """Mean and standard deviation of scores by seed."""
        values = tuple(scores.values())
        return cls(fmean(values), stdev(values) if len(values) > 1 else None, tuple(scores), values, run=run)


@dataclass(frozen=True)
class Line:
    """A line of the table: a row of the suite by one protocol, or its published numbers."""

    row: str
    rule: str  # a protocol, "seconds", "published"
    entries: Mapping[str, Entry]  # by column, in their order; a cell without a number is left out


@dataclass(frozen=True)
class Table:
    """Lines and columns, the significance tests, and the missing cells."""

    suite: Suite
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    comparisons: Mapping[str, tuple[Comparison, ...]]  # protocol -> tests of the focus against every other
    missing: tuple[tuple[str, str, str], ...]  # row, column, why
    results: Mapping[tuple[str, str], Result]  # (row, column) -> its result, if there is one

    @property
    def caption(self) -> str:
        """The unit of the numbers, and the protocol that chose the round."""
        seeds = sorted({len(result.rows) for result in self.results.values()})
        count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}" if seeds else "no"
        unit = _UNITS[self.suite.kind]
        rules = dict.fromkeys(line.rule for line in self.lines if line.rule in PROTOCOLS)
        sentences = [f"{self.suite.title}: {unit} over {count} seeds."]
        sentences += [f"'{rule}' is the {PROTOCOLS[rule]}." for rule in rules]
        if self.suite.published and self.suite.published_as:
            sentences.append(f"'published' is the {self.suite.published_as}.")
        if any(entry.rank for line in self.lines for entry in line.entries.values()):
            sentences.append("Best bold, second underlined.")
        if self.suite.focus and self.suite.kind == "table":
            sentences.append(
                f"Marks on {self.suite.called(self.suite.focus)}: one-sided t-test against the second best, "
                "* p < 0.10, ** p < 0.05."
            )
        return " ".join(sentences)


_UNITS = {
    **dict.fromkeys(("table", *FIGURES), "accuracy in %, mean ± standard deviation"),
    "time": "seconds of a run (those of the batch over its seeds)",
    "stages": "seconds of a round (those of the batch over its seeds)",
}


def tabulate(
    suite: Suite, results: Sequence[Result], protocols: Sequence[str] | None = None, spread: Spread | None = None
) -> Table:
    """The table of a suite from the results there are; `spread` lets re-runs overrule a significance test."""
    cells = list(suite.cells())
    by_cell = {(cell.row, cell.column): _result(suite, results, cell) for cell in cells}
    finished = {cell: result for cell, result in by_cell.items() if result is not None and result.rows}
    rules = tuple(protocols or suite.protocols)
    for rule in rules:
        if rule not in PROTOCOLS:
            raise UnknownName("protocol", rule, PROTOCOLS)
    if any(result.blind for result in finished.values()):
        rules = ("blind",)  # the only protocol without test labels
    columns = tuple(STAGES) if suite.kind == "stages" else tuple(dict.fromkeys(cell.column for cell in cells))
    rows = dict.fromkeys(cell.row for cell in cells)
    lines = [line for row in rows for line in _lines(suite, row, columns, finished, rules)]
    comparisons = {}
    if suite.focus and suite.kind not in TIMED:
        comparisons = {rule: _compare(suite, suite.focus, finished, rule, spread or Spread()) for rule in rules}
    missing = []
    for (row, column), result in by_cell.items():
        if (row, column) not in finished:
            missing.append((row, column, suite.absent.get(row) or ("not run" if result is None else result.error)))
    return Table(suite, columns, tuple(lines), comparisons, tuple(missing), finished)


_ENTRY_KEYS = ("mean", "std", "rank", "stars", "run", "seeds", "values")


def as_facts(table: Table) -> dict[str, Any]:
    """The table as a JSON-able dict; every number has its seeds and its run."""
    return {
        "suite": table.suite.name,
        "title": table.suite.title,
        "caption": table.caption,
        "columns": list(table.columns),
        "lines": [
            {
                "row": line.row,
                "rule": line.rule,
                "entries": {
                    column: {key: getattr(entry, key) for key in _ENTRY_KEYS} for column, entry in line.entries.items()
                },
            }
            for line in table.lines
        ],
        "comparisons": {
            rule: [{**vars(test), "verdict": test.verdict} for test in comparisons]
            for rule, comparisons in table.comparisons.items()
        },
        "missing": [{"row": row, "column": column, "why": why} for row, column, why in table.missing],
    }


def _result(suite: Suite, results: Sequence[Result], cell: Cell) -> Result | None:
    """The result of a cell; for times, preferably of a run with as many seeds as the suite asks for."""
    if suite.kind in TIMED:
        same_batch = [result for result in results if len(result.rows) == len(cell.setting("seeds"))]
        return matching(same_batch, cell.settings) or matching(results, cell.settings)
    return matching(results, cell.settings)


def _lines(
    suite: Suite, row: str, columns: Sequence[str], finished: Mapping[tuple[str, str], Result], rules: Sequence[str]
) -> list[Line]:
    """The lines of a row that have a number: one per protocol, or one of seconds, and the published one."""
    stages = suite.kind == "stages"  # the columns of one result
    keys = {column: (row, "" if stages else column) for column in columns}
    results = {column: finished[key] for column, key in keys.items() if key in finished}
    if suite.kind in TIMED:
        entries = {"seconds": {name: _seconds(suite, one, name if stages else None) for name, one in results.items()}}
    else:
        entries = {rule: {name: Entry.of(one.scores(rule), one.run) for name, one in results.items()} for rule in rules}
    entries["published"] = {}
    for stage, (column, key) in enumerate(keys.items()):
        if published := suite.published.get(key):
            numbers = published.numbers[stage : stage + 1] if stages else published.numbers  # mean, standard deviation
            entries["published"][column] = Entry(numbers[0], (*numbers, None)[1], stars=published.stars)
    return [Line(row, rule, _ranked(suite, line)) for rule, line in entries.items() if line]


def _ranked(suite: Suite, entries: Mapping[str, Entry]) -> Mapping[str, Entry]:
    """Rank the best and the second of a line, and mark the focus with stars if it is best; datasets are not ranked."""
    means = {column: round(entry.mean, 9) for column, entry in entries.items()}  # rounding must not break ties
    datasets = suite.axes["dataset"] if "dataset" in suite.columns else ()
    if suite.kind != "table" or len(datasets) > 1 or len(means) < 2:
        return entries
    best, second = sorted(means.values(), reverse=True)[:2]
    rival = next(entry for column, entry in entries.items() if means[column] == second)
    marked = {}
    for column, entry in entries.items():
        rank = 1 if means[column] == best else 2 if means[column] == second else 0
        wins = column == suite.focus and rank == 1 and entry.values and best > second
        marked[column] = replace(entry, rank=rank, stars=stars(entry.values, rival.values) if wins else entry.stars)
    return marked


def _seconds(suite: Suite, result: Result, stage: str | None) -> Entry:
    """The seconds per seed, in all or in a stage of a round; a note tells if the number of seeds is not the suite's."""
    assert result.seconds is not None  # a result with rows has them
    rounds = max(result.rounds, 1)
    seconds = result.seconds["total"] if stage is None else result.seconds[stage] / rounds
    count, suite_counts = len(result.rows), {len(cell.setting("seeds")) for cell in suite.cells()}
    note = "" if count in suite_counts else "one seed" if count == 1 else f"{count} seeds at once"
    return Entry(seconds / count, seeds=tuple(result.rows), run=result.run, note=note)


def _compare(
    suite: Suite, focus: str, finished: Mapping[tuple[str, str], Result], rule: str, spread: Spread
) -> tuple[Comparison, ...]:
    """Paired tests of the focus against every other line or column, with Holm's correction over all of them."""
    by_place: dict[str, dict[str, Result]] = {}
    for (row, column), result in finished.items():
        place, name = (column, row) if suite.kind in FIGURES else (row, column)  # in a figure, rows are compared
        by_place.setdefault(place, {})[name] = result
    tests = []
    for place, rivals in by_place.items():
        if focus not in rivals:
            continue
        graph, ours = plain_name(rivals[focus].config["dataset"]), rivals[focus].scores(rule)
        for name, rival in rivals.items():
            theirs = rival.scores(rule)
            common = [seed for seed in ours if seed in theirs]
            if name != focus and common:
                test = paired(place, focus, name, [ours[seed] for seed in common], [theirs[seed] for seed in common])
                rerun_range = 0.0 if rule == "blind" else spread.range(graph, rule, len(common))
                tests.append(replace(test, rerun=rerun_range))
    corrected = holm([test.p for test in tests])
    return tuple(replace(test, corrected=value) for test, value in zip(tests, corrected, strict=True))
