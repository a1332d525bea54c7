"""The round, top to bottom: who labels what, who teaches next, and when a run ends."""

from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.calibration.calibrators import Temperature
from bangs.core.rng import Streams
from bangs.core.types import Labels, Prediction, Ranking, Round, Split, Task
from bangs.errors import Diverged, InvalidInput
from bangs.graphs.augmentations import DropEdges, DropFeatures, Same
from bangs.nn.dropout import DropoutMasks
from bangs.nn.models import GCN
from bangs.selection.quotas import Above, Nobody, Quota, Top, TopPerClass
from bangs.selection.scores import Chance, Confidence
from bangs.selftraining.loop import Method, SelfTrainer, State
from bangs.training.augmented_prediction import Dropout
from bangs.training.teacher import Teacher
from bangs.training.trainer import Learner, Trainer
from tests.conftest import two_rings

QUICK = Trainer(GCN(hidden=8), epochs=6, subgraph="whole")
SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Announcing:
    """A trainer without a network: the model of round t labels every node t, with the validation score of a script."""

    scores: tuple[tuple[float, ...], ...]  # [rounds][R]
    sound: tuple[tuple[bool, ...], ...] = ()  # [rounds][R], True where not given
    calls: list[dict] = field(default_factory=list)

    def prepare(self, task: Task) -> "Announcing":
        object.__setattr__(self, "task", task)
        return self

    def fit(self, labels: Labels, rng: Streams, *, start=None, transition=None, early=None) -> Teacher:
        index = int(rng.path[1])
        self.calls.append({"labels": labels, "start": start, "transition": transition, "early": early})
        score = torch.tensor(self.scores[index], dtype=torch.float64)
        sound = torch.tensor(self.sound[index] if self.sound else [True] * len(score))
        weights = {"round": torch.full((len(score), 1), float(index))}
        early_weights = None if early is None else {"round": torch.full((len(score), 1), -float(early))}
        return Teacher(self, weights, score, torch.ones(len(score), dtype=torch.long), sound, early_weights)

    def predict(self, weights: dict[str, Tensor], graph: Data, noise: DropoutMasks | None = None) -> Prediction:
        label = weights["round"].long().expand(-1, int(graph.num_nodes))
        return Prediction(10.0 * torch.nn.functional.one_hot(label, self.task.classes))


def big_task(runs: int = 1, classes: int = 8) -> Task:
    """Sixty nodes: two given, two for validation, room for many rounds; labels may be 0 … 7."""
    node = torch.arange(60)
    split = Split.repeated(node < 2, (node >= 2) & (node < 4), node >= 4, runs)
    return Task.of(two_rings(60), split, classes)


def all_states(trainer, method: Method, task: Task, seeds=None) -> list[State]:
    """The state after every round, round 0 included."""
    states: list[State] = []
    last = SelfTrainer(trainer, method, (states.append,)).fit(task, SEEDS[: task.runs] if seeds is None else seeds)
    assert states[-1] is last
    return states


def teacher_rounds(states: list[State], run: int = 0) -> list[int]:
    """The round of the teacher whose label every round adopted."""
    return [int(s.labels.target[run][s.labels.adopted_round[run] == s.index][0]) for s in states[1:]]


def test_round_zero_knows_the_given_labels_only(task):
    (state,) = all_states(QUICK, Method(rounds=0), task)
    assert state.index == 0
    assert state.labels is task.given
    assert state.adoption is None
    assert state.best_round.tolist() == [0, 0, 0]
    alone = QUICK.fit(task, task.given, Streams(SEEDS).at("round", 0))
    assert torch.equal(state.prediction.logits, alone.predict(task.graph).logits)


def test_k_nodes_are_adopted_a_round_until_the_pool_is_empty(task):
    """Fourteen nodes are free: 5 + 5 + 4, and with the last of them the run has ended."""
    states = all_states(QUICK, Method(rounds=9, quota=Top(5)), task)
    assert [state.labels.adopted.sum(1).tolist() for state in states] == [[0] * 3, [5] * 3, [10] * 3, [14] * 3]
    assert [state.running.tolist() for state in states] == [[True] * 3] * 3 + [[False] * 3]
    assert all(state.took_part.all() for state in states), "no round is told of in which nothing happened"


