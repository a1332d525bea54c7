"""How long the rest of a suite takes."""

from pathlib import Path

import pytest

from bangs.cli.console import Output
from bangs.cli.suite_progress import Forecast, Progress, duration
from bangs.experiments.jobs import Experiment, Job, Outcome
from bangs.experiments.reproduce import Plan
from bangs.runs import RunFolder


def job(method: str, dataset: str = "cora", seed: int = 0) -> Job:
    return Job(Experiment(dataset, method, seeds=(seed,)), Path("runs"))


def test_the_rest_takes_what_runs_like_it_took() -> None:
    jobs = [job("raw"), job("bangs"), job("raw", seed=1), job("bangs", seed=1), job("bangs", "pubmed"), job("cpl")]
    forecast = Forecast(jobs)
    assert forecast(0.0) == 0.0
    forecast.learn(jobs[0], Outcome("done", 1.0))
    forecast.learn(jobs[1], Outcome("done", 9.0))
    # 1 s as raw, 9 s as bangs, 9 s as bangs elsewhere, 5 s as anything
    assert forecast(10.0) == pytest.approx(24.0)
    assert forecast(5.0) == pytest.approx(12.0)  # two at a time


def test_failed_runs_do_not_count_in_the_time_left() -> None:
    jobs = [job("raw"), job("raw", seed=1), job("raw", seed=2)]
    forecast = Forecast(jobs)
    forecast.learn(jobs[0], Outcome("failed"))
    assert forecast(1.0) == 0.0
    forecast.learn(jobs[1], Outcome("done", 4.0))
    assert forecast(4.0) == pytest.approx(4.0)


def test_a_run_that_another_process_has_finished_since_is_no_failure(tmp_path: Path) -> None:
    plan = Plan(tmp_path, (), tuple(Job(Experiment("cora", "raw", seeds=(seed,)), tmp_path) for seed in (0, 1)))
    progress = Progress(Output(quiet=True), plan)
    for one in plan.jobs:
        progress(one, Outcome("failed", error="in use"))
    with RunFolder.create_or_resume(plan.jobs[0].folder, plan.jobs[0].experiment.config(), resume=True) as folder:
        folder.finish({})
    progress.close()
    assert [failure["run"] for failure in progress.failures] == [plan.jobs[1].name]


def test_a_duration_is_shown_in_everyday_units() -> None:
    assert [duration(30), duration(600), duration(7200)] == ["30 s", "10 min", "2.0 h"]


def test_a_lost_worker_is_reported_once_and_the_rest_is_read_from_the_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan(tmp_path, (), (Job(Experiment("cora", "raw", seeds=(0,)), tmp_path),))
    progress = Progress(Output(), plan)
    one = plan.jobs[0]
    progress.survey(plan.jobs)
    assert one.status is None
    with RunFolder.create_or_resume(one.folder, one.experiment.config(), resume=True) as folder:
        folder.event("round", index=7)
        progress.survey(plan.jobs)
        folder.event("stale lock", holder=None)
        progress.survey(plan.jobs)
        progress.survey(plan.jobs)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"a worker was lost; {one.describe()} continues after round 7"]
