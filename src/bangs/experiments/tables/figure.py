"""Draw a sweep, or the rounds of runs, as curves with error bands, and write their numbers."""

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bangs.errors import InvalidInput
from bangs.experiments.evaluation_protocols import PROTOCOLS
from bangs.experiments.suites.suite import FIGURES, Suite
from bangs.experiments.tables.table import Entry, Table
from bangs.utils.csv_safe import to_csv
from bangs.utils.files import check_replaceable, make_folder, write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito: distinguishable with colour blindness
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
HEADER = ("suite", "rule", "line", "x", "mean", "std", "seeds", "run")


@dataclass(frozen=True)
class Panel:
    """Curves that share one pair of axes."""

    title: str
    rule: str
    curves: Mapping[str, list[tuple[float, Entry]]]  # line -> x and the number there, by x


def panels(table: Table) -> list[Panel]:
    """The panels of a figure: one per protocol of a sweep, or one for the rounds."""
    suite = table.suite
    if suite.kind not in FIGURES:
        raise InvalidInput(f"the suite {suite.name} is a {suite.kind}, not a figure; use bangs table")
    if not table.results:
        raise InvalidInput(f"there are no results of the suite {suite.name} yet; run: bangs reproduce {suite.name}")
    if suite.kind == "rounds":
        kind = "validation" if any(result.blind for result in table.results.values()) else "test"
        curves: dict[str, list[tuple[float, Entry]]] = {
            row: [
                (n, Entry.of({seed: 100 * accuracies[kind][n] for seed, accuracies in result.rows.items()}, result.run))
                for n in range(result.rounds + 1)
            ]
            for (row, _), result in table.results.items()
        }
        return [Panel(f"{kind} accuracy after each round", "round", curves)]
    x = {cell.column: float(cell.coordinates[suite.columns[0]]) for cell in suite.cells()}
    curves_by_rule: dict[str, dict[str, list[tuple[float, Entry]]]] = {}
    for line in table.lines:
        if line.rule in PROTOCOLS:
            points = [(x[column], entry) for column, entry in line.entries.items()]
            curves_by_rule.setdefault(line.rule, {})[line.row] = sorted(points, key=lambda point: point[0])
    return [Panel(PROTOCOLS[rule], rule, curves) for rule, curves in curves_by_rule.items()]


def as_csv(suite: Suite, panels: Sequence[Panel]) -> str:
    """The numbers of a figure, one line per point."""
    rows = (
        [suite.name, panel.rule, line, f"{x:g}", f"{y.mean:.4f}", f"{y.std or 0.0:.4f}", len(y.seeds), y.run]
        for panel in panels
        for line, points in panel.curves.items()
        for x, y in points
    )
    return to_csv(HEADER, rows)


def draw(table: Table, folder: Path, forms: Sequence[str] = ("svg", "png")) -> list[Path]:
    """Write NAME.csv and a picture in each of the `forms` into the folder; returns their paths."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    suite, figure_panels = table.suite, panels(table)
    written = [folder / f"{suite.name}.csv"]
    _check_replaceable(written[0], forms)
    make_folder(folder)
    write_atomic(written[0], as_csv(suite, figure_panels))
    # with a fixed salt and no date, the same numbers give the same file
    style: Any = {"svg.hashsalt": suite.name, "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with mpl.rc_context(style):
        figure = Figure(figsize=(4.6 * len(figure_panels), 3.4), layout="constrained")
        axes = figure.subplots(1, len(figure_panels), sharey=True, squeeze=False)[0]
        for ax, panel in zip(axes, figure_panels, strict=True):
            _draw_panel(ax, suite, panel)
        axes[0].set_ylabel("accuracy (%)")
        axes[-1].legend(frameon=False)
        figure.suptitle(_escape_dollars(suite.title))
        for form in forms:
            body = io.BytesIO()
            metadata = {"Date": None} if form == "svg" else {"Software": None}
            figure.savefig(body, format=form, dpi=160, metadata=metadata)
            written.append(folder / f"{suite.name}.{form}")
            write_atomic(written[-1], body.getvalue())
    return written


def _check_replaceable(numbers: Path, forms: Sequence[str]) -> None:
    """Raise if a file that bangs did not write would be replaced; a picture is ours if our CSV is beside it."""
    check_replaceable(numbers, to_csv(HEADER, ()).encode(), "figure")
    if not numbers.exists():
        for picture in (numbers.with_suffix(f".{form}") for form in forms):
            if os.path.lexists(picture):
                raise InvalidInput(
                    f"'{picture}' exists without '{numbers.name}', so `bangs figure` did not write it; "
                    "move it away, or choose another folder with --out"
                )


def _draw_panel(ax: "Axes", suite: Suite, panel: Panel) -> None:
    """Draw a line and a band of one standard deviation for each curve."""
    from matplotlib.ticker import MaxNLocator

    max_x = max(x for points in panel.curves.values() for x, _ in points)
    for number, (line, points) in enumerate(panel.curves.items()):
        colour, marker = _COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)]
        if len(points) == 1 and max_x > points[0][0]:  # a run without rounds becomes a horizontal line
            points, marker = [points[0], (max_x, points[0][1])], ""
        xs, means = [x for x, _ in points], [y.mean for _, y in points]
        low = [y.mean - (y.std or 0.0) for _, y in points]
        high = [y.mean + (y.std or 0.0) for _, y in points]
        label = _escape_dollars(suite.called(line))
        ax.plot(xs, means, color=colour, marker=marker, markersize=3.5, linewidth=1.4, label=label)
        ax.fill_between(xs, low, high, color=colour, alpha=0.15, linewidth=0)
    axis = "round" if suite.kind == "rounds" else suite.columns[0]
    if suite.kind == "rounds":
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel(_escape_dollars(suite.names.get(axis, axis)))
    ax.set_title(panel.title, fontsize=8)
    ax.grid(alpha=0.25, linewidth=0.5)


def _escape_dollars(text: str) -> str:
    """Matplotlib would read text between two dollar signs as a formula."""
    return text.replace("$", r"\$")
