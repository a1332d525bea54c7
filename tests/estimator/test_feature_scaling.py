"""An array whose columns have different units is standardised; the choice of units then changes nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.estimator import model_file
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.estimator.feature_scaling import FeatureScaling
from bangs.estimator.linear import PropagatedLinear
from bangs.graphs.store import Store
from tests.cli.invoke import bangs

UNITS = np.array([1e-3, 1.0, 300.0, 1e5], dtype=np.float32)
NODES = 60
EDGES = np.stack([np.arange(NODES), (np.arange(NODES) + 2) % NODES])


def features(seed: int = 0) -> np.ndarray[Any, Any]:
    """Two classes, of even and odd nodes, which differ in the first column."""
    x = np.random.default_rng(seed).normal(size=(NODES, 4)).astype(np.float32)
    x[:, 0] += 3.0 * (np.arange(NODES) % 2)
    return x


def labels() -> np.ndarray[Any, Any]:
    y = np.full(NODES, -1)
    y[:12] = np.arange(12) % 2
    return y


def fitted(x: Any, **settings: Any) -> SelfTrainingClassifier:
    return SelfTrainingClassifier(rounds=1, epochs=5, device="cpu", **settings).fit(x, labels(), edge_index=EDGES)


@pytest.mark.parametrize("as_given", [lambda x: x, torch.from_numpy], ids=["numpy", "torch"])
def test_the_units_of_columns_change_no_prediction(as_given: Any) -> None:
    x = features()
    standard = (x - x.mean(0)) / x.std(0)
    expected = fitted(standard, scale="none").predict_proba()
    model = fitted(as_given(x * UNITS + 5 * UNITS))
    assert np.allclose(model.predict_proba(), expected, atol=1e-3)
    assert model.notes_ == [
        "features have different or extreme units, so 4 of 4 are scaled; scale 'none' takes them as they are"
    ]


def test_the_units_of_the_columns_of_a_data_change_no_prediction() -> None:
    x = features()
    expected = fitted(x * UNITS).predict_proba()
    data = Data(x=torch.from_numpy(x * UNITS), edge_index=torch.from_numpy(EDGES), y=torch.from_numpy(labels()))
    model = SelfTrainingClassifier(rounds=1, epochs=5, device="cpu").fit(data)
    assert np.array_equal(model.predict_proba(), expected)
    assert torch.equal(data.x, torch.from_numpy(x * UNITS))  # what was given is not changed


def test_columns_of_one_unit_are_taken_as_they_are() -> None:
    model = fitted(features())
    assert model.scaling_ is None
    assert model.notes_ == []
    assert np.array_equal(model.predict_proba(), fitted(features(), scale="none").predict_proba())


def test_scale_is_a_choice_of_the_user() -> None:
    x = features() * UNITS
    assert fitted(x, scale="none").scaling_ is None
    assert fitted(features(), scale="standard").scaling_ is not None
    with pytest.raises(InvalidInput, match=r"scale must be one of auto.*'robust'"):
        fitted(x, scale="robust")
    with pytest.raises(InvalidInput, match="X is sparse"):
        fitted(sp.csr_array(x), scale="standard")
    assert fitted(sp.csr_array(x)).scaling_ is None


def test_columns_of_zeros_and_ones_stay_as_they_are_and_constant_ones_become_zero() -> None:
    x = torch.from_numpy(features() * UNITS)
    x[:, 1] = (torch.arange(NODES) % 3 == 0).float()
    x[:, 2] = 1e6
    scaling = FeatureScaling.of(x, "auto")
    assert scaling is not None
    out = scaling(x)
    assert torch.equal(out[:, 1], x[:, 1])
    assert torch.equal(out[:, 2], torch.zeros(NODES))
    assert torch.allclose(out[:, [0, 3]].mean(0), torch.zeros(2), atol=1e-5)
    assert torch.allclose(out[:, [0, 3]].std(0, correction=0), torch.ones(2), atol=1e-5)


def test_a_scaling_that_would_change_nothing_is_none() -> None:
    ones = torch.from_numpy(np.eye(NODES, 4, dtype=np.float32))
    for x in (ones, torch.zeros(NODES, 4)):
        assert FeatureScaling.of(x, "standard") is None
    assert fitted(np.eye(NODES, 4) > 0, scale="standard").scaling_ is None
    assert fitted(features(), scale="standard").notes_ == []


def test_a_measure_beside_an_embedding_gets_the_weight_of_one_column() -> None:
    draw = np.random.default_rng(0)
    wide = 0.05 * draw.normal(size=(NODES, 64))
    wide[:, 7] = 15_000 + 4_000 * draw.normal(size=NODES)
    scaling = FeatureScaling.of(torch.from_numpy(wide).float(), "auto")
    assert scaling is not None
    assert scaling.scale.ne(1).nonzero().tolist() == [[7]]
    scaled = scaling(torch.from_numpy(wide).float())
    assert 0.03 < float(scaled[:, 7].std()) < 0.07
    frame = pd.DataFrame(wide, columns=[f"e{i}" for i in range(64)])
    edges = pd.DataFrame({"source": EDGES[0], "target": EDGES[1]})
    model = SelfTrainingClassifier(rounds=1, epochs=5, device="cpu").fit(frame, labels(), edge_index=edges)
    assert [column.name for column in model.columns_.columns if column.centred] == ["e7"]


def test_one_measure_beside_categories_is_standardised() -> None:
    x = torch.from_numpy((np.arange(NODES)[:, None] % 20 == np.arange(20)).astype(np.float32))
    assert FeatureScaling.of(x, "auto") is None
    scaling = FeatureScaling.of(torch.cat([x, 15 * torch.from_numpy(features()[:, 1:2])], dim=1), "auto")
    assert scaling is not None
    assert torch.equal(scaling.scale[:20], torch.ones(20, dtype=torch.float64))
    assert float(scaling.scale[20]) > 10


def test_a_large_offset_costs_no_precision() -> None:
    year = torch.tensor([[2000.0], [2001.0], [2002.0], [2003.0]]).repeat(1, 2) * torch.tensor([[1.0, 1000.0]])
    scaling = FeatureScaling.of(year, "auto")
    assert scaling is not None
    assert torch.allclose(scaling(year)[:, 0], torch.tensor([-1.3416, -0.4472, 0.4472, 1.3416]), atol=1e-3)


def test_another_graph_is_scaled_by_the_numbers_of_the_fitted_one(tmp_path: Path) -> None:
    x, other = features() * UNITS, features(1) * UNITS
    model = fitted(x)
    model.save(tmp_path)
    again = SelfTrainingClassifier.load(tmp_path)
    for one in (model, again):
        assert np.allclose(one.predict_proba(x, EDGES), model.predict_proba(), atol=1e-5)
        doubled = one.predict_proba(np.concatenate([other, other]), np.concatenate([EDGES, EDGES + NODES], axis=1))
        assert np.allclose(doubled[:NODES], one.predict_proba(other, EDGES), atol=0.2)  # structure changes a little
    assert np.array_equal(model.predict_proba(other, EDGES), again.predict_proba(other, EDGES))
    assert again.scale == "auto"


def test_a_wrong_number_of_columns_is_named() -> None:
    model = fitted(features() * UNITS)
    with pytest.raises(InvalidInput, match=r"X has 3 features.*expecting 4"):
        model.predict_proba(features()[:, :3], EDGES)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("scale", torch.zeros(4, dtype=torch.float64), "not positive"),
        ("mean", torch.full((4,), float("nan"), dtype=torch.float64), "not finite"),
        ("mean", torch.zeros(3, dtype=torch.float64), "shapes"),
    ],
)
def test_a_damaged_scaling_in_a_file_is_refused(tmp_path: Path, name: str, value: Any, sentence: str) -> None:
    fitted(features() * UNITS).save(tmp_path)
    tensors, facts = model_file.load(tmp_path)
    model_file.save(tmp_path, tensors | {f"scaling.{name}": value}, facts)
    with pytest.raises(InvalidInput, match=sentence):
        SelfTrainingClassifier.load(tmp_path)


def test_a_frame_follows_the_same_choices() -> None:
    x = pd.DataFrame(features() * UNITS, columns=list("abcd"))
    edges = pd.DataFrame({"source": EDGES[0], "target": EDGES[1]})
    plain, standard = (
        SelfTrainingClassifier(rounds=1, epochs=5, device="cpu", scale=scale).fit(x, labels(), edge_index=edges)
        for scale in ("none", "auto")
    )
    assert [column.scale for column in plain.columns_.columns] == [1.0] * 4
    assert all(column.centred for column in standard.columns_.columns)


def test_many_columns_of_one_unit_in_a_frame_are_an_embedding() -> None:
    wide = np.random.default_rng(0).normal(size=(NODES, 40)).astype(np.float32) * np.linspace(0.5, 4, 40)
    names = [f"e{i}" for i in range(40)]
    edges = pd.DataFrame({"source": EDGES[0], "target": EDGES[1]})
    for frame, centred in (
        (pd.DataFrame(wide, columns=names), False),
        (pd.DataFrame(wide[:, :20], columns=names[:20]), True),  # few columns may be measures
        (pd.DataFrame(wide * np.logspace(-3, 3, 40), columns=names), True),  # units differ
    ):
        model = SelfTrainingClassifier(rounds=1, epochs=5, device="cpu").fit(frame, labels(), edge_index=edges)
        assert {column.centred for column in model.columns_.columns} == {centred}


def test_dense_columns_of_different_scales_are_tried_standardised_too() -> None:
    model = fitted(features() * np.array([1, 2, 3, 4], dtype=np.float32))
    names = {row["model"].split()[0] for row in model.leaderboard_}
    assert {"pagerank-std", "walk-std", "scales-std", "pagerank"} <= names
    standard = (features() - features().mean(0)) / features().std(0)
    for same_scale in (standard, sp.csr_array(features())):
        assert not any("-std" in row["model"] for row in fitted(same_scale).leaderboard_)


def test_a_standardised_model_predicts_another_graph_by_the_deviations_of_the_fitted_one(tmp_path: Path) -> None:
    x = features() * np.array([1, 2, 3, 9], dtype=np.float32)
    model = fitted(x, model=PropagatedLinear(rows="given", columns="standard"), method="soft", scale="none")
    scaled = fitted(x / x.std(0), model=PropagatedLinear(rows="given"), method="soft", scale="none")
    assert np.allclose(model.predict_proba(), scaled.predict_proba(), atol=1e-3)
    model.save(tmp_path)
    again = SelfTrainingClassifier.load(tmp_path)
    edges = EDGES[:, :28]
    assert np.allclose(again.predict_proba(x[:30], edges), scaled.predict_proba(x[:30] / x.std(0), edges), atol=1e-3)


def test_a_store_is_taken_as_it_is_and_predicted_by_a_model_that_scales(tmp_path: Path) -> None:
    x = features() * UNITS
    np.savez(tmp_path / "graph.npz", x=x, edge_index=np.concatenate([EDGES, EDGES[::-1]], axis=1), y=labels())
    assert bangs("convert", tmp_path / "graph.npz", tmp_path / "store").code == 0
    store = Store.open(tmp_path / "store")
    model = fitted(x)
    assert np.allclose(model.predict_proba(store), model.predict_proba(x, EDGES), atol=1e-5)
    own = SelfTrainingClassifier(rounds=1, epochs=5, device="cpu").fit(store)
    assert own.scaling_ is None
    assert own.predict_proba().shape == (NODES, 2)
    with pytest.raises(InvalidInput, match="a Store is taken as it is"):
        SelfTrainingClassifier(scale="standard").fit(store)


@pytest.mark.parametrize("scale", ["auto", "standard", "none"])
def test_the_command_line_scales_an_array_as_asked(tmp_path: Path, scale: str) -> None:
    np.savez(tmp_path / "graph.npz", x=features() * UNITS, edge_index=EDGES, y=labels())
    options = ("--scale", scale, "--rounds", "1", "--epochs", "5")
    printed = bangs("fit", tmp_path / "graph.npz", "--out", tmp_path / "out", *options)
    assert printed.code == 0, printed.err
    assert (SelfTrainingClassifier.load(tmp_path / "out").scaling_ is None) == (scale == "none")
    assert ("extreme units" in printed.out + printed.err) == (scale == "auto")


def test_a_model_of_the_earlier_structure_rule_predicts_its_own_graph_only(tmp_path: Path) -> None:
    SelfTrainingClassifier(rounds=1, epochs=5, device="cpu").fit(None, labels(), edge_index=EDGES).save(tmp_path)
    tensors, facts = model_file.load(tmp_path)
    del facts["structure_rule"]
    model_file.save(tmp_path, tensors, facts)
    model = SelfTrainingClassifier.load(tmp_path)
    assert model.predict_proba().shape == (NODES, 2)
    with pytest.raises(InvalidInput, match="fit it again"):
        model.predict_proba(None, EDGES)


@pytest.mark.parametrize(("unit", "scaled"), [(1e-9, True), (1e-3, False), (1.0, False), (1e3, False), (1e9, True)])
def test_an_array_in_an_extreme_unit_is_standardised(unit: float, scaled: bool) -> None:
    x = features() * np.float32(unit)
    scaling = FeatureScaling.by_units(torch.from_numpy(x))
    changed = bool(((scaling.mean != 0) | (scaling.scale != 1)).any())
    assert changed is scaled
    if scaled:
        expected = fitted(features(), scale="standard").predict_proba()
        assert np.allclose(fitted(x).predict_proba(), expected, atol=1e-3)
