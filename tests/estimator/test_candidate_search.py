"""What an automatic fit tries, averages and tells."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bangs import SelfTrainingClassifier
from bangs.calibration.calibrators import Uncalibrated
from bangs.core.rng import Streams
from bangs.errors import Diverged
from bangs.estimator import candidate_search, candidates
from bangs.estimator.candidates import linear_candidates, soft_method
from bangs.estimator.fit_checkpoints import FitCheckpoints
from bangs.estimator.inference import positions_warning
from bangs.estimator.linear import PropagatedLinear
from bangs.estimator.parameters import without_effect
from bangs.graphs.datasets.synthetic import citation
from bangs.runs import RunFolder
from bangs.utils.threads import thread_count
from tests.estimator.labelled_citation import labelled_citation


@pytest.fixture(scope="module")
def fitted() -> SelfTrainingClassifier:
    return SelfTrainingClassifier(rounds=1, device="cpu").fit(labelled_citation()[0])


def test_the_leaderboard_has_every_candidate_with_intervals(fitted: SelfTrainingClassifier) -> None:
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
    data, truth = labelled_citation()
    fitted.save(tmp_path)
    loaded = SelfTrainingClassifier.load(tmp_path)
    assert np.array_equal(loaded.predict_proba(), fitted.predict_proba())
    assert loaded.predict_proba(data) == pytest.approx(fitted.predict_proba(), abs=1e-5)
    assert loaded.leaderboard_ == fitted.leaderboard_
    assert str(loaded.explain(100)) == str(fitted.explain(100))
    assert (fitted.predict() == truth.numpy()).mean() > 0.5


def test_positions_in_a_graph_with_other_edges_or_names_are_warned_of(fitted: SelfTrainingClassifier) -> None:
    graph, _ = labelled_citation()
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
    second = SelfTrainingClassifier(rounds=1, device="cpu").fit(labelled_citation()[0])
    assert np.array_equal(second.predict_proba(), fitted.predict_proba())


def test_a_junk_column_does_not_drown_the_structure() -> None:
    data, truth = labelled_citation(labels=10, junk=True)
    free = (data.y < 0).numpy()
    both = SelfTrainingClassifier(rounds=1, device="cpu").fit(data)
    alone = SelfTrainingClassifier(rounds=1, device="cpu", features="features").fit(data)
    right = [float((model.predict() == truth.numpy())[free].mean()) for model in (both, alone)]
    assert right[0] > right[1] + 0.1
    assert both.leaderboard_[0]["features"] != "features"


def test_a_time_limit_leaves_at_least_one_model() -> None:
    model = SelfTrainingClassifier(rounds=1, device="cpu", time_limit=1e-9).fit(labelled_citation()[0])
    assert len(model.leaderboard_) == 1


def test_a_stopped_search_goes_on_after_the_candidates_that_are_finished(
    fitted: SelfTrainingClassifier, tmp_path: Path
) -> None:
    rounds: list[str] = []

    def stop(tried: Any) -> None:
        if tried.number == 4:
            raise KeyboardInterrupt

    model = SelfTrainingClassifier(rounds=1, device="cpu")
    with RunFolder.create_or_resume(tmp_path, {}, resume=True) as folder, pytest.raises(KeyboardInterrupt):
        model.fit(labelled_citation()[0], checkpoints=FitCheckpoints(folder), tell=stop)
    with RunFolder.create_or_resume(tmp_path, {}, resume=True) as folder:
        model.fit(
            labelled_citation()[0],
            checkpoints=FitCheckpoints(folder),
            observers=[lambda state: rounds.append(state.index)],
        )
        finished = [event["name"] for event in folder.events() if event.get("kind", event.get("event")) == "candidate"]
    assert len(finished) == len(set(finished)) == len(fitted.leaderboard_)
    assert np.array_equal(model.predict_proba(), fitted.predict_proba())


@pytest.mark.parametrize(
    ("counts", "alone"), [((1, 1, 1), True), ((6, 1, 1), True), ((2, 2, 0), False), ((7, 3, 1), False)]
)
def test_very_few_labels_still_give_a_model(counts: tuple[int, ...], alone: bool) -> None:
    data, truth = labelled_citation()
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


def test_a_time_limit_admits_neural_networks_and_stops_what_is_behind() -> None:
    model = SelfTrainingClassifier(rounds=1, epochs=3, patience=3, device="cpu", features="features", time_limit=600)
    board = model.fit(labelled_citation(labels=30)[0]).leaderboard_
    assert {"gcn", "appnp", "grand"} <= {line["model"] for line in board}
    stopped = [line for line in board if line["standing"] == "behind"]
    assert stopped
    assert not any(line["weight"] for line in stopped)


@pytest.mark.parametrize(("limit", "tried"), [(10**6, {"appnp"}), (10, set())])
def test_a_small_graph_gets_an_appnp_unasked(limit: int, tried: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "MAX_NEURAL_ENTRIES", limit)
    board = SelfTrainingClassifier(rounds=0, epochs=3, device="cpu").fit(labelled_citation()[0]).leaderboard_
    assert {"gcn", "appnp", "grand"} & {line["model"] for line in board} == tried


def test_the_number_of_candidates_is_known_from_the_first_on() -> None:
    reports: list[candidate_search.Progress] = []
    model = SelfTrainingClassifier(rounds=0, epochs=3, device="cpu").fit(labelled_citation()[0], tell=reports.append)
    assert {report.count for report in reports} == {len(model.leaderboard_)}
    assert [report.number for report in reports] == list(range(1, len(reports) + 1))


def test_no_neural_network_is_begun_late_in_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_search, "NEURAL_DEADLINE", 0.0)  # late is at once
    model = SelfTrainingClassifier(rounds=0, epochs=3, device="cpu", features="features", time_limit=600)
    board = model.fit(labelled_citation()[0]).leaderboard_
    assert len(board) > 10
    assert not {"gcn", "appnp", "grand"} & {line["model"] for line in board}


def test_small_graphs_are_fitted_with_one_thread_and_threads_are_put_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        model = SelfTrainingClassifier(rounds=0, features="features", device="cpu", method="raw").fit(
            labelled_citation()[0]
        )
        assert (model.threads_, torch.get_num_threads()) == (1, 2)
    finally:
        torch.set_num_threads(before)
    assert thread_count(10**6) == before


@pytest.mark.parametrize("lost", ["pagerank", "scales", "logistic"])
def test_a_linear_model_that_diverges_leaves_the_others_to_be_refined(
    lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = candidate_search.SelfTrainer.begin
    queue = linear_candidates(labelled_citation()[0], soft_method("soft", 1), "soft", candidates.VIEWS)
    diverged = [candidate.trainer for candidate in queue if candidate.model_kind.startswith(lost)][-1]

    def diverging(trainer: Any, learner: Any, rng: Streams) -> Any:
        if trainer.trainer == diverged:
            raise Diverged("as asked")
        return begin(trainer, learner, rng)

    monkeypatch.setattr(candidate_search.SelfTrainer, "begin", diverging)
    board = SelfTrainingClassifier(rounds=1, epochs=2, device="cpu").fit(labelled_citation()[0]).leaderboard_
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
    defaults, data = SelfTrainingClassifier().get_params(deep=False), labelled_citation(nodes=90)[0]
    assert without_effect({**defaults, **settings}, defaults, Uncalibrated(), data, data.y) == idle


def test_a_fit_notes_the_settings_that_change_nothing() -> None:
    model = SelfTrainingClassifier(k=3, rounds=1, epochs=2, method="soft", model="gcn", device="cpu").fit(
        labelled_citation()[0]
    )
    assert model.notes_ == ["the setting k makes no difference to this fit"]
