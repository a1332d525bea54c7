"""What a pseudo-label would teach, and how a teacher confuses the classes."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from bangs.core.rng import Streams
from bangs.core.types import Labels, Prediction, Round, Task
from bangs.graphs.augmentations import DropEdges
from bangs.nn.models import GCN
from bangs.selftraining.uncertainty import EPSILON, InformationGain, Transition, information_gain
from bangs.training.augmented_prediction import Dropout, predict_view
from bangs.training.trainer import Trainer

CERTAIN = 200.0  # a logit that settles the matter


class LogitsInTurn:
    """A model that predicts the given logits [R, N, C], one after another."""

    def __init__(self, *logits: Tensor):
        self.logits, self.asked, self.rates = logits, 0, []

    def predict(self, graph) -> Prediction:
        self.asked += 1
        return Prediction(self.logits[(self.asked - 1) % len(self.logits)])

    def sample(self, graph, rng, rate=None) -> Prediction:
        self.rates.append(rate)
        return self.predict(graph)


def certain(*classes: int, of: int = 2) -> Tensor:
    """Logits [1, N, C] of a model that has no doubt about these classes."""
    return CERTAIN * torch.nn.functional.one_hot(torch.tensor(classes), of)[None].float()


def a_round(task: Task, logits: Tensor, teacher=None) -> Round:
    prediction = Prediction(logits)
    seeds = Streams(tuple(range(task.runs)))
    return Round(1, task, task.given, prediction, prediction, ~task.given.known, teacher, seeds)


def test_nothing_is_gained_where_all_views_predict_the_same(task):
    logits = torch.randn(1, 24, 2, generator=torch.Generator().manual_seed(0))
    gain = information_gain(LogitsInTurn(logits), task.graph, Dropout(), 5, Streams((0,)))
    torch.testing.assert_close(gain, torch.zeros(1, 24, dtype=torch.float64), rtol=0, atol=1e-12)


def test_a_whole_bit_is_gained_where_certain_views_contradict(task):
    gain = information_gain(LogitsInTurn(certain(0, 1), certain(1, 1)), task.graph, Dropout(), 4, Streams((0,)))
    torch.testing.assert_close(gain, torch.tensor([[math.log(2), 0.0]], dtype=torch.float64))


def test_the_gain_lies_between_nothing_and_the_log_of_the_classes(task):
    trainer = Trainer(GCN(hidden=8, dropout=0.5), epochs=10)
    rng = Streams((0, 1, 2))
    teacher = trainer.fit(task, task.given, rng)
    for at in (Dropout(), DropEdges(0.5)):
        gain = information_gain(teacher, task.graph, at, 8, rng)
        assert gain.shape == (3, 24)
        assert ((gain >= 0) & (gain <= math.log(2))).all()
        assert (gain > 0).any(1).all()


@pytest.mark.parametrize("at", [Dropout(), DropEdges(0.5)])
def test_a_run_alone_gains_what_it_gains_in_a_batch(task, at):
    trainer = Trainer(GCN(hidden=8, dropout=0.5), epochs=5, subgraph="whole")
    together = trainer.fit(task, task.given, Streams((0, 1, 2)))
    alone = trainer.fit(task.only([2]), task.only([2]).given, Streams((2,)))
    one = information_gain(together, task.graph, at, 6, Streams((0, 1, 2)))[2]
    other = information_gain(alone, task.graph, at, 6, Streams((2,)))[0]
    torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


def test_a_view_is_drawn_for_every_run_by_itself(task):
    recorded = []

    class Watching(LogitsInTurn):
        def predict(self, graph) -> Prediction:
            recorded.append(graph)
            return super().predict(graph)

    predict_view(Watching(certain(0)), task.graph, DropEdges(0.5), Streams((0, 1, 2)))
    first, second, third = (graph.edge_index.tolist() for graph in recorded[0])
    assert first != second != third


@pytest.mark.parametrize("rate", [None, 0.0, 0.3])
def test_dropout_is_at_the_models_own_rate_or_the_one_written(task, rate):
    model = LogitsInTurn(certain(0))
    information_gain(model, task.graph, Dropout(rate), 2, Streams((0,)))
    assert model.rates == [rate, rate]


@pytest.mark.parametrize("rate", [-0.1, 1.0, math.nan])
def test_a_rate_that_leaves_nothing_is_refused(rate):
    with pytest.raises(ValueError, match=r"Dropout.rate must lie in \[0, 0.999\], got"):
        Dropout(rate)


def test_without_dropout_nothing_is_gained(task):
    teacher = Trainer(GCN(hidden=8, dropout=0.5), epochs=3).fit(task, task.given, Streams((0, 1, 2)))
    assert information_gain(teacher, task.graph, Dropout(0.0), 3, Streams((0, 1, 2))).max() < 1e-9
    assert information_gain(teacher, task.graph, Dropout(0.8), 3, Streams((0, 1, 2))).max() > 1e-4


def test_weights_by_hand(task):
    """Two labelled nodes, of which one gains log 2 and the other nothing."""
    alone = task.only([0])
    teacher = LogitsInTurn(certain(0, 1), certain(1, 1))
    labels = Labels.given(torch.tensor([[0, 1]]))
    weight = InformationGain(passes=2, beta=0.5)(a_round(alone, certain(0, 1), teacher), labels)
    total = math.log(2) + 2 * EPSILON
    torch.testing.assert_close(weight, torch.tensor([[4 * (math.log(2) + EPSILON) / total, 4 * EPSILON / total]]))
    assert 0 < weight[0, 1] < 1e-4, "what teaches nothing weighs nearly nothing"


def test_the_mean_weight_of_labelled_nodes_is_one_over_beta(task):
    teacher = Trainer(GCN(hidden=8, dropout=0.5), epochs=5).fit(task, task.given, Streams((0, 1, 2)))
    labels = task.given.adopt(torch.arange(24).expand(3, -1) > 20, torch.zeros(3, 24, dtype=torch.long), 1.0, 1)
    weight = InformationGain(passes=5, beta=0.25)(a_round(task, torch.zeros(3, 24, 2), teacher), labels)
    mean = torch.where(labels.known, weight, 0.0).sum(1) / labels.known.sum(1)
    torch.testing.assert_close(mean, torch.full((3,), 4.0))
    assert (weight >= 0).all()


def test_without_doubt_all_weigh_the_same(task):
    teacher = LogitsInTurn(certain(*[0] * 24).expand(3, -1, -1))
    weight = InformationGain(passes=3)(a_round(task, torch.zeros(3, 24, 2), teacher), task.given)
    torch.testing.assert_close(weight[task.given.known], torch.full((12,), 3.0))


@pytest.mark.parametrize(("setting", "value"), [("passes", 0), ("beta", 0.0), ("beta", math.nan)])
def test_settings_that_make_no_sense_are_refused(setting, value):
    with pytest.raises(ValueError, match=f"InformationGain.{setting} must be"):
        InformationGain(**{setting: value})


def test_a_teacher_without_fault_changes_nothing(task):
    logits = certain(*task.given.target[0].clamp_min(0).tolist()).expand(3, -1, -1)
    torch.testing.assert_close(Transition()(a_round(task, logits)), torch.eye(2).expand(3, -1, -1))


def test_with_balanced_classes_it_is_halfway_to_the_mean_prediction(task):
    """Nodes 0 … 3 are given, two of each class; the teacher predicts p = (0.9, 0.1) for all."""
    logits = torch.tensor([0.9, 0.1]).log().expand(3, 24, -1)
    expected = (torch.tensor([[0.9, 0.1], [0.9, 0.1]]) + torch.eye(2)) / 2
    torch.testing.assert_close(Transition()(a_round(task, logits)), expected.expand(3, -1, -1))


def test_the_transition_comes_from_the_uncalibrated_teacher(task):
    round = a_round(task, torch.tensor([0.9, 0.1]).log().expand(3, 24, -1))
    calibrated = replace(round, prediction=Prediction(torch.zeros(3, 24, 2)))
    assert torch.equal(Transition()(calibrated), Transition()(round))


def uneven(task: Task, classes: int = 4) -> tuple[Round, Tensor]:
    """Classes of 3, 1, 0 and 5 given nodes, and a teacher of random opinions; also the targets."""
    target = torch.full((1, 24), -1)
    target[0, :9] = torch.tensor([0, 0, 0, 1, 3, 3, 3, 3, 3])
    small = task.only([0])
    small = replace(small, given=Labels.given(target), classes=classes)
    return a_round(small, torch.randn(1, 24, classes, generator=torch.Generator().manual_seed(1))), target[0]


def objective(transition: Tensor, round: Round, target: Tensor) -> Tensor:
    mse = torch.nn.functional.mse_loss
    known = target >= 0
    return mse(transition[target[known]], round.raw.probs[0, known]) + mse(transition, torch.eye(len(transition)))


def test_the_closed_form_is_the_minimum(task):
    round, target = uneven(task)
    transition = Transition()(round)[0].requires_grad_()
    (slope,) = torch.autograd.grad(objective(transition, round, target), transition)
    torch.testing.assert_close(slope, torch.zeros(4, 4), rtol=0, atol=1e-7)
    torch.testing.assert_close(transition.sum(1), torch.ones(4))
    assert transition[2].tolist() == [0.0, 0.0, 1.0, 0.0]


def test_the_published_steps_of_adam_lead_there(task):
    round, target = uneven(task)
    slow = torch.eye(4).requires_grad_()
    adam = torch.optim.Adam([slow], lr=0.01, weight_decay=5e-4)
    for _ in range(200):
        adam.zero_grad()
        objective(slow, round, target).backward()
        adam.step()
    torch.testing.assert_close(Transition()(round)[0], slow.detach(), rtol=0, atol=0.02)