def test_a_run_whose_pool_is_empty_from_the_start_ends_in_its_first_round():
    data, node = two_rings(), torch.arange(24)
    task = Task.of(data, Split.repeated(node < 12, node >= 12, node < 0, runs=1))
    states = all_states(QUICK, Method(rounds=5), task)
    assert [state.index for state in states] == [0, 1]
    assert not states[-1].running.any()
    assert not states[-1].took_part.any()


@pytest.mark.parametrize(("memory", "rounds"), [("accumulate", 1), ("rebuild", 3), ("alternate", 2)])
def test_a_pool_taken_whole_ends_a_run_only_where_labels_stay(task, memory, rounds):
    """Rebuilt labels may be chosen again; alternating ones leave nobody for the next round, which finds out."""
    assert all_states(QUICK, Method(rounds=3, quota=Top(99), memory=memory), task)[-1].index == rounds


def test_observers_see_every_round_in_order(task):
    first: list[State] = []
    second: list[State] = []
    SelfTrainer(QUICK, Method(rounds=2, quota=Top(3)), (first.append, second.append)).fit(task, SEEDS)
    assert [state.index for state in first] == [0, 1, 2]
    assert all(a is b for a, b in zip(first, second, strict=True))
    for state in first[1:]:
        assert set(state.seconds) == {"calibrate", "select", "train"}
        assert all(lap >= 0 for lap in state.seconds.values())
        assert state.adoption.chosen.sum(1).tolist() == [3, 3, 3]
        assert torch.equal(state.labels.adopted_round == state.index, state.adoption.chosen)
        assert torch.equal(state.labels.target[state.adoption.chosen], state.adoption.label[state.adoption.chosen])
        assert torch.equal(state.validation, state.student.validation)


def test_an_adopted_node_is_the_best_scored_and_gets_the_teachers_label(task):
    before, after = all_states(QUICK, Method(rounds=1, quota=Top(4)), task)
    confidence = before.prediction.confidence.masked_fill(task.held | task.given.known, -1)
    best = confidence.topk(4, dim=1).indices
    assert torch.equal(after.adoption.chosen, torch.zeros_like(task.held).scatter(1, best, True))
    chosen = after.adoption.chosen
    assert torch.equal(after.labels.target[chosen], before.prediction.label[chosen])
    assert (after.labels.weight[chosen] == 1).all()


@pytest.mark.parametrize("memory", ["accumulate", "rebuild", "alternate"])
def test_given_labels_stay_and_validation_nodes_are_never_adopted(task, memory):
    for state in all_states(QUICK, Method(rounds=3, quota=Top(5), memory=memory), task):
        given = task.given.known
        assert torch.equal(state.labels.target[given], task.given.target[given])
        assert not state.labels.known[task.held].any()


def test_a_quota_that_takes_everyone_takes_the_pool(task):
    """Neither a score nor a quota of anyone's can have a given or a validation node adopted."""

    def everyone(score: Tensor, label: Tensor) -> Tensor:
        return torch.ones_like(score, dtype=torch.bool)

    states = all_states(QUICK, Method(rounds=1, quota=everyone), task)
    assert torch.equal(states[1].adoption.chosen, ~task.given.known & ~task.held)


def test_an_open_pool_holds_validation_nodes_but_no_given_ones(task):
    states = all_states(QUICK, Method(rounds=1, quota=Top(99), pool="open"), task)
    assert torch.equal(states[1].adoption.chosen, ~task.given.known)


def test_an_unused_pool_spares_the_exam():
    data, node = two_rings(), torch.arange(24)
    split = Split.repeated(node < 4, (node >= 4) & (node < 10), node >= 15, runs=2)
    states = all_states(QUICK, Method(rounds=1, quota=Top(99), pool="unused"), Task.of(data, split))
    assert torch.equal(states[1].adoption.chosen, ((node >= 10) & (node < 15)).expand(2, -1))


