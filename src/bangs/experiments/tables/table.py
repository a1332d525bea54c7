"""Table: a suite's results laid out, ours beside the published ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

from bangs.errors import UnknownName
from bangs.experiments.results import Result, matching
from bangs.experiments.suites.suite import FIGURES, PROTOCOLS, Cell, Suite
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
    sources: tuple[Result, ...]

    @property
    def caption(self) -> str:
        """What the numbers are, and by which rule a round was chosen."""
        seeds = sorted({len(result.seeds) for result in self.sources if result.seeds})
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
    found = {(cell.row, cell.column): _found(suite, results, cell) for cell in cells}
    rules = usable_protocols(protocols or suite.protocols, found.values())
    rows = list(dict.fromkeys(cell.row for cell in cells))
    columns = tuple(STAGES) if suite.kind == "stages" else tuple(dict.fromkeys(cell.column for cell in cells))
    lines, comparisons = [], {}
    if suite.kind in ("time", "stages"):
        for row in rows:
            lines += _timed(suite, row, columns, found)
    else:
        for row in rows:
            mine = [_line(suite, row, columns, found, rule) for rule in rules]
            lines += [*mine, *_published(suite, row, columns)]
        if suite.focus is not None:
            comparisons = {rule: _compare(suite, found, rule, spread or Spread()) for rule in rules}
    present = [result for result in found.values() if result is not None and result.rows]
    return Table(
        suite,
        columns,
        tuple(line for line in lines if any(line.entries)),
        comparisons,
        tuple(_missing(suite, cells, found)),
        tuple(present),
    )


def usable_protocols(rules: Sequence[str], results: Iterable[Result | None]) -> tuple[str, ...]:
    """The rules that the results allow: where one of them is blind, only the rule that needs no test label."""
    for rule in rules:
        if rule not in PROTOCOLS:
            raise UnknownName("protocol", rule, PROTOCOLS)
    return ("blind",) if any(result is not None and result.blind for result in results) else tuple(rules)


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


Found = Mapping[tuple[str, str], Result | None]


def _found(suite: Suite, results: Sequence[Result], cell: Cell) -> Result | None:
    """The result of a cell; seconds are those of as many seeds at once as the suite asks for, where there are any."""
    if suite.kind in ("time", "stages"):
        alike = [result for result in results if len(result.seeds) == len(cell.setting("seeds"))]
        return matching(alike, cell.settings) or matching(results, cell.settings)
    return matching(results, cell.settings)


def _line(suite: Suite, row: str, columns: Sequence[str], found: Found, rule: str) -> Line:
    results = [found.get((row, column)) for column in columns]
    entries = [_entry(result, rule) if result is not None and result.rows else None for result in results]
    return Line(row, rule, _ranked(suite, columns, entries))


def _entry(result: Result, rule: str) -> Entry:
    scores = result.scores(rule)
    values = tuple(scores.values())
    return Entry(fmean(values), _std(values), tuple(scores), values, run=result.run)


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


def _published(suite: Suite, row: str, columns: Sequence[str]) -> list[Line]:
    entries = [_as_published(suite, row, column) for column in columns]
    return [Line(row, "published", _ranked(suite, columns, entries))] if any(entries) else []


def _as_published(suite: Suite, row: str, column: str) -> Entry | None:
    published = suite.published.get((row, column))
    if published is None:
        return None
    return Entry(
        published.numbers[0], published.numbers[1] if len(published.numbers) > 1 else None, stars=published.stars
    )


def _timed(suite: Suite, row: str, columns: Sequence[str], found: Found) -> list[Line]:
    if suite.kind == "stages":
        result, published = found.get((row, "")), suite.published.get((row, ""))
        mine = [_seconds(suite, result, stage) for stage in columns]
        theirs: list[Entry | None] = [
            None if published is None else Entry(published.numbers[n]) for n in range(len(columns))
        ]
    else:
        mine = [_seconds(suite, found.get((row, column))) for column in columns]
        theirs = [_as_published(suite, row, column) for column in columns]
    return [Line(row, "seconds", tuple(mine)), Line(row, "published", tuple(theirs))]


def _seconds(suite: Suite, result: Result | None, stage: str | None = None) -> Entry | None:
    """The seconds of a seed, in all or in a stage of a round; those of other seeds at once than the suite's say so."""
    if result is None or result.seconds is None:
        return None
    rounds = max(len(result.rows[0]["validation"]) - 1, 1)
    spent = result.seconds["total"] if stage is None else result.seconds[stage] / rounds
    count, usual = len(result.seeds), {len(cell.setting("seeds")) for cell in suite.cells()}
    note = "" if count in usual else "one seed" if count == 1 else f"{count} seeds at once"
    return Entry(spent / count, seeds=result.seeds, run=result.run, note=note)


def _compare(suite: Suite, found: Found, rule: str, spread: Spread) -> tuple[Comparison, ...]:
    """The focus against every other, seed by seed; Holm's correction over all of them together."""
    sweep = suite.kind in FIGURES  # there the lines compete, place by place
    scores: dict[str, dict[str, dict[int, float]]] = {}
    graphs: dict[str, str] = {}
    for (row, column), result in found.items():
        if result is not None and result.rows:
            place, who = (column, row) if sweep else (row, column)
            scores.setdefault(place, {})[who] = result.scores(rule)
            graphs[place] = plain_name(result.config["dataset"])
    tests = []
    for place, by_name in scores.items():
        ours = by_name.pop(suite.focus or "", None)
        for name, theirs in by_name.items():
            common = [] if ours is None else [seed for seed in ours if seed in theirs]
            if ours is not None and common:
                mine, others = [ours[seed] for seed in common], [theirs[seed] for seed in common]
                range = 0.0 if rule == "blind" else spread.range(graphs[place], rule, len(common))
                tests.append(replace(paired(place, suite.focus or "", name, mine, others), rerun=range))
    corrected = holm([test.p for test in tests])
    return tuple(replace(test, corrected=value) for test, value in zip(tests, corrected, strict=True))


def _missing(suite: Suite, cells: Sequence[Cell], found: Found) -> list[tuple[str, str, str]]:
    out = []
    for cell in cells:
        result = found[cell.row, cell.column]
        if result is None or not result.rows:
            why = suite.absent.get(cell.row) or (result.error if result is not None else "not run")
            out.append((cell.row, cell.column, why))
    return out


def _std(values: Sequence[float]) -> float | None:
    return stdev(values) if len(values) > 1 else None
