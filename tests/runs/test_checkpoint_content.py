"""A round as tensors and facts: nothing the next round needs is lost, and nothing else is taken for one."""

from dataclasses import replace

import pytest
import torch

from bangs.core.rng import Streams
from bangs.errors import InvalidInput
from bangs.nn.models import GCN
from bangs.runs.checkpoint_content import pack, unpack
from bangs.runs.checkpoint_file import Checkpoint
from bangs.selection.quotas import Top
from bangs.selftraining.loop import Method, SelfTrainer, State
from bangs.training.trainer import Learner, Trainer

QUICK = Trainer(GCN(hidden=4), epochs=4)
RNG = Streams((1, 2, 3))
LOOP = SelfTrainer(QUICK, Method(start=2, teacher="best", quota=Top(3)))


@pytest.fixture
def learner(task) -> Learner:
    return QUICK.prepare(task)


@pytest.fixture
def first(learner) -> State:
    return LOOP.begin(learner, RNG)


def kept(state: State) -> Checkpoint:
    return Checkpoint(state.index, *pack(state))


def assert_same(one: State, other: State) -> None:
    assert one.index == other.index
    for name in ("best_round", "running", "took_part"):
        assert torch.equal(getattr(one, name), getattr(other, name))
    assert torch.equal(one.labels.target, other.labels.target)
    assert torch.equal(one.labels.adopted_round, other.labels.adopted_round)
    assert torch.equal(one.prediction.logits, other.prediction.logits)
    for role in ("student", "teacher", "best"):
        first, second = getattr(one, role), getattr(other, role)
        assert all(torch.equal(value, second.weights[name]) for name, value in first.weights.items())
        assert torch.equal(first.validation, second.validation)


def test_a_model_of_several_roles_is_stored_once_and_is_one_again(first, learner):
    checkpoint = kept(first)
    assert checkpoint.facts == {"roles": dict.fromkeys(("student", "teacher", "best"), "student")}
    assert not any(name.startswith(("teacher.", "best.")) for name in checkpoint.tensors)
    restored = unpack(checkpoint, learner)
    assert restored.student is restored.teacher is restored.best


def test_early_weights_go_along(first, learner):
    early = unpack(kept(first), learner).student.early
    assert early is not None
    assert first.student.early is not None
    assert all(torch.equal(value, first.student.early[name]) for name, value in early.items())


def test_the_rounds_after_are_those_of_a_run_that_went_on(first, learner):
    uninterrupted = resumed = first
    for _ in range(3):
        uninterrupted, resumed = LOOP.advance(uninterrupted, RNG), LOOP.advance(unpack(kept(resumed), learner), RNG)
        assert_same(uninterrupted, resumed)


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"logits": torch.zeros(3, 24, 5)}, "tensor 'logits' is"),
        ({"logits": torch.zeros(3, 24, 2, dtype=torch.float64)}, "tensor 'logits' is"),
        ({"surplus": torch.zeros(3)}, "tensor 'surplus' is"),
        ({"labels.target": torch.full((3, 24), 2)}, "its labels lie outside 0 … 1"),
        ({"labels.target": torch.full((3, 24), -2)}, "its labels lie outside 0 … 1"),
    ],
    ids=["another shape", "another type", "one too many", "another class", "no class at all"],
)
def test_tensors_of_another_task_are_refused(first, learner, wrong, fault):
    checkpoint = kept(first)
    with pytest.raises(InvalidInput, match=fault):
        unpack(replace(checkpoint, tensors=checkpoint.tensors | wrong), learner)


@pytest.mark.parametrize(
    "roles", [None, {}, {"student": "best", "teacher": "teacher", "best": "best"}], ids=["none", "empty", "forward"]
)
def test_roles_that_no_run_has_are_refused(first, learner, roles):
    with pytest.raises(InvalidInput, match="its roles are not those of a run"):
        unpack(replace(kept(first), facts={"roles": roles}), learner)
