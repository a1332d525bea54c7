"""Re-runs: what they move is known on paper, and a difference within it is not called shown."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from bangs.experiments.experiment import Experiment
from bangs.experiments.results import Result, gather, json_lines
from bangs.experiments.suites.read_suite import parse_suite
from bangs.experiments.tables.page import page
from bangs.experiments.tables.render import markdown
from bangs.experiments.tables.reruns import Spread, section, spread_in, spread_of
from bangs.experiments.tables.table import tabulate
from tests.helpers.small_graphs import fake_rows

OF = Experiment(dataset="cora", method="bangs", seeds=(0, 1, 2))
FIRST = [[0.70, 0.80], [0.70, 0.80], [0.70, 0.80]]
SUITE = parse_suite(
    'title = "Small"\nfocus = "bangs"\n[experiment]\nseeds = 3\n[axes]\ndataset = ["cora"]\nmethod = ["raw", "bangs"]',
    "small",
    "small.toml",
)


def runs(scores: list[list[float]], of: Experiment = OF) -> list[Result]:
    return gather(fake_rows(of, scores))


def test_the_deviation_is_the_root_mean_square_of_seeds_that_moved() -> None:
    reruns = [[0.70, 0.83], [0.70, 0.76], [0.70, 0.80]]  # 3 and −4 points; the third had its sums in the same order
    spread = spread_of(runs(reruns), runs(FIRST))
    assert [(rerun.common, rerun.seeds) for rerun in spread.reruns] == [(3, (0, 1))]
    assert spread.deviation("cora", "last") == pytest.approx(math.sqrt(12.5))
    assert spread.range("cora", "last", 10) == pytest.approx(1.96 * math.sqrt(12.5) * math.sqrt(2 / 10))


def test_a_graph_without_reruns_is_judged_by_the_one_that_moves_most() -> None:
    other = replace(OF, dataset="citeseer")
    first = [*runs(FIRST), *runs(FIRST, other)]
    reruns = [*runs([[0.70, 0.81]] * 3), *runs([[0.70, 0.82]] * 3, other)]
    spread = spread_of(reruns, first)
    assert spread.deviation("pubmed", "last") == spread.deviation("citeseer", "last") == pytest.approx(2.0)
    assert Spread().range("cora", "last", 10) == 0.0


def test_runs_that_have_no_first_run_or_no_rounds_do_not_count_and_equal_ones_move_nothing() -> None:
    raw = replace(OF, method="raw")
    first = [*runs(FIRST), *runs([[0.7]] * 3, raw)]
    spread = spread_of([*runs(FIRST), *runs([[0.6]] * 3, raw), *runs(FIRST, replace(OF, method="cpl"))], first)
    assert [(rerun.common, rerun.seeds) for rerun in spread.reruns] == [(3, ())]
    assert spread.datasets == []
    assert spread.range("cora", "last", 10) == 0.0


def test_a_difference_within_reruns_is_not_shown_whatever_its_test_says(tmp_path: Path) -> None:
    raw = replace(OF, method="raw")
    results = [*runs([[0.79, 0.80], [0.79, 0.81], [0.79, 0.82]]), *runs([[0.78], [0.791], [0.80]], raw)]
    (test,) = tabulate(SUITE, results, ["last"]).comparisons["last"]
    assert (test.verdict, test.rerun) == ("better", 0.0)
    (tmp_path / "reruns").mkdir()
    reruns = fake_rows(OF, [[0.79, 0.84], [0.79, 0.77], [0.79, 0.86]])
    (tmp_path / "reruns" / "other.jsonl").write_text(json_lines(_whole(reruns)))
    spread = spread_in(tmp_path, results)
    table = tabulate(SUITE, results, ["last"], spread)
    (test,) = table.comparisons["last"]
    assert test.rerun > 2.0
    assert test.verdict == "not beyond re-runs"
    assert "| re-runs ± | verdict |" in markdown(table)
    text = page([table], results, "make", spread)
    assert "## Spread over re-runs" in text
    assert (
        "Of the 1 tests on this page 0 show a difference; 1 more pass their t-test and are not beyond re-runs." in text
    )


def test_a_device_named_by_a_stranger_is_no_html_and_no_column() -> None:
    first = runs([[0.79, 0.80], [0.79, 0.81]])
    (second,) = runs([[0.79, 0.84], [0.79, 0.77]])
    second = replace(second, environment={"commit": "c0ffee", "device": "<img src=x>|a card"})
    text = section(spread_of([second], first), ("last",), {})
    assert "| c0ffee, &lt;img src=x>\\|a card | 1 | 2 | 2 |" in text


def _whole(rows: list[dict]) -> list[dict]:
    """Rows as a file must hold them."""
    return [{**row, "pseudo_accuracy": [None, 1.0], "labelled": [1, 2], "epochs": [3, 4]} for row in rows]
