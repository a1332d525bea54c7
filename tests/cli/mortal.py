"""Fits that are killed: `python -m tests.cli.mortal FOLDER KILLS` says whether their files are as if not.

An undisturbed `bangs fit`, then one that is killed by SIGKILL KILLS times at random moments and taken up again with
--resume. Clocks stand still, so that the files of both must agree in every byte. Prints {"differ": …, "kills": …,
"resumed": …}.
"""

import json
import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

import torch
from tests.cli.speaking import bangs

from bangs.runs import read_run

EXAMPLE = Path(__file__).parents[2] / "examples" / "own-graph"
SETTINGS = ("--rounds", 3, "--epochs", 12, "--quiet")
CHANGING = {"events.jsonl", "lock", "checkpoints"}


def fit(folder: Path, *flags: str) -> None:
    said = bangs("fit", EXAMPLE, "--out", folder, *SETTINGS, *flags)
    assert said.code == 0, said.err


def differing(one: Path, two: Path) -> list[str]:
    """The files that do not agree in every byte."""
    names = {path.name for folder in (one, two) for path in folder.iterdir()} - CHANGING
    return sorted(name for name in names if _bytes(one / name) != _bytes(two / name))


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def killed_at_random(folder: Path, kills: int, longest: float) -> int:
    """Fit, with so many kills on the way; how many struck."""
    struck = 0
    for number in range(kills + 1):
        child = os.fork()
        if child == 0:
            fit(folder, "--resume")
            os._exit(0)
        if number < kills:
            time.sleep(random.uniform(0.1, 0.8) * longest)
            os.kill(child, signal.SIGKILL)
        struck += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    return struck


def main(folder: Path, kills: int) -> None:
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    begin = time.monotonic()
    time.perf_counter = lambda: 0.0
    fit(folder / "whole")
    struck = killed_at_random(folder / "killed", kills, time.monotonic() - begin)
    events = [event["kind"] for event in read_run(folder / "killed").events]
    told = {
        "differ": differing(folder / "whole", folder / "killed"),
        "kills": struck,
        "resumed": events.count("resumed"),
        "rounds": events.count("round"),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
