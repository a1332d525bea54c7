"""No kill, at whatever moment, costs more than the round in progress."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import bangs

SOURCE = str(Path(bangs.__path__[0]).parent)


@pytest.fixture(scope="module")
def left() -> dict[str, Any]:
    """What killed runs left behind, by one process that forks them all."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a kill does not care how slow the disk is
    with TemporaryDirectory(dir=memory) as folder:
        completed = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("kill_runs.py")), folder, "20"],
            env={**os.environ, "PYTHONPATH": SOURCE},
            capture_output=True,
            text=True,
            timeout=280,  # seconds; five on a quiet machine, and its forks stand in line on a busy one
        )
    assert completed.returncode == 0, completed.stderr
    report: dict[str, Any] = json.loads(completed.stdout)
    return report


def test_a_kill_before_or_within_every_call_that_changes_the_disk_loses_nothing(left: dict[str, Any]) -> None:
    assert left["points"].keys() == {"fine"}, left
    assert left["points"]["fine"] > 50


def test_twenty_kills_at_random_moments_lose_nothing(left: dict[str, Any]) -> None:
    assert left["random"] == {"fine": 20}, left
    assert sum(left["where"].values()) == 20
