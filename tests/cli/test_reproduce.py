"""`bangs reproduce`: everything once, nothing twice, and failures reported."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bangs.cli import app
from bangs.errors import InvalidInput, UnknownName
from bangs.experiments import jobs, process_workers
from bangs.experiments.results import results_in, rows_of
from bangs.runs import RunFolder, read_run
from bangs.utils.signals import Stopped
from tests import ROOT
from tests.helpers.forking import FORKING
from tests.helpers.small_graphs import JobKilledAtStart, graph_file, suite_file

KILL_SUITE = ROOT / "tests" / "integration" / "kill_suite.py"


def reproduce(suite: Path, out: Path, *words: str) -> Any:
    return CliRunner().invoke(app, ["reproduce", str(suite), "--out", str(out), "--device", "cpu", *words])


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A suite file and the folder into which it was run."""
    folder = tmp_path_factory.mktemp("tiny")
    suite = suite_file(folder)
    result = reproduce(suite, folder / "out", "--export", str(folder / "rows" / "tiny.jsonl"))
    assert result.exit_code == 0, result.output
    return suite, folder / "out"


def test_every_run_has_a_folder_named_by_its_configuration(done: tuple[Path, Path]) -> None:
    _, out = done
    folders = sorted((out / "runs").iterdir())
    assert len(folders) == 6
    for folder in folders:
        record = read_run(folder)
        assert record.result is not None
        assert rows_of(record)[0]["run"] == folder.name
        assert list((folder / "checkpoints").iterdir()) == []


def test_what_is_finished_is_not_done_again(done: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    suite, out = done
    monkeypatch.setattr(jobs.Experiment, "run", None)
    result = reproduce(suite, out, "--json")
    facts = json.loads(result.output)
    assert (facts["runs"], facts["already_done"], facts["done"]) == (6, 6, 0)


def test_the_exported_rows_make_the_same_table(done: tuple[Path, Path]) -> None:
    suite, out = done
    rows = out.parent / "rows"
    words = ["--suite", str(suite), "--format", "csv"]
    tables = [CliRunner().invoke(app, ["table", str(path), *words]).output for path in (out, rows)]
    assert tables[0] == tables[1]
    assert tables[0].count("\n") == 1 + 6 * 2 + 3
    lines = (rows / "tiny.jsonl").read_text().splitlines()
    runs = [json.loads(line) for line in lines]
    assert [len(run["rows"]) for run in runs] == [3] * 6
    assert runs[0].keys() == {"run", "config", "environment", "batch", "seconds", "rows"}
    assert {"seed", "validation", "test"} <= runs[0]["rows"][0].keys()


@pytest.mark.parametrize("name", [".", "tiny.jsonl"])
def test_known_runs_are_left_out_and_their_rows_stay_in_the_file_that_has_them(
    done: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    suite, out = done
    lines = (out.parent / "rows" / "tiny.jsonl").read_text().splitlines(keepends=True)
    file, other = tmp_path / "tiny.jsonl", tmp_path / "new" / "rows.jsonl"
    file.write_text("".join(lines[1:]))  # the first run is not known
    words = ("--known", str(tmp_path / name), "--json", "--export")
    for path, done_now in ((other, 1), (file, 0)):
        facts = json.loads(reproduce(suite, tmp_path / "out", *words, str(path)).output)
        assert (facts["runs"], facts["done"]) == (6, done_now)
    assert [result.run for result in results_in(other)] == [json.loads(lines[0])["run"]]
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 1
    assert file.read_text().splitlines()[:5] == [line.strip() for line in lines[1:]]
    assert len(results_in(file)) == 6


def test_a_failing_run_is_recorded_and_stops_no_other(tmp_path: Path) -> None:
    suite = suite_file(tmp_path)
    (tmp_path / "one.npz").unlink()
    result = reproduce(suite, tmp_path / "out", "--methods", "raw", "--export", str(tmp_path / "rows.jsonl"))
    assert result.exit_code == 1
    assert "does not exist" in result.output
    failed, fine = sorted(results_in(tmp_path / "rows.jsonl"), key=lambda result: len(result.rows))
    assert "one.npz does not exist" in failed.error
    assert len(fine.rows) == 3
    assert "one (raw)" in CliRunner().invoke(app, ["table", str(tmp_path / "out")]).output


def test_a_failed_run_is_tried_again(tmp_path: Path) -> None:
    suite = suite_file(tmp_path)
    graph = (tmp_path / "one.npz").read_bytes()
    (tmp_path / "one.npz").unlink()
    assert reproduce(suite, tmp_path / "out", "--methods", "raw").exit_code == 1
    (tmp_path / "one.npz").write_bytes(graph)
    assert reproduce(suite, tmp_path / "out", "--methods", "raw").exit_code == 0


def test_a_suite_killed_at_random_moments_ends_like_an_undisturbed_one(tmp_path: Path) -> None:
    command = [sys.executable, str(KILL_SUITE), str(tmp_path), "5"]
    facts = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=FORKING).stdout)
    assert facts["struck"] > 0
    assert facts["killed"] == facts["whole"]
    assert facts["whole"]["finished once"] == facts["whole"]["runs"] == 6


