"""Blind runs: no test label is read until the exam is opened, and opened once it says what an open run says."""

import json
from pathlib import Path

import pytest
import torch

from bangs.errors import InvalidInput
from bangs.experiments.exam import Exam
from bangs.experiments.experiment import Experiment, compact
from bangs.experiments.results import rows_in_file
from bangs.experiments.unblind import unblind
from bangs.runs import RunFolder, read_run
from tests.cli.invoke import bangs
from tests.helpers.small_graphs import graph_file

QUICK = {"rounds": 2, "k": 4, "candidates": 8, "seeds": (0, 1), "changes": {"epochs": 5}}
WORDS = ("--rounds=1", "--seeds=2", "--k=4", "--candidates=8", "--epochs=5", "--device=cpu", "--json")


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return graph_file(tmp_path / "graph.npz")


def run_blind(graph: Path, out: Path, method: str, resume: bool = False) -> dict:
    experiment = Experiment(dataset=str(graph), method=method, **QUICK)
    with RunFolder.create_or_resume(out, experiment.config(), resume=resume) as folder:
        return experiment.run(device="cpu", run_folder=folder, blind=True)


@pytest.mark.parametrize("method", ["bangs", "soft"])
def test_a_blind_run_once_opened_equals_an_open_run(graph: Path, tmp_path: Path, method: str) -> None:
    blind = run_blind(graph, tmp_path / "out", method)
    assert blind["blind"]
    assert not {"raw", "validation", "best_test", "last"} & set(blind)
    assert all("test" not in row and "pseudo_accuracy" not in row for row in blind["rounds"])
    opened = unblind(tmp_path / "out")
    plain = Experiment(dataset=str(graph), method=method, **QUICK).run(device="cpu")
    for name in ("raw", "validation", "best_test", "last", "chosen_round"):
        assert opened[name] == plain[name]
    for one, other in zip(opened["rounds"], plain["rounds"], strict=True):
        assert one["pseudo_accuracy"] == other["pseudo_accuracy"]


def test_a_blind_run_makes_no_exam(graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object) -> Exam:
        raise AssertionError("the exam was opened")

    monkeypatch.setattr(Exam, "of", opened)
    run_blind(graph, tmp_path / "out", "soft")


