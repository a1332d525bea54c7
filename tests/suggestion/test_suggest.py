"""Suggestions of a fitted model, in Python and from its file."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone

from bangs import SelfTrainingClassifier
from bangs.errors import InvalidInput
from bangs.estimator.model_file import read_saved_run
from bangs.runs.snapshot import Snapshot
from bangs.suggestion.strategies import DEFAULT, STRATEGIES
from bangs.suggestion.suggest import suggest
from tests.conftest import few_labels


@pytest.fixture(scope="module")
def model() -> SelfTrainingClassifier:
    return SelfTrainingClassifier().fit(few_labels(60, 3, 24))


def test_a_fit_keeps_points_and_the_disagreement_of_its_folds(model: SelfTrainingClassifier) -> None:
    points, disagreement = model.snapshot_.points, model.snapshot_.disagreement
    assert points is not None
    assert disagreement is not None
    assert len(points) == len(disagreement) == 60
    assert 0 <= float(disagreement.min()) <= float(disagreement.max()) <= np.log(3) + 1e-5


@pytest.mark.parametrize("name", [None, *STRATEGIES])
def test_every_strategy_suggests_nodes_without_a_label(model: SelfTrainingClassifier, name: str | None) -> None:
    suggestions = model.suggest(5, name)
    assert suggestions.strategy == (name or DEFAULT)
    assert 1 <= len(suggestions) <= 5
    assert [item.rank for item in suggestions] == list(range(1, len(suggestions) + 1))
    assert all(item.row >= 24 and item.node == str(item.row) and item.reason for item in suggestions)


def test_a_saved_model_suggests_the_same(model: SelfTrainingClassifier, tmp_path: Path) -> None:
    model.save(tmp_path)
    loaded = SelfTrainingClassifier.load(tmp_path).suggest(4)
    assert loaded == model.suggest(4)
    assert [item.row for item in read_saved_run(tmp_path).suggest(4)] == [item.row for item in loaded]


def test_a_saved_model_draws_with_the_seed_of_its_fit(model: SelfTrainingClassifier, tmp_path: Path) -> None:
    model = clone(model).set_params(random_state=7).fit(few_labels(60, 3, 24))
    model.save(tmp_path)
    rows = [item.row for item in read_saved_run(tmp_path).suggest(20, "random")]
    assert rows == [item.row for item in model.suggest(20, "random")]
    assert rows != [item.row for item in replace(read_saved_run(tmp_path), seed=0).suggest(20, "random")]


def test_excluded_nodes_are_never_suggested(model: SelfTrainingClassifier, tmp_path: Path) -> None:
    model.save(tmp_path)
    left_out = torch.arange(60) >= 40
    suggestions = read_saved_run(tmp_path).suggest(30, "random", exclude=left_out)
    assert all(item.row < 40 for item in suggestions)


def test_csv_and_json_hold_the_same_nodes(model: SelfTrainingClassifier) -> None:
    suggestions = model.suggest(3)
    rows = list(csv.DictReader(io.StringIO(suggestions.to_csv())))
    plain = json.loads(json.dumps(suggestions.to_dict()))
    assert (
        [row["id"] for row in rows] == [item["node"] for item in plain["nodes"]] == [item.node for item in suggestions]
    )
    assert rows[0]["reason"] in str(suggestions)


@pytest.mark.parametrize("count", [0, -1, True, 2.5, "3"])
def test_a_count_that_is_none_is_refused(model: SelfTrainingClassifier, count: object) -> None:
    with pytest.raises(InvalidInput, match="count must be a whole number"):
        model.suggest(count)  # type: ignore[arg-type]


def test_a_model_without_points_suggests_by_its_predictions(model: SelfTrainingClassifier) -> None:
    bare = replace(model.snapshot_, points=None, disagreement=None)
    suggestions = suggest(bare, model.node_names_, model.classes_.tolist(), 3)
    assert 1 <= len(suggestions) <= 3


def test_where_all_nodes_have_labels_none_is_suggested(model: SelfTrainingClassifier) -> None:
    everyone = torch.ones(60, dtype=torch.bool)
    with pytest.raises(InvalidInput, match="every node has a label"):
        suggest(model.snapshot_, model.node_names_, model.classes_.tolist(), exclude=everyone)


@pytest.mark.parametrize("points", [torch.zeros(60), torch.zeros(59, 4), torch.zeros(60, 0), torch.zeros(60, 2, 2)])
def test_points_of_another_shape_in_a_file_are_refused(model: SelfTrainingClassifier, points: torch.Tensor) -> None:
    tensors, facts = model.snapshot_.to_plain()
    with pytest.raises(InvalidInput, match="'points' of the saved run must have shape"):
        Snapshot.from_plain({**tensors, "points": points}, facts)


def test_numbers_that_are_none_in_a_file_are_refused(model: SelfTrainingClassifier) -> None:
    tensors, facts = model.snapshot_.to_plain()
    for name in ("points", "disagreement"):
        broken = tensors[name].clone()
        broken[3] = float("nan")
        with pytest.raises(InvalidInput, match=f"'{name}' of the saved run"):
            Snapshot.from_plain({**tensors, name: broken}, facts)
