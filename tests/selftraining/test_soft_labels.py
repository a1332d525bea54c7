"""Soft labels: how beliefs are made and weighed, and the loss they make."""

from dataclasses import replace

import pytest
import torch

from bangs.core.rng import Streams
from bangs.core.types import Labels, Prediction, Round, Task, one_hot
from bangs.errors import InvalidInput
from bangs.graphs.datasets.synthetic import citation
from bangs.graphs.pagerank import PPR
from bangs.graphs.splits import per_class
from bangs.nn.models import GCN
from bangs.selftraining.budget import Budget
from bangs.selftraining.loop import SelfTrainer
from bangs.selftraining.loss_weights import Balance, BanzhafWeight, Certainty, Product
from bangs.selftraining.methods import method
from bangs.selftraining.soft_labels import Sharpen
from bangs.training.trainer import Trainer
from bangs.valuation.banzhaf import Exact, Marginals
from tests.valuation.plain_information import PlainInformation

SEEDS = (3, 7)


@pytest.fixture(scope="module")
def task() -> Task:
    data = citation(nodes=90, classes=3, features=20, seed=1, mean_degree=5.0)
    return Task.of(data, per_class(data.y, 4, 24, 30, SEEDS))


@pytest.fixture(scope="module")
def round_(task) -> Round:
    logits = 3 * torch.randn(2, 90, 3, generator=torch.Generator().manual_seed(1))
    prediction = Prediction(logits)
    pool = ~task.given.known & ~task.held
    return Round(1, task, task.given, prediction, prediction, pool, None, Streams(SEEDS))


def test_a_temperature_of_one_keeps_the_probabilities(round_):
    torch.testing.assert_close(Sharpen(1.0)(round_), round_.prediction.probs)


def test_a_temperature_of_a_half_squares_them(round_):
    squared = round_.prediction.probs.square()
    torch.testing.assert_close(Sharpen(0.5)(round_), squared / squared.sum(-1, keepdim=True))


@pytest.mark.parametrize(("shares", "of"), [("validation", "validation"), ("given", "given")])
def test_aligned_shares_move_the_mean_towards_the_labels(round_, task, shares, of):
    target = task.validation if of == "validation" else task.given.target
    wanted = torch.stack([(target == c).sum(1) + 1 for c in range(3)], 1).double()
    wanted /= wanted.sum(1, keepdim=True)
    lean = replace(round_, prediction=Prediction(round_.prediction.logits + torch.tensor([2.0, 0.0, 0.0])))

    def gap(shares: str) -> torch.Tensor:
        belief = Sharpen(1.0, shares)(lean).double()
        mean = (belief * round_.pool[..., None]).sum(1) / round_.pool.sum(1, keepdim=True)
        return (mean - wanted).abs().sum(1)

    assert (gap(shares) < 0.8 * gap("none")).all()


def test_a_node_alone_in_the_pool_is_moved_to_the_shares_exactly(round_, task):
    pool = torch.zeros_like(round_.pool)
    pool[:, 5] = True
    belief = Sharpen(1.0, "validation")(replace(round_, pool=pool))
    counts = torch.stack([(task.validation == c).sum(1) + 1 for c in range(3)], 1).float()
    torch.testing.assert_close(belief[:, 5], counts / counts.sum(1, keepdim=True))


@pytest.mark.parametrize("wrong", [{"temperature": 0.0}, {"temperature": -1.0}, {"shares": "test"}])
def test_a_wrong_setting_of_sharpen_gives_a_clear_error(wrong):
    with pytest.raises(InvalidInput, match=r"Sharpen\.\w+ must be"):
        Sharpen(**wrong)


def adopted(round_: Round) -> Labels:
    return round_.labels.adopt(round_.pool, Sharpen()(round_), 1.0, 1)


