"""What every method promises, whatever its parts."""

import re
from dataclasses import dataclass, replace
from math import inf

import pytest
import torch
from torch_geometric.data import Data

import bangs.calibration.calibrators
import bangs.calibration.graph_calibrators
import bangs.graphs.augmentations
import bangs.graphs.pagerank
import bangs.selection.quotas
import bangs.selection.scores
import bangs.selftraining.loop
import bangs.selftraining.loss_weights
import bangs.selftraining.soft_labels
import bangs.selftraining.uncertainty
import bangs.training.augmented_prediction
import bangs.valuation.banzhaf
from bangs.calibration.graph_calibrators import CaGCN
from bangs.core.types import Ranking, Round, Split, Task
from bangs.graphs.datasets.synthetic import citation
from bangs.graphs.splits import per_class
from bangs.nn.models import GCN
from bangs.selftraining.budget import Budget
from bangs.selftraining.loop import Method, SelfTrainer, State
from bangs.selftraining.methods import METHODS, method
from bangs.selftraining.published_settings import authors, paper
from bangs.selftraining.uncertainty import InformationGain
from bangs.training.trainer import Trainer
from tests import ROOT

DOCS = ROOT / "docs" / "methods.md"
SEEDS = (3, 7)
BUDGET = Budget(k=8, candidates=16, rounds=2)
TRAINER = Trainer(GCN(hidden=16, dropout=0.5), lr=0.2, epochs=8)
STILL = replace(TRAINER, model=GCN(hidden=16, dropout=0.0))
ADOPTING = [name for name in METHODS if name != "raw"]
PARTS = {
    name: part
    for module in (
        bangs.graphs.pagerank,
        bangs.graphs.augmentations,
        bangs.calibration.calibrators,
        bangs.calibration.graph_calibrators,
        bangs.training.augmented_prediction,
        bangs.selftraining.uncertainty,
        bangs.selftraining.loop,
        bangs.selftraining.soft_labels,
        bangs.selftraining.loss_weights,
        bangs.selection.quotas,
        bangs.selection.scores,
        bangs.valuation.banzhaf,
    )
    for name, part in vars(module).items()
    if isinstance(part, type)
} | {"inf": inf}


@pytest.fixture(scope="module")
def data_and_split() -> tuple[Data, Split]:
    """A small citation network: 12 labelled nodes, 24 held for validation, 60 kept for the exam, 24 in no part."""
    data = citation(nodes=120, classes=3, features=40, seed=1, mean_degree=5.0, homophily=0.9, signal=0.7)
    return data, per_class(data.y, 4, 24, 60, SEEDS)


@pytest.fixture(scope="module")
def outcome(data_and_split: tuple[Data, Split]):
    """The states of a method on the small network, worked out once per method."""
    task, known = Task.of(*data_and_split), {}

    def states(name: str) -> list[State]:
        if name not in known:
            known[name] = run(name, task)
        return known[name]

    return states


def quick(name: str, budget: Budget = BUDGET) -> Method:
    """The method with fewer steps where a part takes hundreds."""
    recipe = method(name, budget)
    if isinstance(recipe.calibrate, CaGCN):
        recipe = replace(recipe, calibrate=replace(recipe.calibrate, fit=replace(recipe.calibrate.fit, epochs=6)))
    if isinstance(recipe.weigh, InformationGain):
        recipe = replace(recipe, weigh=replace(recipe.weigh, passes=4))
    return recipe


def run(name: str, task: Task, budget: Budget = BUDGET, trainer: Trainer = TRAINER, seeds=SEEDS) -> list[State]:
    states: list[State] = []
    SelfTrainer(trainer, quick(name, budget), [states.append]).fit(task, seeds)
    return states


def assert_same(states: list[State], others: list[State]) -> None:
    assert len(states) == len(others)
    for one, other in zip(states, others, strict=True):
        assert torch.equal(one.labels.target, other.labels.target)
        assert torch.equal(one.labels.adopted_round, other.labels.adopted_round)
        assert torch.equal(one.labels.weight, other.labels.weight)
        assert torch.equal(one.prediction.logits, other.prediction.logits)
        assert (one.labels.belief is None) == (other.labels.belief is None)
        assert one.labels.belief is None or torch.equal(one.labels.belief, other.labels.belief)


@pytest.mark.parametrize("name", METHODS)
def test_given_labels_never_change(name, outcome, data_and_split):
    data, split = data_and_split
    for state in outcome(name):
        assert torch.equal(state.labels.target[split.train], data.y.expand(2, -1)[split.train])
        assert (state.labels.adopted_round[split.train] == 0).all()


@pytest.mark.parametrize("name", METHODS)
def test_validation_nodes_are_never_adopted_by_default(name, outcome, data_and_split):
    for state in outcome(name):
        assert not (state.labels.adopted & data_and_split[1].val).any()


@pytest.mark.parametrize("name", ADOPTING)
def test_something_is_adopted_and_its_label_is_the_teachers(name, outcome):
    for state in outcome(name)[1:]:
        assert state.adoption.chosen[state.took_part].any(1).all()
        new = state.labels.adopted_round == state.index
        assert torch.equal(new, state.adoption.chosen & state.took_part[:, None])
        assert torch.equal(state.labels.target[new], state.adoption.label[new])
    assert outcome(name)[-1].labels.adopted.any(1).all()