def test_an_unused_pool_needs_to_know_the_exam(task):
    bare = replace(task, reserved=None)
    with pytest.raises(InvalidInput, match=r"Method\.pool = 'unused'"):
        all_states(QUICK, Method(rounds=1, quota=Top(3), pool="unused"), bare)


def test_memory_may_alternate(task):
    """Fourteen nodes are free: nine of them, then the other five, then nine of the nine."""
    states = all_states(QUICK, Method(rounds=3, quota=Top(9), memory="alternate"), task)
    assert [state.labels.adopted.sum(1).tolist() for state in states[1:]] == [[9] * 3, [5] * 3, [9] * 3]
    for before, after in pairwise(states):
        assert not (before.labels.adopted & after.labels.adopted).any()
        assert (after.labels.adopted_round[after.labels.adopted] == after.index).all()


def test_memory_may_be_rebuilt_every_round(task):
    states = all_states(QUICK, Method(rounds=4, score=Chance(), quota=Top(5), memory="rebuild"), task)
    assert [state.index for state in states] == [0, 1, 2, 3, 4]
    for state in states[1:]:
        assert state.labels.adopted.sum(1).tolist() == [5, 5, 5]
        assert (state.labels.adopted_round[state.labels.adopted] == state.index).all()


def test_a_threshold_nobody_meets_ends_the_run(task):
    states = all_states(QUICK, Method(rounds=5, quota=Above(1.0)), task)
    assert len(states) == 2
    assert not states[1].took_part.any()
    assert states[1].labels.adopted.sum() == 0
    assert torch.equal(states[1].prediction.logits, states[0].prediction.logits)


def test_a_run_that_has_ended_stays_ended(task):
    """Run 0 finds nobody in round 1; what it would find in round 2 comes too late."""

    def score(round: Round) -> Ranking:
        value = torch.full(round.pool.shape, 0.9)
        value[0] = 0.1 if round.index == 1 else 0.9
        return Ranking(value.masked_fill(~round.pool, float("-inf")))

    states = all_states(QUICK, Method(rounds=3, score=score, quota=Top(2, floor=0.5)), task)
    assert [state.labels.adopted.sum(1).tolist() for state in states] == [[0, 0, 0], [0, 2, 2], [0, 4, 4], [0, 6, 6]]
    assert states[3].running.tolist() == [False, True, True]
    assert torch.equal(states[3].prediction.logits[0], states[0].prediction.logits[0])


@pytest.mark.parametrize("memory", ["rebuild", "alternate"])
def test_a_run_that_finds_nobody_keeps_the_labels_it_has(task, memory):
    """Run 0 finds nobody in round 2, and what it would forget to make room for others stays."""

    def score(round: Round) -> Ranking:
        value = torch.full(round.pool.shape, 0.9)
        value[0] = 0.9 if round.index == 1 else 0.1
        return Ranking(value.masked_fill(~round.pool, float("-inf")))

    _, before, after = all_states(QUICK, Method(rounds=2, score=score, quota=Top(2, floor=0.5), memory=memory), task)
    assert after.labels.adopted.sum(1).tolist() == [2, 2, 2]
    for part in ("target", "weight", "adopted_round"):
        assert torch.equal(getattr(after.labels, part)[0], getattr(before.labels, part)[0])


def test_a_run_that_finds_nobody_has_no_student_to_reject():
    def score(round: Round) -> Ranking:
        value = torch.tensor([[0.9], [0.1]]).expand(round.pool.shape)
        return Ranking(value.masked_fill(~round.pool, float("-inf")))

    trainer = Announcing(scores=((0.5, 0.5), (0.6, 0.6)), sound=((True, True), (True, False)))
    state = all_states(trainer, Method(rounds=1, score=score, quota=Top(5, floor=0.5)), big_task(2))[-1]
    assert state.rejected == ()
    assert state.running.tolist() == [True, False]


