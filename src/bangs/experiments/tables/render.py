"""Render a table as Markdown, LaTeX, CSV or JSON."""

import json
from collections.abc import Callable, Iterator

from bangs.experiments.suites.suite import TIMED
from bangs.experiments.tables.table import Entry, Table, as_facts
from bangs.utils.csv_safe import to_csv
from bangs.utils.files import finite, json_value
from bangs.utils.text import escape_markdown, markdown_table

RULE_NAMES = {
    "validation": "ours, validation",
    "best_test": "ours, best test",
    "last": "ours, last round",
    "blind": "ours, validation nodes",
    "seconds": "ours",
    "published": "published",
}


def markdown(table: Table) -> str:
    """The table in Markdown, then the paired tests and the missing cells."""
    parts = [grid(table), *tests(table)]
    if table.missing:
        parts.append("Missing: " + "; ".join(map(escape_markdown, missing(table))) + ".")
    return "\n\n".join(parts) + "\n"


def grid(table: Table) -> str:
    """The numbers and the caption in Markdown."""
    header, body = _cells(table, escape_markdown, _marked, "–")
    return f"{markdown_table(header, body)}\n\n*{escape_markdown(table.caption)}*"


def tests(table: Table) -> list[str]:
    """The paired tests in Markdown, one table per protocol."""
    parts = []
    for title, rows in _test_tables(table):
        header, *body = ([escape_markdown(cell) for cell in row] for row in rows)
        parts.append(f"{title}:\n\n{markdown_table(header, body)}")
    return parts


def latex(table: Table) -> str:
    """A booktabs table with its caption, then one table of paired tests per protocol."""
    header, body = _cells(table, _tex, _tex_entry, "--")
    parts = [_booktabs(table.caption, "ll" + "c" * len(table.columns), header, body)]
    for title, rows in _test_tables(table):
        header, *body = ([_tex(cell) for cell in row] for row in rows)
        shape = "llrc" + "r" * (len(header) - 5) + "l"
        parts.append(_booktabs(f"{table.suite.title}: {title}.", shape, header, body))
    return "\n".join(parts)


def as_csv(table: Table) -> str:
    """One line per number, with its run."""
    header = ["suite", "row", "column", "rule", "mean", "std", "seeds", "run"]
    rows = []
    for line in table.lines:
        for column, entry in line.entries.items():
            std = "" if entry.std is None else f"{entry.std:.4f}"
            count, name = len(entry.seeds) or "", table.suite.name
            rows.append([name, line.row, column, line.rule, f"{entry.mean:.4f}", std, count, entry.run])
    return to_csv(header, rows)


def as_json(table: Table) -> str:
    """The table and its tests as JSON."""
    return json.dumps(finite(json_value(as_facts(table), "table")), indent=1, allow_nan=False) + "\n"


FORMATS: dict[str, Callable[[Table], str]] = {"markdown": markdown, "latex": latex, "csv": as_csv, "json": as_json}


def missing(table: Table) -> list[str]:
    """The missing cells with the reason; a row without any cell is one note."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for row, column, why in table.missing:
        by_reason.setdefault((row, why), []).append(column)
    missing_columns = {row: sum(1 for other, *_ in table.missing if other == row) for row, *_ in table.missing}
    notes = []
    for (row, why), columns in by_reason.items():
        whole_row = len(columns) == missing_columns[row] >= len(table.columns) or columns == [""]
        which = "" if whole_row else f" ({', '.join(map(table.suite.called, columns))})"
        notes.append(f"{table.suite.called(row)}{which}: {why}")
    return notes


def _cells(
    table: Table, escape: Callable[[str], str], show: Callable[[Entry, Table], str], missing: str
) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of the table; the name of a row stands in its first line only."""
    called = table.suite.called
    header = ["", "", *(escape(called(column)) or "test accuracy" for column in table.columns)]
    body: list[list[str]] = []
    for previous, line in zip((None, *table.lines), table.lines, strict=False):
        name = "" if previous and previous.row == line.row else escape(called(line.row))
        cells = [show(line.entries[column], table) if column in line.entries else missing for column in table.columns]
        body.append([name, escape(RULE_NAMES[line.rule]), *cells])
    return header, body


def _number(entry: Entry, table: Table) -> str:
    if table.suite.kind in TIMED:
        text = f"{entry.mean:.2f}" if entry.mean >= 0.1 else f"{entry.mean:.3f}"
        return f"{text} ({entry.note})" if entry.note else text
    return f"{entry.mean:.2f}" + ("" if entry.std is None else f" ± {entry.std:.2f}")


def _marked(entry: Entry, table: Table) -> str:
    text = _number(entry, table)
    text = f"**{text}**" if entry.rank == 1 else f"<u>{text}</u>" if entry.rank == 2 else text
    return text + entry.stars.replace("*", r"\*")


_TEX = str.maketrans(
    {
        **{sign: "\\" + sign for sign in "&%_#${}"},
        **{sign: f"${sign}$" for sign in "<>|"},
        "±": r"$\pm$",
        "·": r"$\cdot$",
        "…": r"\ldots{}",
        "−": "$-$",
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)


def _tex_entry(entry: Entry, table: Table) -> str:
    text = _number(entry, table).replace("±", r"$\pm$")
    text = rf"\textbf{{{text}}}" if entry.rank == 1 else rf"\underline{{{text}}}" if entry.rank == 2 else text
    return text + (f"$^{{{entry.stars}}}$" if entry.stars else "")


def _tex(text: str) -> str:
    return text.translate(_TEX)


def _booktabs(caption: str, shape: str, header: list[str], body: list[list[str]]) -> str:
    """A booktabs table of LaTeX cells; a rule stands above every line that begins with a name."""
    lines = [
        *(r"\begin{table}", r"\centering", rf"\caption{{{_tex(caption)}}}", rf"\begin{{tabular}}{{{shape}}}"),
        *(r"\toprule", " & ".join(header) + r" \\"),
    ]
    above = ""
    for number, row in enumerate(body):
        if number == 0 or row[0] not in ("", above):
            lines.append(r"\midrule")
            above = row[0]
        lines.append(" & ".join(row) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def _test_tables(table: Table) -> Iterator[tuple[str, list[list[str]]]]:
    """For each protocol a title and the rows of a table of its tests, header first."""
    called = table.suite.called
    for rule, tests in table.comparisons.items():
        if not tests:
            continue
        has_reruns = any(test.rerun for test in tests)
        header = ["", f"{called(tests[0].first)} less …", "difference", "95 % interval", "p", "p (Holm)"]
        rows = [[*header, *(["re-runs ±"] if has_reruns else []), "verdict"]]
        for test in tests:
            means = [f"{test.difference:+.2f}", f"{test.low:+.2f} … {test.high:+.2f}", _p(test.p), _p(test.corrected)]
            spread = [f"{test.rerun:.2f}"] if has_reruns else []
            rows.append([called(test.place), called(test.second), *means, *spread, test.verdict])
        yield f"Paired t-tests over common seeds, '{rule}', Holm's correction over the {len(tests)} of them", rows


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
