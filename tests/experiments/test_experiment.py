"""An experiment: the parts its settings name, and how its rounds become scores."""

from typing import Any

import pytest
import torch

from bangs.calibration.calibrators import ETS
from bangs.errors import InvalidInput
from bangs.experiments.experiment import OMITTED_IF_NONE, Experiment, compact, exam_of, summary
from bangs.graphs.datasets.synthetic import citation
from bangs.graphs.pagerank import PPR
from bangs.graphs.pagerank_push import Push
from bangs.selection.quotas import Top
from bangs.selection.scores import Banzhaf
from bangs.training.neighbour_sampling import Sampling
from bangs.valuation.banzhaf import MSR, Marginals


@pytest.mark.parametrize(
    ("settings", "game"),
    [
        ({}, Banzhaf(20, 100, Marginals(16), PPR(), "mass")),
        ({"preset": "paper"}, Banzhaf(20, 120, Marginals(16), PPR(), "none")),
        ({"candidates": 30, "normalise": "none"}, Banzhaf(20, 30, Marginals(16), PPR(), "none")),
        ({"push": 0.01}, Banzhaf(20, 100, Marginals(16), Push(error=0.01), "mass")),
        ({"estimator": "msr", "samples": 70}, Banzhaf(20, 100, MSR(70), PPR(), "mass")),
        ({"ppr_steps": 15}, Banzhaf(20, 100, Marginals(16), PPR(steps=15), "mass")),
    ],
    ids=["tuned", "paper", "chosen", "pushed", "estimator", "steps"],
)
def test_settings_name_the_parts(settings: dict[str, Any], game: Banzhaf) -> None:
    recipe = Experiment(method="bangs", k=20, rounds=7, teacher="best", pool="open", **settings).self_trainer().method
    assert recipe.score == game
    assert (recipe.quota, recipe.calibrate) == (Top(20), ETS())
    assert (recipe.rounds, recipe.teacher, recipe.pool) == (7, "best", "open")


def test_memory_is_the_methods_own_unless_it_is_set() -> None:
    assert Experiment(method="bangs").self_trainer().method.memory == "accumulate"
    assert Experiment(method="soft").self_trainer().method.memory == "rebuild"
    assert Experiment(method="bangs", memory="rebuild").self_trainer().method.memory == "rebuild"
    with pytest.raises(InvalidInput, match="the recipe 'paper' sets memory itself"):
        Experiment(dataset="cora", method="bangs", recipe="paper", memory="rebuild")


def test_batches_and_changes_reach_the_trainer() -> None:
    of = Experiment(changes={"epochs": 3}, batch_size=64, fanout=(5, 5), pieces=2)
    trainer = of.self_trainer().trainer
    assert trainer.epochs == 3
    assert trainer.batches == Sampling(64, (5, 5), pieces=2)
    assert Experiment().self_trainer().trainer.batches is None


def test_a_published_recipe_brings_its_settings_of_which_only_rounds_can_be_cut() -> None:
    of = Experiment(dataset="citeseer", method="cpl", recipe="authors", rounds=3)
    assert (of.self_trainer().method.rounds, of.self_trainer().method.quota) == (3, Top(70))
    assert Experiment(dataset="citeseer", method="cpl", recipe="authors").self_trainer().method.rounds == 30
    assert "k" not in of.settings()
    with pytest.raises(InvalidInput, match="the recipe 'authors' sets k itself"):
        Experiment(method="cpl", recipe="authors", k=3)


def test_later_settings_are_stored_only_where_they_are_set() -> None:
    assert not set(OMITTED_IF_NONE) & set(Experiment().settings())
    assert Experiment(batch_size=8).settings()["batch_size"] == 8


def test_settings_without_a_use_are_named() -> None:
    assert Experiment(method="random", estimator="msr", samples=9, k=5).idle() == ["estimator", "samples"]
    assert Experiment(method="bangs", estimator="msr", samples=9, k=5).idle() == []
    assert Experiment(k=5).idle() == ["k"]  # soft labels are for all nodes
    assert Experiment(pieces=2).idle() == ["pieces"]


