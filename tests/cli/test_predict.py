"""`bangs predict`: a saved model on a grown graph."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from tests import EXAMPLES
from tests.cli.invoke import bangs


def test_new_nodes_are_labelled_by_the_names_in_the_users_tables(fitted_example: Path, tmp_path: Path) -> None:
    out = tmp_path / "grown.csv"
    result = bangs("predict", fitted_example, EXAMPLES / "own-graph-grown", "--out", out, "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["new"] == 40
    rows = table(out)
    assert len(rows) == 340
    assert sum(row["new"] == "yes" for row in rows) == 40
    assert {row["predicted"] for row in rows} <= {"cookery", "crime", "history", "science fiction"}


def test_the_fitted_graph_gets_its_own_predictions_again(fitted_example: Path, tmp_path: Path) -> None:
    out = tmp_path / "same.csv"
    assert bangs("predict", fitted_example, EXAMPLES / "own-graph", "--out", out, "--quiet").code == 0
    for one, two in zip(table(out), table(fitted_example / "predictions.csv"), strict=True):
        assert (one["id"], one["predicted"]) == (two["id"], two["predicted"])
        assert float(one["confidence"]) == pytest.approx(float(two["confidence"]), abs=1e-4)


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_without_out_the_table_lies_beside_the_model(fitted_example: Path, tmp_path: Path) -> None:
    shutil.copytree(fitted_example, tmp_path / "model")
    result = bangs("predict", tmp_path / "model", EXAMPLES / "own-graph-grown")
    assert result.code == 0
    assert (tmp_path / "model" / "own-graph-grown-predictions.csv").exists()
    assert "340 nodes, 40 of them new" in result.out
    assert "% over all nodes; written to" in result.out


def test_earlier_predictions_are_replaced_and_no_other_file(fitted_example: Path, tmp_path: Path) -> None:
    grown, out = EXAMPLES / "own-graph-grown", tmp_path / "grown.csv"
    out.touch()
    for _ in range(2):
        assert bangs("predict", fitted_example, grown, "--out", out, "--quiet").code == 0
    for path in (fitted_example / "predictions.csv", fitted_example / "model.safetensors", grown / "nodes.csv"):
        before = path.read_bytes()
        result = bangs("predict", fitted_example, grown, "--out", path)
        assert result.code == 2
        assert result.err.startswith(f"bangs: '{path}' exists and was not written by `bangs predict`; move it away")
        assert path.read_bytes() == before


def test_missing_columns_are_named(fitted_example: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    shutil.copy(EXAMPLES / "own-graph" / "edges.csv", folder)
    lines = (EXAMPLES / "own-graph" / "nodes.csv").read_text().replace("visits_per_month", "visits")
    (folder / "nodes.csv").write_text(lines)
    result = bangs("predict", fitted_example, folder)
    assert result.code == 2
    assert "visits_per_month" in result.err
    assert "Traceback" not in result.err


def test_columns_called_otherwise_can_be_named_and_gaps_filled(fitted_example: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    shutil.copytree(EXAMPLES / "own-graph", folder)
    nodes, edges = folder / "nodes.csv", folder / "edges.csv"
    header, first, *lines = nodes.read_text().splitlines()
    column = header.split(",").index("visits_per_month")
    cells = first.split(",")
    cells[column] = ""
    nodes.write_text("\n".join([header.replace("id,", "reader,", 1), ",".join(cells), *lines]))
    edges.write_text(edges.read_text().replace("source,target", "a,b", 1))
    out = tmp_path / "out.csv"
    words = ("--id", "reader", "--source", "a", "--target", "b", "--out", out)
    refused = bangs("predict", fitted_example, folder, *words)
    assert refused.code == 2
    assert "--fill mean" in refused.err
    assert "--ignore" not in refused.err  # which `bangs predict` does not take
    result = bangs("predict", fitted_example, folder, *words, "--fill", "mean")
    assert result.code == 0, result.err
    assert [row["predicted"] for row in table(out)[1:]] == [
        row["predicted"] for row in table(fitted_example / "predictions.csv")[1:]
    ]


def test_an_unknown_class_is_named(fitted_example: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    shutil.copytree(EXAMPLES / "own-graph", folder)
    text = (folder / "nodes.csv").read_text()
    (folder / "nodes.csv").write_text(text.replace("cookery", "poetry"))
    result = bangs("predict", fitted_example, folder)
    assert result.code == 2
    assert "poetry" in result.err
