"""Campaign: mutated inputs fed to the readers by processes that are watched from outside.

An input is a function of seed and number. A finding is an exception that is no `BangsError`, a reader that takes longer
than its time, twice, a process that dies, and a file written, a program started or a connection opened where none
should be.
"""

import mmap
import os
import random
import resource
import shutil
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from bangs.errors import BangsError
from tests.fuzz.guard import Guard
from tests.fuzz.targets import Target, targets

MEMORY = 6 << 30  # bytes a reader may ask for beyond what the process has; a small file that asks for more is a bomb
PATIENCE = 10.0  # seconds a reader may take


@dataclass(frozen=True)
class Input:
    """A folder of files, some of them damaged."""

    number: int
    target: Target
    files: dict[str, bytes]
    damaged: tuple[str, ...]


def make(seed: int, number: int, only: tuple[str, ...] = ()) -> Input:
    """The input of that number."""
    draw = random.Random(f"{seed}/{number}")
    known = [target for target in targets().values() if not only or target.name in only]
    (target,) = draw.choices(known, [target.weight for target in known])
    damaged = tuple(draw.sample(sorted(target.files), draw.choice((1, 1, 1, min(2, len(target.files))))))
    files = {**target.files, **target.also}
    for name in damaged:
        files[name] = target.mutation(name)(files[name], draw)
        if len(target.files) > 1 and draw.random() < 0.02:
            del files[name]
    return Input(number, target, files, damaged)


@dataclass
class Report:
    """What a campaign found."""

    inputs: int = 0
    refused: int = 0  # with a sentence
    read: int = 0  # as if nothing had happened, or harmlessly
    uncaught: int = 0
    hangs: int = 0
    late: list[int] = field(default_factory=list)  # inputs that took too long once and not again: the machine was busy
    deaths: int = 0
    outside: int = 0
    slowest: float = 0.0
    targets: Counter[str] = field(default_factory=Counter)
    findings: dict[str, list[Any]] = field(default_factory=dict)  # what happened -> [how often, a number, where, …]
    seconds: float = 0.0

    @property
    def sound(self) -> bool:
        return not (self.uncaught or self.hangs or self.deaths or self.outside)

    def find(self, kind: str, what: str, number: int, target: str) -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        entry = self.findings.setdefault(what, [0, number, target])
        entry[0] += 1


class Board:
    """What the watched process is doing, in memory that outlives it."""

    def __init__(self) -> None:
        self._memory = memoryview(mmap.mmap(-1, 16)).cast("q")

    def put(self, number: int) -> None:
        self._memory[0], self._memory[1] = number, time.monotonic_ns()

    @property
    def number(self) -> int:
        return self._memory[0]

    @property
    def seconds(self) -> float:
        """Spent on that input so far."""
        return (time.monotonic_ns() - self._memory[1]) / 1e9


def campaign(
    inputs: int, seed: int = 0, only: tuple[str, ...] = (), keep: Path | None = None, first: int = 0
) -> Report:
    """Feed inputs number `first` … to the readers, one process after the other where one hangs or dies."""
    report, begin = Report(), time.monotonic()
    targets()  # made before the forks, once
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with TemporaryDirectory(prefix="bangs-fuzz-", dir=memory) as place:
        number = first
        while number < first + inputs:
            number = _run_worker(Path(place), seed, range(number, first + inputs), only, report)
    if keep is not None:
        _keep(keep, seed, only, report)
    report.seconds = round(time.monotonic() - begin, 1)
    return report


def _run_worker(place: Path, seed: int, numbers: range, only: tuple[str, ...], report: Report) -> int:
    """One process that works until all is done, or until it hangs or dies; the number to go on with."""
    board = Board()
    board.put(numbers.start)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        status = 1
        try:
            _work(place, seed, numbers, only, board, writer)
            status = 0
        except BaseException as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            _send(writer, "broken", board.number, "the fuzzer itself", 0.0, f"{error!r} in {last.name}:{last.lineno}")
        finally:
            os._exit(status)
    os.close(writer)
    with open(reader, buffering=1) as lines:
        watch = _Watch(child, board)
        for line in watch.lines(lines):
            kind, number, target, seconds, what = line.rstrip("\n").split("\t", 4)
            _note(report, kind, int(number), target, float(seconds), what)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 0:
        return numbers.stop
    number = board.number
    target = make(seed, number, only).target.name
    if watch.hung and number not in report.late:
        report.late.append(number)
        return number
    if watch.hung:
        report.late.remove(number)
    kind, what = (
        ("hangs", f"longer than {PATIENCE:g} s, twice, in {target}")
        if watch.hung
        else ("deaths", f"signal {-status} in {target}")
    )
    report.inputs += 1
    report.targets[target] += 1
    report.find(kind, what, number, target)
    return number + 1


