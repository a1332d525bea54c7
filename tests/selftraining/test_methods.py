"""The recipes: which parts a method is made of, and what its special parts do to a run."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from bangs.calibration.calibrators import ETS, Temperature, Uncalibrated
from bangs.calibration.graph_calibrators import CaGCN
from bangs.core.types import Task
from bangs.errors import InvalidInput, UnknownName
from bangs.graphs.augmentations import DropEdges, DropFeatures, Noise, Same
from bangs.nn.models import GCN
from bangs.selection.quotas import Above, Balanced, Top
from bangs.selection.scores import Agreement, Alone, Chance, Confidence, Logit
from bangs.selftraining.budget import Budget
from bangs.selftraining.loop import Method, SelfTrainer, State
from bangs.selftraining.methods import METHODS, cpl, method
from bangs.selftraining.uncertainty import InformationGain, Transition
from bangs.training.augmented_prediction import Dropout
from bangs.training.trainer import Trainer
from bangs.valuation.banzhaf import WLS

TRAINER = Trainer(GCN(hidden=8, dropout=0.5), lr=0.05, epochs=12)
BUDGET = Budget(k=7, candidates=11, rounds=5, teacher="best", calibrate=Temperature(), estimate=WLS(50), pool="open")


def all_states(recipe: Method, task: Task) -> list[State]:
    states: list[State] = []
    SelfTrainer(TRAINER, recipe, [states.append]).fit(task, range(task.runs))
    return states


def test_all_systems_of_the_paper_and_its_ablations_have_a_name():
    systems = {"raw", "random", "cpl", "m3s", "cagcn", "drgst", "bangs"}
    ablations = {"confidence", "confidence-calibrated", "bangs-uncalibrated", "bangs-no-banzhaf"}
    assert systems | ablations <= set(METHODS)


def test_an_unknown_name_is_told_with_a_near_one():
    with pytest.raises(UnknownName, match=r"method 'bang' is unknown; did you mean 'bangs'\?"):
        method("bang")


@pytest.mark.parametrize("name", [name for name in METHODS if name != "raw"])
def test_a_budget_is_the_same_for_all(name):
    recipe = method(name, BUDGET)
    assert (recipe.rounds, recipe.teacher, recipe.pool) == (5, "best", "open")
    if recipe.believe is None:  # soft labels are of all free nodes
        assert recipe.quota.k == (35 if name.startswith("drgst") else 7)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_says_in_one_line_what_it_does(name):
    assert METHODS[name].__doc__.split("\n")[0].endswith(".")


def test_what_the_ablations_take_away():
    full = method("bangs", BUDGET)
    assert method("bangs-uncalibrated", BUDGET) == replace(full, calibrate=Uncalibrated())
    assert method("bangs-no-banzhaf", BUDGET) == replace(full, score=replace(full.score, estimate=Alone()))
    assert method("confidence-calibrated", BUDGET) == replace(full, score=Confidence())
    assert method("confidence", BUDGET) == replace(full, score=Confidence(), calibrate=Uncalibrated())
    assert method("random", BUDGET) == replace(full, score=Chance(), calibrate=Uncalibrated())
    assert method("bangs").calibrate == ETS()


def test_cpl_looks_four_times_and_starts_early():
    recipe = cpl(BUDGET, rate=0.2)
    assert recipe.views == (Same(), DropFeatures(0.2), DropEdges(0.2), Noise(0.2))
    assert recipe.start == 100
    assert recipe.quota == Top(7)


def test_m3s_asks_clusters_and_takes_classes_in_turn():
    recipe = method("m3s", BUDGET)
    assert (recipe.score, recipe.quota) == (Agreement(200), Balanced(7))


def test_cagcn_calibrates_by_a_graph_network_and_a_threshold():
    recipe = method("cagcn", BUDGET)
    assert (recipe.calibrate, recipe.quota) == (CaGCN(), Top(7, 0.8))


def test_drgst_weighs_corrects_and_rebuilds():
    recipe = method("drgst", BUDGET)
    assert (recipe.weigh, recipe.correct, recipe.memory) == (InformationGain(Dropout()), Transition(), "rebuild")
    assert method("drgst-dropedge", BUDGET).weigh.view == DropEdges(0.4)


def test_a_first_model_cannot_rebuild_so_the_latest_teaches():
    assert method("drgst", replace(BUDGET, teacher="first")).teacher == "latest"
    assert method("cpl", replace(BUDGET, teacher="first")).teacher == "first"


@pytest.mark.parametrize("teacher", ["first", "latest", "best"])
def test_the_early_weights_of_the_first_model_outlive_every_change_of_teacher(task, teacher):
    states = all_states(replace(cpl(replace(BUDGET, k=2, rounds=3, teacher=teacher)), start=3), task)
    first = states[0].student.early
    assert first is not None
    for state in states[1:]:
        assert all(torch.equal(state.student.early[name], first[name]) for name in first)


def test_rebuilt_labels_are_chosen_anew(task):
    for state in all_states(Method(rounds=3, quota=Top(4), memory="rebuild"), task)[1:]:
        assert (state.labels.adopted.sum(1) == 4).all()
        assert (state.labels.adopted_round[state.labels.adopted] == state.index).all()


def test_alternating_labels_never_stay_for_two_rounds(task):
    states = all_states(Method(rounds=3, quota=Top(4), memory="alternate"), task)
    for before, after in pairwise(states[1:]):
        assert not (before.labels.adopted & after.labels.adopted).any()
        assert (after.labels.adopted.sum(1) == 4).all()


def test_where_everybody_had_a_label_nobody_is_left_to_alternate(task):
    states = all_states(Method(rounds=5, score=Logit(), quota=Above(-1e9), memory="alternate"), task)
    assert len(states) == 3
    assert not states[-1].running.any()
    assert torch.equal(states[-1].labels.target, states[1].labels.target)


def test_an_unused_pool_holds_nobody_of_the_split(world):
    data, split = world
    split = replace(split, test=split.test & (torch.arange(24) < 20))
    states = all_states(Method(rounds=2, quota=Top(9), pool="unused"), Task.of(data, split))
    assert states[1].labels.adopted[0].nonzero().flatten().tolist() == [20, 21, 22, 23]
    assert not states[-1].running.any()


def test_an_unused_pool_needs_to_know_the_exams_nodes(task):
    with pytest.raises(InvalidInput, match=r"Method.pool = 'unused' leaves out test nodes"):
        all_states(Method(rounds=1, pool="unused"), replace(task, reserved=None))


def test_a_look_through_dropout_is_not_the_same_look(task):
    still = all_states(Method(rounds=1, quota=Top(4)), task)[1].adoption
    shaken = all_states(Method(rounds=1, quota=Top(4), views=(Dropout(),)), task)[1].adoption
    again = all_states(Method(rounds=1, quota=Top(4), views=(Dropout(),)), task)[1].adoption
    assert not torch.equal(still.confidence, shaken.confidence)
    assert torch.equal(again.confidence, shaken.confidence)
