"""Figures: curves whose points stand where they belong, and when there is something to draw."""

from pathlib import Path

import matplotlib as mpl
import pytest

from bangs.errors import UnknownName
from bangs.experiments.results import gather
from bangs.experiments.suites.read_suite import parse_suite
from bangs.experiments.tables.figure import as_csv, draw, panels
from bangs.experiments.tables.page import page
from bangs.experiments.tables.table import tabulate
from tests.helpers.small_graphs import fake_rows

SWEEP = parse_suite(
    'kind = "sweep"\ncolumns = "noise"\n[axes]\nmethod = ["raw", "bangs"]\nnoise = [0.4, 0.0, 0.2]\n', "sweep", "a test"
)
ROUNDS = parse_suite('kind = "rounds"\ntitle = "By round"\n[axes]\nmethod = ["raw", "bangs"]\n', "rounds", "a test")


def test_points_of_a_curve_rise_though_their_values_were_listed_otherwise() -> None:
    cells = list(SWEEP.cells())
    rows = [row for cell in cells for row in fake_rows(cell.experiment, [[0.5, 0.6], [0.7, 0.8]])]
    drawn = panels(tabulate(SWEEP, gather(rows), ["last"]))
    assert [[x for x, _ in points] for points in drawn[0].curves.values()] == [[0.0, 0.2, 0.4]] * 2
    assert drawn[0].curves["bangs"][0][1].mean == 70.0
    assert as_csv(SWEEP, drawn).splitlines()[1].startswith("sweep,last,raw,0,70.0000,14.1421,2,")


def test_a_rule_that_is_none_gives_a_clear_error() -> None:
    rows = fake_rows(next(SWEEP.cells()).experiment, [[0.5, 0.6]])
    with pytest.raises(UnknownName, match="protocol 'lst' is unknown; did you mean 'last'"):
        tabulate(SWEEP, gather(rows), ["lst"])


def test_a_line_that_reads_like_a_formula_is_not_run_by_a_spreadsheet() -> None:
    text = 'kind = "rounds"\nrows = "setting"\n[axes]\nsetting = [{ setting = "=1+1" }]\n'
    suite = parse_suite(text, "@sum", "a test")
    rows = fake_rows(next(suite.cells()).experiment, [[0.5]])
    assert (
        as_csv(suite, panels(tabulate(suite, gather(rows)))).splitlines()[1].startswith("'@sum,round,'=1+1,0,50.0000,")
    )


def test_names_stand_in_a_picture_as_they_were_typed(tmp_path: Path) -> None:
    names = 'title = "$\\\\nosuch{$"\n[names]\nraw = "$1 and $2"\nround = "a $ b $"\n'
    suite = parse_suite(f'kind = "rounds"\n{names}[axes]\nmethod = ["raw"]\n', "priced", "a test")
    rows = fake_rows(next(suite.cells()).experiment, [[0.5, 0.6]])
    with mpl.rc_context({"svg.fonttype": "none"}):
        draw(tabulate(suite, gather(rows)), tmp_path)
    picture = (tmp_path / "priced.svg").read_text()
    assert all(f">{words}<" in picture for words in ("$\\nosuch{$", "$1 and $2", "a $ b $"))


def test_rounds_are_drawn_once_there_are_two_curves_to_compare() -> None:
    raw, bangs = (fake_rows(cell.experiment, [[0.5, 0.6]]) for cell in ROUNDS.cells())
    alone, both = (gather(rows) for rows in (raw, [*raw, *bangs]))
    assert "## By round" not in page([tabulate(ROUNDS, alone)], alone, "make")
    assert "## By round" in page([tabulate(ROUNDS, both)], both, "make")
