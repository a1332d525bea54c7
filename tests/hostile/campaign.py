"""Campaign: cases of every kind of attack, each in a process that is watched, beside a canary.

A case is a function of seed and number. What is counted: `lost`, something that was there, or was promised to go on, is
gone; `silent`, a result that is wrong and does not say so; `tracebacks`, an end that is no sentence, or text that
commands a terminal; `hangs`, a case that takes more than its time of a processor, or gets nothing done for as long,
twice; `canary`, a file of somebody else's that was touched.
"""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import torch

from tests.hostile import canary, disturbances, misuse, models, outputs, strangers
from tests.hostile.commands import Finding, describe
from tests.hostile.disturbances import Twins
from tests.hostile.sample_files import SampleFiles

MEMORY = 6 << 30  # bytes a case may ask for beyond what the process has
PATIENCE = 120.0  # seconds of a processor that a case may take; the same without any progress is a hang
DISK = "3m"

Draw = random.Random


@dataclass(frozen=True)
class Stage:
    """What all cases share."""

    samples: SampleFiles
    twins: Twins
    disk: Path | None


Attack = Callable[[Stage, Path, Draw], str]
ATTACKS: dict[str, tuple[int, Attack]] = {
    "signals": (12, lambda stage, place, draw: disturbances.signalled(stage.samples, place, draw, stage.twins)),
    "workers": (1, lambda stage, place, draw: disturbances.signalled_workers(stage.samples, place, draw, stage.twins)),
    "disks": (
        10,
        lambda stage, place, draw: disturbances.out_of_resources(stage.samples, place, draw, stage.twins, stage.disk),
    ),
    "replaced": (20, lambda stage, place, draw: strangers.replaced(stage.samples, place, draw)),
    "added": (8, lambda stage, place, draw: strangers.added(stage.samples, place, draw)),
    "damaged": (15, lambda stage, place, draw: strangers.damaged(stage.samples, place, draw)),
    "outputs": (15, lambda stage, place, draw: outputs.mistaken(stage.samples, place, draw)),
    "models": (15, lambda stage, place, draw: models.edited(stage.samples, place, draw)),
    "unsealed": (8, lambda stage, place, draw: models.damaged(stage.samples, place, draw)),
    "stores": (8, lambda stage, place, draw: models.edited_store(stage.samples, place, draw)),
    "nonsense": (25, lambda stage, place, draw: misuse.nonsense(draw)),
    "spelled": (8, lambda stage, place, draw: misuse.spelled(draw)),
    "questions": (10, lambda stage, place, draw: misuse.questions(draw)),
    "parts": (15, lambda stage, place, draw: misuse.parts(draw)),
}


@dataclass
class Report:
    """What a campaign found."""

    cases: int = 0
    lost: int = 0
    silent: int = 0
    tracebacks: int = 0
    hangs: int = 0
    canary: int = 0
    late: int = 0  # cases that took too long once and not again
    kinds: Counter[str] = field(default_factory=Counter)
    findings: dict[str, list[object]] = field(default_factory=dict)  # what happened -> [how often, a number, kind]
    seconds: float = 0.0

    @property
    def sound(self) -> bool:
        return not (self.lost or self.silent or self.tracebacks or self.hangs or self.canary)

    def find(self, kind: str, what: str, number: int, attack: str) -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        entry = self.findings.setdefault(f"{kind}: {what}", [0, number, attack])
        entry[0] = int(str(entry[0])) + 1
        print(f"case {number} ({attack}) {kind}: {what}", file=sys.stderr, flush=True)


