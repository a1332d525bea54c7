"""Disturbances: signals, full disks and low limits at random moments of a command that writes."""

import os
import random
import resource
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bangs.errors import BangsError
from tests.hostile.commands import Ended, Finding, alone, limited, strike, strike_at
from tests.hostile.sample_files import SampleFiles
from tests.hostile.scenarios import SCENARIOS, WORKERS, Scenario

Draw = random.Random
SIGNALS = (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGKILL)
EVENTS = ("open", "open", "os.rename", "os.rename", "os.mkdir", "os.remove", "import", "os.listdir", "os.scandir")


class Twins:
    """Undisturbed attempts of every scenario, made when they are first asked for."""

    def __init__(self, samples: SampleFiles, place: Path):
        self.samples, self.place = samples, place
        self._made: dict[str, tuple[Any, float]] = {}

    def of(self, scenario: Scenario) -> tuple[Any, float]:
        """What the scenario leaves, and the seconds of processor time it takes."""
        if scenario.name not in self._made:
            place = self.place / scenario.name.replace(" ", "")
            place.mkdir(parents=True)
            scenario.lay(self.samples, place)
            ended = alone(scenario.words(self.samples, place), place / "log")
            assert ended.status == 0, ended.err
            self._made[scenario.name] = scenario.outcome(place), ended.seconds
        return self._made[scenario.name]

    def all(self) -> None:
        for scenario in SCENARIOS.values():
            self.of(scenario)


def signalled(samples: SampleFiles, place: Path, draw: Draw, twins: Twins) -> str:
    """A command that a signal meets at a random moment, once or again and again."""
    scenario = _drawn(draw)
    outcome, seconds = twins.of(scenario)
    moments: list[Callable[[], None]] = []
    for _ in range(draw.choice((1, 1, 2, 3))):
        number = draw.choice(SIGNALS)
        if draw.random() < 0.5:
            moment = draw.uniform(0, seconds)
            moments.append(strike(number, moment, moment + 0.05 if draw.random() < 0.2 else None))
        else:
            moments.append(strike_at(number, draw.choice(EVENTS), draw.choice((1, 2, 3, 5, 8, 13, 21, 34))))
    return _signalled(scenario, samples, place, outcome, moments)


def signalled_workers(samples: SampleFiles, place: Path, draw: Draw, twins: Twins) -> str:
    """A suite done by two processes, whose parent a signal meets."""
    outcome, _ = twins.of(SCENARIOS["reproduce"])
    # who hands out the jobs only waits, so its moments are the clock's
    moment = strike(draw.choice(SIGNALS), draw.uniform(0, 15), clock=time.monotonic)
    return _signalled(WORKERS, samples, place, outcome, [moment])


def _signalled(
    scenario: Scenario, samples: SampleFiles, place: Path, outcome: Any, moments: Sequence[Callable[[], None]]
) -> str:
    scenario.lay(samples, place)
    words, words_again = scenario.words(samples, place), scenario.words(samples, place) + scenario.again
    for attempt, disturb in enumerate(moments):
        ended = alone(words_again if attempt else words, place / "log", disturb)
        _judged(ended, {0, 130, 143, *(-number for number in SIGNALS)})
        scenario.check(samples, place, outcome)
        if ended.status == 0:
            _same(scenario, place, outcome, "silent")
    _finished(scenario, words_again, place, outcome)
    return scenario.name


def out_of_resources(samples: SampleFiles, place: Path, draw: Draw, twins: Twins, disk: Path | None) -> str:
    """A command that runs out of disk, of file size or of open files."""
    scenario = _drawn(draw)
    outcome, _ = twins.of(scenario)
    kind = draw.choice(("fsize", "nofile") if disk is None else ("disk", "disk", "fsize", "nofile"))
    if kind == "disk":
        assert disk is not None
        place = disk
    scenario.lay(samples, place)
    words = scenario.words(samples, place)
    disturb: Callable[[], None] | None = None
    if kind == "disk":
        with (place / "ballast").open("wb") as ballast:
            ballast.write(b"x" * max(0, _free(place) - draw.choice((0, 4096, draw.randrange(400_000)))))
    elif kind == "fsize":
        disturb = limited(resource.RLIMIT_FSIZE, draw.choice((0, 100, 4096, draw.randrange(200_000))))
    else:
        disturb = limited(resource.RLIMIT_NOFILE, draw.randrange(4, 30))
    log = place.parent / f"{place.name}-log"
    ended = alone(words, log, disturb)
    _judged(ended, {0, 1, 2})
    if ended.status and not ended.err.strip() and kind != "fsize":  # what it prints goes to a file too
        raise Finding("tracebacks", f"exit code {ended.status} without a word")
    (place / "ballast").unlink(missing_ok=True)
    scenario.check(samples, place, outcome)
    if ended.status == 0:
        _same(scenario, place, outcome, "silent")
    _finished(scenario, words + scenario.again, place, outcome)
    return f"{scenario.name} {kind}"


def _drawn(draw: Draw) -> Scenario:
    known = list(SCENARIOS.values())
    (scenario,) = draw.choices(known, [scenario.weight for scenario in known])
    return scenario


def _free(place: Path) -> int:
    disk = os.statvfs(place)
    return disk.f_bavail * disk.f_frsize


def _judged(ended: Ended, expected: set[int]) -> None:
    if "Traceback" in ended.err:
        raise Finding("tracebacks", " / ".join(ended.err.strip().splitlines()[-3:]))
    if ended.status not in expected:
        raise Finding("tracebacks", f"status {ended.status}: {ended.err[-300:]}")


def _same(scenario: Scenario, place: Path, outcome: Any, kind: str) -> None:
    try:
        same = scenario.outcome(place) == outcome
    except (BangsError, OSError, ValueError, KeyError, TypeError) as error:
        raise Finding(kind, f"{scenario.name} left something unreadable: {error!r}") from error
    if not same:
        raise Finding(kind, f"{scenario.name} ends otherwise than undisturbed")


def _finished(scenario: Scenario, words: tuple[object, ...], place: Path, outcome: Any) -> None:
    """Another attempt succeeds, and ends as an undisturbed one does."""
    ended = alone(words, place / "log")
    if ended.status:
        raise Finding("lost", f"{scenario.name} cannot go on: {ended.err.strip()[-300:]}")
    _same(scenario, place, outcome, "lost")