def test_raw_adopts_no_node(outcome):
    (only,) = outcome("raw")
    assert not only.labels.adopted.any()


HARD = [name for name in METHODS if method(name).believe is None]
SOFT = [name for name in METHODS if name not in HARD]


@pytest.mark.parametrize("name", SOFT)
def test_soft_labels_are_of_all_free_nodes_and_made_anew(name, outcome, data_and_split):
    data, split = data_and_split
    for state in outcome(name)[1:]:
        assert torch.equal(state.labels.adopted, ~(split.train | split.val))
        assert (state.labels.adopted_round[state.labels.adopted] == state.index).all()
        torch.testing.assert_close(state.labels.belief.sum(-1), state.labels.known.float())
        given = state.labels.belief[split.train]
        assert torch.equal(given.argmax(-1), data.y.expand(2, -1)[split.train])
        assert (given.amax(-1) == 1).all()


@pytest.mark.parametrize("name", HARD)
def test_no_more_than_the_budget_is_held(name, outcome):
    limit = BUDGET.k * BUDGET.rounds
    for state in outcome(name):
        assert state.index <= BUDGET.rounds
        assert (state.labels.adopted.sum(1) <= limit).all()
        if method(name, BUDGET).memory == "accumulate":
            assert (state.labels.adopted.sum(1) <= BUDGET.k * state.index).all()


@pytest.mark.parametrize("name", METHODS)
def test_the_exams_labels_changed_at_random_change_nothing(name, outcome, data_and_split):
    data, split = data_and_split
    other = data.clone()
    masks = torch.randint(0, 3, split.test.shape, generator=torch.Generator().manual_seed(5))
    other.y = torch.where(split.train | split.val, data.y.expand(2, -1), masks)
    assert_same(outcome(name), run(name, Task.of(other, split)))


@pytest.mark.parametrize("name", METHODS)
def test_equal_seeds_give_equal_results(name, outcome, data_and_split):
    assert_same(outcome(name), run(name, Task.of(*data_and_split)))


@pytest.mark.parametrize("name", ADOPTING)
def test_other_seeds_give_other_results(name, outcome, data_and_split):
    others = run(name, Task.of(*data_and_split), seeds=(1, 2))
    assert not torch.equal(outcome(name)[-1].prediction.logits, others[-1].prediction.logits)


@pytest.mark.parametrize("name", ADOPTING)
@pytest.mark.parametrize("pool", ["open", "unused"])
def test_the_pool_is_respected(name, pool, data_and_split):
    _, split = data_and_split
    budget = replace(BUDGET, pool=pool, rounds=1)
    labels = run(name, Task.of(*data_and_split), budget)[-1].labels
    allowed = ~split.train if pool == "open" else ~(split.train | split.val | split.test)
    assert not (labels.adopted & ~allowed).any()


@dataclass(frozen=True)
class Greedy:
    """A score that wants every node, most of all those it may not have."""

    def __call__(self, round: Round) -> Ranking:
        return Ranking(torch.where(round.pool, 1.0, 2.0))


@pytest.mark.parametrize("name", ADOPTING)
def test_a_score_cannot_get_around_the_pool(name, data_and_split):
    greedy = replace(quick(name, replace(BUDGET, k=100, candidates=100)), score=Greedy(), rounds=1)
    state = SelfTrainer(replace(TRAINER, epochs=5), greedy).fit(Task.of(*data_and_split), SEEDS)
    assert not (state.labels.adopted & (data_and_split[1].train | data_and_split[1].val)).any()


@pytest.mark.parametrize("name", METHODS)
def test_a_run_alone_equals_the_run_in_a_batch(name, data_and_split):
    task = Task.of(*data_and_split)
    together = run(name, task, trainer=STILL)
    alone = run(name, task.only([1]), trainer=STILL, seeds=SEEDS[1:])
    assert len(alone) == len(together)
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one.labels.target[0], other.labels.target[1])
        assert torch.equal(one.labels.adopted_round[0], other.labels.adopted_round[1])
        torch.testing.assert_close(one.labels.weight[0], other.labels.weight[1], rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(one.prediction.logits[0], other.prediction.logits[1], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", METHODS)
def test_the_repr_rebuilds_the_method(name):
    for recipe in (method(name, BUDGET), method(name), authors(name, "pubmed")):
        assert eval(repr(recipe), PARTS) == recipe


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"drgst-dropedge"}))
def test_the_repr_rebuilds_what_the_paper_ran(name):
    assert eval(repr(paper(name, "pubmed")), PARTS) == paper(name, "pubmed")


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_a_value(name):
    assert method(name, BUDGET) == method(name, BUDGET)
    assert len({method(name, BUDGET), method(name, BUDGET)}) == 1


def written(name: str) -> str:
    """The recipe of a method in its chapter of the documentation."""
    chapter = re.split(r"^## ", DOCS.read_text(), flags=re.MULTILINE)
    (own,) = [text for text in chapter if text.startswith(f"{name}\n")]
    return own.split("```python\n")[1].split("```")[0].strip()


@pytest.mark.parametrize("name", METHODS)
def test_the_documented_recipe_is_the_method(name):
    assert eval(written(name), PARTS) == method(name)
