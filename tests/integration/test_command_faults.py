"""Commands that meet a fault say so in a sentence, and can go on when it is gone."""

import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch

from bangs.experiments.experiment import Experiment
from bangs.runs import events, lock, read_run
from tests import EXAMPLES
from tests.cli.invoke import CommandResult, bangs
from tests.helpers.killing import in_a_child
from tests.helpers.small_graphs import graph_file
from tests.integration.chaos import outcome

QUICK = ("--seeds=2", "--rounds=3", "--k=5", "--candidates=10", "--epochs=10", "--device=cpu", "--quiet")


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return graph_file(tmp_path / "one.npz")


def status_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_run_on_a_full_disk_says_so_and_goes_on_when_there_is_space(small_disk: Path, graph: Path) -> None:
    command = ("run", f"--dataset={graph}", *QUICK)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 890_000)
    full = bangs(*command, "--out", small_disk / "run")
    assert full.code == 2
    assert "could not be written: the disk is full; free some space" in full.err
    assert "Traceback" not in full.err
    begun = read_run(small_disk / "run")
    assert begun.result is None
    ballast.unlink()
    assert bangs(*command, "--out", small_disk / "run", "--resume").code == 0
    assert bangs(*command, "--out", graph.parent / "twin").code == 0
    assert outcome(small_disk / "run") == outcome(graph.parent / "twin")


def test_a_fit_on_a_full_disk_says_so_and_goes_on_when_there_is_space(small_disk: Path) -> None:
    command = (
        "fit",
        EXAMPLES / "own-graph",
        "--method=hard",
        "--validation=0.25",
        "--rounds=1",
        "--epochs=5",
        "--device=cpu",
        "--quiet",
    )
    subprocess.run(["mount", "-o", "remount,size=2m", str(small_disk)], check=True)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 1_900_000)
    full = bangs(*command, "--out", small_disk / "fit")
    assert full.code == 2
    assert "the disk is full; free some space" in full.err
    ballast.unlink()
    assert bangs(*command, "--out", small_disk / "fit", "--resume").code == 0
    assert (small_disk / "fit" / "predictions.csv").read_text().count("\n") == 301


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_place_one_may_not_write_in_is_refused_with_a_clear_error(tmp_path: Path) -> None:
    # nobody may not read a checkout in a private folder, so what the command reads of it is read before
    assert bangs("run", *QUICK, "--out", tmp_path / "mine").code == 0
    reader, writer = os.pipe()

    def as_nobody() -> int:
        os.setgid(65534)
        os.setuid(65534)
        result = bangs("run", *QUICK, "--out", "/run-of-nobody/out")
        os.write(writer, result.err.encode())
        return result.code

    assert status_of(in_a_child(as_nobody)) == 2
    os.close(writer)
    with open(reader) as lines:
        assert "could not be written: permission is denied; change the permissions or write" in lines.read()


def held(folder: Path) -> None:
    """Wait until another process holds the folder and has begun to work there."""
    while not (folder / "events.jsonl").exists() or not (folder / "lock").read_text():
        time.sleep(0.02)


def two_at_once(words: tuple[Any, ...], slowly: tuple[str, ...], out: Path) -> CommandResult:
    """The result of the second of two commands on one folder; the first is stopped by SIGTERM afterwards."""
    first = subprocess.Popen([sys.executable, "-m", "bangs", *map(str, words), *slowly, "--out", str(out)])
    held(out)
    second = bangs(*words, *slowly, "--out", out, "--resume")
    assert f"is in use by process {first.pid} since 20" in second.err
    assert "wait for it, stop it, or choose another folder" in second.err
    first.terminate()
    assert first.wait() == 143
    return second


def test_of_two_runs_on_one_folder_one_works_and_the_other_says_who(graph: Path, tmp_path: Path) -> None:
    words = ("run", f"--dataset={graph}", "--device=cpu", "--quiet", "--seeds=2")
    output = two_at_once(words, ("--rounds=80", "--k=1", "--epochs=300", "--patience=300"), tmp_path / "out")
    assert output.code == 2
    kinds = [event["kind"] for event in read_run(tmp_path / "out").events]
    assert "resumed" not in kinds


def test_of_two_fits_on_one_folder_one_works_and_the_other_says_who(tmp_path: Path) -> None:
    words = ("fit", EXAMPLES / "own-graph", "--method=hard", "--validation=0.25", "--device=cpu", "--quiet")
    assert two_at_once(words, ("--rounds=80", "--k=1", "--epochs=2000"), tmp_path / "out").code == 2


def test_a_clock_that_goes_back_changes_neither_order_nor_result(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock(datetime):
        second_now = 50

        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            cls.second_now -= 1
            return datetime(2026, 1, 1, 0, 0, cls.second_now, tzinfo=UTC)

    command = ("run", f"--dataset={graph}", *QUICK)
    assert bangs(*command, "--out", tmp_path / "forth").code == 0
    monkeypatch.setattr(events, "datetime", Clock)
    monkeypatch.setattr(lock, "datetime", Clock)
    assert bangs(*command, "--out", tmp_path / "back").code == 0
    assert outcome(tmp_path / "forth") == outcome(tmp_path / "back")
    logged = read_run(tmp_path / "back").events
    assert [event["n"] for event in logged] == list(range(1, len(logged) + 1))
    assert [event["time"] for event in logged] == sorted((event["time"] for event in logged), reverse=True)
    assert [event["clock"] for event in logged] == sorted(event["clock"] for event in logged)


def test_too_little_memory_gives_a_clear_error(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Experiment, "run", lambda *_, **__: torch.empty(2**60))
    result = bangs("run", f"--dataset={graph}", *QUICK)
    assert result.code == 2
    assert result.err == (
        "bangs: memory ran out; lower --seeds, which are trained at once; or lower --candidates; "
        "or train in batches with --batch-size; or try another --device; or use a machine with more memory\n"
    )