def test_a_calibrator_that_turns_labels_decides_who_is_taken_and_the_label(task):
    def turned(prediction: Prediction, task: Task) -> Prediction:
        return Prediction(2 * prediction.logits.flip(-1))

    before, after = all_states(QUICK, Method(rounds=1, calibrate=turned, quota=TopPerClass(2)), task)
    calibrated, chosen = turned(before.prediction, task), after.adoption.chosen
    assert torch.equal(after.adoption.label, calibrated.label)
    assert torch.equal(after.labels.target[chosen], 1 - before.prediction.label[chosen])
    confidence = calibrated.confidence.masked_fill(task.held | task.given.known, float("-inf"))
    assert torch.equal(chosen, TopPerClass(2)(confidence, calibrated.label))
    assert torch.equal(after.adoption.raw_confidence, before.prediction.confidence)


@pytest.mark.parametrize(
    ("teacher", "views", "times"),
    [("first", (Same(),), 1), ("latest", (Same(),), 3), ("best", (Same(),), 3), ("first", (Same(), DropEdges(0.3)), 3)],
)
def test_what_every_round_would_see_again_is_calibrated_once(task, teacher, views, times):
    recorded = []

    def calibrate(prediction: Prediction, task: Task) -> Prediction:
        recorded.append(prediction)
        return Prediction(2 * prediction.logits)

    method = Method(rounds=3, calibrate=calibrate, quota=Top(2), teacher=teacher, views=views)
    states = all_states(QUICK, method, task)
    assert len(recorded) == times
    if times == 1:
        # a state that was resumed has forgotten what it saw, and comes to the same
        resumed = SelfTrainer(QUICK, method).fit(
            task, SEEDS, resume=lambda learner: replace(states[2], teacher_predictions=None)
        )
        assert len(recorded) == 2
        assert torch.equal(resumed.prediction.logits, states[-1].prediction.logits)


def test_a_quota_counts_the_classes_after_calibration(task):
    """Where a calibrator sees one class only, two per class are two."""

    def one_class(prediction: Prediction, task: Task) -> Prediction:
        return Prediction(prediction.logits - torch.tensor([0.0, 1e3]))

    before, after = all_states(QUICK, Method(rounds=1, calibrate=one_class, quota=TopPerClass(2)), task)
    assert (before.prediction.label == 1).any(1).all()
    assert after.labels.adopted.sum(1).tolist() == [2, 2, 2]
    assert (after.labels.target[after.labels.adopted] == 0).all()


def test_raw_is_a_method_that_adopts_nobody(task):
    assert all_states(QUICK, Method(rounds=3, quota=Nobody()), task)[-1].labels.adopted.sum() == 0


@pytest.mark.parametrize(
    ("quota", "got"),
    [
        (lambda score, label: score.topk(2, dim=1).indices, r"torch.int64 \[3, 2\]"),
        (lambda score, label: (score > 0)[0], r"torch.bool \[24\]"),  # which would be taken for every run
        (lambda score, label: [True], "list"),
    ],
)
def test_a_quota_that_gives_no_mask_of_every_run_is_refused(task: Task, quota: Quota, got: str) -> None:
    with pytest.raises(InvalidInput, match=rf"a quota must return a mask, torch.bool \[R, N\] = \[3, 24\], got {got}"):
        all_states(QUICK, Method(rounds=1, quota=quota), task)


def test_the_first_model_may_teach_in_every_round():
    trainer = Announcing(scores=((0.5,), (0.9,), (0.1,), (0.8,)))
    assert teacher_rounds(all_states(trainer, Method(rounds=3, quota=Top(5), teacher="first"), big_task())) == [0, 0, 0]


def test_the_latest_student_may_teach():
    trainer = Announcing(scores=((0.5,), (0.4,), (0.1,), (0.8,)))
    assert teacher_rounds(all_states(trainer, Method(rounds=3, quota=Top(5), teacher="latest"), big_task())) == [
        0,
        1,
        2,
    ]


def test_a_student_may_take_over_only_when_it_beats_the_incumbent():
    trainer = Announcing(scores=((0.5,), (0.4,), (0.6,), (0.6,), (0.7,), (0.1,)))
    states = all_states(trainer, Method(rounds=5, quota=Top(5), teacher="best"), big_task())
    assert teacher_rounds(states) == [0, 0, 2, 2, 4]


