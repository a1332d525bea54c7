"""How long the rest of a suite takes."""

from pathlib import Path

import pytest

from bangs.cli.progress import Forecast, duration
from bangs.experiments.jobs import Experiment, Job


def job(method: str, dataset: str = "cora", seed: int = 0) -> Job:
    return Job(Experiment(dataset, method, seeds=(seed,)), Path("runs"))


def test_the_rest_takes_what_runs_like_it_took() -> None:
    jobs = [job("raw"), job("bangs"), job("raw", seed=1), job("bangs", seed=1), job("bangs", "pubmed"), job("cpl")]
    forecast = Forecast(jobs)
    assert forecast(0.0) == 0.0
    forecast.learn(jobs[0], 1.0)
    forecast.learn(jobs[1], 9.0)
    # 1 s as raw, 9 s as bangs, 9 s as bangs elsewhere, 5 s as anything
    assert forecast(10.0) == pytest.approx(24.0)
    assert forecast(5.0) == pytest.approx(12.0)  # two at a time


def test_a_duration_is_said_as_people_say_it() -> None:
    assert [duration(30), duration(600), duration(7200)] == ["30 s", "10 min", "2.0 h"]
