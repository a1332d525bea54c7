"""Write all tables and figures into one Markdown page (docs/reproduction.md)."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from bangs.experiments.evaluation_protocols import PROTOCOLS
from bangs.experiments.results import Result, machines
from bangs.experiments.suites.suite import FIGURES, Suite
from bangs.experiments.tables.figure import draw
from bangs.experiments.tables.render import grid, missing, tests
from bangs.experiments.tables.reruns import Spread, section
from bangs.experiments.tables.significance import LEVEL, Comparison
from bangs.experiments.tables.table import Entry, Table, tabulate
from bangs.utils.files import check_replaceable, make_folder, write_atomic
from bangs.utils.text import escape_markdown, markdown_table

PAPER_ORDER = (  # all other suites follow by name
    *("table-main", "table-early-stopped", "table-ablation", "table-models", "table-time", "table-stages"),
    *("figure-k", "figure-candidates", "figure-noise", "figure-share", "figure-calibration"),
    *("table-beyond-public", "figure-soft", "table-beyond"),
)

PAGE_START = (
    "# Reproduction\n\n"
    "Every table and figure of the paper that was run here, ours beside theirs. This page is made from the rows "
)


def write_page(
    suites: Iterable[Suite], results: Sequence[Result], path: Path, command: str, spread: Spread | None = None
) -> list[Path]:
    """Write the page, and its figures into `figures/` beside it; returns the paths of all files."""
    check_replaceable(path, PAGE_START.encode(), "table --page")
    position = {name: index for index, name in enumerate(PAPER_ORDER)}
    in_order = sorted(suites, key=lambda suite: (position.get(suite.name, len(PAPER_ORDER)), suite.name))
    tables = [tabulate(suite, results, spread=spread) for suite in in_order]
    written = [path]
    for table in tables:
        if table.suite.kind in FIGURES and _was_run(table):
            written += draw(table, path.parent / "figures", ("svg",))
    make_folder(path.parent)
    write_atomic(path, page(tables, results, command, spread))
    return written


def page(tables: Sequence[Table], results: Sequence[Result], command: str, spread: Spread | None = None) -> str:
    """The text of the page: how it was made, then every table and figure with its tests."""
    not_run = [table.suite for table in tables if not _was_run(table)]
    used = {line.rule for table in tables for line in table.lines} | {"validation", "best_test", "last"}
    rules = "; ".join(f"*{name}* is the {words}" for name, words in PROTOCOLS.items() if name in used)
    head = ["device", "torch", "Python", "commit", "rows"]
    sources = [[*map(escape_markdown, row[:-1]), row[-1]] for row in machines(results)]
    parts = [
        f"{PAGE_START}in `results/` by one command and is not edited by hand:\n\n    {command}",
        "Every number is a mean over seeds with the sample standard deviation. Which round of a run counts is named "
        f"each time: {rules}.",
        "A difference is called better or worse where a paired t-test over the common seeds, two-sided, stays below "
        f"{LEVEL} after Holm's correction over all tests of the same table by the same rule; everything else is noise "
        "as far as these runs can tell.",
        f"What the rows come from:\n\n{markdown_table(head, sources)}" if sources else "There are no rows yet.",
        *([_reruns(spread, tables)] if spread is not None and spread.reruns else []),
        *(_section(table) for table in tables if _was_run(table)),
    ]
    if not_run:
        lines = [f"- {escape_markdown(suite.title)}: `bangs reproduce {suite.name}`" for suite in not_run]
        parts += ["## Not run here", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _reruns(spread: Spread, tables: Sequence[Table]) -> str:
    """How far scores move between re-runs, and how many verdicts that overrules."""
    names = {key: name for table in tables for key, name in table.suite.names.items() if key in spread.datasets}
    tests = [test for table in tables for comparisons in table.comparisons.values() for test in comparisons]
    significant = sum(test.verdict in ("better", "worse") for test in tests)
    overruled = sum(test.verdict == "not beyond re-runs" for test in tests)
    counts = (
        f"Of the {len(tests)} tests on this page {significant} show a difference; "
        f"{overruled} more pass their t-test and are not beyond re-runs."
    )
    return f"{section(spread, ('validation', 'best_test', 'last'), names)}\n\n{counts}"


def _was_run(table: Table) -> bool:
    """Whether there is something to show; a figure needs two points or curves, as one may belong to another suite."""
    if table.suite.kind == "rounds":
        return len(table.results) > 1
    if table.suite.kind == "sweep":
        return any(len(line.entries) > 1 for line in table.lines)
    return bool(table.results)


def _section(table: Table) -> str:
    suite = table.suite
    parts = [f"## {escape_markdown(suite.title)}", suite.about]
    if suite.kind in FIGURES:
        parts.append(f"![{escape_markdown(suite.title)}](figures/{suite.name}.svg)")
        parts.append(f"The numbers: [figures/{suite.name}.csv](figures/{suite.name}.csv).")
    parts.append(grid(table))
    readings = [*map(escape_markdown, _readings(table)), *([suite.reading] if suite.reading else [])]
    if readings:
        parts.append("**Reading.** " + " ".join(readings))
    if notes := missing(table):
        parts.append(_absent(table, notes))
    parts.append(f"Run it: `bangs reproduce {suite.name}`")
    if test_tables := tests(table):
        parts.append(_folded("The tests", "\n\n".join(test_tables)))
    parts.append(_folded("The runs, by column", _runs(table)))
    return "\n\n".join(part for part in parts if part)


def _readings(table: Table) -> list[str]:
    """Sentences about the tests and the published numbers."""
    readings = [_verdicts(table, rule, comparisons) for rule, comparisons in table.comparisons.items() if comparisons]
    if table.suite.kind == "time":
        ratios = [published.mean / ours.mean for _, ours, published in _ours_and_published(table, "seconds")]
        return [f"The published times are {min(ratios):.0f} to {max(ratios):.0f} times ours."] if ratios else []
    gaps = [(ours.mean - published.mean, name) for name, ours, published in _ours_and_published(table, "best_test")]
    if gaps and "best test" in table.suite.published_as:
        low, high = min(gaps), max(gaps)
        mean = sum(gap for gap, _ in gaps) / len(gaps)
        reading = f"By the paper's own rule (best test) ours differ from the published numbers by {mean:+.2f} points"
        if len(gaps) > 1:
            reading += f" in the mean of {len(gaps)} cells, from {low[0]:+.2f} ({low[1]}) to {high[0]:+.2f} ({high[1]})"
        readings.append(reading + ".")
    return readings


def _ours_and_published(table: Table, rule: str) -> list[tuple[str, Entry, Entry]]:
    """Name, our entry and the published entry of every cell that has both."""
    published = {line.row: line.entries for line in table.lines if line.rule == "published"}
    called = table.suite.called
    dataset_first = table.suite.columns == ("dataset",)
    return [
        (
            " on ".join((called(column), called(line.row))[:: -1 if dataset_first else 1]),
            ours,
            published[line.row][column],
        )
        for line in table.lines
        if line.rule == rule and line.row in published
        for column, ours in line.entries.items()
        if column in published[line.row]
    ]


def _verdicts(table: Table, rule: str, comparisons: Sequence[Comparison]) -> str:
    called = table.suite.called
    groups: dict[str, list[str]] = {"better": [], "worse": []}
    for test in comparisons:
        if test.verdict in groups:
            preposition = "at" if table.suite.kind == "sweep" else "on"
            where = f" {preposition} {called(test.place)}" if test.place else ""
            groups[test.verdict].append(f"{called(test.second)}{where} ({test.difference:+.2f})")
    noise = len(comparisons) - sum(map(len, groups.values()))
    verdicts = [f"{verdict} than {', '.join(names)}" for verdict, names in groups.items() if names]
    remainder = f"no difference is shown in {noise} of {len(comparisons)} comparisons."
    if not verdicts:
        return f"By '{rule}', of {called(comparisons[0].first)}, {remainder}"
    return f"By '{rule}' {called(comparisons[0].first)} is {'; '.join(verdicts)}; {remainder}"


def _absent(table: Table, notes: Sequence[str]) -> str:
    shown = {line.row for line in table.lines if line.rule != "published"}
    rows = [row for row in dict.fromkeys(row for row, *_ in table.missing) if row not in shown]
    command = ""
    if rows and table.suite.rows == ("dataset",):
        command = f" Run with the data: `bangs reproduce {table.suite.name} --datasets {','.join(rows)}`."
    return "Missing: " + "; ".join(map(escape_markdown, notes)) + "." + command


def _runs(table: Table) -> str:
    """The runs of each row."""
    rows: dict[str, str] = {}
    for line in table.lines:
        runs = dict.fromkeys(entry.run for entry in line.entries.values() if entry.run)
        if runs:
            rows.setdefault(line.row, ", ".join(f"`{run}`" for run in runs))
    return "\n".join(f"- {table.suite.called(row) or 'all'}: {runs}" for row, runs in rows.items())


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"