class _Watch:
    """Reads what a child sends and kills it when it takes too long over one input."""

    def __init__(self, child: int, board: Board):
        self.child, self.board, self.hung = child, board, False

    def lines(self, stream: Any) -> Iterator[str]:
        os.set_blocking(stream.fileno(), False)
        rest = b""
        while True:
            try:
                piece = os.read(stream.fileno(), 1 << 16)
            except BlockingIOError:
                if self.board.seconds > PATIENCE and not self.hung:
                    self.hung = True
                    os.kill(self.child, signal.SIGKILL)
                time.sleep(0.05)
                continue
            if not piece:
                return
            *whole, rest = (rest + piece).split(b"\n")
            yield from (line.decode() for line in whole)


def _note(report: Report, kind: str, number: int, target: str, seconds: float, what: str) -> None:
    if kind == "broken":
        raise SystemExit(f"{target} failed at input {number}: {what}")
    report.inputs += 1
    report.targets[target] += 1
    report.slowest = max(report.slowest, seconds)
    if kind in ("read", "refused"):
        setattr(report, kind, getattr(report, kind) + 1)
    else:
        report.find(kind, what, number, target)


def _work(place: Path, seed: int, numbers: range, only: tuple[str, ...], board: Board, writer: int) -> None:
    """Feed the inputs of these numbers, and send a line for each."""
    home = place / "home"
    home.mkdir(exist_ok=True)
    os.chdir(home)
    os.environ |= {"HOME": str(home), "TMPDIR": str(home)}
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 2)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    guard = Guard()
    for number in numbers:
        board.put(number)
        given = make(seed, number, only)
        folder = _laid_out(place / "in", given.files)
        kind, seconds, what = feed(given.target, folder, guard)
        if kind in ("read", "refused") and (strange := os.listdir(home)):
            kind, what = "outside", f"left {strange[0]}"
            shutil.rmtree(home)
            home.mkdir()
        _send(writer, kind, number, given.target.name, seconds, what)


def _send(writer: int, kind: str, number: int, target: str, seconds: float, what: str) -> None:
    line = "\t".join([kind, str(number), target, f"{seconds:.3f}", " ".join(what.split())[:300]])
    os.write(writer, line.encode("utf-8", "replace") + b"\n")


def feed(target: Target, folder: Path, guard: Guard | None = None) -> tuple[str, float, str]:
    """How the reader took the folder: read, refused, uncaught or outside; after how many seconds; and what happened."""
    if guard is not None:
        guard.seen.clear()
        guard.allowed, guard.watching = (str(folder) if target.writes else None), True
    kind, what, begin = "read", "", time.monotonic()
    try:
        target.read(folder)
    except BangsError as error:
        kind, what = ("refused", "") if str(error).strip() else ("uncaught", f"{type(error).__name__} has no message")
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)
        own = next((call for call in reversed(last) if "/bangs/" in call.filename), last[-1])
        place = f"{Path(own.filename).name}:{own.lineno} {own.name}"
        kind, what = "uncaught", f"{type(error).__name__} at {place}: {str(error)[:120]}"
    finally:
        if guard is not None:
            guard.watching = False
    if guard is not None and guard.seen:
        kind, what = "outside", guard.seen[0]
    return kind, time.monotonic() - begin, what


def _laid_out(folder: Path, files: dict[str, bytes]) -> Path:
    if folder.exists():
        shutil.rmtree(folder)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def _keep(folder: Path, seed: int, only: tuple[str, ...], report: Report) -> None:
    """One input for every finding, with a word on what it did."""
    for what, (_, number, target) in report.findings.items():
        given = make(seed, number, only)
        place = _laid_out(folder / f"{number}-{target.replace(' ', '-')}", given.files)
        (place / "FINDING.txt").write_text(f"{what}\ndamaged: {', '.join(given.damaged)}\n")


torch.set_num_threads(1)  # a pool of threads would not survive the forks
