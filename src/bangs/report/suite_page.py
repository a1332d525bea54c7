"""Write the page of a suite: its tables with all seeds and tests, in one HTML file."""

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from bangs.experiments.evaluation_protocols import PROTOCOLS
from bangs.experiments.results import Result, machines
from bangs.experiments.suites.suite import TIMED, Suite
from bangs.experiments.tables.render import RULE_NAMES, missing
from bangs.experiments.tables.significance import LEVEL
from bangs.experiments.tables.table import Entry, Table, tabulate
from bangs.report.page import assemble
from bangs.utils.files import write_atomic


def write_suite_page(suites: Sequence[Suite], results: Sequence[Result], path: str | Path) -> Path:
    """Write the page of some suites from the results there are."""
    path = Path(path)
    write_atomic(path, assemble("suite.html", suite_facts(suites, results), ("charts.js", "suite.js")))
    return path


def suite_facts(suites: Sequence[Suite], results: Sequence[Result]) -> dict[str, Any]:
    """All facts of the page, as a JSON-able dict."""
    tables = [tabulate(suite, results) for suite in suites]
    runs = [result for result in results if result.rows]
    seeds = sum(len(result.rows) for result in runs)
    return {
        "name": suites[0].title if len(suites) == 1 else f"{len(suites)} suites",
        "headline": {"lead": f"{len(runs):,} experiments, {seeds:,} runs with their seeds.", "figures": []},
        "level": LEVEL,
        "protocols": PROTOCOLS,
        "suites": [_suite(table) for table in tables],
        "machines": machines(runs),
    }


def _suite(table: Table) -> dict[str, Any]:
    suite = table.suite
    return {
        "id": suite.name,
        "title": suite.title,
        "about": suite.about,
        "reading": suite.reading,
        "kind": suite.kind,
        "along": ", ".join(suite.names.get(axis, axis) for axis in suite.columns),
        "caption": table.caption,
        "columns": [suite.called(column) or "test accuracy" for column in table.columns],
        "lines": [
            {
                "row": suite.called(line.row),
                "rule": line.rule,
                "called": RULE_NAMES[line.rule],
                "entries": [_entry(line.entries.get(column), suite) for column in table.columns],
            }
            for line in table.lines
        ],
        "tests": {
            rule: [
                {
                    "place": suite.called(test.place),
                    "first": suite.called(test.first),
                    "second": suite.called(test.second),
                    "verdict": test.verdict,
                    **{key: getattr(test, key) for key in ("seeds", "difference", "p", "corrected")},
                    "low": test.low if math.isfinite(test.low) else None,  # one seed has no interval
                    "high": test.high if math.isfinite(test.high) else None,
                }
                for test in tests
            ]
            for rule, tests in table.comparisons.items()
            if tests
        },
        "curves": _curves(table),
        "missing": missing(table),
    }


def _entry(entry: Entry | None, suite: Suite) -> dict[str, Any] | None:
    if entry is None:
        return None
    timed = suite.kind in TIMED
    return {
        "mean": entry.mean,
        "std": None if timed else entry.std,
        "digits": 3 if timed and entry.mean < 0.1 else 2,
        "rank": entry.rank,
        "stars": entry.stars,
        "seeds": list(entry.seeds),
        "values": list(entry.values),
        "run": entry.run,
    }


def _curves(table: Table) -> list[dict[str, Any]]:
    """Mean accuracy over seeds after each round, for every cell; of validation nodes for a blind run."""
    curves = []
    for (row, column), result in table.results.items():
        kind = "validation" if result.blind else "test"
        accuracies = [row[kind] for row in result.rows.values()]
        means = [100 * fmean(of_seeds) for of_seeds in zip(*accuracies, strict=False)]
        names = {"row": table.suite.called(row), "column": table.suite.called(column)}
        curves.append({**names, "of": kind, "accuracy": [round(value, 3) for value in means]})
    return curves
