"""The short form of `make chaos`: kills at random moments cost a run nothing."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.forking import FORKING
from tests.integration import chaos


@pytest.mark.slow
def test_runs_killed_at_random_moments_are_neither_lost_nor_different_nor_unreadable() -> None:
    command = [sys.executable, chaos.__file__, "--kills=6", "--methods=bangs,cpl", "--rounds=2", "--seed=3", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=FORKING)
    report = json.loads(done.stdout)
    assert done.returncode == 0, (report, done.stderr)
    assert (report["lost"], report["different"], report["unreadable"], report["faults"]) == (0, 0, 0, [])
    assert report["kills"] == sum(report["where"].values()) == 6
    assert report["in_writes"] >= 2


def test_the_place_of_a_kill_is_named(tmp_path: Path) -> None:
    board = chaos.Board()
    assert chaos.place_of_kill(board) == "start"
    board["call"], board["file"] = chaos.CALLS.index("fsync"), chaos.FILES.index("checkpoint")
    assert chaos.place_of_kill(board) == "fsync of checkpoint"
    assert chaos._file("runs/.round-000002.safetensors.0123456789abcdef.tmp") == "checkpoint"
    assert chaos._file(str(tmp_path)) == "folder"


@pytest.mark.parametrize("broken", ["lost", "different", "unreadable"])
def test_a_product_that_fails_in_one_way_is_found_out(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = chaos.Report()

    def attempt(words: list[str], board: chaos.Board, death: chaos.Death) -> int:
        """Killed after it kept round 3, then finished after it had found one."""
        if report.attempts == 0:
            board["kept"] = 3
            (tmp_path / "config.json").write_text("{")
            return -signal.SIGKILL
        board["found"] = 2 if broken == "lost" else 3
        return 0

    monkeypatch.setattr(chaos, "attempt", attempt)
    monkeypatch.setattr(chaos, "outcome", lambda _: ("other",) if broken == "different" else ("same",))
    if broken != "unreadable":
        monkeypatch.setattr(chaos, "read_run", lambda _: None)
    settings, twin = chaos.RunSettings(tmp_path / "graph.npz", 4), chaos.Twin(("same",), 1.0, 10)
    chaos._live_and_die(tmp_path, settings, "bangs", twin, iter([chaos.Death()]), 1, report)
    assert (report.kills, report.runs) == (1, 1)
    assert {name for name in ("lost", "different", "unreadable") if getattr(report, name)} == {broken}
