"""Table: a suite's results laid out, ours beside the published ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

from bangs.errors import UnknownName
from bangs.experiments.protocols import PROTOCOLS
from bangs.experiments.results import Result, matching
from bangs.experiments.suites.suite import FIGURES, TIMED, Cell, Suite
from bangs.experiments.tables.reruns import Spread
from bangs.experiments.tables.significance import Comparison, holm, paired, stars
from bangs.runs.history import STAGES
from bangs.utils.text import plain_name


@dataclass(frozen=True)
class Entry:
    """A number of the table."""

    mean: float
    std: float | None = None
    seeds: tuple[int, ...] = ()
    values: tuple[float, ...] = ()  # by seed; empty for a published number
    rank: int = 0  # 1 = best of the line, 2 = second, 0 = neither or not ranked
    stars: str = ""
    run: str = ""  # where it comes from
    note: str = ""  # what sets it apart from its neighbours

    @classmethod
    def of(cls, scores: Mapping[int, float], run: str) -> "Entry":
        """The mean and the spread of scores by seed."""
        values = tuple(scores.values())
        return cls(fmean(values), stdev(values) if len(values) > 1 else None, tuple(scores), values, run=run)


@dataclass(frozen=True)
class Line:
    """A line of the table: a row of the suite by one rule, or as published."""

    row: str
    rule: str  # a protocol, "seconds", "published"
    entries: tuple[Entry | None, ...]  # by column


@dataclass(frozen=True)
class Table:
    """Lines under columns, the tests behind them, and what is missing."""

    suite: Suite
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    comparisons: Mapping[str, tuple[Comparison, ...]]  # protocol -> tests of the focus against every other
    missing: tuple[tuple[str, str, str], ...]  # row, column, why
    found: Mapping[tuple[str, str], Result]  # (row, column) -> the result behind it, if there is one

    @property
    def caption(self) -> str:
        """What the numbers are, and by which rule a round was chosen."""
        seeds = sorted({len(result.seeds) for result in self.found.values()})
        count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}" if seeds else "no"
        unit = _UNITS[self.suite.kind]
        rules = dict.fromkeys(line.rule for line in self.lines if line.rule in PROTOCOLS)
        words = [f"{self.suite.title}: {unit} over {count} seeds."]
        words += [f"'{rule}' is the {PROTOCOLS[rule]}." for rule in rules]
        if self.suite.published and self.suite.published_as:
            words.append(f"'published' is the {self.suite.published_as}.")
        if any(entry and entry.rank for line in self.lines for entry in line.entries):
            words.append("Best bold, second underlined.")
        if self.suite.focus and self.suite.kind == "table":
            words.append(
                f"Marks on {self.suite.called(self.suite.focus)}: one-sided t-test against the second best, "
                "* p < 0.10, ** p < 0.05."
            )
        return " ".join(words)


_UNITS = {
    "table": "accuracy in %, mean ± standard deviation",
    "sweep": "accuracy in %, mean ± standard deviation",
    "rounds": "accuracy in %, mean ± standard deviation",
    "time": "seconds of a run (those of the batch over its seeds)",
    "stages": "seconds of a round (those of the batch over its seeds)",
}


def tabulate(
    suite: Suite, results: Sequence[Result], protocols: Sequence[str] | None = None, spread: Spread | None = None
) -> Table:
    """The table of a suite from whatever results there are; a spread over re-runs has a say in the verdicts."""
    cells = list(suite.cells())
    results_of = {(cell.row, cell.column): _result(suite, results, cell) for cell in cells}
    found = {place: result for place, result in results_of.items() if result is not None and result.rows}
    rules = tuple(protocols or suite.protocols)
    for rule in rules:
        if rule not in PROTOCOLS:
            raise UnknownName("protocol", rule, PROTOCOLS)
    if any(result.blind for result in found.values()):
        rules = ("blind",)  # the only rule that needs no test label
    columns = tuple(STAGES) if suite.kind == "stages" else tuple(dict.fromkeys(cell.column for cell in cells))
    rows = dict.fromkeys(cell.row for cell in cells)
    lines = [line for row in rows for line in _lines(suite, row, columns, found, rules)]
    comparisons = {}
    if suite.focus is not None and suite.kind not in TIMED:
        comparisons = {rule: _compare(suite, suite.focus, found, rule, spread or Spread()) for rule in rules}
    missing = []
    for (row, column), result in results_of.items():
        if (row, column) not in found:
            missing.append((row, column, suite.absent.get(row) or ("not run" if result is None else result.error)))
    return Table(suite, columns, tuple(lines), comparisons, tuple(missing), found)


_FACTS = ("mean", "std", "rank", "stars", "run", "seeds", "values")  # of an entry


def as_facts(table: Table) -> dict[str, Any]:
    """The table as JSON holds it, every number with its seeds and its run."""
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
                    column: {name: getattr(entry, name) for name in _FACTS}
                    for column, entry in zip(table.columns, line.entries, strict=True)
                    if entry is not None
                },
            }
            for line in table.lines
        ],
        "comparisons": {
            rule: [{**vars(one), "verdict": one.verdict} for one in own] for rule, own in table.comparisons.items()
        },
        "missing": [{"row": row, "column": column, "why": why} for row, column, why in table.missing],
    }


def _result(suite: Suite, results: Sequence[Result], cell: Cell) -> Result | None:
    """The result of a cell; seconds are those of as many seeds at once as the suite asks for, where there are any."""
    if suite.kind in TIMED:
        alike = [result for result in results if len(result.seeds) == len(cell.setting("seeds"))]
        return matching(alike, cell.settings) or matching(results, cell.settings)
    return matching(results, cell.settings)


def _lines(
    suite: Suite, row: str, columns: Sequence[str], found: Mapping[tuple[str, str], Result], rules: Sequence[str]
) -> list[Line]:
    """The lines of a row that hold a number: one by each rule, or one of seconds, and the published one."""
    stages = suite.kind == "stages"  # which are columns of one result
    places = [(row, "" if stages else column) for column in columns]
    results = [found.get(place) for place in places]
    entries: dict[str, list[Entry | None]] = {}
    if suite.kind in TIMED:
        entries["seconds"] = [
            None if result is None else _seconds(suite, result, column if stages else None)
            for result, column in zip(results, columns, strict=True)
        ]
    else:
        for rule in rules:
            entries[rule] = [
                None if result is None else Entry.of(result.scores(rule), result.run) for result in results
            ]
    entries["published"] = [_published(suite, place, stage) for stage, place in enumerate(places)]
    return [Line(row, rule, _ranked(suite, columns, own)) for rule, own in entries.items() if any(own)]


def _published(suite: Suite, place: tuple[str, str], stage: int) -> Entry | None:
    """The number of the source: mean and standard deviation, or that of a stage."""
    if (own := suite.published.get(place)) is None:
        return None
    if suite.kind == "stages":
        return Entry(own.numbers[stage])
    return Entry(own.numbers[0], own.numbers[1] if len(own.numbers) > 1 else None, stars=own.stars)


def _ranked(suite: Suite, columns: Sequence[str], entries: Sequence[Entry | None]) -> tuple[Entry | None, ...]:
    """Best and second of a table's line, and the paper's mark where the focus is the best; datasets do not compete."""
    means = [None if entry is None else round(entry.mean, 9) for entry in entries]  # equal in spite of rounding
    present = sorted((mean for mean in means if mean is not None), reverse=True)
    datasets = suite.axes["dataset"] if "dataset" in suite.columns else ()
    if suite.kind != "table" or len(datasets) > 1 or len(present) < 2:
        return tuple(entries)
    best, second = present[0], present[1]
    rivals = [entry for entry, mean in zip(entries, means, strict=True) if entry is not None and mean == second]
    marked = []
    for column, entry, mean in zip(columns, entries, means, strict=True):
        if entry is not None and mean in (best, second):
            entry = replace(entry, rank=1 if mean == best else 2)
            if column == suite.focus and entry.rank == 1 and entry.values and best > second:
                entry = replace(entry, stars=stars(entry.values, rivals[0].values))
        marked.append(entry)
    return tuple(marked)


def _seconds(suite: Suite, result: Result, stage: str | None) -> Entry:
    """The seconds of a seed, in all or in a stage of a round; those of other seeds at once than the suite's say so."""
    assert result.seconds is not None  # a result with rows has them
    rounds = max(len(result.rows[0]["validation"]) - 1, 1)
    spent = result.seconds["total"] if stage is None else result.seconds[stage] / rounds
    count, usual = len(result.seeds), {len(cell.setting("seeds")) for cell in suite.cells()}
    note = "" if count in usual else "one seed" if count == 1 else f"{count} seeds at once"
    return Entry(spent / count, seeds=result.seeds, run=result.run, note=note)


def _compare(
    suite: Suite, focus: str, found: Mapping[tuple[str, str], Result], rule: str, spread: Spread
) -> tuple[Comparison, ...]:
    """The focus against every other, seed by seed; Holm's correction over all of them together."""
    by_place: dict[str, dict[str, Result]] = {}
    for (row, column), result in found.items():
        place, who = (column, row) if suite.kind in FIGURES else (row, column)  # of a figure the lines compete
        by_place.setdefault(place, {})[who] = result
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
                moves = 0.0 if rule == "blind" else spread.range(graph, rule, len(common))
                tests.append(replace(test, rerun=moves))
    corrected = holm([test.p for test in tests])
    return tuple(replace(test, corrected=value) for test, value in zip(tests, corrected, strict=True))
