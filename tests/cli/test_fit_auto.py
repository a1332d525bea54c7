"""`bangs fit` with nothing but labels: folds, candidates and honest figures."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from bangs import SelfTrainingClassifier
from bangs.graphs import tables
from bangs.report.leaderboard import HEAD, leaderboard
from bangs.report.model_card import escape
from bangs.runs import read_run
from bangs.utils.text import percent
from tests import EXAMPLES
from tests.cli.invoke import bangs

QUICK = ("--rounds", 1, "--device", "cpu", "--quiet")


@pytest.fixture(scope="module")
def automatic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("auto") / "library"
    result = bangs("fit", EXAMPLES / "own-graph", "--out", out, *QUICK)
    assert result.code == 0, result.err
    return out


def test_the_result_says_what_was_tried_and_on_how_many_labels(automatic: Path) -> None:
    result = read_run(automatic).result
    assert result is not None
    assert result["folds"]
    assert result["validation"]["nodes"] == result["held"] == result["given"] == 30
    low, high = result["validation"]["interval"]
    assert low <= result["validation"]["accuracy"] <= high
    assert len(result["leaderboard"]) > 5
    card = (automatic / "MODEL_CARD.md").read_text()
    assert "## What was tried" in card
    assert "were held out from some models" in card
    used = sum(line["weight"] > 0 for line in result["leaderboard"])
    assert f"The weighted mean of {used} of {len(result['leaderboard'])} models" in card
    assert "neural" not in card


def test_the_page_and_the_card_hold_every_candidate_with_its_interval(automatic: Path) -> None:
    result, card = read_run(automatic).result, (automatic / "MODEL_CARD.md").read_text()
    page = (automatic / "report.html").read_text()
    assert result is not None
    for line, cells in zip(result["leaderboard"], leaderboard(result["leaderboard"]), strict=True):
        interval = f"{percent(line['accuracy']['low'])} to {percent(line['accuracy']['high'])}"
        assert interval in cells[HEAD.index("accuracy")]
        assert f"| {' | '.join(map(escape, cells))} |" in card
        assert "".join(f'<td data-label="{name}">{cell}</td>' for name, cell in zip(HEAD, cells, strict=True)) in page


def test_predict_explain_and_report_work_on_an_average(automatic: Path) -> None:
    result = bangs("predict", automatic, EXAMPLES / "own-graph-grown", "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["new"] > 0
    with (automatic / "predictions.csv").open(newline="") as file:
        name = next(csv.DictReader(file))["id"]
    assert bangs("explain", automatic, name).code == 0
    assert bangs("report", automatic).code == 0


def test_predict_gives_the_fitted_graph_its_own_probabilities(automatic: Path) -> None:
    graph = tables.read(EXAMPLES / "own-graph")
    model = SelfTrainingClassifier.load(automatic)
    second = model.predict_proba(graph.data, names=graph.ids)
    assert second == pytest.approx(model.predict_proba(), abs=1e-4)


def test_predict_says_that_positions_in_a_graph_of_other_nodes_cannot_be_compared(
    automatic: Path, tmp_path: Path
) -> None:
    warning = "edges are those of the fitted graph, so positions of nodes cannot be compared"
    for change, expected in (("R-", False), ("Z-", True)):
        tables = tmp_path / change
        tables.mkdir()
        for name in ("nodes.csv", "edges.csv"):
            (tables / name).write_text((EXAMPLES / "own-graph" / name).read_text().replace("R-", change))
        result = bangs("predict", automatic, tables, "--out", tmp_path / f"{change}.csv")
        assert result.code == 0, result.err
        assert (warning in " ".join((result.out + result.err).split())) == expected


def test_a_model_no_better_than_chance_is_reported(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    nodes = [f"{i},{draw.normal():.3f},{'ab'[draw.integers(2)] if i < 24 else ''}" for i in range(60)]
    (tmp_path / "nodes.csv").write_text("id,x,label\n" + "\n".join(nodes) + "\n")
    edges = [f"{a},{b}" for a, b in draw.integers(60, size=(90, 2)) if a != b]
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(edges) + "\n")
    result = bangs("fit", tmp_path, "--out", tmp_path / "out", *QUICK)
    assert result.code == 0, result.err
    assert "always predicting the largest class might be as good" in result.out


@pytest.mark.parametrize(("scale", "centred"), [("auto", False), ("standard", True), ("none", False)])
def test_columns_of_zeros_and_ones_are_not_standardised(tmp_path: Path, scale: str, centred: bool) -> None:
    rows = [f"{i},{i % 2},{i * 1.5},{'ab'[i % 2]}" for i in range(8)]
    (tmp_path / "nodes.csv").write_text("id,word,size,label\n" + "\n".join(rows) + "\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    graph = tables.read(tmp_path, scale=scale)
    word, size = graph.columns.columns
    assert (word.centred, size.centred) == (centred, scale != "none")  # type: ignore[union-attr]


def test_a_random_column_beside_the_edges_does_not_mislead(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    side = draw.integers(3, size=150)
    names = [f"{i},{draw.normal():.3f},{'abc'[side[i]] if i < 30 else ''}" for i in range(150)]
    ends = [(a, b) for a, b in draw.integers(150, size=(4000, 2)) if a < b and (side[a] == side[b] or a % 9 == 0)]
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(f"{a},{b}" for a, b in ends[:600]) + "\n")
    right = {}
    for column in ("junk", ""):
        lines = [f"id,{column}{',' * bool(column)}label"]
        lines += names if column else [",".join(line.split(",")[::2]) for line in names]
        (tmp_path / "nodes.csv").write_text("\n".join(lines) + "\n")
        result = bangs("fit", tmp_path, "--out", tmp_path / f"out{column}", *QUICK)
        assert result.code == 0, result.err
        with (tmp_path / f"out{column}" / "predictions.csv").open(newline="") as file:
            predicted = [row["predicted"] for row in csv.DictReader(file)]
        right[column] = np.mean([predicted[i] == "abc"[side[i]] for i in range(30, 150)])
    assert right["junk"] > right[""] - 0.05
    assert right["junk"] > 0.7
