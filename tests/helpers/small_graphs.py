"""Small graphs in files, and suites over them, for runs of a second."""

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bangs.experiments.experiment import Experiment
from bangs.experiments.jobs import Job
from bangs.graphs.datasets.synthetic import citation
from bangs.runs import config_hash

SUITE = """
title = "Tiny"
focus = "bangs"
[experiment]
rounds = 2
k = 8
candidates = 16
seeds = 3
changes = {{ epochs = 10, patience = 8 }}
[axes]
dataset = ["{one}", "{two}"]
method = ["raw", "cpl", "bangs"]
[names]
bangs = "BANGS"
[published]
protocol = "best test accuracy"
two = "none"
[published.one]
raw = [60.0, 1.0]
cpl = [61.0, 1.0]
bangs = [62.0, 1.0]
"""


def graph_file(path: Path, seed: int = 0) -> Path:
    """A citation network of 100 nodes as an .npz."""
    data = citation(nodes=100, classes=3, features=30, isolated=0.0, signal=0.6, seed=seed)
    x = data.x.to_dense().numpy()
    np.savez(path, edge_index=data.edge_index.numpy().astype("int32"), y=data.y.numpy(), x=x)
    return path


def suite_file(folder: Path) -> Path:
    """The suite above in a file, with its two graphs beside it."""
    one, two = (graph_file(folder / f"{name}.npz", seed) for seed, name in enumerate(("one", "two")))
    path = folder / "tiny.toml"
    path.write_text(SUITE.format(one=one, two=two))
    return path


def fake_rows(experiment: Experiment, scores: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    """Rows of a run whose seeds scored so in every round, on test and validation alike."""
    config = {key: value for key, value in experiment.settings().items() if key != "seeds"}
    environment = {"device": "cpu", "torch": "2", "python": "3", "commit": "c0ffee"}
    seconds = {"first": 1.0, "calibrate": 2.0, "select": 4.0, "train": 8.0, "total": 20.0}
    common = {"run": config_hash(config)[:16], "config": config, "environment": environment, "seconds": seconds}
    return [
        {**common, "seed": seed, "batch": len(scores), "test": list(own), "validation": list(own)}
        for seed, own in enumerate(scores)
    ]


@dataclass(frozen=True)
class JobKilledAtStart(Job):
    """A job whose worker is killed as it begins, so many times."""

    deaths: int = 1
    parent: int = 0  # the process that is to live

    @property
    def folder(self) -> Path:
        count = len(list(self.runs.glob("death-*")))
        if os.getpid() != self.parent and count < self.deaths:
            (self.runs / f"death-{count}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().folder


@dataclass(frozen=True)
class ExperimentKilledOnce(Experiment):
    """An experiment whose process is killed after the first round, once."""

    def run(self, *words: Any, **more: Any) -> dict[str, Any]:
        mark = Path(self.dataset).with_suffix(".struck")

        def strike(state: Any, row: dict[str, Any]) -> None:
            if state.index == 1 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)

        more["observers"] = [*more.get("observers", ()), strike]
        return super().run(*words, **more)
