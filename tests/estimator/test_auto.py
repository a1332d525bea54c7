"""What an automatic fit tries, averages and tells."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bangs import SelfTrainingClassifier
from bangs.calibration.calibrators import Uncalibrated
from bangs.core.rng import Streams
from bangs.core.types import Labels, Task, one_hot
from bangs.errors import Diverged
from bangs.estimator import candidate_search, candidates, linear
from bangs.estimator.candidates import linear_candidates, refined, soft_method
from bangs.estimator.fit_checkpoints import FitCheckpoints
from bangs.estimator.folds import label_log_probs
from bangs.estimator.inference import positions_warning
from bangs.estimator.linear import LinearTrainer, PropagatedLinear
from bangs.estimator.members import View
from bangs.estimator.parameters import without_effect
from bangs.estimator.stacking import (
    common_factor,
    far_behind,
    mean_interval,
    member_temperatures,
    mixture,
    share_interval,
    stacking_weights,
)
from bangs.graphs.datasets.synthetic import citation
from bangs.runs import RunFolder
from bangs.utils.threads import thread_count


def world(labels: int = 6, features: int = 40, junk: bool = False, nodes: int = 240) -> tuple[Data, torch.Tensor]:
    """A small citation graph with some labels a class, and the truth; junk = one random column is all it shows."""
    data = citation(nodes=nodes, classes=3, features=features, isolated=0.0, signal=0.5, seed=3)
    truth = data.y.clone()
    y = torch.full_like(truth, -1)
    for label in range(3):
        nodes_of_class = (truth == label).nonzero().flatten()[:labels]
        y[nodes_of_class] = label
    x = torch.randn(nodes, 1, generator=torch.Generator().manual_seed(0)) if junk else data.x
    return Data(x=x, edge_index=data.edge_index, y=y), truth


def linear_task() -> Task:
    """Ninety nodes of which the first forty have a label; the others are held out."""
    data, truth = world(nodes=90)
    given = torch.where(torch.arange(90) < 40, truth, -1)[None]
    graph = Data(x=data.x, edge_index=data.edge_index)
    return Task(graph, Labels.given(given), torch.where(given >= 0, -1, truth), 3)


@pytest.fixture(scope="module")
def fitted() -> SelfTrainingClassifier:
    return SelfTrainingClassifier(rounds=1, device="cpu").fit(world()[0])


def test_the_board_holds_every_candidate_with_intervals(fitted: SelfTrainingClassifier) -> None:
    board = fitted.leaderboard_
    assert sum(line["weight"] for line in board) == pytest.approx(1, abs=1e-4)
    assert [line["weight"] for line in board] == sorted((line["weight"] for line in board), reverse=True)
    assert {line["features"] for line in board} == {"features", "structure", "both"}
    assert {"soft", "soft-aligned", "bangs-soft"} == {line["method"] for line in board}
    for line in board:
        assert line["accuracy"]["low"] <= line["accuracy"]["value"] <= line["accuracy"]["high"]
        assert line["accuracy"]["nodes"] == 18
    assert len(fitted.members_) == sum(line["weight"] > 0 for line in board)


def test_an_average_of_models_is_saved_loaded_and_applied(fitted: SelfTrainingClassifier, tmp_path: Path) -> None:
    data, truth = world()
    fitted.save(tmp_path)
    loaded = SelfTrainingClassifier.load(tmp_path)
    assert np.array_equal(loaded.predict_proba(), fitted.predict_proba())
    assert loaded.predict_proba(data) == pytest.approx(fitted.predict_proba(), abs=1e-5)
    assert loaded.leaderboard_ == fitted.leaderboard_
    assert str(loaded.explain(100)) == str(fitted.explain(100))
    assert (fitted.predict() == truth.numpy()).mean() > 0.5


def test_positions_in_a_graph_with_other_edges_or_names_are_warned_of(fitted: SelfTrainingClassifier) -> None:
    graph, _ = world()
    nodes = int(graph.num_nodes or 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.predict(graph)
        fitted.predict(Data(x=graph.x, edge_index=graph.edge_index[:, ::2]))
    with pytest.warns(UserWarning, match="0 of .* edges are those of the fitted graph, so positions"):
        fitted.predict(graph, names=[f"other {node}" for node in range(nodes)])
    on_disk: Any = object()  # a graph that is not read whole
    assert positions_warning(fitted, on_disk, ["a"]) is None
    backwards = Data(x=graph.x.to_dense().flip(0), edge_index=nodes - 1 - graph.edge_index)
    with pytest.warns(UserWarning, match="positions of nodes cannot be compared"):
        fitted.predict(backwards)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.predict(backwards, names=list(range(nodes))[::-1])


def test_equal_seeds_give_equal_results(fitted: SelfTrainingClassifier) -> None:
    second = SelfTrainingClassifier(rounds=1, device="cpu").fit(world()[0])
    assert np.array_equal(second.predict_proba(), fitted.predict_proba())


def test_a_junk_column_does_not_drown_the_structure() -> None:
    data, truth = world(labels=10, junk=True)
    free = (data.y < 0).numpy()
    both = SelfTrainingClassifier(rounds=1, device="cpu").fit(data)
    alone = SelfTrainingClassifier(rounds=1, device="cpu", features="features").fit(data)
    right = [float((model.predict() == truth.numpy())[free].mean()) for model in (both, alone)]
    assert right[0] > right[1] + 0.1
    assert both.leaderboard_[0]["features"] != "features"


def test_a_time_limit_leaves_at_least_one_model() -> None:
    model = SelfTrainingClassifier(rounds=1, device="cpu", time_limit=1e-9).fit(world()[0])
    assert len(model.leaderboard_) == 1


def test_a_stopped_contest_goes_on_after_the_candidates_that_are_finished(
    fitted: SelfTrainingClassifier, tmp_path: Path
) -> None:
    rounds: list[str] = []

    def stop(tried: Any) -> None:
        if tried.number == 4:
            raise KeyboardInterrupt

    model = SelfTrainingClassifier(rounds=1, device="cpu")
    with RunFolder.create_or_resume(tmp_path, {}, resume=True) as folder, pytest.raises(KeyboardInterrupt):
        model.fit(world()[0], checkpoints=FitCheckpoints(folder), tell=stop)
    with RunFolder.create_or_resume(tmp_path, {}, resume=True) as folder:
        model.fit(world()[0], checkpoints=FitCheckpoints(folder), observers=[lambda state: rounds.append(state.index)])
        finished = [event["name"] for event in folder.events() if event.get("kind", event.get("event")) == "candidate"]
    assert len(finished) == len(set(finished)) == len(fitted.leaderboard_)
    assert np.array_equal(model.predict_proba(), fitted.predict_proba())


def test_members_that_cannot_be_told_apart_share_and_one_far_behind_is_left_out() -> None:
    alike = torch.full((2, 200), 0.9)
    weights = stacking_weights(torch.cat([alike, torch.full((1, 200), 0.05)]))
    assert weights[0] == pytest.approx(float(weights[1]))
    assert weights[2] == 0
    assert float(weights.sum()) == pytest.approx(1)


def test_a_member_that_is_too_sure_is_made_milder_and_few_labels_leave_it_as_it_is() -> None:
    draw = torch.Generator().manual_seed(0)
    honest = torch.randn(2000, 3, generator=draw)
    label = torch.multinomial(honest.softmax(-1), 1, generator=draw).squeeze(1)
    temperatures = member_temperatures([honest, 4 * honest], label)
    assert temperatures.tolist() == pytest.approx([1, 4], rel=0.15)
    few = member_temperatures([honest[:3]], honest[:3].argmax(1))  # all are right, so labels alone would say 0
    assert 0.2 < float(few) < 1


def test_a_mean_of_models_that_disagree_is_made_surer() -> None:
    label = torch.zeros(200, dtype=torch.long)
    one, other = torch.zeros(200, 3), torch.zeros(200, 3)
    one[:, 0] = other[:, 0] = 2.0
    one[:, 1], other[:, 2] = 1.5, 1.5
    assert common_factor([one, other], torch.tensor([0.5, 0.5]), label) < 0.7
    wrong = torch.randint(3, (200,), generator=torch.Generator().manual_seed(0))
    assert common_factor([one, other], torch.tensor([0.5, 0.5]), wrong) > 1.5


@pytest.mark.parametrize(
    ("counts", "alone"), [((1, 1, 1), True), ((6, 1, 1), True), ((2, 2, 0), False), ((7, 3, 1), False)]
)
def test_very_few_labels_still_give_a_model(counts: tuple[int, ...], alone: bool) -> None:
    data, truth = world()
    data.y = torch.full_like(truth, -1)
    for label, count in enumerate(counts):  # (6, 1, 1): only one class could judge, so none does
        data.y[(truth == label).nonzero().flatten()[:count]] = label
    model = SelfTrainingClassifier(rounds=1, device="cpu").fit(data)
    assert len(model.classes_) == sum(count > 0 for count in counts)
    assert model.predict_proba().sum(1) == pytest.approx(np.ones(240))
    assert all(("accuracy" in line) != alone for line in model.leaderboard_)


def test_sixty_classes_of_two_labels_and_labels_without_edges() -> None:
    data = citation(nodes=360, classes=60, features=80, isolated=0.0, signal=0.9, seed=0)
    truth, y = data.y, torch.full((360,), -1)
    for label in range(60):
        y[(truth == label).nonzero().flatten()[:2]] = label
    edges = data.edge_index[:, (y[data.edge_index] < 0).all(0)]  # no labelled node has an edge
    graph = Data(x=data.x, edge_index=edges, y=y)
    model = SelfTrainingClassifier(rounds=1, device="cpu", features="features").fit(graph)
    assert len(model.classes_) == 60
    assert np.isfinite(model.predict_proba()).all()


def test_of_very_many_nodes_a_linear_model_learns_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    data, truth = world()
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


def test_a_mixture_is_the_mean_of_probabilities() -> None:
    logs = [torch.tensor([[0.9, 0.1]]).log(), torch.tensor([[0.5, 0.5]]).log()]
    assert mixture(logs, torch.tensor([0.25, 0.75])).exp()[0].tolist() == pytest.approx([0.6, 0.4])


def test_wilsons_interval_is_that_of_the_book() -> None:
    interval = share_interval(torch.tensor([True] * 8 + [False] * 2))
    assert (interval["low"], interval["high"]) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))


def noisy_logits(signal: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits [200, 3] that are higher by the signal for the true class, and the labels."""
    labels = torch.arange(200) % 3
    return torch.randn(200, 3, generator=torch.Generator().manual_seed(seed)) + signal * one_hot(labels, 3), labels


