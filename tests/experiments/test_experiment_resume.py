"""A run that is stopped, killed or damaged goes on to the result it would have had."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from bangs.core.types import Task
from bangs.errors import InvalidInput
from bangs.graphs.fingerprint import fingerprint
from bangs.runs import RunFolder, read_run
from bangs.runs.checkpoint_content import pack, unpack
from bangs.runs.checkpoint_file import Checkpoint
from bangs.selftraining.budget import Budget
from bangs.selftraining.loop import SelfTrainer, State
from bangs.selftraining.methods import method
from bangs.training.trainer import Learner
from tests.helpers.forking import FORKING
from tests.helpers.without_seconds import without_seconds
from tests.integration import kill_experiments
from tests.integration.kill_experiments import attempt, experiment, history, small


class StopEarly(Exception):
    """The end of a run that an observer calls."""


def stopped_after(folder: Path, of: Any, index: int, device: str = "cpu", pause: float = 0.0) -> None:
    def stop(state: State, row: dict[str, Any]) -> None:
        if state.index == index:
            raise StopEarly

    with (
        RunFolder.create_or_resume(folder, of.config(), resume=True) as run_folder,
        pytest.raises(StopEarly),
    ):
        of.run(data=small(), device=device, run_folder=run_folder, observers=[stop], pause=pause)


there = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, there])])
@pytest.mark.parametrize("name", ["bangs", "cpl", "drgst"])
def test_a_run_stopped_after_any_round_ends_like_an_undisturbed_one(name: str, device: str, tmp_path: Path) -> None:
    of = experiment(name, rounds=2)
    uninterrupted = attempt(tmp_path / "whole", of, device=device)
    for index in range(3):
        folder = tmp_path / f"after-{index}"
        stopped_after(folder, of, index, device)
        assert attempt(folder, of, device=device) == uninterrupted
        assert history(folder) == history(tmp_path / "whole")


def test_a_run_stopped_in_every_round_ends_like_an_undisturbed_one(tmp_path: Path) -> None:
    of = experiment("bangs", teacher="best")
    for index in range(5):
        stopped_after(tmp_path / "often", of, index)
    assert attempt(tmp_path / "often", of) == attempt(tmp_path / "whole", of)


def test_runs_killed_at_random_moments_end_like_undisturbed_ones(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.integration.kill_experiments", str(tmp_path), "4", "bangs", "cpl", "drgst"]
    process = subprocess.run(command, capture_output=True, text=True, check=True, env=FORKING)
    facts = json.loads(process.stdout)
    assert all(verdict["equal"] and verdict["history"] for verdict in facts.values()), facts
    assert sum(verdict["kills"] for verdict in facts.values()) > 3


@pytest.mark.parametrize(
    ("name", "teacher"), [("bangs", "first"), ("bangs", "latest"), ("bangs", "best"), ("cpl", "first"), ("raw", "best")]
)
def test_a_packed_state_comes_back_bit_by_bit(name: str, teacher: Any, task: Task) -> None:
    trainer = SelfTrainer(experiment(name).self_trainer().trainer, method(name, Budget(2, 4, 2, teacher)))
    state = trainer.fit(task, range(3))
    tensors, facts = pack(state)
    learner = trainer.trainer.prepare(task)
    repacked, more = pack(unpack(Checkpoint(state.index, tensors, facts), learner))
    assert facts == more
    assert tensors.keys() == repacked.keys()
    assert all(torch.equal(tensors[key], repacked[key]) for key in tensors)


def test_a_model_in_two_roles_is_stored_once(task: Task) -> None:
    trainer = SelfTrainer(experiment("bangs").self_trainer().trainer, method("raw"))
    tensors, facts = pack(trainer.fit(task, range(3)))
    assert facts["roles"] == {"student": "student", "teacher": "student", "best": "student"}
    assert not any(name.startswith(("teacher", "best.")) for name in tensors)

    def restored(learner: Learner) -> State:
        return unpack(Checkpoint(0, tensors, facts), learner)

    state = trainer.fit(task, range(3), restored)
    assert state.teacher is state.student is state.best


def test_checkpoints_keep_their_distance_and_go_when_the_run_is_finished(tmp_path: Path) -> None:
    of = experiment("bangs")
    stopped_after(tmp_path, of, 3, pause=3600.0)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["round-000000.safetensors"]
    assert len(history(tmp_path)) == 4
    attempt(tmp_path, of)
    assert list((tmp_path / "checkpoints").iterdir()) == []
    assert [row["round"] for row in history(tmp_path)] == [0, 1, 2, 3, 4]


def test_a_run_whose_history_was_changed_begins_again(tmp_path: Path) -> None:
    of = experiment("bangs")
    stopped_after(tmp_path / "run", of, 2)
    path = tmp_path / "run" / "history.jsonl"
    path.write_text(path.read_text().replace('"round":1', '"round":7'))
    assert attempt(tmp_path / "run", of) == attempt(tmp_path / "whole", of)
    assert "damaged checkpoint" in [event["kind"] for event in read_run(tmp_path / "run").events]


def test_another_graph_under_the_same_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = experiment("bangs")
    stopped_after(tmp_path, of, 1)
    other = small()
    other.y[0] = (other.y[0] + 1) % 3
    assert fingerprint(other) != fingerprint(small())
    monkeypatch.setattr(kill_experiments, "small", lambda: other)
    with pytest.raises(InvalidInput, match="not those the run in"):
        attempt(tmp_path, of)


def test_the_configuration_holds_the_parts_behind_the_names() -> None:
    config = experiment("bangs").config()
    assert "Banzhaf(k=8, candidates=16" in config["parts"]["method"]
    assert config["parts"]["trainer"].startswith("Trainer(model=GCN(")
    assert without_seconds(config) == config