def test_noise_turns_labels_that_are_learned_and_none_of_the_exam() -> None:
    data = citation(nodes=200, classes=3, features=20)
    clean, wrong = (Experiment(seeds=(0, 1), noise=noise) for noise in (0.0, 0.5))
    assert torch.equal(exam_of(wrong, data).answers, exam_of(clean, data).answers)
    assert torch.equal(exam_of(wrong, data).truth, exam_of(clean, data).truth)
    plain, noisy = clean.task(data), wrong.task(data)
    for one, other in ((noisy.given.target, plain.given.target), (noisy.validation, plain.validation)):
        assert torch.equal(one >= 0, other >= 0)
        assert not torch.equal(one, other)


def a_row(test: list[float], validation: list[float], seconds: float = 1.0) -> dict[str, Any]:
    adopted = [{"node": [3, 4], "label": [0, 1]}, {"node": [], "label": []}]
    return {"test": test, "validation": validation, "seconds": {"train": seconds, "select": 0.5}, "adopted": adopted}


def test_scores_of_every_rule_by_hand() -> None:
    """Seed 0 is best in rounds 1 and 2 alike, of which the first counts; seed 1 in round 0."""
    rows = [a_row([0.5, 0.9], [0.6, 0.8]), a_row([0.6, 0.7], [0.7, 0.8]), a_row([0.4, 0.8], [0.7, 0.5], 2.0)]
    result = summary(Experiment(seeds=(0, 1)), rows, total=9.0)
    assert result["chosen_round"] == [1, 0]
    assert result["raw"]["per_seed"] == [50.0, 90.0]
    assert result["validation"]["per_seed"] == [60.0, 90.0]
    assert result["best_test"]["per_seed"] == [60.0, 80.0]  # without round 0
    assert result["last"]["per_seed"] == [40.0, 80.0]
    assert (result["last"]["mean"], result["last"]["std"]) == (60.0, pytest.approx(28.2843))
    assert result["seconds"] == {"train": 4.0, "calibrate": 0.0, "select": 1.5, "total": 9.0}


def test_without_rounds_the_first_model_is_all_there_is() -> None:
    result = summary(Experiment(method="raw", seeds=(4,)), [a_row([0.5], [0.6])], total=1.0)
    assert {result[rule]["mean"] for rule in ("raw", "validation", "best_test", "last")} == {50.0}
    assert result["best_test"]["std"] == 0.0


def test_a_compact_result_counts_the_adopted_nodes_and_is_compact_already() -> None:
    once = compact({"rounds": [a_row([0.5, 0.9], [0.6, 0.8])]})
    assert [row["adopted"] for row in once["rounds"]] == [[2, 0]]
    assert compact(once) == once


@pytest.mark.parametrize("value", [2**63 - 1, 10**23, -(10**23)])
@pytest.mark.parametrize("name", ["rounds", "k", "candidates", "samples", "batch_size", "pieces"])
def test_a_number_beyond_every_graph_is_refused(name: str, value: int) -> None:
    with pytest.raises(InvalidInput, match=f"{name} must be a whole number from . to 1,000,000,000, got {value}"):
        Experiment(**{name: value})


def test_so_are_fan_outs_and_training_settings() -> None:
    with pytest.raises(InvalidInput, match="fanout must list"):
        Experiment(fanout=(10**23,))
    with pytest.raises(InvalidInput, match=r"changes\.patience must be at most 1,000,000,000"):
        Experiment(changes={"patience": 10**23})


@pytest.mark.parametrize(
    ("name", "rounds"), [("bangs", 40), ("cpl", 40), ("soft", 15), ("soft-aligned", 15), ("bangs-soft", 15)]
)
def test_soft_labels_have_fewer_rounds_unless_asked_for_more(name: str, rounds: int) -> None:
    assert Experiment(method=name).settings()["rounds"] == rounds
    assert Experiment(method=name).self_trainer().method.rounds == rounds
    assert Experiment(method=name, rounds=3).self_trainer().method.rounds == 3


def test_soft_labels_on_citation_graphs_have_settings_of_their_own() -> None:
    hard, soft = (Experiment(dataset="cora", method=name).self_trainer().trainer for name in ("bangs", "soft"))
    assert (soft.model.dropout, soft.monitor) == (0.8, "loss")
    assert (hard.model.dropout, hard.monitor) == (0.5, "accuracy")
    elsewhere = Experiment(dataset="mine.npz", method="soft").self_trainer().trainer
    assert elsewhere == Experiment(dataset="mine.npz", method="bangs").self_trainer().trainer
    paper = {"dataset": "cora", "preset": "paper"}
    assert (
        Experiment(method="soft", **paper).self_trainer().trainer
        == Experiment(**paper, method="raw").self_trainer().trainer
    )