def test_runs_choose_their_teachers_by_themselves():
    trainer = Announcing(scores=((0.5, 0.5), (0.4, 0.6), (0.1, 0.1)))
    states = all_states(trainer, Method(rounds=2, quota=Top(5), teacher="best"), big_task(2))
    assert teacher_rounds(states, 0) == [0, 0]
    assert teacher_rounds(states, 1) == [0, 1]


@pytest.mark.parametrize("teacher", ["first", "latest", "best"])
def test_the_best_round_is_the_earliest_with_the_best_validation_score(teacher):
    trainer = Announcing(scores=((0.5, 0.9), (0.7, 0.8), (0.6, 0.9), (0.7, 0.95)))
    state = all_states(trainer, Method(rounds=3, quota=Top(5), teacher=teacher), big_task(2))[-1]
    assert state.best_round.tolist() == [1, 3]
    assert state.best.weights["round"][:, 0].tolist() == [1, 3]
    assert state.best.validation.tolist() == [0.7, 0.95]


def test_a_diverged_student_is_rejected_and_the_incumbent_stays():
    trainer = Announcing(
        scores=((0.5, 0.5), (0.6, 0.99), (0.7, 0.7)), sound=((True, True), (True, False), (True, True))
    )
    states = all_states(trainer, Method(rounds=2, quota=Top(5)), big_task(2))
    assert states[1].student.weights["round"][:, 0].tolist() == [1, 0]
    assert states[1].validation.tolist() == [0.6, 0.5]
    assert states[1].best_round.tolist() == [1, 0]
    assert states[1].took_part.tolist() == [True, False]
    assert states[1].rejected == (1,)
    assert states[1].labels.adopted.sum(1).tolist() == [5, 0]
    assert states[1].adoption.chosen.sum(1).tolist() == [5, 0]
    assert states[1].running.all()
    assert teacher_rounds([states[0], states[2]], 1) == [0]
    assert states[2].best_round.tolist() == [2, 2]
    assert states[2].labels.adopted.sum(1).tolist() == [10, 5]
    assert states[2].rejected == ()


def test_divergence_of_a_real_student_leaves_sound_weights(task):
    def explode(round: Round, labels: Labels) -> Tensor:
        weight = labels.weight.clone()
        weight[1] *= float("inf")
        return weight

    before, after = all_states(QUICK, Method(rounds=1, quota=Top(3), weigh=explode), task)
    assert torch.equal(after.prediction.logits[1], before.prediction.logits[1])
    assert not torch.equal(after.prediction.logits[0], before.prediction.logits[0])
    assert after.student.sound.all()
    assert after.rejected == (1,)
    assert torch.equal(after.labels.target[1], before.labels.target[1])


@pytest.mark.parametrize("teacher", ["first", "latest", "best"])
def test_a_student_who_says_infinite_things_is_rejected_though_its_loss_was_finite(teacher, task, monkeypatch):
    real, calls = Learner.predict, []

    def predict(self, weights, graph, noise=None):
        said = real(self, weights, graph, noise)
        calls.append(said)
        if len(calls) == 2:  # the first student's
            said.logits[0, 5] = float("nan")
        return said

    monkeypatch.setattr(Learner, "predict", predict)
    states = all_states(QUICK, Method(rounds=2, quota=Top(3), teacher=teacher), task)
    assert [state.rejected for state in states] == [(), (0,), ()]
    assert all(state.prediction.logits.isfinite().all() for state in states)
    assert torch.equal(states[1].prediction.logits[0], states[0].prediction.logits[0])
    assert states[2].labels.adopted.sum(1).tolist() == [3, 6, 6]


def test_a_first_model_that_diverges_is_a_sentence(task):
    with pytest.raises(Diverged, match="the first model of run 0 diverged: its loss was never finite; lower the lear"):
        all_states(replace(QUICK, lr=1e38), Method(rounds=1), task)


