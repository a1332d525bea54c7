"""A fit of a graph that stays on the disk says what a fit of the same graph in memory says."""

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.estimator.fit_checkpoints import FitCheckpoints
from bangs.graphs.datasets.synthetic import citation
from bangs.graphs.edges import EdgeList
from bangs.graphs.pagerank_push import Push
from bangs.graphs.store import NodeNames, Store, convert_from, stored_graph
from bangs.runs import RunFolder
from bangs.selection.scores import Banzhaf
from bangs.selftraining.loop import State
from bangs.training.neighbour_sampling import Sampling
from tests.helpers.timeless import timeless

BATCHES = Sampling(16, (3, 3), memory=2**14)
PARAMS = {
    "selector": Banzhaf(5, 20, propagate=Push(error=1e-6)),
    "rounds": 2,
    "k": 5,
    "epochs": 6,
    "batches": BATCHES,
    "device": "cpu",
}


class Enough(Exception):
    """The end of a fit that an observer calls."""


def graph() -> Data:
    data = citation(nodes=120, classes=3, features=20, isolated=0.05, signal=0.6, seed=1)
    data.x = data.x.to_dense()
    numbers = torch.arange(120)
    data.train_mask, data.val_mask, data.test_mask = numbers < 40, (numbers >= 40) & (numbers < 60), numbers >= 90
    return data


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    convert_from(graph(), tmp_path / "store")
    monkeypatch.setattr(stored_graph, "MAX_BYTES_IN_MEMORY", 0)  # so that it counts as large
    return Store.open(tmp_path / "store")


def classifier(**changes: object) -> SelfTrainingClassifier:
    return SelfTrainingClassifier(**{**PARAMS, **changes})  # type: ignore[arg-type]