def campaign(
    cases: int, seed: int = 0, only: tuple[str, ...] = (), without: tuple[str, ...] = (), first: int = 0
) -> Report:
    """Cases number `first` …, one after the other, each in a fork."""
    report, begin = Report(), time.monotonic()
    torch.set_num_threads(1)  # a pool of threads would not survive the forks
    with tempfile.TemporaryDirectory(prefix="bangs-hostile-") as root, _disk(Path(root)) as disk:
        os.environ |= {"HOME": f"{root}/home", "BANGS_DATA": f"{root}/data"}
        samples = SampleFiles.create(Path(root) / "samples")
        stage = Stage(samples, Twins(samples, Path(root) / "twins"), disk)
        stage.twins.all()
        misuse.fitted()
        sound = canary.seen(samples.root)
        for number in range(first, first + cases):
            _case(stage, Path(root), seed, number, only, without, report)
            if (change := canary.touched(sound, canary.seen(samples.root))) is not None:
                report.find("canary", f"a sample file was {change}", number, "?")
                sound = canary.seen(samples.root)
    report.seconds = round(time.monotonic() - begin, 1)
    return report


def _case(
    stage: Stage, root: Path, seed: int, number: int, only: tuple[str, ...], without: tuple[str, ...], report: Report
) -> None:
    name = drawn(seed, number, only, without)
    report.cases += 1
    report.kinds[name] += 1
    for attempt in (1, 2):
        folder = root / "case"
        shutil.rmtree(folder, ignore_errors=True)
        before = canary.lay(folder / "canary")
        if stage.disk is not None:
            _emptied(stage.disk)
        ended = _watched(stage, folder, seed, number, name)
        if (change := canary.touched(before, canary.seen(folder / "canary"))) is not None:
            report.find("canary", f"{change} beside {name}", number, name)
        if ended is not None or attempt == 2:
            break
        report.late += 1
    if ended is None:
        report.late -= 1
        report.find(
            "hangs", f"more than {PATIENCE:g} s, or none of a processor for as long, twice, in {name}", number, name
        )
    elif ended:
        report.find(*ended, number, name)


def drawn(seed: int, number: int, only: tuple[str, ...], without: tuple[str, ...]) -> str:
    """The kind of the case of that number."""
    known = [name for name in ATTACKS if (not only or name in only) and name not in without]
    return Draw(f"{seed}/{number}/kind").choices(known, [ATTACKS[name][0] for name in known])[0]


def _watched(stage: Stage, folder: Path, seed: int, number: int, name: str) -> tuple[str, str] | tuple[()] | None:
    """The finding of a case in a process of its own, () if there is none, None if it took too long."""
    place = folder / "work"
    place.mkdir()
    verdict = folder / "verdict"
    child = os.fork()
    if child == 0:
        try:
            os.setpgid(0, 0)
            _run_case(stage, place, verdict, Draw(f"{seed}/{number}"), name)
        finally:
            os._exit(0)
    end, used = time.monotonic() + PATIENCE, 0.0
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            if status:
                return "tracebacks", f"signal {status} ends the process in {name}"
            kind, what = json.loads(verdict.read_text())
            return (kind, what) if kind else ()
        if time.monotonic() > end:
            before, used = used, _processor_seconds(child)
            if used > PATIENCE or used < before + 0.1:
                break
            end = time.monotonic() + PATIENCE  # it works, and waits for a processor
        time.sleep(0.003)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _processor_seconds(group: int) -> float:
    """What the living processes of a group have used of a processor, with the children they have waited for."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            facts = stat.read_text().rpartition(")")[2].split()
            if int(facts[2]) == group:
                ticks += sum(map(int, facts[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _run_case(stage: Stage, place: Path, verdict: Path, draw: Draw, name: str) -> None:
    kind, what = "", ""
    os.chdir(place)
    file = os.open(place.parent / "stderr", os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 1)
    os.dup2(file, 2)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    try:
        ATTACKS[name][1](stage, place, draw)
    except Finding as finding:
        kind, what = finding.kind, finding.what
    except BaseException as error:
        kind, what = "tracebacks", f"the attack itself: {describe(error)}"
    verdict.write_text(json.dumps([kind, what]))


@contextmanager
def _disk(root: Path) -> Iterator[Path | None]:
    """A small disk, where mounting is allowed."""
    disk = root / "disk"
    disk.mkdir()
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", str(disk)], capture_output=True)
    except FileNotFoundError:
        done = None
    if done is None or done.returncode:
        yield None
        return
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def _emptied(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