def test_ctrl_c_leaves_folders_that_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = suite_file(tmp_path)
    real, calls = RunFolder.save, []

    def save(*args: Any) -> None:
        real(*args)
        calls.append(args)
        if len(calls) == 2:
            raise Stopped(2)

    monkeypatch.setattr(RunFolder, "save", save)
    stopped = reproduce(suite, tmp_path / "out")
    assert stopped.exit_code == 130
    assert "continue with: bangs" in stopped.stderr
    assert reproduce(suite, tmp_path / "out").exit_code == 0


def test_several_processes_give_the_same_table(done: tuple[Path, Path], tmp_path: Path) -> None:
    suite, out = done
    result = reproduce(suite, tmp_path / "out", "--jobs", "2", "--methods", "raw,bangs", "--datasets", "two")
    assert result.exit_code == 0, result.output
    ours = {result.run: result.rows for result in results_in(tmp_path / "out")}
    theirs = {result.run: result.rows for result in results_in(out)}
    for run, rows in ours.items():
        assert {n: row["test"] for n, row in rows.items()} == {n: row["test"] for n, row in theirs[run].items()}


def test_names_a_suite_does_not_have_are_refused(done: tuple[Path, Path]) -> None:
    suite, out = done
    for words in (["--datasets", "three"], ["--methods", "bang"], ["--engine", "cloud"]):
        assert isinstance(reproduce(suite, out, *words).exception, UnknownName)


def test_two_suites_of_one_name_and_a_choice_without_a_run_are_refused(tmp_path: Path) -> None:
    suite = suite_file(tmp_path)
    (tmp_path / "else").mkdir()
    twin = suite_file(tmp_path / "else")
    refused = CliRunner().invoke(app, ["reproduce", str(suite), str(twin), "--out", str(tmp_path / "out")])
    assert f"two suites are called 'tiny', {suite} and {twin}" in str(refused.exception)
    words = ["reproduce", "table-models", "table-ablation", "--models", "gat", "--methods", "confidence"]
    nothing = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out")])
    assert "no run has all that --datasets, --methods and --models ask for" in str(nothing.exception)
    assert not (tmp_path / "out").exists()


def test_a_suite_of_the_user_may_be_called_like_one_of_bangs(done: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(done[1], tmp_path / "out")
    path = tmp_path / "out" / "suites"
    (path / "tiny.toml").rename(path / "table-main.toml")
    named, default = (
        CliRunner().invoke(app, ["table", str(tmp_path / "out"), *words]).output
        for words in (["--suite", "table-main"], [])
    )
    assert named == default != ""


def test_the_way_to_the_table_can_be_typed_as_it_stands(done: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(done[1], tmp_path / "my out")
    assert f"bangs table '{tmp_path / 'my out'}'\n" in reproduce(done[0], tmp_path / "my out").output


def test_an_address_is_for_ray_and_help_names_what_to_install(done: tuple[Path, Path]) -> None:
    suite, out = done
    refused = reproduce(suite, out, "--address", "head:6379").exception
    assert isinstance(refused, InvalidInput)
    assert "add --engine ray" in str(refused)
    assert "'bangs[ray]'" in CliRunner().invoke(app, ["reproduce", "--help"], env={"COLUMNS": "200"}).output


def test_no_run_at_a_time_is_refused_by_either_engine(done: tuple[Path, Path], tmp_path: Path) -> None:
    for engine in ("local", "ray"):
        refused = reproduce(done[0], tmp_path / "out", "--engine", engine, "--jobs", "0").exception
        assert str(refused) == "--jobs must be a whole number from 1 to 1,024, got 0"


def test_ray_missing_gives_a_clear_error(
    done: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    result = reproduce(done[0], tmp_path / "out", "--engine", "ray")
    assert "pip install 'bangs[ray]'" in str(result.exception)


def test_a_job_whose_process_dies_is_tried_again_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_workers, "RETRIES", 1)
    graph = graph_file(tmp_path / "one.npz")
    deadly = []
    for seed, deaths in enumerate((1, 2)):
        experiment = jobs.Experiment(dataset=str(graph), method="raw", seeds=(seed,), changes={"epochs": 3})
        (tmp_path / str(seed)).mkdir()
        deadly.append(
            JobKilledAtStart(experiment, tmp_path / str(seed), device="cpu", deaths=deaths, parent=os.getpid())
        )
    outcomes = {}
    process_workers.Processes(1)(deadly, lambda job, outcome: outcomes.update({job.name: outcome.kind}))
    assert [outcomes[job.name] for job in deadly] == ["done", "failed"]
