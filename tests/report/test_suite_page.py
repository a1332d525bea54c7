"""The page of a suite: numbers, seeds and tests as the table has them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bangs.experiments.results import Result, gather
from bangs.experiments.suites.read_suite import read_suite
from bangs.experiments.suites.suite import Suite
from bangs.report.suite_page import suite_facts, write_suite_page
from tests.helpers.small_graphs import fake_rows, suite_file


@pytest.fixture(scope="module")
def suite_and_results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Suite, list[Result]]:
    """Two graphs and three methods, of which BANGS is always a point better than CPL."""
    suite = read_suite(suite_file(tmp_path_factory.mktemp("suite")))
    levels = {"raw": 0.60, "cpl": 0.70, "bangs": 0.71}
    rows = []
    for cell in suite.cells():
        if cell.row == "two" and cell.column == "raw":
            continue
        level = levels[cell.column]
        rounds = 1 if cell.column == "raw" else 3
        rows += fake_rows(cell.experiment, [[level + seed / 100] * rounds for seed in range(3)])
    return suite, gather(rows)


def test_every_number_of_the_table_is_on_the_page(
    suite_and_results: tuple[Suite, list[Result]], tmp_path: Path
) -> None:
    suite, results = suite_and_results
    facts = suite_facts([suite], results)["suites"][0]
    assert facts["columns"] == ["raw", "cpl", "BANGS"]
    assert facts["along"] == "method"
    ours = next(line for line in facts["lines"] if line["row"] == "one" and line["rule"] == "validation")
    assert [entry["mean"] for entry in ours["entries"]] == pytest.approx([61, 71, 72])
    assert ours["entries"][2]["rank"] == 1
    assert ours["entries"][2]["values"] == pytest.approx([71, 72, 73])
    published = next(line for line in facts["lines"] if line["rule"] == "published")
    assert [entry["mean"] for entry in published["entries"]] == [60, 61, 62]
    assert facts["missing"] == ["two (raw): not run"]
    text = write_suite_page([suite], results, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "72.00" in text
    assert "± 1.00" in text


def test_tests_and_curves_come_along(suite_and_results: tuple[Suite, list[Result]]) -> None:
    facts = suite_facts([suite_and_results[0]], suite_and_results[1])["suites"][0]
    over = next(one for one in facts["tests"]["validation"] if one["place"] == "one" and one["second"] == "cpl")
    assert over["difference"] == pytest.approx(1.0)
    assert over["verdict"] == "better"
    curve = next(one for one in facts["curves"] if one["row"] == "two" and one["column"] == "BANGS")
    assert curve["accuracy"] == pytest.approx([72, 72, 72])


@pytest.mark.parametrize(("commit", "shown"), [("a" * 40, "a" * 10), ("b" * 40 + "-dirty", "b" * 10 + "-dirty")])
def test_a_commit_with_changes_is_shown_as_such(
    suite_and_results: tuple[Suite, list[Result]], commit: str, shown: str
) -> None:
    suite, results = suite_and_results
    made = [replace(one, environment={**one.environment, "commit": commit}) for one in results]
    assert [line[3] for line in suite_facts([suite], made)["machines"]] == [shown]


def test_a_suite_without_results_has_a_page_that_says_so(
    suite_and_results: tuple[Suite, list[Result]], tmp_path: Path
) -> None:
    path = write_suite_page([suite_and_results[0]], [], tmp_path / "report.html")
    assert "not run" in path.read_text()


def test_infinite_intervals_stay_json(suite_and_results: tuple[Suite, list[Result]]) -> None:
    suite, results = suite_and_results
    one = [
        Result(result.run, result.config, result.environment, {0: result.rows[0]}, result.seconds) for result in results
    ]
    json.dumps(suite_facts([suite], one), allow_nan=False)
