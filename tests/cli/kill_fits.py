"""Fits that are killed: `python -m tests.cli.kill_fits FOLDER NUMBER…` compares their files with undisturbed ones.

An undisturbed `bangs fit`, then one that is killed by SIGKILL before its NUMBERth file takes its name, taken up with
--resume and killed again, for every number; a last attempt is let live. Clocks stand still, so that the files of both
must agree in every byte. Prints {"differ": …, "kills": …, "rounds": …}.
"""

import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch

from bangs.runs import read_run
from tests import EXAMPLES
from tests.cli.invoke import bangs

EXAMPLE = EXAMPLES / "own-graph"
SETTINGS = ("--method", "hard", "--validation", 0.25, "--rounds", 3, "--k", 10, "--epochs", 5, "--quiet")
CHANGING = {"events.jsonl", "lock", "checkpoints"}


def fit(folder: Path, *flags: str) -> None:
    result = bangs("fit", EXAMPLE, "--out", folder, *SETTINGS, *flags)
    assert result.code == 0, result.err


def differing(one: Path, two: Path) -> list[str]:
    """The files that do not agree in every byte."""
    names = {path.name for folder in (one, two) for path in folder.iterdir()} - CHANGING
    return sorted(name for name in names if _bytes(one / name) != _bytes(two / name))


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def killed(folder: Path, number: int | None) -> bool:
    """An attempt that dies before a file takes its name; whether it did."""
    child = os.fork()
    if child == 0:
        named = 0

        def count(event: str, arguments: Any) -> None:
            nonlocal named
            if event == "os.rename":
                named += 1
                if named == number:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        fit(folder, "--resume")
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def main(folder: Path, numbers: list[int]) -> None:
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    time.perf_counter = lambda: 0.0
    fit(folder / "whole")
    kills = [killed(folder / "killed", number) for number in (*numbers, None)]
    verdict = {
        "differ": differing(folder / "whole", folder / "killed"),
        "kills": sum(kills),
        "rounds": [event["index"] for event in read_run(folder / "killed").events if event["kind"] == "round"],
    }
    print(json.dumps(verdict))


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(number) for number in sys.argv[2:]])
