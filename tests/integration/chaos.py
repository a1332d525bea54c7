"""Chaos:
`python -m tests.integration.chaos --kills 200 --json` kills `bangs run` at random moments and looks at what is left.

Runs of three methods on a small graph are killed by SIGKILL again and again and taken up with --resume, until they
are finished; then the next run begins. Half of the moments are drawn over the seconds of an attempt, half over its
calls that change the disk: before the call, halfway through a write, or right after it. Every attempt is a fork that
runs the command line itself.

`lost`: runs that could not be finished or went back behind a round that had been kept; `different`: finished runs
whose result or history is not the undisturbed twin's, byte for byte but for the seconds; `unreadable`: folders
that could not be read after a kill; `where`: what the kills struck.
"""

import argparse
import json
import mmap
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bangs.cli import app
from bangs.experiments.history_file import History
from bangs.graphs.datasets.synthetic import citation
from bangs.graphs.splits import per_class
from bangs.runs import RunFolder, read_run
from bangs.selftraining.loop import SelfTrainer
from bangs.training.trainer import Learner
from tests.helpers.without_seconds import without_seconds

METHODS = ("bangs", "cpl", "drgst")
SETTINGS = ("--k=8", "--candidates=16", "--seeds=3", "--epochs=20", "--device=cpu", "--quiet")
STAGES = ("start", "open", "begin", "select", "train", "keep", "finish", "forget")
CALLS = ("open", "write", "pwrite", "fsync", "replace", "unlink", "mkdir", "ftruncate")
FILES = ("other", "lock", "config", "environment", "events", "history", "checkpoint", "result", "folder")
NOTHING = -1
HOPELESS = 10  # lost runs after which no more are tried


@dataclass
class Report:
    """What the kills did."""

    kills: int = 0
    lost: int = 0
    different: int = 0
    unreadable: int = 0
    runs: int = 0  # finished
    attempts: int = 0
    where: Counter[str] = field(default_factory=Counter)  # calls that change the disk by name, other moments by stage
    in_writes: int = 0  # kills that struck inside or right at a call that changes the disk
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Board:
    """A few numbers that a child writes and its parent reads after the child's death."""

    NAMES = ("stage", "call", "file", "calls", "kept", "found", "torn")

    def __init__(self) -> None:
        self._memory = memoryview(mmap.mmap(-1, 8 * len(self.NAMES))).cast("q")
        self.clear()

    def clear(self) -> None:
        for name in self.NAMES:
            self[name] = NOTHING
        self["stage"] = self["calls"] = 0

    def __getitem__(self, name: str) -> int:
        return self._memory[self.NAMES.index(name)]

    def __setitem__(self, name: str, value: int) -> None:
        self._memory[self.NAMES.index(name)] = value


@dataclass(frozen=True)
class Death:
    """When an attempt dies: so many seconds after its start, or at its call number `call`."""

    seconds: float | None = None
    call: int | None = None
    moment: str = "before"  # the call, "within" it where it is a write, or "after" it


def small(path: Path) -> Path:
    """A graph of 120 nodes in a file, of which 12 are labelled and 24 held for validation."""
    data = citation(nodes=120, classes=3, features=40, seed=1, mean_degree=5.0, homophily=0.9, signal=0.7)
    split = per_class(data.y, 4, 24, 60, [0])
    masks = {f"{part}_mask": getattr(split, part)[0].numpy() for part in ("train", "val", "test")}
    np.savez(path, edge_index=data.edge_index.numpy(), y=data.y.numpy(), x=data.x.to_dense().numpy(), **masks)
    return path


@dataclass(frozen=True)
class RunSettings:
    """What all runs share."""

    graph: Path
    rounds: int

    def command(self, method: str, out: Path) -> list[str]:
        own = [f"--dataset={self.graph}", f"--method={method}", f"--rounds={self.rounds}", f"--out={out}"]
        return ["run", "--resume", *own, *SETTINGS]


