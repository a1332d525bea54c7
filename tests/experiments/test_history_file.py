"""A run adds a row of history for every round, and keeps checkpoints as often as asked."""

import json
from pathlib import Path

import pytest

from bangs.experiments.experiment import Experiment
from bangs.graphs.datasets.synthetic import citation
from bangs.runs import RunFolder
from bangs.runs.folder import _round_files

QUICK = Experiment(method="confidence", seeds=(0,), rounds=3, k=4, changes={"epochs": 3})


@pytest.mark.parametrize(("pause", "rounds"), [(0.0, [3, 2]), (1e9, [0])], ids=["every round", "seldom"])
def test_states_are_kept_no_more_often_than_asked_and_every_row(
    tmp_path: Path, pause: float, rounds: list[int]
) -> None:
    data = citation(nodes=100, classes=3, features=30)
    observed: list[list[int]] = []
    with RunFolder.create_or_resume(tmp_path / "run", QUICK.config(), resume=False) as run_folder:
        observers = [lambda state, row: observed.append(list(_round_files(run_folder.path / "checkpoints")))]
        QUICK.run(data=data, device="cpu", observers=observers, run_folder=run_folder, pause=pause)
        assert observed[-1] == rounds
        assert _round_files(run_folder.path / "checkpoints") == {}
    rows = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert [row["round"] for row in rows] == [0, 1, 2, 3]
