"""`bangs fit` on a store that stays on the disk, and every command that asks its model."""

import json
from pathlib import Path

import pandas as pd
import pytest

from bangs.graphs.store import stored_graph
from tests import EXAMPLES
from tests.cli.invoke import bangs

OWN = EXAMPLES / "own-graph"
ASKED = (
    "--rounds",
    "2",
    "--k",
    "10",
    "--epochs",
    "8",
    "--selector",
    "confidence",
    "--validation",
    "0.25",
    "--device",
    "cpu",
)
BATCHES = ("--batch-size", "16", "--fanout", "5,5")


@pytest.fixture
def store(tmp_path: Path) -> str:
    assert bangs("convert", str(OWN), str(tmp_path / "store")).code == 0
    return str(tmp_path / "store")


def test_its_files_are_those_of_the_same_fit_in_memory(store, tmp_path, monkeypatch):
    assert bangs("fit", store, "--out", str(tmp_path / "whole"), *ASKED, *BATCHES).code == 0
    monkeypatch.setattr(stored_graph, "MAX_BYTES_IN_MEMORY", 0)  # so that the store counts as large
    result = bangs("fit", store, "--out", str(tmp_path / "fit"), *ASKED, *BATCHES)
    assert result.code == 0, result.err
    assert "which stays on disk" in result.out
    for name in ("predictions.csv", "pseudo_labels.csv"):
        one, other = (pd.read_csv(tmp_path / folder / name) for folder in ("fit", "whole"))
        columns = [column for column in one if column != "influences"]  # near walks here, all walks in memory
        pd.testing.assert_frame_equal(one[columns], other[columns], rtol=1e-4)
    assert "the path of its store" in (tmp_path / "fit" / "MODEL_CARD.md").read_text()

    name = pd.read_csv(tmp_path / "fit" / "predictions.csv")["id"][3]
    one, other = (
        json.loads(bangs("explain", str(tmp_path / folder), name, "--json").out) for folder in ("fit", "whole")
    )
    assert one["neighbours"] == other["neighbours"]
    assert one["probs"] == pytest.approx(other["probs"], abs=1e-5)
    second = bangs("fit", store, "--out", str(tmp_path / "fit"), *ASKED, *BATCHES, "--resume")
    assert "nothing is left to do" in second.out


def test_folds_can_be_asked_for_on_a_store_and_answer_every_command(store, tmp_path, monkeypatch):
    monkeypatch.setattr(stored_graph, "MAX_BYTES_IN_MEMORY", 0)
    options = [word for word in ASKED if word not in ("--validation", "0.25")]
    result = bangs("fit", store, "--out", str(tmp_path / "fit"), *options, *BATCHES, "--folds", "2", "--json")
    assert result.code == 0, result.err
    facts = json.loads(result.out)
    assert facts["folds"]
    assert facts["validation"]["nodes"] == facts["given"] == 30
    name = pd.read_csv(tmp_path / "fit" / "predictions.csv")["id"][3]
    assert bangs("explain", str(tmp_path / "fit"), name).code == 0
    assert bangs("report", str(tmp_path / "fit")).code == 0
    assert bangs("predict", str(tmp_path / "fit"), store, "--json").code == 0


def test_a_store_that_moved_is_reported_and_found_again(store, tmp_path, monkeypatch):
    monkeypatch.setattr(stored_graph, "MAX_BYTES_IN_MEMORY", 0)
    out, moved = str(tmp_path / "fit"), str(tmp_path / "elsewhere")
    result = bangs("fit", store, "--out", out, *ASKED)
    assert result.code == 0, result.err
    assert "batches of 1,024 labelled nodes, which see 10 and 10 neighbours; --batch-size and" in result.out
    name = pd.read_csv(tmp_path / "fit" / "predictions.csv")["id"][0]
    (tmp_path / "store").rename(moved)
    for command in (("explain", out, name), ("report", out), ("predict", out, moved)):
        lost = bangs(*command)
        assert lost.code == 2
        assert f"a store at '{tmp_path / 'store'}', which is not there" in lost.err
        assert "--store PATH" in lost.err
        repaired = bangs(*command, "--store", moved)
        assert repaired.code == 0, repaired.err
    table = pd.read_csv(tmp_path / "fit" / "elsewhere-predictions.csv")
    assert set(table["new"]) == {"no"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [(("--model", "gat"), "GAT needs the whole graph"), (("--calibrator", "gats"), "edges at once")],
)
def test_what_a_graph_on_disk_cannot_do_is_refused_before_a_folder_is_made(
    store, tmp_path, monkeypatch, words, expected
):
    monkeypatch.setattr(stored_graph, "MAX_BYTES_IN_MEMORY", 0)
    monkeypatch.setattr(stored_graph, "MAX_EDGES_AT_ONCE", 10)
    result = bangs("fit", store, "--out", str(tmp_path / "fit"), *ASKED, *words)
    assert result.code == 2
    assert expected in result.err
    assert not (tmp_path / "fit").exists()


def test_nodes_to_label_next_are_found_without_reading_its_features(store, tmp_path, monkeypatch):
    monkeypatch.setattr(stored_graph, "MAX_BYTES_IN_MEMORY", 0)
    assert bangs("fit", store, "--out", str(tmp_path / "fit"), *ASKED, *BATCHES).code == 0
    result = bangs("suggest", str(tmp_path / "fit"), "--count", "4", "--json")
    assert result.code == 0, result.err
    known = pd.read_csv(tmp_path / "fit" / "predictions.csv").set_index("id")["known"]
    nodes = [node["node"] for node in json.loads(result.out)["nodes"]]
    assert 1 <= len(nodes) <= 4
    assert all(pd.isna(known[name]) for name in nodes)
    refused = bangs("suggest", str(tmp_path / "fit"), "--strategy", "disagreement")
    assert refused.code == 2
    assert "does not hold the disagreement of its folds" in refused.err
