"""A model predicts the same for another graph in memory and on disk."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.errors import InvalidInput
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.estimator.inference import apply
from bangs.graphs.datasets.synthetic import citation
from bangs.graphs.store import Store, convert_from
from bangs.nn.models import MODELS

CPU = torch.device("cpu")


@pytest.fixture
def graph() -> Data:
    data = citation(nodes=90, classes=3, features=20, isolated=0.05, signal=0.6, seed=1)
    data.x = data.x.to_dense()
    return data


@pytest.fixture
def store(graph: Data, tmp_path: Path) -> Store:
    convert_from(graph, tmp_path / "store")
    return Store.open(tmp_path / "store")


@pytest.mark.parametrize("name", ["gcn", "graphsage", "sgc"])
@pytest.mark.parametrize("memory", [2**30, 2**12])
def test_layer_by_layer_from_the_disk_equals_the_whole_graph(name: str, memory: int, graph: Data, store: Store) -> None:
    architecture = MODELS[name]()
    weights = architecture.build(20, 3, Streams((7,))).weights()
    whole = apply(architecture, weights, 3, graph, CPU)
    torch.testing.assert_close(apply(architecture, weights, 3, store.unlabelled(), CPU, memory), whole)


def test_a_model_of_the_whole_graph_refuses_one_on_disk(store: Store) -> None:
    architecture = MODELS["appnp"]()
    weights = architecture.build(20, 3, Streams((7,))).weights()
    with pytest.raises(InvalidInput, match=r"APPNP needs the whole graph at once.* gcn, graphsage and sgc"):
        apply(architecture, weights, 3, store.unlabelled(), CPU)


def fitted(calibrator: str) -> SelfTrainingClassifier:
    first = citation(nodes=80, classes=3, features=20, isolated=0.0, signal=0.6)
    model = SelfTrainingClassifier(
        method="hard", validation=0.25, calibrator=calibrator, rounds=1, k=4, epochs=4, device="cpu"
    )
    return model.fit(first)


def test_a_fitted_classifier_predicts_a_store_as_it_does_the_graph(graph: Data, store: Store) -> None:
    model = fitted("ets")
    np.testing.assert_allclose(model.predict_proba(store), model.predict_proba(graph), atol=1e-6)
    assert (model.predict(store) == model.predict(graph)).all()


def test_a_calibrator_that_needs_edges_refuses_a_graph_on_disk(store: Store) -> None:
    with pytest.raises(InvalidInput, match=r"calibrator uses edges.*ets, temperature or vector"):
        fitted("cagcn").predict_proba(store)