def test_a_difference_within_its_error_is_not_clear() -> None:
    (best, labels), (close, _), (far, _) = noisy_logits(1.8, 0), noisy_logits(1.7, 1), noisy_logits(1.0, 2)
    assert not far_behind(close, best, labels)
    assert far_behind(far, best, labels)
    assert not far_behind(far[:1], best[:1], labels[:1])  # one label says nothing


@pytest.mark.parametrize("factor", [0.02, 50.0])
def test_a_candidate_that_is_best_after_its_temperature_is_not_behind(factor: float) -> None:
    (best, labels), (leader, _) = noisy_logits(1.8, 0), noisy_logits(1.2, 1)
    unsuited = factor * best  # far too unsure, or far too sure
    gap = label_log_probs(unsuited, labels) - label_log_probs(leader, labels)
    assert gap.mean() < -2 * gap.std() / 200**0.5
    assert not far_behind(unsuited, leader, labels)
    assert far_behind(leader, unsuited, labels)


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
def test_a_linear_model_says_the_same_of_its_graph_by_its_saved_weights(model: PropagatedLinear) -> None:
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


def test_words_are_propagated_with_rare_ones_enlarged_and_measurements_are_not() -> None:
    def tried(x: torch.Tensor) -> dict[str, PropagatedLinear]:
        graph = Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long))
        tried = linear_candidates(graph, soft_method("soft", None), "soft", ("features",))
        return {candidate.model_kind: candidate.trainer.model for candidate in tried}  # type: ignore[misc]

    words = (torch.rand(50, 40, generator=torch.Generator().manual_seed(0)) < 0.2).float()
    assert set(tried(words)) == {"pagerank-idf", "walk-idf", "scales-idf", "logistic"}
    assert set(tried(words.to_sparse_csr())) == set(tried(words))
    measured = tried(words - 0.5)
    propagated = {"pagerank", "walk", "scales"}
    assert set(measured) == {"logistic"} | propagated | {f"{kind}-std" for kind in propagated}
    assert {kind: (model.rows, model.columns) for kind, model in measured.items()} == {
        kind: ("given", "standard" if kind.endswith("-std") else "given") for kind in measured
    }


