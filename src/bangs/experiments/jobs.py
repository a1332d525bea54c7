"""Jobs: an experiment with its folder; a finished job is not run again."""

import functools
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bangs.errors import BangsError
from bangs.experiments.experiment import Experiment
from bangs.experiments.user_code import run_code
from bangs.graphs.datasets import loading
from bangs.runs import RunFolder, config_hash, read_run
from bangs.selftraining.loop import State
from bangs.utils.devices import choose_device
from bangs.utils.text import counted, plain_name

CHECKPOINT_SECONDS = 10.0  # between two checkpoints; a job that is killed loses at most this much work


@dataclass(frozen=True)
class Job:
    """One experiment with its folder, data and device."""

    experiment: Experiment
    runs: Path  # the folder of all run folders
    data: Path | None = None
    device: str = "auto"
    code: Path | None = None  # a Python file that the worker runs first
    blind: bool = False  # whether it reads no test label

    @functools.cached_property
    def name(self) -> str:
        """16 digits of the hash of the complete configuration."""
        return config_hash(self.experiment.config())[:16]

    @property
    def folder(self) -> Path:
        return self.runs / self.name

    def describe(self) -> str:
        """A short description of the run, with the settings that differ from the defaults."""
        experiment = self.experiment
        parts = [plain_name(experiment.dataset), experiment.method, experiment.model]
        if experiment.recipe == "budget":
            parts.append(f"k={experiment.k}" + ("" if experiment.candidates is None else f" K={experiment.candidates}"))
        parts += [f"noise={experiment.noise:g}"] if experiment.noise else []
        parts += [f"share={experiment.share:g}"] if experiment.share is not None else []
        parts += [
            f"{setting}={getattr(experiment, setting)}"
            for setting in ("calibrator", "estimator", "teacher")
            if getattr(experiment, setting) != getattr(Experiment, setting)
        ]
        return " · ".join([*parts, counted(len(experiment.seeds), "seed"), self.name])

    @property
    def status(self) -> "JobStatus | None":
        """How far the run has come, read from its folder; None if it has not begun."""
        try:
            events = read_run(self.folder).events
        except BangsError:
            return None
        rounds = [event["index"] for event in events if event["kind"] == "round"]
        return JobStatus(rounds[-1] if rounds else 0, sum(event["kind"] == "stale lock" for event in events))

    @property
    def done(self) -> bool:
        """Whether the run is finished; takes no lock."""
        try:
            return read_run(self.folder).result is not None
        except BangsError:
            return False


@dataclass(frozen=True)
class JobStatus:
    """How far a run has come."""

    round: int
    losses: int  # workers that died during the run


@dataclass(frozen=True)
class Outcome:
    """How a job ended."""

    kind: Literal["done", "already done", "failed", "stopped"]
    seconds: float = 0.0
    error: str = ""


Watcher = Callable[[State, dict[str, Any]], None]


def perform(job: Job, watchers: Sequence[Watcher] = (), patience: float = 0.0) -> Outcome:
    """Run the job, from the last checkpoint of an earlier attempt; an error is written into its folder and returned.

    If another process has locked the folder, wait at most `patience` seconds. Only a stop by the user or the system
    (a KeyboardInterrupt) is raised.
    """
    started = time.perf_counter()
    try:
        if job.code is not None:
            run_code(job.code)
        config, device = job.experiment.config(), choose_device(job.device)
        with RunFolder.create_or_resume(job.folder, config, resume=True, device=device, patience=patience) as folder:
            if folder.finished:
                return Outcome("already done")
            try:
                data = _load(job.experiment.dataset, job.data)
                job.experiment.run(
                    device=job.device,
                    observers=watchers,
                    data=data,
                    run_folder=folder,
                    pause=CHECKPOINT_SECONDS,
                    blind=job.blind,
                )
            except Exception as error:
                folder.event(
                    "failed", error=_sentence(error), trace="" if isinstance(error, BangsError) else _trace(error)
                )
                raise
            # a table needs the result only; the nodes of every round would take a hundred times the space
            (folder.path / "history.jsonl").unlink(missing_ok=True)
    except Exception as error:
        return Outcome("failed", time.perf_counter() - started, _sentence(error))
    return Outcome("done", time.perf_counter() - started)


_load = functools.lru_cache(maxsize=1)(loading.load)  # jobs of a suite are ordered by dataset


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, BangsError) else f"{type(error).__name__}: {error}"


def _trace(error: Exception) -> str:
    """The last calls of a traceback; file names only, as paths may name people and machines."""
    calls = traceback.extract_tb(error.__traceback__)[-8:]
    return "\n".join(f"{Path(call.filename).name}:{call.lineno} {call.name}" for call in calls)
