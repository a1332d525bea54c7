"""The page of the repository is what its rows say, to the letter."""

from pathlib import Path

import pytest

from bangs.experiments.evaluation_protocols import PROTOCOLS
from bangs.experiments.results import Result, gather, results_in, rows_in_file
from bangs.experiments.suites.find_suite import suite_files, suite_path
from bangs.experiments.suites.read_suite import read_suite
from bangs.experiments.tables.figure import as_csv, draw, panels
from bangs.experiments.tables.page import write_page
from bangs.experiments.tables.reruns import spread_in
from bangs.experiments.tables.table import tabulate
from tests import ROOT
from tests.helpers.small_graphs import fake_rows

ROWS, PAGE = ROOT / "results", ROOT / "docs" / "reproduction.md"
COMMAND = "bangs table results --page docs/reproduction.md"


@pytest.mark.skipif(not any(ROWS.glob("*.jsonl")), reason="results/ holds no rows yet")
def test_the_page_and_its_figures_are_made_from_the_rows(tmp_path: Path) -> None:
    results = results_in(ROWS)
    spread = spread_in(ROWS, results)
    written = write_page(map(read_suite, suite_files().values()), results, tmp_path / PAGE.name, COMMAND, spread)
    assert (tmp_path / PAGE.name).read_text() == PAGE.read_text()
    for path in written:
        if path.suffix == ".csv":  # a picture may differ with the version that draws it, its numbers may not
            assert path.read_text() == (PAGE.parent / path.relative_to(tmp_path)).read_text()
        assert (PAGE.parent / path.relative_to(tmp_path)).exists()


def fake_results(name: str) -> list[Result]:
    rows = []
    for number, cell in enumerate(read_suite(suite_path(name)).cells()):
        base = 0.7 + 0.01 * number
        curves = [[base, base + 0.01, base + 0.02], [base, base + 0.02, base + 0.01]]
        rows += fake_rows(cell.experiment, curves * (5 if name == "table-time" else 1))
    return gather(rows)


def test_every_run_is_stored_once() -> None:
    """By its settings, since the name of a run changes when a part gets one more field."""
    places: dict[tuple[str, int], list[str]] = {}
    for file in sorted(ROWS.glob("*.jsonl")):
        for row in rows_in_file(file):
            settings = {key: value for key, value in row["config"].items() if key != "parts"}
            places.setdefault((repr(sorted(settings.items())), row.get("seed", -1)), []).append(row["run"])
    assert len(places) > 1000
    assert {run: names for run, names in places.items() if len(names) > 1} == {}
    for file in (ROWS / "reruns").glob("*.jsonl"):
        keys = [(row["run"], row["seed"]) for row in rows_in_file(file)]
        assert len(set(keys)) == len(keys)


def test_a_page_has_tables_figures_tests_and_what_was_not_run(tmp_path: Path) -> None:
    results = [
        *fake_results("table-main"),
        *fake_results("figure-noise"),
        *fake_results("figure-calibration"),
        *fake_results("table-time"),
    ]
    results = [result for result in results if result.config["dataset"] not in ("flickr", "lastfm_asia")]
    path = tmp_path / "page.md"
    write_page(map(read_suite, suite_files().values()), results, path, "the command")
    text = path.read_text()
    assert "    the command" in text
    assert "## Main comparison" in text
    assert "84.23 ± 0.62" in text
    assert "LastFM Asia: not run, its features could not be had" in text
    assert "--datasets lastfm_asia,flickr" in text
    assert "## Not run here" in text
    assert "bangs reproduce table-ablation" in text
    assert "](figures/figure-noise.svg)" in text
    assert (tmp_path / "figures" / "figure-noise.svg").read_text().startswith("<?xml")
    assert text.index("## Main comparison") < text.index("## Running time") < text.index("## Label noise")


def test_a_figure_is_the_same_file_every_time(tmp_path: Path) -> None:
    table = tabulate(read_suite(suite_path("figure-noise")), fake_results("figure-noise"))
    for folder in (tmp_path / "one", tmp_path / "two"):
        draw(table, folder)
    for name in ("figure-noise.svg", "figure-noise.png", "figure-noise.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_rule_of_a_panel_fits_above_it() -> None:
    """In 8-point type a panel 4.6 inches wide takes some 72 letters."""
    assert max(map(len, PROTOCOLS.values())) <= 70


def test_the_numbers_of_a_figure_are_those_of_its_rows() -> None:
    suite = read_suite(suite_path("figure-noise"))
    lines = as_csv(suite, panels(tabulate(suite, fake_results("figure-noise")))).splitlines()
    assert lines[0] == "suite,rule,line,x,mean,std,seeds,run"
    assert lines[1].startswith("figure-noise,validation,raw,0,72.0000,0.0000,2,")
    assert len(lines) == 1 + 18 * 2


def test_a_curve_over_rounds_begins_with_the_first_model() -> None:
    suite = read_suite(suite_path("figure-calibration"))
    (panel,) = panels(tabulate(suite, fake_results("figure-calibration")))
    assert [x for x, _ in panel.curves["bangs"]] == [0, 1, 2]
    assert panel.curves["raw"][0][1].mean == pytest.approx(70.0)