def test_a_fit_from_the_disk_equals_the_fit_in_memory(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    mapped, whole = classifier().fit(store), classifier().fit(store.whole())
    assert isinstance(mapped.node_names_, NodeNames)
    assert timeless(mapped.history_) == timeless(whole.history_)
    assert all(torch.equal(value, mapped.weights_[name]) for name, value in whole.weights_.items())
    assert np.array_equal(mapped.predict_proba(), whole.predict_proba())
    assert (mapped.labels_ == whole.labels_).all()
    assert (mapped.labeled_iter_ == whole.labeled_iter_).all()
    assert mapped.score(store) == whole.score(store.whole())
    monkeypatch.setattr("bangs.estimator.explanation_facts.MAX_EXACT_SIZE", 0)
    for node in (0, 50, 119, *mapped.snapshot_.scored_nodes.node[:3].tolist()):
        one, other = mapped.explain(str(node), top=3), whole.explain(node, top=3)
        assert (one.neighbours, one.degree, one.adoption, one.origin) == (
            other.neighbours, other.degree, other.adoption, other.origin)  # fmt: skip
        assert [own.node for own in one.influences] == [own.node for own in other.influences]
        assert one.support == pytest.approx(other.support, abs=1e-6)
        assert [said for _, said, _ in one.path] == [said for _, said, _ in other.path]
        assert [sure for *_, sure in one.path] == pytest.approx([sure for *_, sure in other.path], abs=1e-3)


def test_what_a_round_keeps_is_three_bytes_a_node(store: Store) -> None:
    snapshot = classifier().fit(store).snapshot_
    assert snapshot.round_labels.element_size() + snapshot.round_confidence.element_size() == 3


def test_a_saved_model_holds_neither_edges_nor_features_nor_names(store: Store, tmp_path: Path) -> None:
    model = classifier().fit(store)
    tensors, _ = model.snapshot_.to_plain()
    assert not {"edge_index", "edge_weight", "x"} & tensors.keys()
    model.save(tmp_path / "models")
    again = SelfTrainingClassifier.load(tmp_path / "models")
    assert np.array_equal(again.predict_proba(), model.predict_proba())
    assert again.explain("7") == model.explain(7)
    assert list(again.node_names_) == list(model.node_names_)
    with pytest.raises(InvalidInput, match="no node is called 'x'; names look like '0', '1', '2'"):
        again.explain("x")


def test_a_model_whose_store_moved_predicts_and_says_where_to_look(store: Store, tmp_path: Path) -> None:
    model = classifier().fit(store)
    model.save(tmp_path / "models")
    other = store.whole()
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    lost = SelfTrainingClassifier.load(tmp_path / "models")
    assert np.array_equal(lost.predict_proba(), model.predict_proba())
    assert np.allclose(lost.predict_proba(other), model.predict_proba(), atol=1e-5)
    with pytest.raises(InvalidInput, match=r"a store at '.*/store', which is not there.*load\(…, store=PATH\)"):
        lost.explain(7)
    found = SelfTrainingClassifier.load(tmp_path / "models", store=tmp_path / "elsewhere")
    assert found.explain(7).influences
    classifier(rounds=0).fit(other).save(tmp_path / "whole")
    with pytest.raises(InvalidInput, match="holds its graph itself and needs no store"):
        SelfTrainingClassifier.load(tmp_path / "whole", store=tmp_path / "elsewhere")


@pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param(
            "cuda",
            marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")],
        ),
    ],
)
def test_a_stopped_fit_goes_on_and_ends_alike(store: Store, tmp_path: Path, device: str) -> None:
    def see(state: State) -> None:
        if state.index == 1:
            raise Enough

    whole = classifier(device=device).fit(store)
    with RunFolder.create_or_resume(tmp_path / "run", {}, resume=True) as folder, pytest.raises(Enough):
        classifier(device=device).fit(store, observers=[see], checkpoints=FitCheckpoints(folder))
    with RunFolder.create_or_resume(tmp_path / "run", {}, resume=True) as folder:
        assert FitCheckpoints(folder).round == 1
        again = classifier(device=device).fit(store, checkpoints=FitCheckpoints(folder))
    assert timeless(again.history_) == timeless(whole.history_)
    assert np.array_equal(again.predict_proba(), whole.predict_proba())
    assert torch.equal(again.snapshot_.round_labels, whole.snapshot_.round_labels)
    assert again.explain("50").path == whole.explain("50").path
    with RunFolder.create_or_resume(tmp_path / "run", {}, resume=True) as folder:
        few = store.relabelled(torch.where(torch.arange(120) < 30, store.y, -1))
        with pytest.raises(InvalidInput, match="not those the run in"):
            classifier().fit(few, checkpoints=FitCheckpoints(folder))


def test_batches_that_nobody_asked_for_are_told(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "bangs.estimator.parameters"):
        found = classifier(batches=None).build_candidates(store=store)[0].trainer
    assert found.batches == Sampling()
    assert "'store' stays on the disk" in caplog.text


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model": "gat"}, "a GAT needs the whole graph at once.*gcn, graphsage and sgc"),
        ({"calibrator": "cagcn"}, "needs all .* edges at once.*ets, temperature, vector"),
        ({"selector": "agreement"}, "needs all .* edges at once"),
    ],
)
def test_parts_that_need_the_whole_graph_are_refused_before_a_round(
    store: Store, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], told: str
) -> None:
    monkeypatch.setattr(stored_graph, "MAX_EDGES_AT_ONCE", 100)
    with pytest.raises(InvalidInput, match=told):
        classifier(**changes).fit(store, observers=[lambda state: pytest.fail("a round was run")])


def test_a_small_store_is_read_whole_and_takes_any_model(tmp_path: Path) -> None:
    data = graph()
    convert_from(data, tmp_path / "store")
    model = classifier(model="appnp", batches=None, calibrator="cagcn", rounds=0).fit(Store.open(tmp_path / "store"))
    assert isinstance(model.snapshot_.graph, EdgeList)
    assert model.node_names_.tolist() == [str(node) for node in range(120)]


def test_edges_beside_a_store_are_refused(store: Store) -> None:
    with pytest.raises(InvalidInput, match="a Store carries its own edges"):
        classifier().fit(store, edge_index=torch.zeros(2, 0, dtype=torch.long))