def attempt(words: list[str], board: Board, death: Death) -> int:
    """The exit status of a forked `bangs`, negative if a signal ended it."""
    board.clear()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            instrument(board, death)
            app(words, standalone_mode=False)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    if death.seconds is not None:
        _sleep_while_alive(child, death.seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def instrument(board: Board, death: Death) -> None:
    """Make this process tell the board what it is doing, and die when its call comes."""
    for stage, owner, name in (
        ("open", History, "resume"),
        ("begin", SelfTrainer, "begin"),
        ("select", SelfTrainer, "advance"),
        ("train", Learner, "fit"),
        ("keep", History, "keep"),
        ("finish", RunFolder, "finish"),
        ("forget", RunFolder, "forget"),
    ):
        setattr(owner, name, _staged(board, STAGES.index(stage), getattr(owner, name)))
    RunFolder.save = _noting(board, "kept", RunFolder.save)  # type: ignore[method-assign]
    RunFolder.latest = _noting(board, "found", RunFolder.latest)  # type: ignore[method-assign]
    paths: dict[int, str] = {}
    for name in CALLS:
        setattr(os, name, _watched(board, death, name, getattr(os, name), paths))


def _staged(board: Board, stage: int, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        former, board["stage"] = board["stage"], stage
        try:
            return real(*args, **kwargs)
        finally:
            board["stage"] = former

    return call


def _noting(board: Board, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """Notes the round that was saved, or found."""

    def call(folder: RunFolder, *args: Any) -> Any:
        result = real(folder, *args)
        round = args[0] if args else NOTHING if result is None else result.round
        if name == "kept" or board[name] == NOTHING:
            board[name] = round
        return result

    return call


def _watched(board: Board, death: Death, name: str, real: Callable[..., Any], paths: dict[int, str]) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        if name == "open" and not args[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            file: int = real(*args, **kwargs)
            paths[file] = str(args[0])  # a folder that is to be synced
            return file
        path = paths.get(args[0], "") if isinstance(args[0], int) else str(args[0])
        board["calls"] += 1
        board["file"], board["call"] = FILES.index(_file(path)), CALLS.index(name)
        mine = board["calls"] == death.call
        if mine and death.moment == "within" and name == "write":
            board["torn"] = 1
            real(args[0], bytes(args[1])[: len(args[1]) // 2])
        if mine and death.moment != "after":
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*args, **kwargs)
        if mine:
            os.kill(os.getpid(), signal.SIGKILL)
        board["call"] = NOTHING
        if name == "open":
            paths[result] = path
        return result

    return call


def _file(path: str) -> str:
    """Which of a run's files a path is, its temporary twin included."""
    base = os.path.basename(path).lstrip(".")
    for name in FILES[1:-1]:
        if base.startswith("round-" if name == "checkpoint" else name) and base != "checkpoints":
            return name
    return "folder" if os.path.isdir(path) else "other"


def _sleep_while_alive(child: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(min(left, 0.02))


def place_of_kill(board: Board) -> str:
    """Where a kill struck, in words."""
    if board["call"] == NOTHING:
        return STAGES[board["stage"]]
    torn = "half of " if board["torn"] == 1 else ""
    return f"{torn}{CALLS[board['call']]} of {FILES[board['file']]}"


def outcome(folder: Path) -> tuple[Any, ...]:
    """All that a finished run tells, but for its seconds."""
    lines = (folder / "history.jsonl").read_text().splitlines()
    left = sorted(entry.name for entry in folder.rglob("*") if entry.name.startswith(".") or "round-" in entry.name)
    return without_seconds(read_run(folder).result), [without_seconds(json.loads(line)) for line in lines], left


@dataclass
class Twin:
    """An undisturbed run, to compare with."""

    outcome: tuple[Any, ...]
    seconds: float
    calls: int


def undisturbed(settings: RunSettings, method: str, folder: Path) -> Twin:
    board, begin = Board(), time.monotonic()
    if attempt(settings.command(method, folder), board, Death()) != 0:
        raise SystemExit(f"an undisturbed run of {method} failed")
    return Twin(outcome(folder), time.monotonic() - begin, board["calls"])


def deaths(twin: Twin, draw: random.Random) -> Iterator[Death]:
    """Moments drawn over the seconds of an attempt, and over its calls, in turn."""
    while True:
        yield Death(seconds=draw.uniform(0, twin.seconds))
        yield Death(call=draw.randint(1, twin.calls), moment=draw.choice(("before", "within", "after")))


def chaos(root: Path, kills: int, seed: int, methods: list[str], rounds: int) -> Report:
    """Kill until so many kills have struck, and finish what was begun."""
    report, draw, begin = Report(), random.Random(seed), time.monotonic()
    import_module("bangs.experiments.experiment")  # once, so that no attempt spends its life on imports
    settings = RunSettings(small(root / "small.npz"), rounds)
    twins = {method: undisturbed(settings, method, root / f"{method}-undisturbed") for method in methods}
    moments = {method: deaths(twins[method], draw) for method in methods}
    number = 0
    while report.kills < kills and report.lost < HOPELESS:
        method = methods[number % len(methods)]
        _live_and_die(root / f"{number}-{method}", settings, method, twins[method], moments[method], kills, report)
        number += 1
    report.seconds = round(time.monotonic() - begin, 1)
    return report


def _live_and_die(
    folder: Path, settings: RunSettings, method: str, twin: Twin, moments: Iterator[Death], kills: int, report: Report
) -> None:
    """One run, killed and taken up again until an attempt outlives its death; the seventh is left alone."""
    board, kept, trials = Board(), NOTHING, 0
    while True:
        trials += 1
        disturbed = report.kills < kills and trials <= 6
        status = attempt(settings.command(method, folder), board, next(moments) if disturbed else Death())
        report.attempts += 1
        if board["found"] != NOTHING and board["found"] < kept:
            report.lost += 1
            report.faults.append(f"{folder.name}: went on after round {board['found']}, round {kept} had been kept")
        kept = max(kept, board["kept"])
        if status == -signal.SIGKILL:
            report.kills += 1
            report.where[place_of_kill(board)] += 1
            report.in_writes += board["call"] != NOTHING
            _read(folder, report)
        elif status != 0:
            report.lost += 1
            report.faults.append(f"{folder.name}: attempt {trials} ended with status {status}")
            return
        else:
            break
    report.runs += 1
    if outcome(folder) != twin.outcome:
        report.different += 1
        report.faults.append(f"{folder.name}: the result differs from the undisturbed run's")


def _read(folder: Path, report: Report) -> None:
    """A folder is readable as soon as it has a configuration, and has one as soon as it has anything else."""
    begun = [name for name in ("config.json", "events.jsonl", "result.json") if (folder / name).exists()]
    try:
        if begun:
            read_run(folder)
    except Exception as error:
        report.unreadable += 1
        report.faults.append(f"{folder.name}: {error!r}")


@contextmanager
def _place(where: Path | None) -> Iterator[Path]:
    if where is not None:
        where.mkdir(parents=True, exist_ok=True)
        yield where
        return
    with tempfile.TemporaryDirectory(prefix="bangs-chaos-") as folder:
        yield Path(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--rounds", type=int, default=4, help="of a run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="keep the runs here; a temporary folder if left out")
    parser.add_argument("--json", action="store_true", help="one JSON object and nothing else")
    asked = parser.parse_args()
    torch.set_num_threads(1)  # a pool of threads would not survive the forks
    with _place(asked.folder) as root:
        report = chaos(root, asked.kills, asked.seed, asked.methods.split(","), asked.rounds)
    facts = {**asdict(report), "where": dict(report.where.most_common())}
    if asked.json:
        print(json.dumps(facts))
    else:
        for name, value in facts.items():
            print(f"{name}: {value}")
    sys.exit(bool(report.lost or report.different or report.unreadable))


if __name__ == "__main__":
    main()
