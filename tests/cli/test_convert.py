"""`bangs convert`: one command to a store, and every other takes it."""

import json

import pandas as pd
import pytest

from bangs.cli.parsing import parse_fanout
from bangs.errors import InvalidInput
from bangs.experiments.suites.read_suite import parse_suite
from bangs.graphs.store import stored_graph
from tests import EXAMPLES
from tests.cli.invoke import bangs
from tests.helpers.small_graphs import graph_file

OWN = EXAMPLES / "own-graph"


def made(*words: str) -> dict:
    result = bangs("convert", *words, "--json")
    assert result.code == 0, result.err
    return json.loads(result.out)


def test_a_made_graph_is_run_in_batches_and_gone_on_with(tmp_path):
    store, out = str(tmp_path / "store"), str(tmp_path / "run")
    facts = made("synthetic:nodes=400,edges=3000,features=8,classes=3", store, "--verify")
    assert facts["nodes"] == 400
    assert facts["verified"]
    options = ("--seeds", "2", "--k", "5", "--candidates", "10", "--epochs", "3", "--device", "cpu")
    batches = ("--batch-size", "32", "--fanout", "4,all")
    result = bangs("run", "--dataset", store, "--rounds", "1", *options, *batches, "--out", out, "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["fanout"] == [4, -1]
    second = bangs("run", "--dataset", store, "--rounds", "1", *options, *batches, "--out", out, "--resume", "--json")
    assert json.loads(second.out)["rounds"] == json.loads(result.out)["rounds"]
    plain = bangs("run", "--dataset", store, "--rounds", "0", *options, "--json")
    assert plain.code == 0, plain.err


def test_tables_are_fitted_and_predicted_from_stores(tmp_path, monkeypatch):
    first, grown, out = (str(tmp_path / name) for name in ("first", "grown", "fit"))
    made(str(OWN), first)
    made(str(OWN.parent / "own-graph-grown"), grown, "--like", first)
    result = bangs(
        "fit", first, "--out", out, "--rounds", "1", "--epochs", "5", "--batch-size", "16", "--device", "cpu"
    )
    assert result.code == 0, result.err
    output = bangs("predict", out, grown, "--json", "--device", "cpu")
    assert output.code == 0, output.err
    assert json.loads(output.out)["new"] > 0

    table = tmp_path / "fit" / "grown-predictions.csv"
    predicted = pd.read_csv(table)
    monkeypatch.setattr(stored_graph, "MAX_BYTES_IN_MEMORY", 0)  # so that the store stays on the disk
    assert bangs("predict", out, grown, "--device", "cpu").code == 0
    pd.testing.assert_frame_equal(pd.read_csv(table), predicted, rtol=1e-4)


def test_tables_may_be_read_as_those_of_a_fit_were(tmp_path):
    out, grown = str(tmp_path / "fit"), str(OWN.parent / "own-graph-grown")
    result = bangs("fit", str(OWN), "--out", out, "--rounds", "0", "--epochs", "5", "--device", "cpu")
    assert result.code == 0, result.err
    made(grown, str(tmp_path / "store"), "--like", out)
    plain, stored = (str(tmp_path / f"{name}.csv") for name in ("plain", "stored"))
    assert bangs("predict", out, grown, "--out", plain, "--device", "cpu").code == 0
    assert bangs("predict", out, str(tmp_path / "store"), "--out", stored, "--device", "cpu").code == 0
    pd.testing.assert_frame_equal(pd.read_csv(stored), pd.read_csv(plain), rtol=1e-4)
    run = str(tmp_path / "run")
    assert bangs("run", "--seeds", "1", "--rounds", "0", "--epochs", "2", "--out", run, "--quiet").code == 0
    refused = bangs("convert", str(OWN), str(tmp_path / "other"), "--like", run)
    assert refused.code == 2
    assert "does not say how columns become features" in refused.err


def test_options_about_columns_are_refused_where_there_are_none(tmp_path):
    store, out = str(tmp_path / "store"), tmp_path / "fit"
    made(str(OWN), store)
    result = bangs("fit", store, "--out", out, "--label", "shelf", "--fill", "mean")
    assert result.code == 2
    assert (
        result.err
        == f"bangs: '{store}' is a store, read when it was made; give --label and --fill to `bangs convert`\n"
    )
    arrays = graph_file(tmp_path / "graph.npz")
    result = bangs("fit", arrays, "--out", out, "--directed", "--ignore", "size")
    assert result.code == 2
    assert "has no columns to name or fill; leave --ignore out, or give a folder of tables" in result.err
    assert not out.exists()


@pytest.mark.parametrize("source", ["graph.npz", "synthetic:nodes=400,edges=3000"])
@pytest.mark.parametrize("words", [("--directed",), ("--weight", "w", "--fill", "mean"), ("--unknown", "1")])
def test_what_cannot_be_followed_is_refused(tmp_path, source, words):
    graph_file(tmp_path / "graph.npz")
    path = str(tmp_path / source) if source.endswith(".npz") else source
    result = bangs("convert", path, tmp_path / "store", *words)
    assert result.code == 2
    assert "has no columns to name or fill" in result.err
    assert all(word in result.err for word in words if word.startswith("--"))
    assert not (tmp_path / "store").exists()


def test_an_npz_becomes_a_store(tmp_path):
    facts = made(str(graph_file(tmp_path / "one.npz")), str(tmp_path / "store"), "--half")
    assert (facts["nodes"], facts["features"], facts["classes"]) == (100, 30, 3)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("synthetic:nodes=many", "must be a number"),
        ("corra", "did you mean 'cora'"),
        ("missing/folder.npz", "does not exist"),
    ],
)
def test_what_is_no_source_is_refused(tmp_path, source, expected):
    result = bangs("convert", source, str(tmp_path / "store"))
    assert result.code == 2
    assert expected in result.err
    assert not (tmp_path / "store").exists()


def test_a_store_is_no_source(tmp_path):
    made("synthetic:nodes=100,edges=400,classes=2", str(tmp_path / "store"))
    result = bangs("convert", str(tmp_path / "store"), str(tmp_path / "other"))
    assert result.code == 2
    assert "a store already" in result.err


def test_fan_outs_are_numbers_or_all():
    assert parse_fanout("10,5") == (10, 5)
    assert parse_fanout("all") == (-1,)
    with pytest.raises(InvalidInput, match="--fanout must be numbers"):
        parse_fanout("ten")


def test_a_suite_may_train_in_batches_on_a_store(tmp_path):
    made("synthetic:nodes=100,edges=400,classes=2", str(tmp_path / "store"))
    text = f"""
        [experiment]
        batch_size = 64
        fanout = [5, -1]
        [axes]
        dataset = ["{tmp_path / "store"}"]
        method = ["raw", "bangs"]
    """
    suite = parse_suite(text, "batches", "batches.toml")
    experiments = [cell.experiment for cell in suite.cells()]
    assert all("Sampling(size=64, fanout=(5, -1)" in one.config()["parts"]["trainer"] for one in experiments)
    with pytest.raises(InvalidInput, match="fanout must list the neighbours"):
        parse_suite(text.replace("[5, -1]", "[0]"), "batches", "batches.toml")
