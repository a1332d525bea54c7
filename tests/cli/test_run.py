"""`bangs run`: a folder that can be gone on with, whatever ended the run."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bangs.cli import app
from bangs.cli.parsing import parse_seeds
from bangs.cli.run import scores
from bangs.errors import InvalidInput
from bangs.runs import RunFolder, read_run
from bangs.utils.files import Unwritable
from bangs.utils.signals import Stopped
from tests import EXAMPLES, ROOT
from tests.cli.invoke import bangs
from tests.helpers.small_graphs import graph_file
from tests.helpers.without_seconds import without_seconds


def words(graph: Path, *more: str) -> list[str]:
    defaults = ["--seeds", "2", "--rounds", "3", "--k", "5", "--candidates", "10", "--epochs", "10", "--device", "cpu"]
    return ["run", "--dataset", str(graph), "--method", "bangs", *defaults, *more]


def run(graph: Path, *more: str) -> Any:
    return CliRunner().invoke(app, words(graph, *more))


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return graph_file(tmp_path / "one.npz")


def result_of(folder: Path) -> Any:
    return without_seconds(read_run(folder).result)


def test_a_run_folder_holds_config_history_and_result(graph: Path, tmp_path: Path) -> None:
    result = run(graph, "--out", str(tmp_path / "run"), "--json")
    record = read_run(tmp_path / "run")
    assert record.config["dataset"] == str(graph)
    assert record.result is not None
    assert record.result == json.loads(result.stdout)
    rows = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert [row["round"] for row in rows] == [0, 1, 2, 3]
    assert len(rows[1]["adopted"][0]["node"]) == 5
    assert list((tmp_path / "run" / "checkpoints").iterdir()) == []


def test_columns_pushed_without_error_choose_the_nodes_of_whole_columns(graph: Path, tmp_path: Path) -> None:
    whole, pushed = tmp_path / "whole", tmp_path / "pushed"
    assert run(graph, "--out", str(whole)).exit_code == 0
    assert run(graph, "--push", "0", "--out", str(pushed)).exit_code == 0
    assert "push" not in read_run(whole).config
    assert "propagate=Push(alpha=0.15, steps=10, error=0.0)" in read_run(pushed).config["parts"]["method"]
    exact_rows, pushed_rows = ((folder / "history.jsonl").read_text().splitlines() for folder in (whole, pushed))
    for one, other in zip(exact_rows, pushed_rows, strict=True):
        assert [adopted["node"] for adopted in json.loads(one)["adopted"]] == [
            adopted["node"] for adopted in json.loads(other)["adopted"]
        ]


def test_an_error_of_pushed_columns_beyond_all_entries_is_refused(graph: Path) -> None:
    assert "push must be a number from 0 to 1, got 2.0" in str(run(graph, "--push", "2").exception)


def test_an_option_that_a_method_does_not_use_is_named(graph: Path) -> None:
    result = run(graph, "--method", "random", "--estimator", "msr", "--calibrator", "vector", "--pieces", "2").output
    idle = [line for line in result.splitlines() if "makes no difference" in line]
    assert [line.split()[1] for line in idle] == ["--candidates", "--estimator", "--calibrator", "--pieces"]
    assert "makes no difference" not in run(graph, "--estimator", "msr", "--calibrator", "vector").output


def test_a_folder_in_use_by_another_run_is_refused_with_the_way_out(graph: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    assert run(graph, "--out", out).exit_code == 0
    assert "a finished run; add --overwrite to delete it, or choose another" in str(run(graph, "--out", out).exception)
    assert "k: 5 in the folder, 6 now" in str(run(graph, "--k", "6", "--out", out, "--resume").exception)
    assert "nothing is left to do" in run(graph, "--out", out, "--resume").output
    assert run(graph, "--k", "6", "--out", out, "--overwrite").exit_code == 0
    assert read_run(out).config["k"] == 6


def test_the_precision_of_products_is_part_of_the_configuration(graph: Path, tmp_path: Path) -> None:
    assert run(graph, "--precision", "tf32", "--out", str(tmp_path / "run")).exit_code == 0
    assert read_run(tmp_path / "run").config["changes"]["precision"] == "tf32"
    assert "Trainer.precision must be one of float32, tf32" in str(run(graph, "--precision", "tf16").exception)


def test_a_run_that_began_deterministic_does_not_go_on_otherwise(graph: Path, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "run"))
    assert run(graph, "--deterministic", *out).exit_code == 0
    refused = str(run(graph, "--resume", *out).exception)
    assert "holds a run of another configuration" in refused
    assert 'changes.subgraph: "whole" in the folder, nothing now' in refused


def test_resume_and_overwrite_need_a_folder(graph: Path) -> None:
    for flag in ("--resume", "--overwrite"):
        assert isinstance(run(graph, flag).exception, InvalidInput)


def test_a_stopped_run_goes_on_to_the_same_result(graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = RunFolder.save

    def save(self: RunFolder, round: int, *facts: Any) -> None:
        real(self, round, *facts)
        if round == 1:
            raise Stopped(signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "save", save)
        stopped = run(graph, "--out", str(tmp_path / "run"))
    assert stopped.exit_code == 143
    assert "--resume" in stopped.stderr
    resumed = run(graph, "--out", str(tmp_path / "run"), "--resume")
    assert "continuing after round 1" in resumed.output
    run(graph, "--out", str(tmp_path / "whole"))
    assert result_of(tmp_path / "run") == result_of(tmp_path / "whole")


def test_ctrl_c_ends_the_process_at_a_safe_point(graph: Path, tmp_path: Path) -> None:
    slow = words(graph, "--rounds", "80", "--k", "1", "--epochs", "200", "--out", str(tmp_path / "run"))
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "bangs", *slow], stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=env
    )
    try:
        while not list((tmp_path / "run" / "checkpoints").glob("*")) and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, output = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130
    assert b"continue with: bangs run" in output
    with RunFolder.create_or_resume(tmp_path / "run", read_run(tmp_path / "run").config, resume=True) as folder:
        assert folder.latest() is not None


def test_a_full_disk_gives_a_clear_error_and_the_run_can_go_on(graph: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, former[1]))  # too small for a checkpoint
    try:
        result = run(graph, "--out", out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
    assert isinstance(result.exception, Unwritable)
    assert "checkpoints/round-000000.safetensors' could not be written" in str(result.exception)
    assert run(graph, "--out", out, "--resume").exit_code == 0
    run(graph, "--out", str(tmp_path / "whole"))
    assert result_of(tmp_path / "run") == result_of(tmp_path / "whole")


def test_rules_stand_below_each_other_whatever_the_spread() -> None:
    spread = {"raw": 13.08, "validation": 4.1, "best_test": 0.0, "last": 9.9}
    result = {name: {"mean": 50.0, "std": value} for name, value in spread.items()} | {"seconds": {"total": 1.0}}
    lines = scores(result).splitlines()[1:5]
    assert {line.index(word) for line, word in zip(lines, ("round", "round", "best ro", "last ro"), strict=True)} == {
        29
    }


def test_seeds_are_a_number_a_list_or_a_range() -> None:
    assert parse_seeds("3") == (0, 1, 2)
    assert parse_seeds("910,912") == (910, 912)
    assert parse_seeds("910-912") == (910, 911, 912)
    for wrong in ("0", "a", "1-", "-3"):
        with pytest.raises(InvalidInput):
            parse_seeds(wrong)


@pytest.mark.parametrize("value", [2**63 - 1, 10**23])
@pytest.mark.parametrize(
    "option", ["k", "candidates", "samples", "epochs", "patience", "batch-size", "fanout", "seeds"]
)
def test_a_number_that_is_too_large_gives_a_clear_error(option: str, value: int) -> None:
    result = bangs("run", f"--{option}", value)
    assert result.code == 2
    assert str(value) in result.err


@pytest.mark.parametrize("option", ["k", "rounds", "epochs", "batch-size", "fanout"])
def test_a_number_that_is_too_large_for_a_fit_gives_a_clear_error(option: str, tmp_path: Path) -> None:
    result = bangs("fit", EXAMPLES / "own-graph", "--out", tmp_path / "out", f"--{option}", 10**23)
    assert result.code == 2
    assert str(10**23) in result.err
    assert not (tmp_path / "out").exists()
