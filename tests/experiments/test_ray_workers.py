"""A suite on a local Ray with two workers, one of which is killed in the middle of its run."""

import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from bangs.errors import BangsError, InvalidInput
from bangs.experiments import ray_workers
from bangs.experiments.experiment import Experiment
from bangs.experiments.jobs import Job, Outcome
from bangs.experiments.process_workers import InProcess
from bangs.experiments.ray_workers import Ray, _with_absolute_paths
from bangs.experiments.reproduce import Only, Plan
from bangs.experiments.results import results_in
from bangs.experiments.suites.read_suite import read_suite
from bangs.experiments.tables.render import markdown
from bangs.experiments.tables.table import tabulate
from bangs.runs import read_run
from tests.helpers.small_graphs import ExperimentKilledOnce, suite_file
from tests.helpers.strange_files import STRANGE
from tests.hostile import canary

SEEDS_OF_24 = ("0", "1", "2", "3")  # 2 graphs, 3 methods, 4 suites of one seed each


with_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed; pip install 'bangs[ray]'")


@pytest.fixture(scope="module")
def local_ray() -> Iterator[None]:
    """A local Ray of two workers as the engine starts it; engines use it where it is connected."""
    with Ray(2)._connected():
        yield


def test_a_share_of_a_gpu_is_more_than_nothing_and_no_more_than_all() -> None:
    for share in (0.0, 1.5, -1.0):
        with pytest.raises(InvalidInput, match="--gpu-share must lie in"):
            Ray(gpu_share=share)
    with pytest.raises(InvalidInput, match="--jobs must be a whole number from 1"):
        Ray(0)


def suites(folder: Path) -> list[Path]:
    """Four suites of six runs each."""
    full = suite_file(folder)
    paths = [folder / f"seed-{seed}.toml" for seed in SEEDS_OF_24]
    for seed, path in zip(SEEDS_OF_24, paths, strict=True):
        path.write_text(full.read_text().replace("seeds = 3", f"seeds = [{seed}]"))
    return paths


@with_ray
@pytest.mark.slow
def test_two_ray_workers_of_whom_one_is_killed_give_the_table_of_one_process(local_ray: None, tmp_path: Path) -> None:
    files = suites(tmp_path)
    plan = Plan.of(map(str, files), tmp_path / "ray", device="cpu")
    twin = Plan.of(map(str, files), tmp_path / "here", device="cpu")
    assert len(plan.jobs) == 24
    victim = next(job for job in plan.jobs if job.experiment.method == "bangs")
    struck = replace(victim, experiment=ExperimentKilledOnce(**asdict(victim.experiment)))
    by_job: dict[str, Outcome] = {}
    places: set[str] = set()

    def tell(job: Job, outcome: Outcome) -> None:
        import ray  # after the engine, which sets what Ray reads at its import

        by_job[job.name] = outcome
        places.add(ray.get_runtime_context().gcs_address.rsplit(":", 1)[0])

    replace(plan, jobs=tuple(struck if job is victim else job for job in plan.jobs)).do(Ray(2), tell)
    assert {outcome.kind for outcome in by_job.values()} == {"done"}, [item for item in by_job.values() if item.error]
    assert len(by_job) == 24
    assert places == {"127.0.0.1"}
    assert os.environ["RAY_AUTH_MODE"] == "token"
    kinds = [event["kind"] for event in read_run(victim.folder).events]
    assert kinds.count("stale lock") == kinds.count("resumed") == 1
    assert victim.status is not None
    assert (victim.status.round, victim.status.losses) == (2, 1)

    twin.do(InProcess(), lambda job, outcome: None)
    for path in files:
        by_ray, in_process = (
            markdown(tabulate(read_suite(path), results_in(tmp_path / out))) for out in ("ray", "here")
        )
        assert by_ray == in_process


@with_ray
@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray_workers._require_authentication(None)  # before Ray is imported, as the engine does
    monkeypatch.setattr("ray.is_initialized", lambda: False)  # as where no other test has started one
    job = Plan.of([str(suite_file(tmp_path))], tmp_path / "out", device="cpu").jobs[0]
    with pytest.raises(BangsError, match=r"cannot connect to the Ray cluster at '127\.0\.0\.1:1'"):
        Ray(address="127.0.0.1:1")([job], lambda job, outcome: None)


def test_the_paths_of_a_job_mean_the_same_on_every_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    job = Job(Experiment(), Path("runs"), Path("data"), code=Path("mine.py"))
    absolute = _with_absolute_paths(job)
    assert (absolute.runs, absolute.data, absolute.code) == (tmp_path / "runs", tmp_path / "data", tmp_path / "mine.py")
    assert absolute.name == job.name


@with_ray
@pytest.mark.slow
def test_a_job_whose_ray_workers_all_die_fails_with_a_clear_error_and_is_done_later(
    local_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_workers, "RETRIES", 1)
    code = tmp_path / "deadly.py"
    code.write_text("import os, sys\nif 'default_worker' in sys.argv[0]:\n    os.kill(os.getpid(), 9)\n")
    only = Only(methods=["raw"], datasets=["one"])
    plan = Plan.of([str(suite_file(tmp_path))], tmp_path / "out", only, device="cpu", code=code)
    reported: list[Outcome] = []
    plan.do(Ray(1), lambda job, outcome: reported.append(outcome))
    assert [outcome.kind for outcome in reported] == ["failed"]
    assert reported[0].error.startswith("its Ray worker was lost 2 times: "), reported
    code.write_text("")
    plan.do(Ray(1), lambda job, outcome: reported.append(outcome))
    assert reported[1].kind == "done", reported


def outcomes(plan: Plan) -> dict[str, Outcome]:
    by_job: dict[str, Outcome] = {}

    def tell(job: Job, outcome: Outcome) -> None:
        by_job[job.name] = outcome

    Ray(2)(plan.jobs, tell)
    return by_job


@with_ray
@pytest.mark.slow
def test_ray_workers_give_clear_errors_for_foreign_files_and_a_full_disk(
    local_ray: None, tmp_path: Path, small_disk: Path
) -> None:
    suite = suite_file(tmp_path)
    theirs = canary.lay(small_disk / "theirs")
    plan = Plan.of([str(suite)], small_disk / "runs", device="cpu")
    spoilt = dict(zip(("config.json", "lock", "events.jsonl"), plan.jobs, strict=False))
    for (file, job), thing in zip(spoilt.items(), STRANGE, strict=False):
        job.folder.mkdir(parents=True)
        STRANGE[thing](job.folder / file)
    by_job = outcomes(plan)
    for job in plan.jobs:
        outcome = by_job[job.name]
        assert outcome.kind == ("failed" if job in spoilt.values() else "done"), outcome
        assert outcome.kind == "done" or "'" in outcome.error, outcome  # it names the file
        assert "Traceback" not in outcome.error
    for file, job in spoilt.items():
        path = job.folder / file
        path.rmdir() if path.is_dir() else path.unlink()
    ballast, room = small_disk / "ballast", os.statvfs(small_disk)
    ballast.write_bytes(b"x" * (room.f_bavail * room.f_frsize))
    full = outcomes(plan)
    assert {full[job.name].kind for job in spoilt.values()} == {"failed"}
    assert all("the disk is full" in full[job.name].error for job in spoilt.values()), full
    ballast.unlink()
    assert {outcome.kind for outcome in outcomes(plan).values()} <= {"done", "already done"}
    assert canary.touched(theirs, canary.seen(small_disk / "theirs")) is None
