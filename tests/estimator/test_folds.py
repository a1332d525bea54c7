"""Folds: every label is learned by most models and judges the others."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bangs import SelfTrainingClassifier
from bangs.core.types import Prediction
from bangs.errors import InvalidInput
from bangs.estimator.candidates import soft_method
from bangs.estimator.folds import Folds, mean_of_runs, unseen_prediction
from bangs.estimator.linear import LinearTrainer, PropagatedLinear
from bangs.graphs.datasets.synthetic import citation
from bangs.selftraining.loop import SelfTrainer
from tests.conftest import few_labels, two_rings

QUICK: dict[str, Any] = {"model": "gcn", "rounds": 1, "epochs": 8, "device": "cpu"}


def labels(*counts: int) -> torch.Tensor:
    """So many labels of each class, and nodes without one between them."""
    known = torch.cat([torch.full((count,), label) for label, count in enumerate(counts)])
    return torch.stack([known, torch.full_like(known, -1)], 1).flatten()


def test_every_label_judges_one_model_and_is_learned_by_the_others() -> None:
    target = labels(10, 7, 5)
    folds = Folds.of(target, 4, seed=0)
    labelled = target >= 0
    assert folds.has_held_out
    assert ((folds.held >= 0).sum(0) == labelled).all()
    assert ((folds.given >= 0).sum(0) == 3 * labelled).all()
    assert torch.where(folds.given >= 0, folds.given, folds.held)[0].equal(target)
    for label, count in enumerate((10, 7, 5)):
        parts = (folds.held == label).sum(1)
        assert int(parts.sum()) == count
        assert int(parts.max() - parts.min()) <= 1


def test_the_same_seed_gives_the_same_folds() -> None:
    target = labels(9, 9)
    assert Folds.of(target, 4, 1).held.equal(Folds.of(target, 4, 1).held)
    assert not Folds.of(target, 4, 1).held.equal(Folds.of(target, 4, 2).held)


def test_a_class_of_one_label_is_learned_by_all_and_judges_none() -> None:
    folds = Folds.of(labels(1, 6), 3, seed=0)
    assert folds.single_label_classes == (0,)
    assert (folds.given == 0).sum(1).tolist() == [1, 1, 1]
    assert not (folds.held == 0).any()


def test_fewer_labels_than_folds_make_fewer_folds() -> None:
    folds = Folds.of(labels(1, 2), 4, seed=0)  # a fold then holds labels of one class only
    assert folds.runs == 2
    assert (folds.held >= 0).sum(1).tolist() == [1, 1]
    assert all(len(given[given >= 0].unique()) == 2 for given in folds.given)


def test_one_label_a_class_is_learned_by_all_models() -> None:
    folds = Folds.of(labels(1, 1, 1), 4, seed=0)
    assert not folds.has_held_out
    assert (folds.given == labels(1, 1, 1)).all()


def test_what_is_unseen_comes_from_models_that_have_not_learned_the_node() -> None:
    logits = torch.zeros(2, 3, 2)
    logits[0, 0], logits[1, 0] = torch.tensor([9.0, 0.0]), torch.tensor([0.0, 9.0])
    held = torch.tensor([[-1, 0, -1], [0, -1, -1]])  # node 0 is unseen by the second model, node 1 by the first
    prediction = unseen_prediction(Prediction(logits), held)
    assert prediction.logits.shape == (1, 2, 2)
    assert prediction.label[0, 0] == 1
    assert mean_of_runs(Prediction(logits)).probs[0, 0].tolist() == pytest.approx([0.5, 0.5])


def test_predictions_are_the_mean_of_the_folds_models() -> None:
    data = few_labels()
    model = SelfTrainingClassifier(**QUICK, calibrator="none", folds=3).fit(data)
    assert {len(value) for value in model.weights_.values()} == {3}
    assert model.predict_proba(data) == pytest.approx(model.predict_proba(), abs=1e-6)


@pytest.mark.parametrize("name", ["soft", "soft-aligned", "bangs-soft"])
def test_the_labels_of_a_fold_do_not_reach_the_model_they_judge(name: str) -> None:
    data = few_labels()
    folds = Folds.of(data.y, 3, 0)
    graph = Data(x=data.x, edge_index=data.edge_index)
    recipe = replace(soft_method(name, 2), start="teacher")
    weights = []
    for held in (folds.held, torch.where(folds.held >= 0, 1 - folds.held, -1)):
        task = Folds(folds.given, held, True).task(graph, torch.ones(2, dtype=torch.float64), torch.device("cpu"))
        state = SelfTrainer(LinearTrainer(PropagatedLinear(rows="given")), recipe).fit(task, [0, 1, 2])  # type: ignore[arg-type]
        weights.append(state.student.weights)
    for part, value in weights[0].items():
        assert torch.equal(value, weights[1][part])


def test_judged_figures_are_of_unseen_labels() -> None:
    data = few_labels()
    model = SelfTrainingClassifier(**QUICK).fit(data)
    before, after, label = model.snapshot_.judged
    assert len(before) == len(after) == len(label) == 12
    assert model.validation_score_ == float((before.argmax(-1) == label).double().mean())
    assert (model.labeled_iter_[:12] == 0).all()  # though every label was held from one model


@pytest.mark.parametrize("method", ["soft", "soft-aligned", "bangs-soft", "hard", "raw"])
def test_a_saved_fit_with_folds_predicts_and_explains_the_same(method: str, tmp_path: Path) -> None:
    data = few_labels()
    model = SelfTrainingClassifier(**QUICK, method=method, folds=2).fit(data)
    model.save(tmp_path)
    loaded = SelfTrainingClassifier.load(tmp_path)
    assert np.array_equal(loaded.predict_proba(), model.predict_proba())
    assert loaded.predict_proba(data) == pytest.approx(model.predict_proba(), abs=1e-6)
    assert str(loaded.explain(30)) == str(model.explain(30))


def test_one_label_a_class_still_gives_a_model() -> None:
    model = SelfTrainingClassifier(**QUICK).fit(few_labels(count=2))
    assert math.isnan(model.validation_score_)
    assert "most classes have one label only" in model.notes_[0]
    assert model.predict_proba().shape == (40, 2)


def test_many_classes_of_two_labels() -> None:
    data = citation(nodes=360, classes=60, features=80, isolated=0.0, signal=0.9, seed=0)
    truth, data.y = data.y, torch.full((360,), -1)
    for label in truth.unique().tolist():
        nodes = (truth == label).nonzero().flatten()[:2]
        data.y[nodes] = label
    for name in ("train_mask", "val_mask", "test_mask"):
        data.pop(name, None) if name in data else None
    model = SelfTrainingClassifier(**QUICK).fit(data)
    assert len(model.classes_) == len(truth.unique())
    assert len(model.snapshot_.judged[2]) >= 100


def test_labels_on_nodes_without_edges() -> None:
    data = few_labels()
    linked = data.edge_index.min(0).values >= 12
    data.edge_index = data.edge_index[:, linked]  # no labelled node has an edge
    model = SelfTrainingClassifier(**QUICK).fit(data)
    assert np.isfinite(model.predict_proba()).all()


def test_validation_nodes_of_the_data_are_used_unless_folds_are_asked_for() -> None:
    data, node = two_rings(40), torch.arange(40)
    data.train_mask, data.val_mask, data.test_mask = node < 10, (node >= 10) & (node < 20), node >= 20
    default = SelfTrainingClassifier(**QUICK).fit(data)
    assert (default.snapshot_.held >= 0).nonzero().flatten().tolist() == list(range(10, 20))
    folded = SelfTrainingClassifier(**QUICK, folds=2).fit(data)
    assert (folded.snapshot_.held >= 0).nonzero().flatten().tolist() == list(range(20))


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"folds": 1}, "folds must be a whole number from 2"),
        ({"folds": 2.5}, "folds must be a whole number"),
        ({"folds": 3, "validation": 0.5}, "give one, not both"),
        ({"time_limit": 0}, "time_limit must be above 0 seconds"),
    ],
)
def test_wrong_settings_are_named(params: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        SelfTrainingClassifier(**{**QUICK, **params}).fit(few_labels())
