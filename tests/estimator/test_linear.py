"""Linear models on propagated features: their inputs, their minimum, and their saved weights."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bangs import SelfTrainingClassifier
from bangs.core.rng import Streams
from bangs.core.types import Labels, Task, one_hot
from bangs.estimator import linear
from bangs.estimator.linear import LinearTrainer, PropagatedLinear
from bangs.graphs.datasets.synthetic import citation
from tests.estimator.labelled_citation import labelled_citation, linear_task


def test_of_very_many_nodes_a_linear_model_learns_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    data, truth = labelled_citation()
    given = torch.where(torch.arange(240) < 30, truth, -1)[None]
    task = Task(Data(x=data.x, edge_index=data.edge_index), Labels.given(given), torch.full_like(given, -1), 3)
    learner = LinearTrainer(PropagatedLinear(width=8)).prepare(task)
    belief = one_hot(truth, 3)[None]
    soft = replace(task.given, target=truth[None], belief=belief, weight=torch.ones(1, 240))
    monkeypatch.setattr(linear, "MAX_SAMPLED_NODES", 100)
    nodes, times = learner._sampled(soft)
    assert nodes[:30].tolist() == list(range(30))  # every given label
    assert len(nodes.unique()) == len(nodes) == 130
    assert float(times.sum()) == pytest.approx(240)
    monkeypatch.setattr(linear, "MAX_SAMPLED_NODES", 210)
    assert learner._sampled(soft)[0].tolist() == list(range(240))


def test_the_linear_learner_finds_the_minimum_that_gradient_descent_finds() -> None:
    task = linear_task()
    trainer = LinearTrainer(PropagatedLinear(width=16), ridge=1e-2, iterations=200)
    learner = trainer.prepare(task)
    fitted = learner.fit(task.given, Streams((0,)))
    weight = torch.zeros(16, 3, requires_grad=True)
    bias = torch.zeros(3, requires_grad=True)
    known = task.given.known[0]
    z, target = learner.inputs[known], one_hot(task.given.target[0, known], 3)
    slow = torch.optim.Adam([weight, bias], lr=0.05)
    for _ in range(3000):
        slow.zero_grad()
        loss = -(target * (z @ weight + bias).log_softmax(-1)).sum() / len(z) + 1e-2 / 2 * weight.square().sum()
        loss.backward()
        slow.step()
    probs = (learner.inputs @ weight + bias).softmax(-1)
    torch.testing.assert_close(fitted.predict(task.graph).probs[0], probs.detach(), atol=2e-3, rtol=0)


@pytest.mark.parametrize(
    "model",
    [
        PropagatedLinear("hops", 2, width=8),
        PropagatedLinear("hops", 2, width=8, columns="idf"),
        PropagatedLinear(width=8, normalise="row"),
        PropagatedLinear("scales", width=8, columns="idf"),
        PropagatedLinear("scales", rows="given"),
    ],
)
def test_a_linear_model_predicts_the_same_from_its_saved_weights(model: PropagatedLinear) -> None:
    task = linear_task()
    learner = LinearTrainer(model).prepare(task)
    fitted = learner.fit(task.given, Streams((0,)))
    logits = model.logits({**learner.shared, **fitted.weights}, task.graph, torch.device("cpu"))
    torch.testing.assert_close(logits, fitted.predict(task.graph).logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("rank", [3, 60])
def test_kept_directions_hold_the_features_whole_where_there_are_no_more(rank: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, rank, generator=generator) @ torch.randn(rank, 400, generator=generator)
    x = x * torch.logspace(0, -3, 400)  # columns of very different length
    graph = Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long))
    model = PropagatedLinear("none", 0, width=64, rows="given")
    inputs, basis, _ = model.principal(graph, Streams((0,)), torch.device("cpu"))
    centred = x - x.mean(0)
    scale = centred.square().sum(1).mean().sqrt()
    torch.testing.assert_close(inputs @ inputs.T, centred @ centred.T / scale**2, atol=1e-3, rtol=0)
    assert basis.isfinite().all()


@pytest.mark.parametrize("stored", ["dense", "sparse"])
def test_rare_columns_count_more_and_one_that_all_nodes_have_counts_nothing(stored: str) -> None:
    words = torch.zeros(20, 3)
    words[:, 0], words[:10, 1], words[:2, 2] = 1, 1, 1
    weighted = words * torch.tensor([21 / 21, 21 / 11, 21 / 3]).log().sqrt()
    inputs = [
        PropagatedLinear("none", 0, rows="given", columns=columns).principal(
            Data(x=x if stored == "dense" else x.to_sparse_csr(), edge_index=torch.zeros(2, 0, dtype=torch.long)),
            Streams((0,)),
            torch.device("cpu"),
        )[0]
        for x, columns in ((words, "idf"), (weighted, "given"))
    ]
    torch.testing.assert_close(inputs[0], inputs[1])
    assert inputs[0][:, 0].abs().max() == 0


def test_all_scales_stand_side_by_side() -> None:
    data, _ = labelled_citation(nodes=90)
    model = PropagatedLinear("scales", width=8, columns="idf")
    device = torch.device("cpu")
    inputs, basis, mean = model.principal(data, Streams((0,)), device)
    assert (inputs.shape, basis.shape, mean.shape) == ((90, 24), (40, 24), (1, 24))
    for number, (spread, reach) in enumerate((("none", 0), ("hops", 2), ("pagerank", 10))):
        alone = replace(model, spread=spread, reach=reach).principal(data, Streams((0,)), device)[0]  # type: ignore[arg-type]
        torch.testing.assert_close(inputs[:, 8 * number : 8 * number + 8] * 3**0.5, alone)


def test_in_a_random_walk_all_neighbours_count_the_same() -> None:
    star = torch.tensor([[0, 0, 0, 1, 2, 3, 3, 4], [1, 2, 3, 0, 0, 0, 4, 3]])  # node 3 has one neighbour more
    graph = Data(x=torch.eye(5), edge_index=star)
    propagated = {
        name: PropagatedLinear("hops", 1, normalise=name).propagate(  # type: ignore[arg-type]
            PropagatedLinear(normalise=name)._adjacency(graph, torch.device("cpu")),  # type: ignore[arg-type]
            graph.x,
        )[0]
        for name in ("row", "symmetric")
    }
    assert propagated["row"].tolist() == pytest.approx([0.25, 0.25, 0.25, 0.25, 0])
    assert propagated["symmetric"][1] > propagated["symmetric"][3]


@pytest.mark.parametrize("runs", [1, 2])
def test_weights_that_a_fit_starts_from_stay_as_they_were(runs: int) -> None:
    data, truth = labelled_citation(nodes=90)
    given = torch.where(torch.arange(90) < 40, truth, -1).expand(runs, -1)
    graph = Data(x=data.x.to_dense()[:, :1], edge_index=data.edge_index)
    task = Task(graph, Labels.given(given), torch.where(given >= 0, -1, truth), 3)
    learner = LinearTrainer(PropagatedLinear("hops", 2)).prepare(task)
    first = learner.fit(task.given, Streams((0,) * runs))
    before = {name: value.clone() for name, value in first.weights.items()}
    other = Labels.given(torch.where(given >= 0, (given + 1) % 3, -1))
    second = learner.fit(other, Streams((0,) * runs), start=first.weights)
    assert all(torch.equal(first.weights[name], value) for name, value in before.items())
    assert not torch.equal(second.weights["bias"], before["bias"])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_linear_models_predict_the_same_on_a_gpu() -> None:
    probs = [
        SelfTrainingClassifier(model=PropagatedLinear(), method="soft", rounds=2, device=device)
        .fit(labelled_citation()[0])
        .predict_proba()
        for device in ("cpu", "cuda")
    ]
    assert probs[1] == pytest.approx(probs[0], abs=2e-3)


def test_a_model_of_fewer_nodes_than_directions_is_saved_and_loaded(tmp_path: Path) -> None:
    graph = citation(nodes=90, classes=3, seed=0)  # 1,433 features
    graph.y[45:] = -1
    model = SelfTrainingClassifier(rounds=0).fit(graph)
    model.save(tmp_path)
    loaded = SelfTrainingClassifier.load(tmp_path)
    np.testing.assert_allclose(loaded.predict_proba(graph), model.predict_proba(), atol=1e-5)