def test_a_blind_run_that_was_killed_right_after_a_checkpoint_can_be_opened(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It continues after that round, so the predictions of the round must be there already."""

    def killed_after_round_1(folder: RunFolder, round: int, tensors: dict, facts: dict) -> None:
        save(folder, round, tensors, facts)
        if round == 1:
            raise KeyboardInterrupt

    save = RunFolder.save
    monkeypatch.setattr(RunFolder, "save", killed_after_round_1)
    with pytest.raises(KeyboardInterrupt):
        run_blind(graph, tmp_path / "out", "bangs")
    monkeypatch.undo()
    run_blind(graph, tmp_path / "out", "bangs", resume=True)
    assert unblind(tmp_path / "out") is not None


def test_an_exam_is_opened_once_and_the_folder_says_when(graph: Path, tmp_path: Path) -> None:
    run_blind(graph, tmp_path / "out", "bangs")
    unblind(tmp_path / "out")
    assert unblind(tmp_path / "out") is None
    (event,) = [event for event in read_run(tmp_path / "out").events if event["kind"] == "unblinded"]
    assert event["at"].startswith("20")


def test_what_cannot_be_opened_gives_a_clear_error(graph: Path, tmp_path: Path) -> None:
    experiment = Experiment(dataset=str(graph), **QUICK)
    with RunFolder.create_or_resume(tmp_path / "open", experiment.config(), resume=False) as folder:
        folder.finish(compact(experiment.run(device="cpu")))
    with pytest.raises(InvalidInput, match="is not blind"):
        unblind(tmp_path / "open")
    run_blind(graph, tmp_path / "out", "bangs")
    path = tmp_path / "out" / "blind" / "round-000001.safetensors"
    path.write_bytes(b"nothing")
    with pytest.raises(InvalidInput, match="missing or damaged"):
        unblind(tmp_path / "out")
    path.unlink()
    with pytest.raises(InvalidInput, match="missing or damaged"):
        unblind(tmp_path / "out")
    with RunFolder.create_or_resume(tmp_path / "begun", experiment.config(), resume=False):
        pass
    with pytest.raises(InvalidInput, match="not finished"):
        unblind(tmp_path / "begun")


def test_on_the_command_line_a_blind_run_stays_blind_until_it_is_opened(graph: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    output = bangs("run", "--dataset", str(graph), "--method", "soft", "--blind", "--out", out, *WORDS)
    assert output.code == 0, output.err
    assert '"test"' not in output.out
    assert '"test"' not in (tmp_path / "out" / "result.json").read_text()
    opened = bangs("unblind", out, "--json")
    assert opened.code == 0, opened.err
    (result,) = json.loads(opened.out).values()
    assert 0 <= result["validation"]["mean"] <= 100
    second = bangs("unblind", out)
    assert "opened before" in second.out


def test_nodes_per_class_are_a_split(tmp_path: Path) -> None:
    experiment = Experiment(per_class=3, validation_nodes=50, **QUICK)
    from bangs.graphs.datasets import loading

    task = experiment.task(loading.load("synthetic"))
    for run in range(2):
        counts = torch.bincount(task.given.target[run][task.given.known[run]])
        assert (counts == 3).all()
    assert (task.held.sum(1) == 50).all()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"per_class": 3, "share": 0.1}, "a share of all nodes or a number per class"),
        ({"validation_nodes": 3}, "validation_nodes goes with per_class"),
        ({"per_class": 0}, "per_class must be a whole number from 1"),
    ],
)
def test_a_split_that_cannot_be_gives_a_clear_error(settings: dict, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Experiment(**settings)


SUITE = """
title = "Blind"
blind = true
rows = "dataset"
columns = "method"
[experiment]
rounds = 1
k = 4
candidates = 8
seeds = 2
changes = {{ epochs = 5 }}
[axes]
dataset = ["{graph}"]
method = ["raw", "soft"]
"""


@pytest.fixture
def suite(graph: Path, tmp_path: Path) -> Path:
    path = tmp_path / "blind.toml"
    path.write_text(SUITE.format(graph=graph))
    return path


def test_a_blind_suite_has_no_test_column_until_it_is_opened(suite: Path, tmp_path: Path) -> None:
    out, rows = tmp_path / "out", tmp_path / "rows.jsonl"
    assert bangs("reproduce", suite, f"--out={out}", "--device=cpu", f"--export={rows}").code == 0
    exported = list(rows_in_file(rows))
    assert len(exported) == 4
    assert all("validation" in row and not {"test", "pseudo_accuracy"} & set(row) for row in exported)
    table = json.loads(bangs("table", out, "--format=json").out)
    assert {line["rule"] for line in table["lines"]} == {"blind"}
    assert "no test label was opened" in table["caption"]

    assert bangs("unblind", out).code == 0
    opened = json.loads(bangs("table", out, "--format=json").out)
    assert {line["rule"] for line in opened["lines"]} == {"validation", "best_test"}
    assert json.loads(bangs("unblind", out, "--json").out) == {}  # nothing is left to open


def test_blind_results_are_drawn_and_shown(suite: Path, tmp_path: Path) -> None:
    bangs("reproduce", suite, f"--out={tmp_path / 'out'}", "--device=cpu")
    result = bangs("report", tmp_path / "out", "--json")
    assert result.code == 0, result.err
    assert "no test label was opened" in Path(json.loads(result.out)["page"]).read_text()


def test_a_run_that_an_open_suite_wants_too_is_open(suite: Path, tmp_path: Path) -> None:
    other = tmp_path / "open.toml"
    other.write_text(suite.read_text().replace("blind = true", ""))
    bangs("reproduce", suite, other, f"--out={tmp_path / 'out'}", "--device=cpu")
    (first, _) = json.loads(bangs("table", tmp_path / "out", "--format=json").out)
    assert "validation" in {line["rule"] for line in first["lines"]}


def test_blind_is_yes_or_no(suite: Path) -> None:
    suite.write_text(suite.read_text().replace("blind = true", 'blind = "yes"'))
    assert "blind must be true or false" in bangs("reproduce", suite).err
