"""Progress of a suite: one line per run, and an estimate of the remaining time."""

import time
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from rich.status import Status

from bangs.cli.console import Output
from bangs.experiments.jobs import Job, Outcome
from bangs.experiments.reproduce import Plan
from bangs.selftraining.loop import State


class Progress:
    """Shows how many runs of a suite are done; in a terminal also the round of the current run."""

    def __init__(self, output: Output, plan: Plan):
        self.output = output
        left = plan.left()
        self._jobs = {job.name: job for job in left}
        self.total, self.before = len(plan.jobs), len(plan.jobs) - len(left)
        self.forecast = Forecast(left)
        self.failures: list[dict[str, str]] = []
        self.finished = 0
        self._began = time.monotonic()
        self._status: Status | None = None
        # lost workers by run, as far as they were shown
        self._losses = {job.name: status.losses for job in left if (status := job.status) is not None}
        if self.before:
            output.say(f"{self.before} of {self.total} runs are finished already")

    def __call__(self, job: Job, outcome: Outcome) -> None:
        """Print the outcome of a run."""
        self._quiet()
        self.finished += 1
        self.forecast.learn(job, outcome)
        name = job.describe()
        if outcome.kind == "failed":
            self.failures.append({"run": job.name, "what": name, "error": outcome.error})
        seconds = self.forecast(time.monotonic() - self._began)
        left = f"; about {duration(seconds)} left" if seconds else ""
        how = f"failed: {outcome.error}" if outcome.kind == "failed" else f"{outcome.seconds:.1f} s"
        self.output.say(f"[{self.before + self.finished}/{self.total}] {name}: {how}{left}")

    def watch(self, state: State, row: dict[str, Any]) -> None:
        """Show the round of the current run."""
        self._show(f"run {self.before + self.finished + 1} of {self.total}, round {state.index}")

    def survey(self, jobs: Sequence[Job]) -> None:
        """Show the rounds of runs on other machines, read from their folders."""
        running = [(job, status) for job in jobs if (status := job.status) is not None]
        for job, status in running:
            if status.losses > self._losses.get(job.name, 0):
                self._losses[job.name] = status.losses
                self._quiet()
                self.output.say(f"a worker was lost; {job.describe()} continues after round {status.round}")
        rounds = ", ".join(str(status.round) for _, status in running)
        self._show(f"{self.before + self.finished} of {self.total} runs finished; under way, in rounds {rounds or '–'}")

    def close(self) -> None:
        """End the display; a run that another process has finished meanwhile is not a failure."""
        self._quiet()
        self.failures = [failure for failure in self.failures if not self._jobs[failure["run"]].done]

    @property
    def facts(self) -> dict[str, Any]:
        return {
            "runs": self.total,
            "already_done": self.before,
            "done": self.finished - len(self.failures),
            "failures": self.failures,
            "seconds": round(time.monotonic() - self._began, 1),
        }

    def _show(self, text: str) -> None:
        """Show a status line; in a terminal only."""
        if self.output.silent or not self.output.console.is_terminal:
            return
        if self._status is None:
            self._status = self.output.console.status("")
            self._status.start()
        self._status.update(text)

    def _quiet(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


class Forecast:
    """Estimates the remaining time from the times of similar runs."""

    def __init__(self, left: Sequence[Job]):
        self.left = {job.name: job for job in left}
        self.took: dict[tuple[str, ...], list[float]] = {}
        self.spent = 0.0  # seconds of all runs that have ended

    def learn(self, job: Job, outcome: Outcome) -> None:
        """Record the time of a run; a run that failed or was done by another process is not used for estimates."""
        self.left.pop(job.name, None)
        self.spent += outcome.seconds
        for kind in _kinds(job) if outcome.kind == "done" else ():
            self.took.setdefault(kind, []).append(outcome.seconds)

    def __call__(self, elapsed: float) -> float:
        """Estimated wall-clock seconds until all runs have ended, given the elapsed seconds."""
        if not self.took or not self.spent:
            return 0.0
        like = [next(self.took[kind] for kind in _kinds(job) if kind in self.took) for job in self.left.values()]
        remaining = sum(map(fmean, like))
        return remaining * elapsed / self.spent  # parallel runs take less wall-clock time


def _kinds(job: Job) -> list[tuple[str, ...]]:
    """Groups of similar runs, from the most similar to all runs."""
    key = (job.experiment.method, job.experiment.dataset, job.experiment.model)
    return [key[:length] for length in (3, 2, 1, 0)]


def duration(seconds: float) -> str:
    """Seconds as text: seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