def test_a_student_may_start_from_its_teacher():
    trainer = Announcing(scores=((0.5,), (0.4,), (0.6,)))
    all_states(trainer, Method(rounds=2, quota=Top(5), start="teacher", teacher="best"), big_task())
    starts = [call["start"] for call in trainer.calls]
    assert starts[0] is None
    assert [start["round"].item() for start in starts[1:]] == [0, 0]


def test_a_student_may_start_from_the_first_models_early_weights():
    trainer = Announcing(scores=((0.5,), (0.6,), (0.7,), (0.2,)))
    all_states(trainer, Method(rounds=3, quota=Top(5), start=20), big_task())
    assert [call["early"] for call in trainer.calls] == [20, None, None, None]
    assert [call["start"]["round"].item() for call in trainer.calls[1:]] == [-20, -20, -20]


def test_a_student_starts_fresh_otherwise():
    trainer = Announcing(scores=((0.5,), (0.6,), (0.7,)))
    all_states(trainer, Method(rounds=2, quota=Top(5)), big_task())
    assert [(call["start"], call["early"], call["transition"]) for call in trainer.calls] == [(None, None, None)] * 3


def test_weights_of_all_who_are_labelled_by_now_and_correction_reach_the_student():
    def weigh(round: Round, labels: Labels) -> Tensor:
        return torch.where(labels.known, 0.25 * round.index, 9.0)

    def correct(round: Round) -> Tensor:
        return torch.full((1, 8, 8), float(round.index))

    trainer = Announcing(scores=((0.5,), (0.6,), (0.7,)))
    states = all_states(trainer, Method(rounds=2, quota=Top(5), weigh=weigh, correct=correct), big_task())
    for index in (1, 2):
        known = states[index].labels.known
        assert (states[index].labels.weight[known] == 0.25 * index).all()
        assert (states[index].labels.weight[~known] == 0).all()
        assert trainer.calls[index]["labels"] is states[index].labels
        assert (trainer.calls[index]["transition"] == index).all()


def test_what_the_selection_sees(task):
    recorded: list[Round] = []

    def score(round: Round):
        recorded.append(round)
        return Confidence()(round)

    states = all_states(
        QUICK, Method(rounds=2, teacher="latest", score=score, calibrate=Temperature(), quota=Top(4)), task
    )
    for round, (before, after) in zip(recorded, pairwise(states), strict=True):
        assert round.index == after.index
        assert round.labels is before.labels
        assert torch.equal(round.pool, ~before.labels.known & ~task.held)
        assert torch.equal(round.raw.logits, before.prediction.logits)
        torch.testing.assert_close(round.prediction.logits, Temperature()(round.raw, task).logits)
        assert round.rng.path == ("round", after.index)
        assert torch.equal(after.adoption.confidence, round.prediction.confidence)
        assert torch.equal(after.adoption.raw_confidence, round.raw.confidence)


def test_the_teacher_looks_through_all_views(task):
    views = (Same(), DropEdges(0.5), DropFeatures(0.3), Dropout())
    before, after = all_states(QUICK, Method(rounds=1, views=views, quota=Top(4)), task)
    rng = Streams(SEEDS).at("round", 1)
    logits = before.prediction.logits.clone()
    logits += before.student.sample(task.graph, rng.at("view", 3)).logits
    for number, view in enumerate(views[1:3], start=1):
        graphs = [view(task.graph, generator) for generator in rng.at("view", number).generators()]
        logits += before.student.predict(graphs).logits
    averaged = Prediction(logits / 4)
    torch.testing.assert_close(after.adoption.raw_confidence, averaged.confidence)
    assert torch.equal(after.adoption.label, averaged.label)


def test_the_same_view_twice_is_the_same_view(task):
    once = all_states(QUICK, Method(rounds=2, quota=Top(4), teacher="first"), task)[-1]
    twice = all_states(QUICK, Method(rounds=2, quota=Top(4), teacher="first", views=(Same(), Same())), task)[-1]
    torch.testing.assert_close(twice.prediction.logits, once.prediction.logits)


def uneven() -> Task:
    """Three runs with pools of 14, 6 and 10 nodes."""
    data, node = two_rings(), torch.arange(24)
    held = torch.stack([(node >= 4) & (node < last) for last in (10, 18, 14)])
    train = (node < 4).expand(3, -1)
    return Task.of(data, Split(train, held, ~train & ~held))