def test_places_are_propagated_and_stand_beside_features_as_they_are() -> None:
    def tried(*views: View) -> list[tuple[str, str]]:
        return [
            (candidate.view, candidate.model_kind)
            for candidate in linear_candidates(data, soft_method("soft", None), "soft", views)
        ]

    data, _ = world(nodes=90)
    assert tried("features", "structure", "both")[-2:] == [("structure", "pagerank"), ("both", "logistic")]
    for view in ("structure", "both"):  # alone, so that there is something to compare
        assert tried(view) == [(view, "pagerank"), (view, "logistic")]


def test_columns_that_all_nodes_have_are_not_erased_as_frequent_words() -> None:
    x = 1 + torch.rand(50, 40, generator=torch.Generator().manual_seed(0))  # none is zero, so no word is rare
    graph = Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long))
    for candidate in linear_candidates(graph, soft_method("soft", None), "soft", ("features",)):
        model: PropagatedLinear = candidate.trainer.model  # type: ignore[assignment]
        assert float(model.principal(graph, Streams((0,)), torch.device("cpu"))[0].std(0).max()) > 0.01


def test_all_scales_stand_side_by_side() -> None:
    data, _ = world(nodes=90)
    model = PropagatedLinear("scales", width=8, columns="idf")
    device = torch.device("cpu")
    inputs, basis, mean = model.principal(data, Streams((0,)), device)
    assert (inputs.shape, basis.shape, mean.shape) == ((90, 24), (40, 24), (1, 24))
    for number, (spread, reach) in enumerate((("none", 0), ("hops", 2), ("pagerank", 10))):
        alone = replace(model, spread=spread, reach=reach).principal(data, Streams((0,)), device)[0]  # type: ignore[arg-type]
        torch.testing.assert_close(inputs[:, 8 * number : 8 * number + 8] * 3**0.5, alone)


