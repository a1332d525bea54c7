"""No command replaces a file that it did not write, and an interrupted one loses nothing."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from bangs import SelfTrainingClassifier
from bangs.errors import Diverged, InvalidInput
from bangs.experiments import jobs
from bangs.experiments.experiment import Experiment
from bangs.experiments.reproduce import Only, Plan, reproduce
from bangs.experiments.results import json_lines, results_in, rows_in_file
from bangs.experiments.suites.find_suite import suite_path
from bangs.experiments.suites.read_suite import read_suite
from bangs.utils.files import Unwritable, check_replaceable
from bangs.utils.signals import Stopped
from tests import EXAMPLES
from tests.cli.invoke import bangs
from tests.conftest import two_rings
from tests.helpers.small_graphs import fake_rows, suite_file

MINE = "my own notes\n"
CURVES = {"validation": [0.5], "test": [0.5], "labelled": [1], "epochs": [1], "pseudo_accuracy": [None]}


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """A file of rows of a suite that comes with bangs."""
    path = tmp_path / "figure-k.jsonl"
    cells = list(read_suite(suite_path("figure-k")).cells())[:2]
    made = [row for cell in cells for row in fake_rows(cell.experiment, [[0.7, 0.8]] * 3)]
    curves = {"labelled": [1, 2], "epochs": [1, 1], "pseudo_accuracy": [None, 0.5]}
    path.write_text(json_lines([{**row, **curves} for row in made]))
    return path


def test_own_files_are_recognised_by_their_beginning(tmp_path: Path) -> None:
    path = tmp_path / "file"
    check_replaceable(path, b"ours", "x")  # there is none
    path.touch()
    check_replaceable(path, b"ours", "x")
    path.write_text("ours, and more")
    check_replaceable(path, b"ours", "x")
    check_replaceable(path, re.compile(rb"o\w+s"), "x")
    with pytest.raises(InvalidInput, match="exists and was not written by `bangs x`; move it away, or write to"):
        check_replaceable(path, b"theirs", "x")


@pytest.mark.parametrize("kind", ["folder", "link", "pipe", "device"])
def test_what_is_no_regular_file_is_refused_and_stays(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(tmp_path / "other")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path = Path("/dev/null")
    before = os.lstat(path)
    with pytest.raises(InvalidInput, match=r"must be a regular file|symbolic link"):
        check_replaceable(path, b"", "x")
    assert os.path.samestat(before, os.lstat(path))


def commands(tmp_path: Path, rows: Path) -> dict[str, tuple[Path, list[Any]]]:
    """Commands by name, each with the file it would write."""
    suite = suite_file(tmp_path)
    return {
        "reproduce --export": (
            tmp_path / "notes.jsonl",
            ["reproduce", suite, "--out", tmp_path / "out", "--methods", "raw", "--export", tmp_path / "notes.jsonl"],
        ),
        "table --page": (tmp_path / "notes.md", ["table", rows, "--page", tmp_path / "notes.md"]),
        "report": (rows.with_suffix(".html"), ["report", rows, "--suite", "figure-k"]),
        "figure": (tmp_path / "figures" / "figure-k.csv", ["figure", rows, "--suite", "figure-k"]),
        "figure, a picture": (tmp_path / "figures" / "figure-k.svg", ["figure", rows, "--suite", "figure-k"]),
    }


@pytest.mark.parametrize("name", ["reproduce --export", "table --page", "report", "figure", "figure, a picture"])
def test_a_file_of_the_user_is_not_changed(tmp_path: Path, rows: Path, name: str) -> None:
    path, words = commands(tmp_path, rows)[name]
    path.parent.mkdir(exist_ok=True)
    path.write_text(MINE)
    result = bangs(*words)
    assert result.code == 2
    assert f"'{path}' exists" in result.err
    assert path.read_text() == MINE
    assert not (tmp_path / "out").exists()  # refused before any work is done


@pytest.mark.parametrize("name", ["suites/tiny.toml", "asked.txt"])
def test_a_folder_with_a_suite_or_a_list_of_somebody_else_is_refused(tmp_path: Path, name: str) -> None:
    theirs = tmp_path / "out" / name
    theirs.parent.mkdir(parents=True)
    theirs.write_text(MINE)
    result = bangs("reproduce", suite_file(tmp_path), "--out", tmp_path / "out", "--methods", "raw")
    assert result.code == 2
    assert f"'{theirs}' exists" in result.err
    assert [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()] == [theirs.name]
    assert theirs.read_text() == MINE


def test_a_suite_that_was_edited_takes_the_place_of_its_earlier_copy(tmp_path: Path) -> None:
    suite, out = suite_file(tmp_path), tmp_path / "out"
    for title in ("Tiny", "Edited"):
        suite.write_text(suite.read_text().replace('title = "Tiny"', f'title = "{title}"'))
        assert bangs("reproduce", suite, "--out", out, "--methods", "raw", "--datasets", "one").code == 0
    assert 'title = "Edited"' in (out / "suites" / "tiny.toml").read_text()


def test_a_saved_model_replaces_no_model_of_another_program(tmp_path: Path) -> None:
    model = SelfTrainingClassifier(rounds=1, epochs=5).fit(two_rings())
    for _ in range(2):
        model.save(tmp_path / "mine")
    file = tmp_path / "theirs" / "model.safetensors"
    file.parent.mkdir()
    file.write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    with pytest.raises(InvalidInput, match="exists and was not written by `bangs fit`"):
        model.save(file.parent)
    assert file.read_bytes() == b"\x02\0\0\0\0\0\0\0{}"


@pytest.mark.parametrize("name", ["reproduce --export", "table --page", "report", "figure"])
def test_a_command_replaces_what_it_wrote(tmp_path: Path, rows: Path, name: str) -> None:
    path, words = commands(tmp_path, rows)[name]
    for _ in range(2):
        result = bangs(*words)
        assert result.code == 0, result.err
        assert path.exists()
        path.write_text(path.read_text() + "\n")
    result = bangs(*words)
    assert result.code == 0, result.err


def earlier_export(folder: Path) -> tuple[Path, str]:
    row = {**fake_rows(Experiment(), [[0.5]])[0], **CURVES}
    path = folder / "rows.jsonl"
    path.write_text(json_lines([row]))
    return path, row["run"]


def test_an_interrupted_suite_keeps_the_rows_of_an_earlier_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, (export, run) = suite_file(tmp_path), earlier_export(tmp_path)

    def stop(*words: Any, **more: Any) -> None:
        raise Stopped(2)

    monkeypatch.setattr(jobs.Experiment, "run", stop)
    output = bangs("reproduce", suite, "--out", tmp_path / "out", "--device", "cpu", "--export", export)
    assert output.code == 130
    assert [result.run for result in results_in(export)] == [run]


def test_a_script_that_is_killed_between_runs_has_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite, (export, run) = suite_file(tmp_path), earlier_export(tmp_path)
    observed = []
    real = Plan.export

    def watched(plan: Plan, path: Path, *, complete: bool = True) -> int:
        count = real(plan, path, complete=complete)
        observed.append({json.loads(line)["run"] for line in path.read_text().splitlines()})
        return count

    monkeypatch.setattr(Plan, "export", watched)
    only = Only(methods=["raw"])
    reproduce(str(suite), tmp_path / "out", export=export, only=only, device="cpu", say=lambda words: None)
    assert [run in runs for runs in observed] == [True, True, False]  # the last one is the whole suite's
    assert len(observed[-1]) == 2


def test_a_fit_that_fails_after_overwrite_leaves_no_model_to_predict_from(
    fitted_example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    shutil.copytree(fitted_example, out)

    def diverge(*words: Any, **more: Any) -> None:
        raise Diverged("the first model diverged")

    monkeypatch.setattr(SelfTrainingClassifier, "fit", diverge)
    assert bangs("fit", EXAMPLES / "own-graph", "--out", out, "--overwrite", "--seed", 7).code == 2
    result = bangs("predict", out, EXAMPLES / "own-graph-grown")
    assert result.code == 2
    assert "model.safetensors' does not exist" in result.err


def test_runs_that_fail_take_no_rows_from_an_earlier_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite, (export, _) = suite_file(tmp_path), earlier_export(tmp_path)
    words = ("reproduce", suite, "--device", "cpu", "--methods", "raw", "--export", export)
    assert bangs(*words, "--out", tmp_path / "out").code == 0
    scored = export.read_text()

    def fail(*words: Any, **more: Any) -> None:
        raise Unwritable(f"'{tmp_path}/a b/round.safetensors' could not be written: the disk is full; free some space")

    monkeypatch.setattr(jobs.Experiment, "run", fail)
    assert bangs(*words, "--out", tmp_path / "other").code == 1
    assert export.read_text() == scored  # scores stay where the same runs failed now
    assert bangs(*words, "--out", tmp_path / "more", "--seeds", "1").code == 1
    rows = list(rows_in_file(export))
    assert json_lines(row for row in rows if "error" not in row) == scored
    errors = {row["error"] for row in rows if "error" in row}
    assert errors == {"'round.safetensors' could not be written: the disk is full; free some space"}
