"""The Ray engine on a local Ray with two workers, one of which is killed in the middle of its run."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from bangs.experiments.engines import Here, Ray
from bangs.experiments.jobs import Experiment, Job, Outcome
from bangs.experiments.results import results_in
from bangs.runs import read_run
from worlds import graph_file

pytest.importorskip("ray", reason="Ray is not installed; pip install 'bangs[ray]'")


def kill_the_worker_of(job: Job, killed: list[int]) -> None:
    """Wait until the run has a checkpoint, then kill the process that holds its folder."""
    for _ in range(2000):
        time.sleep(0.05)
        try:
            saved = any((job.folder / "checkpoints").iterdir())
            holder = json.loads((job.folder / "lock").read_text())["pid"] if saved else 0
        except (FileNotFoundError, ValueError, KeyError):
            continue
        if holder and holder != os.getpid():
            os.kill(holder, signal.SIGKILL)
            killed.append(holder)
            return


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_run_whose_ray_worker_is_killed_is_tried_again_and_ends_as_if_it_were_not(tmp_path: Path) -> None:
    graph = graph_file(tmp_path / "one.npz")
    experiments = [
        Experiment(str(graph), method, seeds=(0, 1), rounds=15, k=2, candidates=4, changes={"epochs": 60})
        for method in ("random", "bangs", "cpl")
    ]
    jobs = [Job(experiment, tmp_path / "ray" / "runs", None, "cpu") for experiment in experiments]
    killed: list[int] = []
    killer = threading.Thread(target=kill_the_worker_of, args=(jobs[1], killed), daemon=True)
    killer.start()
    told: dict[str, Outcome] = {}
    Ray(2)(jobs, lambda job, outcome: told.update({job.name: outcome}))
    killer.join()

    assert len(killed) == 1
    assert [told[job.name].kind for job in jobs] == ["done"] * 3, told
    kinds = [event["kind"] for event in read_run(jobs[1].folder).events]
    assert "resumed" in kinds
    assert "stale lock" in kinds
    twins = [Job(experiment, tmp_path / "here" / "runs", None, "cpu") for experiment in experiments]
    Here()(twins, lambda job, outcome: told.update({job.name: outcome}))
    assert [told[job.name].kind for job in twins] == ["done"] * 3, told
    by_ray, by_hand = (
        {result.run: [row["test"] for row in result.rows] for result in results_in(tmp_path / place)}
        for place in ("ray", "here")
    )
    assert by_ray == by_hand