@pytest.mark.parametrize("strength", [0.0, 0.5, 2.0])
def test_the_weights_make_the_loss_of_the_docstring(round_, strength):
    labels = adopted(round_)
    weight = Balance(Certainty(3.0), strength)(round_, labels)
    p = torch.rand(2, 90, 3, generator=torch.Generator().manual_seed(2)).softmax(-1).log()
    cross = -(labels.belief * p).sum(-1)
    actual = (cross * weight).sum(1) / labels.known.sum(1)
    for run in range(2):
        given, free = labels.adopted_round[run] == 0, labels.adopted[run]
        confidence = round_.prediction.confidence[run, free] ** 3
        expected = cross[run, given].mean() + strength * (confidence * cross[run, free]).sum() / confidence.sum()
        torch.testing.assert_close(actual[run], expected)


def test_where_no_node_has_a_weight_all_count_alike(round_):
    class Nothing:
        def __call__(self, round, labels):
            return torch.zeros_like(round.prediction.confidence)

    labels = adopted(round_)
    torch.testing.assert_close(Balance(Nothing())(round_, labels), Balance(Certainty(0.0))(round_, labels))


def test_a_product_is_a_product(round_):
    labels = adopted(round_)
    both = Product(Certainty(1.0), Certainty(2.0))(round_, labels)
    torch.testing.assert_close(both, Certainty(3.0)(round_, labels))


def test_values_of_all_free_nodes_agree_with_marginals(round_):
    fast = BanzhafWeight().values(round_)
    slow = BanzhafWeight(estimate=Marginals(64)).values(round_)
    for run in range(2):
        pair = torch.stack([fast[run, round_.pool[run]], slow[run, round_.pool[run]]])
        assert torch.corrcoef(pair.argsort(1).argsort(1).double())[0, 1] > 0.9
    assert (fast[~round_.pool] == 0).all()


def test_values_of_few_players_agree_with_the_definition(round_):
    pool = torch.zeros_like(round_.pool)
    pool[:, torch.arange(90)[round_.pool.all(0)][:8]] = True
    few = replace(round_, pool=pool)
    operator = PPR()(round_.graph)
    players = pool.nonzero()[:, 1].view(2, 8)
    known = round_.labels.known
    exact = Exact()(PlainInformation(operator, few.prediction.logits, known, players, ~known, "mass"), 4).mean
    actual = BanzhafWeight(k=4).values(few).gather(1, players)
    for run in range(2):
        pair = torch.stack([exact[run], actual[run].double()])
        assert torch.corrcoef(pair)[0, 1] > 0.95


@pytest.mark.parametrize("scale", ["rank", "value"])
def test_weights_by_value_lie_between_zero_and_one(round_, scale):
    weight = BanzhafWeight(scale)(round_, adopted(round_))
    assert ((weight >= 0) & (weight <= 1)).all()
    assert (weight.amax(1) == 1).all()
    assert (weight[~round_.pool] == 0).all()


def test_a_believe_part_that_gives_no_probabilities_gives_a_clear_error(task):
    class Wild:
        def __call__(self, round):
            return round.prediction.logits

    trainer = Trainer(GCN(hidden=4), epochs=2)
    with pytest.raises(InvalidInput, match="`believe` must return probabilities"):
        SelfTrainer(trainer, replace(method("soft", Budget(rounds=1)), believe=Wild())).fit(task, SEEDS)


def test_adopting_hard_labels_beside_soft_ones_keeps_both():
    given = Labels.given(torch.tensor([[0, -1, -1, -1]]))
    belief = torch.tensor([[[0.5, 0.5], [0.2, 0.8], [0.0, 0.0], [0.0, 0.0]]])
    soft = given.adopt(torch.tensor([[True, True, False, False]]), belief, 1.0, 1)
    assert soft.target.tolist() == [[0, 1, -1, -1]], "a given label is never overwritten"
    torch.testing.assert_close(soft.belief[0, :2], torch.tensor([[1.0, 0.0], [0.2, 0.8]]))
    both = soft.adopt(torch.tensor([[False, False, True, False]]), torch.tensor([[0, 0, 1, 1]]), 1.0, 2)
    torch.testing.assert_close(both.belief[0, 1:], torch.tensor([[0.2, 0.8], [0.0, 1.0], [0.0, 0.0]]))
    picked = Labels.where(torch.tensor([False]), both, given)
    torch.testing.assert_close(picked.belief, one_hot(given.target, 2))
    assert both.only([0]).belief.shape == (1, 4, 2)