def test_in_a_random_walk_all_neighbours_count_alike() -> None:
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


def test_soft_labels_are_aligned_where_labels_are_uneven_or_few_and_not_with_chosen_shares() -> None:
    data, _ = world()
    best = linear_candidates(data, soft_method("soft", None), "soft", ("features",))
    even, uneven = torch.full((240,), -1), torch.full((240,), -1)
    even[:30] = torch.tensor([0, 1, 2]).repeat(10)
    uneven[:30] = torch.tensor([0] * 20 + [1] * 5 + [2] * 5)
    few = torch.where(torch.arange(240) < 15, even, -1)
    methods = [{candidate.method_name for candidate in refined(best, 1, labels)} for labels in (even, uneven, few)]
    assert methods == [{"soft", "bangs-soft"}, *[{"soft", "soft-aligned", "bangs-soft"}] * 2]


@pytest.mark.parametrize("runs", [1, 2])
def test_weights_that_a_fit_starts_from_stay_as_they_were(runs: int) -> None:
    data, truth = world(nodes=90)
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


def test_a_time_limit_admits_neural_networks_and_stops_what_is_behind() -> None:
    model = SelfTrainingClassifier(rounds=1, epochs=3, patience=3, device="cpu", features="features", time_limit=600)
    board = model.fit(world(labels=30)[0]).leaderboard_
    assert {"gcn", "appnp", "grand"} <= {line["model"] for line in board}
    stopped = [line for line in board if line["standing"] == "behind"]
    assert stopped
    assert not any(line["weight"] for line in stopped)


@pytest.mark.parametrize(("limit", "tried"), [(10**6, {"appnp"}), (10, set())])
def test_a_small_graph_gets_an_appnp_unasked(limit: int, tried: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "MAX_NEURAL_ENTRIES", limit)
    board = SelfTrainingClassifier(rounds=0, epochs=3, device="cpu").fit(world()[0]).leaderboard_
    assert {"gcn", "appnp", "grand"} & {line["model"] for line in board} == tried