def test_runs_end_when_their_own_pool_is_empty():
    states = all_states(QUICK, Method(rounds=9, quota=Top(4)), uneven())
    counts = [state.labels.adopted.sum(1).tolist() for state in states]
    assert counts == [[0, 0, 0], [4, 4, 4], [8, 6, 8], [12, 6, 10], [14, 6, 10]]
    running = [state.running.tolist() for state in states[1:]]
    assert running == [[True] * 3, [True, False, True], [True, False, False], [False] * 3]
    assert [state.took_part.tolist() for state in states[2:]] == [[True] * 3, [True, False, True], [True, False, False]]
    for state in states[3:]:
        assert torch.equal(state.prediction.logits[1], states[2].prediction.logits[1])
        assert torch.equal(state.labels.target[1], states[2].labels.target[1])


@pytest.mark.parametrize("teacher", ["first", "latest", "best"])
def test_a_run_alone_equals_the_run_in_a_batch(teacher):
    task = uneven()
    method = Method(rounds=3, quota=Top(5), teacher=teacher, calibrate=Temperature())
    together = SelfTrainer(QUICK, method).fit(task, SEEDS)
    for run in (1, 2):
        alone = SelfTrainer(QUICK, method).fit(task.only([run]), SEEDS[run : run + 1])
        assert torch.equal(alone.labels.target[0], together.labels.target[run])
        assert alone.best_round[0] == together.best_round[run]
        torch.testing.assert_close(alone.prediction.logits[0], together.prediction.logits[run], rtol=1e-3, atol=1e-4)


def test_equal_seeds_give_equal_runs(task):
    method = Method(rounds=2, score=Chance(), quota=Top(4))
    one, other = (SelfTrainer(QUICK, method).fit(task, (5, 5, 6)) for _ in range(2))
    assert torch.equal(one.prediction.logits, other.prediction.logits)
    assert torch.equal(one.labels.target, other.labels.target)
    assert torch.equal(one.labels.adopted_round[0], one.labels.adopted_round[1])
    assert not torch.equal(one.labels.adopted_round[0], one.labels.adopted_round[2])


@pytest.mark.parametrize("seed", range(2))
def test_the_exams_labels_changed_at_random_change_nothing(world, seed):
    data, split = world
    spoiled = data.clone()
    random = torch.randint(0, 2, (24,), generator=torch.Generator().manual_seed(seed))
    spoiled.y = torch.where(split.test[0], random, data.y)
    assert not torch.equal(spoiled.y, data.y)
    method = Method(rounds=2, quota=Top(4), teacher="best", calibrate=Temperature())
    one, other = (SelfTrainer(QUICK, method).fit(Task.of(graph, split), SEEDS) for graph in (data, spoiled))
    assert torch.equal(one.prediction.logits, other.prediction.logits)
    assert torch.equal(one.labels.target, other.labels.target)
    assert torch.equal(one.best_round, other.best_round)


def test_a_run_may_be_taken_up_where_it_was_left(task):
    method = Method(rounds=4, quota=Top(3), teacher="best")
    states = all_states(QUICK, method, task)
    observed: list[State] = []
    resumed = SelfTrainer(QUICK, method, (observed.append,)).fit(task, SEEDS, resume=lambda learner: states[2])
    assert [state.index for state in observed] == [3, 4]
    assert torch.equal(resumed.prediction.logits, states[-1].prediction.logits)
    assert torch.equal(resumed.best_round, states[-1].best_round)


@pytest.mark.parametrize("seeds", [(1, 2), (1, 2, 3, 4)])
def test_there_must_be_a_seed_for_every_run(task, seeds):
    with pytest.raises(InvalidInput, match=f"{len(seeds)} seeds for 3 runs"):
        SelfTrainer(QUICK, Method()).fit(task, seeds)


def test_a_method_is_a_value():
    assert Method(quota=Top(3)) == Method(quota=Top(3)) != Method(quota=Top(4))
    assert "rounds=40" in repr(Method())
