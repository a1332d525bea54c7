"""Progress of a suite: a line for every run, and how long the rest will take."""

import time
from typing import Any

from rich.status import Status

from bangs.cli.console import Voice
from bangs.experiments.jobs import Job, Outcome
from bangs.experiments.reproducing import Plan
from bangs.loop import State


class Progress:
    """Tells a person where a suite stands; in a terminal also which round the run is in."""

    def __init__(self, voice: Voice, plan: Plan):
        self.voice = voice
        self.left = len(plan.left())
        self.total, self.before = len(plan.jobs), len(plan.jobs) - self.left
        self.failures: list[dict[str, str]] = []
        self.finished = 0
        self._began = time.monotonic()
        self._status: Status | None = None
        if self.before:
            voice.say(f"{self.before} of {self.total} runs are finished already")

    def __call__(self, job: Job, outcome: Outcome) -> None:
        """A run has ended."""
        self._quiet()
        self.finished += 1
        name = job.describe()
        if outcome.kind == "failed":
            self.failures.append({"run": job.name, "what": name, "error": outcome.error})
        how = f"failed: {outcome.error}" if outcome.kind == "failed" else f"{outcome.seconds:.1f} s"
        self.voice.say(f"[{self.before + self.finished}/{self.total}] {name}: {how}{self._left()}")

    def watch(self, state: State, row: dict[str, Any]) -> None:
        """A round of the run under way has ended."""
        if self.voice.silent or not self.voice.console.is_terminal:
            return
        if self._status is None:
            self._status = self.voice.console.status("")
            self._status.start()
        self._status.update(f"run {self.before + self.finished + 1} of {self.total}, round {state.index}")

    def close(self) -> None:
        self._quiet()

    @property
    def facts(self) -> dict[str, Any]:
        return {
            "runs": self.total,
            "already_done": self.before,
            "done": self.finished - len(self.failures),
            "failures": self.failures,
            "seconds": round(time.monotonic() - self._began, 1),
        }

    def _left(self) -> str:
        rest = self.left - self.finished
        if rest <= 0:
            return ""
        seconds = (time.monotonic() - self._began) / self.finished * rest
        return f"; about {duration(seconds)} left"

    def _quiet(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