def test_the_number_of_candidates_is_known_from_the_first_on() -> None:
    reports: list[candidate_search.Progress] = []
    model = SelfTrainingClassifier(rounds=0, epochs=3, device="cpu").fit(world()[0], tell=reports.append)
    assert {report.count for report in reports} == {len(model.leaderboard_)}
    assert [report.number for report in reports] == list(range(1, len(reports) + 1))


def test_no_neural_network_is_begun_late_in_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_search, "NEURAL_DEADLINE", 0.0)  # late is at once
    model = SelfTrainingClassifier(rounds=0, epochs=3, device="cpu", features="features", time_limit=600)
    board = model.fit(world()[0]).leaderboard_
    assert len(board) > 10
    assert not {"gcn", "appnp", "grand"} & {line["model"] for line in board}


def test_small_graphs_are_fitted_with_one_thread_and_threads_are_put_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        model = SelfTrainingClassifier(rounds=0, features="features", device="cpu", method="raw").fit(world()[0])
        assert (model.threads_, torch.get_num_threads()) == (1, 2)
    finally:
        torch.set_num_threads(before)
    assert thread_count(10**6) == before


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_linear_models_say_the_same_on_a_gpu() -> None:
    probs = [
        SelfTrainingClassifier(model=PropagatedLinear(), method="soft", rounds=2, device=device)
        .fit(world()[0])
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


def test_the_interval_of_a_log_likelihood_ends_at_zero() -> None:
    """A normal interval of few nodes reached above 0, where no log-probability is."""
    interval = mean_interval(torch.tensor([-2.0, -0.01, -0.01, -0.01]))
    assert interval["value"] == pytest.approx(-0.5075)
    assert interval["low"] < -1
    assert interval["high"] == 0


@pytest.mark.parametrize("lost", ["pagerank", "scales", "logistic"])
def test_a_linear_model_that_diverges_leaves_the_others_to_be_refined(
    lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = candidate_search.SelfTrainer.begin
    queue = linear_candidates(world()[0], soft_method("soft", 1), "soft", candidates.VIEWS)
    diverged = [candidate.trainer for candidate in queue if candidate.model_kind.startswith(lost)][-1]

    def diverging(trainer: Any, learner: Any, rng: Streams) -> Any:
        if trainer.trainer == diverged:
            raise Diverged("as asked")
        return begin(trainer, learner, rng)

    monkeypatch.setattr(candidate_search.SelfTrainer, "begin", diverging)
    board = SelfTrainingClassifier(rounds=1, epochs=2, device="cpu").fit(world()[0]).leaderboard_
    assert {line["method"] for line in board} == {"soft", "soft-aligned", "bangs-soft"}
    assert sum(line["model"] == "appnp" for line in board) == 1


@pytest.mark.parametrize(
    ("settings", "idle"),
    [
        ({}, []),
        ({"k": 3, "teacher": "first", "rounds": 1}, ["k", "teacher"]),
        ({"method": "soft", "selector": "random", "candidates": 500, "rounds": 1}, ["selector", "candidates"]),
        ({"method": "soft", "k": 3, "candidates": 9, "rounds": 1}, ["candidates"]),
        ({"selector": "random", "k": 3, "teacher": "first", "rounds": 1, "epochs": 5}, []),
        ({"method": "raw", "model": "gcn", "rounds": 2, "epochs": 5}, ["rounds"]),
        ({"model": PropagatedLinear(), "method": "soft", "epochs": 5, "preset": "paper"}, ["preset", "epochs"]),
    ],
    ids=[
        "defaults",
        "k of soft labels",
        "selector of soft labels",
        "k that needs K",
        "hard labels",
        "rounds of none",
        "linear model",
    ],
)
def test_settings_that_change_nothing_are_named(settings: dict[str, Any], idle: list[str]) -> None:
    defaults, data = SelfTrainingClassifier().get_params(deep=False), world(nodes=90)[0]
    assert without_effect({**defaults, **settings}, defaults, Uncalibrated(), data, data.y) == idle


def test_a_fit_notes_the_settings_that_change_nothing() -> None:
    model = SelfTrainingClassifier(k=3, rounds=1, epochs=2, method="soft", model="gcn", device="cpu").fit(world()[0])
    assert model.notes_ == ["the setting k makes no difference to this fit"]
