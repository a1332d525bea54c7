"""Runs that are killed:
`python -m tests.runs.kill_runs FOLDER KILLS` says what kills in the middle of the work left behind.

`points` counts verdicts after a kill before every single call that changes the disk and halfway through every write,
`random` those after KILLS kills at random moments of a run that does nothing but save, `where` what these struck.
"""

import contextlib
import json
import mmap
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from bangs.runs import RunFolder

CALLS = ("open", "write", "pwrite", "fsync", "replace", "unlink", "mkdir", "ftruncate")
REAL: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in CALLS}
CONFIG = {"method": "bangs", "seeds": [0, 1, 2]}
_phase = mmap.mmap(-1, 1)  # shared with the children: which call they are in


def state(round: int, size: int) -> dict[str, torch.Tensor]:
    return {"w": torch.arange(size) * round, "adopted_round": torch.full((7,), round)}


def work(path: Path, first_to_last: range, size: int, pipe: int) -> None:
    with RunFolder.create_or_resume(path, CONFIG, resume=True) as run:
        latest = run.latest()
        for round in first_to_last:
            if latest is None or round > latest.round:
                run.save(round, state(round, size), {"round": round})
                REAL["write"](pipe, bytes([round % 256]))
                run.event("round", index=round)
        run.finish({"rounds": first_to_last.stop - 1})


def killed_before(count: int, torn: bool) -> None:
    """From now on die right before the count-th call that changes the disk, or, torn, halfway through a write."""
    remaining = count

    def wrap(name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal remaining
            remaining -= name == "write" or not torn
            if remaining == 0:
                if torn:
                    REAL["write"](args[0], bytes(args[1])[: len(args[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return REAL[name](*args, **kwargs)

        return call

    for name in CALLS:
        setattr(os, name, wrap(name))


def with_phase() -> None:
    def wrap(name: str, number: int) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            _phase[0] = number
            try:
                return REAL[name](*args, **kwargs)
            finally:
                _phase[0] = 0

        return call

    for number, name in enumerate(CALLS, 1):
        setattr(os, name, wrap(name, number))


def child_of(work_in_child: Callable[[int], None]) -> tuple[int, int]:
    """The pid of a child and the pipe on which it writes a byte for every round that was saved."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        status = 1
        with contextlib.suppress(BaseException):
            work_in_child(writer)
            status = 0
        os._exit(status)
    os.close(writer)
    return pid, reader


def all_of(reader: int) -> bytes:
    """Everything that a dead child has written; on a busy machine that can be a lot."""
    with open(reader, "rb") as stream:
        return stream.read()


def judge(path: Path, safe: int, size: int) -> str:
    """What a killed run left: fine, lost (a round that had been saved), different or unreadable."""
    try:
        with RunFolder.create_or_resume(path, CONFIG, resume=True) as run:
            latest = run.latest()
            numbers = [event["n"] for event in run.events()]
            kinds = {event["kind"] for event in run.events()}
        leftovers = [entry.name for entry in path.rglob(".*")]
    except Exception as error:
        return f"unreadable: {error!r}"
    round = latest.round if latest else 0
    if round < safe or round > safe + 1 or "damaged checkpoint" in kinds:
        return f"lost: round {round} after {safe} was safe"
    if latest and not all(torch.equal(latest.tensors[name], tensor) for name, tensor in state(round, size).items()):
        return "different"
    if numbers != list(range(1, len(numbers) + 1)) or leftovers:  # a line glued to a torn one would leave a gap
        return f"different: events {numbers}, left over {leftovers}"
    return "fine"


def points(folder: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    for torn in (False, True):
        for count in range(1, 1000):
            path = folder / f"{torn}-{count}"

            def run(writer: int, path: Path = path, count: int = count, torn: bool = torn) -> None:
                killed_before(count, torn)
                work(path, range(1, 4), 50, writer)

            pid, reader = child_of(run)
            status = os.waitpid(pid, 0)[1]
            safe = len(all_of(reader))
            if status != signal.SIGKILL:
                break
            counts[judge(path, safe, 50)] += 1
    return counts


def at_random(folder: Path, kills: int, seed: int = 0) -> tuple[Counter[str], Counter[str]]:
    counts: Counter[str] = Counter()
    where: Counter[str] = Counter()
    draw, size, safe = random.Random(seed), 20_000, 0

    def run(pipe: int) -> None:
        with_phase()
        work(folder, range(1, 100_000), size, pipe)

    for _ in range(kills):
        pid, reader = child_of(run)
        first = os.read(reader, 1)
        time.sleep(draw.uniform(0, 0.03))
        os.kill(pid, signal.SIGKILL)
        where[("between", *CALLS)[_phase[0]]] += 1
        os.waitpid(pid, 0)
        safe += len(first) + len(all_of(reader))
        verdict = judge(folder, safe, size)
        counts[verdict] += 1
        with RunFolder.create_or_resume(folder, CONFIG, resume=True) as run_folder:
            latest = run_folder.latest()
            safe = latest.round if latest else 0
    return counts, where


if __name__ == "__main__":
    torch.set_num_threads(1)  # a pool of threads would not survive the forks
    root, kills = Path(sys.argv[1]), int(sys.argv[2])
    verdicts, places = at_random(root / "random", kills)
    print(json.dumps({"points": points(root), "random": verdicts, "where": places}))
