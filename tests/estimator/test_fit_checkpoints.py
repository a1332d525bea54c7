"""A fit that was stopped goes on from its last round, and ends as it would have."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bangs import SelfTrainingClassifier
from bangs.errors import InvalidInput
from bangs.estimator.fit_checkpoints import FitCheckpoints
from bangs.runs import RunFolder
from bangs.runs.snapshot import Snapshot
from bangs.selftraining.loop import State
from tests.conftest import few_labels
from tests.helpers.timeless import timeless

QUICK = {"method": "hard", "validation": 0.25, "rounds": 3, "k": 4, "epochs": 12, "device": "cpu"}


class Enough(Exception):
    """The end of a fit that an observer calls."""


def fit(folder: Path, stop: int | None = None, data: Data | None = None, **params: str) -> SelfTrainingClassifier:
    """A fit kept in the folder, from wherever it stands; it ends after round `stop`."""

    def stop_after(state: State) -> None:
        if state.index == stop:
            raise Enough

    model = SelfTrainingClassifier(**QUICK, **params)  # type: ignore[arg-type]
    with RunFolder.create_or_resume(folder, {}, resume=True) as store:
        return model.fit(
            few_labels(count=16) if data is None else data, observers=[stop_after], checkpoints=FitCheckpoints(store)
        )


@pytest.mark.parametrize("teacher", ["best", "latest"])
def test_a_fit_stopped_after_any_round_ends_like_an_undisturbed_one(tmp_path: Path, teacher: str) -> None:
    undisturbed = SelfTrainingClassifier(**QUICK, teacher=teacher).fit(few_labels(count=16))  # type: ignore[arg-type]
    for index in range(4):
        folder = tmp_path / f"after-{index}"
        with pytest.raises(Enough):
            fit(folder, stop=index, teacher=teacher)
        resumed = fit(folder, teacher=teacher)
        assert np.array_equal(resumed.predict_proba(), undisturbed.predict_proba())
        assert timeless(resumed.history_) == timeless(undisturbed.history_)
        assert (resumed.best_iter_, resumed.n_iter_) == (undisturbed.best_iter_, undisturbed.n_iter_)
        assert resumed.termination_condition_ == undisturbed.termination_condition_
        for name, value in undisturbed.snapshot_.to_plain()[0].items():
            assert torch.equal(value.nan_to_num(), resumed.snapshot_.to_plain()[0][name].nan_to_num()), name
        assert all(torch.equal(value, resumed.weights_[name]) for name, value in undisturbed.weights_.items())


def test_work_that_was_kept_is_not_done_again(tmp_path: Path) -> None:
    with pytest.raises(Enough):
        fit(tmp_path, stop=2)
    with RunFolder.create_or_resume(tmp_path, {}, resume=True) as store:
        assert FitCheckpoints(store).round == 2
    rounds: list[int] = []
    with RunFolder.create_or_resume(tmp_path, {}, resume=True) as store:
        model = SelfTrainingClassifier(**QUICK)  # type: ignore[arg-type]
        model.fit(
            few_labels(count=16),
            observers=[lambda state: rounds.append(state.index)],
            checkpoints=FitCheckpoints(store),
        )
    assert rounds == [3]


@pytest.mark.parametrize("selector", ["banzhaf", "confidence"])
def test_nodes_that_were_adopted_are_kept_once_and_come_back_to_their_rows(selector: str) -> None:
    snapshot = SelfTrainingClassifier(selector=selector, **QUICK).fit(few_labels(count=16)).snapshot_  # type: ignore[arg-type]
    tensors, facts = snapshot.to_plain()
    assert [row["adopted"] for row in facts["rows"]] == [None] * 4
    assert Snapshot.from_plain(tensors, json.loads(json.dumps(facts))).rows == snapshot.rows


def test_another_graph_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Enough):
        fit(tmp_path, stop=1)
    with pytest.raises(InvalidInput, match="not those the run in"):
        fit(tmp_path, data=few_labels(count=18))
