"""Jobs: done once, described in a few words, with failures that name no folder."""

from dataclasses import replace
from pathlib import Path

import pytest

from bangs.errors import InvalidInput
from bangs.experiments import jobs
from bangs.experiments.experiment import Experiment
from bangs.experiments.jobs import Job, JobStatus, perform
from bangs.experiments.results import results_in, rows_of
from bangs.runs import read_run
from tests.helpers.small_graphs import graph_file


@pytest.fixture
def job(tmp_path: Path) -> Job:
    graph = graph_file(tmp_path / "one.npz")
    experiment = Experiment(str(graph), "bangs", rounds=2, k=8, candidates=16, seeds=(0, 1), changes={"epochs": 5})
    return Job(experiment, tmp_path / "runs", device="cpu")


def test_a_job_is_done_once_and_leaves_its_result_alone(job: Job) -> None:
    assert job.status is None
    assert not job.done
    assert perform(job).kind == "done"
    assert job.done
    assert job.status == JobStatus(round=2, losses=0)
    assert [(row["run"], row["seed"]) for row in rows_of(read_run(job.folder))] == [(job.name, 0), (job.name, 1)]
    events = len(read_run(job.folder).events)
    assert perform(job).kind == "already done"
    assert [event["kind"] for event in read_run(job.folder).events[events:]] == ["resumed"]
    assert not (job.folder / "history.jsonl").exists()
    assert list((job.folder / "checkpoints").iterdir()) == []


def test_what_differs_from_the_usual_is_named(job: Job) -> None:
    words = job.describe()
    assert words == f"one · bangs · gcn · k=8 K=16 · 2 seeds · {job.name}"
    noisy = replace(job, experiment=replace(job.experiment, noise=0.25, share=0.1, seeds=(0,)))
    assert noisy.describe() == f"one · bangs · gcn · k=8 K=16 · noise=0.25 · share=0.1 · 1 seed · {noisy.name}"
    other = replace(job, experiment=replace(job.experiment, calibrator="gats", estimator="msr", teacher="best"))
    assert " · calibrator=gats · estimator=msr · teacher=best · " in other.describe()


def test_a_job_that_fails_says_where_without_naming_a_folder(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str, folder: Path | None) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(jobs, "_load", broken)
    outcome = perform(job)
    assert (outcome.kind, outcome.error) == ("failed", "ZeroDivisionError: on purpose")
    (failed,) = [event for event in read_run(job.folder).events if event["kind"] == "failed"]
    assert failed["error"] == "ZeroDivisionError: on purpose"
    assert "test_jobs.py" in failed["trace"]
    assert "/" not in failed["trace"]


def test_an_error_with_a_clear_message_needs_no_traceback(job: Job) -> None:
    lost = replace(job, experiment=replace(job.experiment, dataset="no-such-graph"))
    assert perform(lost).kind == "failed"
    (failed,) = [event for event in read_run(lost.folder).events if event["kind"] == "failed"]
    assert "no-such-graph" in failed["error"]
    assert failed["trace"] == ""


def test_a_damaged_result_is_reported_and_the_way_out_leads_to_the_same_rows(job: Job) -> None:
    perform(job)
    expected = results_in(job.runs.parent)
    (job.folder / "result.json").write_text((job.folder / "result.json").read_text().replace("0.", "0.0", 1))
    message = f"the run in '{job.folder}' cannot be read; move the folder elsewhere"
    with pytest.raises(InvalidInput, match=f"{message}.*result.json' does not match its checksum"):
        results_in(job.runs.parent)
    job.folder.rename(job.runs.parent / "elsewhere")
    assert perform(job).kind == "done"
    again = results_in(job.runs.parent)[0].rows
    assert {seed: row["test"] for seed, row in again.items()} == {
        seed: row["test"] for seed, row in expected[0].rows.items()
    }


def test_folders_without_a_configuration_hold_no_run(job: Job) -> None:
    """Such as one that a crash left before it was written, and a file that a desktop puts anywhere."""
    (job.runs / "0123456789abcdef" / "checkpoints").mkdir(parents=True)
    (job.runs / "0123456789abcdef" / "lock").touch()
    (job.runs / ".DS_Store").touch()
    assert results_in(job.runs.parent) == []
