"""Training sessions: which epoch is kept, when a run stops, and that eager and captured sessions agree."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from bangs.core.rng import Streams
from bangs.core.types import Split, Task
from bangs.nn.dropout import DropoutMasks
from bangs.nn.ensemble import Network, Separate
from bangs.nn.loss import Targets
from bangs.nn.models import GCN
from bangs.nn.subgraphs import Subgraph
from bangs.training.epoch_loop import SYNC_EVERY, CapturedSession, EagerSession, TargetNodes
from bangs.training.teacher import Teacher
from bangs.training.trainer import Trainer
from bangs.utils import signals
from bangs.utils.signals import Stopped
from tests.conftest import two_rings


@dataclass(frozen=True)
class Scripted:
    """A model whose validation logits follow a script: one epoch moves its clock by one.

    The script holds a margin for each validation node at every epoch; a node is right where it is positive.
    """

    script: tuple[tuple[tuple[float, ...], ...], ...]  # [R][epochs][validation nodes]

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return _Clock(torch.tensor(self.script))


class _Clock(Network):
    def __init__(self, script: Tensor) -> None:
        super().__init__()
        self.script = [script]
        self.clock = nn.Parameter(torch.zeros(len(script), 1))

    def forward(self, subgraph: Subgraph, masks: DropoutMasks | None = None) -> Tensor:
        script = self.script[0]
        hour = self.clock.detach().round().long().clamp(1, script.shape[1])
        margin = script[torch.arange(len(script)), hour[:, 0] - 1]
        logits = torch.zeros(len(script), 24, 2)
        logits[:, 4 : 4 + margin.shape[1], 0] = margin
        return logits

    def loss(self, subgraph: Subgraph, targets: Targets, masks: DropoutMasks, transition: Tensor | None) -> Tensor:
        # Adam walks exactly lr a step where the gradient never changes
        return -self.clock[:, 0]


def follow(
    script: Sequence[Sequence[Sequence[float]]],
    patience: int = 99,
    start: float | None = None,
    monitor: str = "accuracy",
    early: int | None = None,
) -> Teacher:
    """The teacher that came of a script, all runs in one session, where all validation nodes are of class 0."""
    frozen = tuple(tuple(tuple(epoch) for epoch in run) for run in script)
    runs, epochs, nodes = len(frozen), len(frozen[0]), len(frozen[0][0])
    data = two_rings()
    data.y[4 : 4 + nodes] = 0
    node = torch.arange(24)
    held = (node >= 4) & (node < 4 + nodes)
    task = Task.of(data, Split.repeated(node < 4, held, node > 20, runs))
    trainer = Trainer(Scripted(frozen), lr=1.0, weight_decay=0.0, epochs=epochs, patience=patience, monitor=monitor)
    learner = trainer.prepare(task)
    first = None if start is None else {"clock": torch.full((runs, 1), start)}
    return learner._train(task.given, Streams(tuple(range(runs))), first, None, early)


def kept_epoch(teacher: Teacher) -> list[int]:
    """The epoch whose weights were kept, by the teacher's word and by its clock."""
    clock = teacher.weights["clock"][:, 0]
    assert torch.equal(clock.round().long(), teacher.epochs)
    return teacher.epochs.tolist()


class _Decaying(Network):
    def __init__(self) -> None:
        super().__init__()
        self.much, self.little = (nn.Parameter(torch.ones(1, 2)) for _ in range(2))

    def decay(self, name: str) -> float:
        return {"much": 100.0, "little": 1.0}[name]

    def forward(self, subgraph: Subgraph, masks: DropoutMasks | None = None) -> Tensor:
        return (self.much * self.little)[:, None, :].expand(1, 24, 2)  # the same for both classes: nothing to learn


@dataclass(frozen=True)
class Decaying:
    """A model that only decays."""

    def build(self, features: int, classes: int, rng: Streams) -> Network:
        return _Decaying()


def test_a_parameter_decays_as_its_network_says():
    data, node = two_rings(), torch.arange(24)
    task = Task.of(data, Split.repeated(node < 4, (node >= 4) & (node < 8), node > 20, 1))
    learner = Trainer(Decaying(), weight_decay=1e-2).prepare(task)
    assert learner._session(task.given, None).optimiser.decays == pytest.approx([1.0, 0.01])


def test_the_best_validation_accuracy_is_kept():
    teacher = follow([[[1, -1], [1, 1], [1, -1], [-1, -1]]])
    assert kept_epoch(teacher) == [2]
    assert teacher.validation.tolist() == [1.0]


def test_between_equal_accuracies_the_lower_loss_wins():
    assert kept_epoch(follow([[[1, -1], [2, -1], [3, -1], [1, -1]]])) == [3]
    assert kept_epoch(follow([[[1, -5], [1, -1], [1, -2]]])) == [2]


def test_accuracy_comes_before_loss():
    teacher = follow([[[9, -0.1], [0.1, 0.1], [9, -0.1]]])
    assert kept_epoch(teacher) == [2]


def test_of_equal_epochs_the_earliest_is_kept():
    assert kept_epoch(follow([[[1, 1], [1, 1], [1, 1]]])) == [1]


def test_runs_keep_their_own_best():
    teacher = follow([[[1, 1], [-1, -1], [-1, -1]], [[-1, -1], [-1, -1], [1, 1]], [[-1, 1], [1, 1], [-1, 1]]])
    assert kept_epoch(teacher) == [1, 3, 2]


@pytest.mark.parametrize(("patience", "best"), [(1, 1), (3, 1), (4, 5), (9, 5)])
def test_patience_is_respected(patience, best):
    """Accuracy rises at epoch 5, four epochs after the last rise."""
    script = [[[1, -1], [-1, -1], [-1, -1], [-1, -1], [1, 1]]]
    assert kept_epoch(follow(script, patience)) == [best]


def test_a_lower_loss_does_not_buy_patience():
    script = [[[1, -1], [2, -1], [3, -1], [4, -1], [1, 1]]]
    assert kept_epoch(follow(script, patience=2)) == [3]


def test_the_loss_may_be_watched_instead_of_the_accuracy():
    script = [[[9, -0.1], [0.1, 0.1], [9, -0.2]]]
    teacher = follow(script, monitor="loss")
    assert kept_epoch(teacher) == [1]
    assert teacher.validation.tolist() == [0.5], "the score is the accuracy all the same"


@pytest.mark.parametrize(("patience", "best"), [(1, 2), (2, 5)])
def test_a_lower_loss_buys_patience_where_it_is_watched(patience, best):
    script = [[[1, -1], [2, -1], [2, -2], [3, -1], [4, -1]]]
    assert kept_epoch(follow(script, patience, monitor="loss")) == [best]


def test_a_run_that_has_stopped_waits_for_the_others_unchanged():
    slow = [[-1, -1], [-1, 1], [-1, 1], [1, 1]]
    quick = [[-1, 1], [-1, -1], [-1, -1], [1, 1]]
    assert kept_epoch(follow([slow, quick], patience=2)) == [4, 1]


def test_early_weights_are_those_of_the_epoch_asked_for():
    script = [[[1, 1], [-1, -1], [-1, -1]]]
    teacher = follow(script, early=2)
    assert teacher.early["clock"].item() == pytest.approx(2)
    assert kept_epoch(teacher) == [1]
    assert follow(script).early is None


def test_early_weights_are_the_last_where_there_are_fewer_epochs():
    assert follow([[[1, 1], [-1, -1], [-1, -1]]], early=99).early["clock"].item() == pytest.approx(3)


def test_early_epochs_are_run_however_little_patience_there_is():
    """Patience ends at epoch 2; what comes up to the early epoch is trained, but nothing of it is kept as the best."""
    script = [[[1, -1], [-1, -1], [-1, -1], [1, 1], [1, 1]]]
    teacher = follow(script, patience=1, early=4)
    assert teacher.early["clock"].item() == pytest.approx(4)
    assert kept_epoch(teacher) == [1]
    assert teacher.validation.tolist() == [0.5]


def test_after_the_early_epoch_patience_counts_again():
    """A run with patience left goes on after the early epoch; one without it has stopped."""
    stopped, going = [[1, -1], [-1, -1], [-1, -1], [1, 1]], [[-1, -1], [-1, -1], [1, -1], [1, 1]]
    teacher = follow([stopped, going], patience=2, early=3)
    assert teacher.early["clock"][:, 0].tolist() == pytest.approx([3, 3])
    assert kept_epoch(teacher) == [1, 4]


def test_a_start_is_where_training_starts():
    teacher = follow([[[1, -1], [1, -1], [1, -1], [1, 1]]], start=2.0)
    assert teacher.weights["clock"].item() == pytest.approx(4)
    assert teacher.epochs.tolist() == [2]


def test_epochs_of_nonsense_are_never_kept():
    nan, inf = float("nan"), float("inf")
    teacher = follow([[[nan, 1], [1, -1], [nan, nan]], [[nan, nan], [inf, inf], [nan, 1]]])
    assert teacher.sound.tolist() == [True, False]
    assert teacher.epochs.tolist() == [2, 0]
    assert torch.isfinite(teacher.weights["clock"]).all()


def sessions(task: Task) -> tuple[EagerSession, CapturedSession]:
    """The two ways to run epochs, side by side on one task."""
    made = []
    for kind in (EagerSession, CapturedSession):
        learner = Trainer(GCN(hidden=8), patience=3).prepare(task)
        train_nodes = TargetNodes(learner.prepared.whole, Targets(task.given.target, task.given.weight))
        made.append(kind(learner.network, train_nodes, learner.val_nodes, learner.trainer))
    eager, captured = made
    captured.capture_tried = True  # nothing to record without a GPU: single kernels, as where recording fails
    captured.network.load(eager.network.weights())
    return eager, captured


def test_a_patient_session_runs_all_epochs_and_a_usual_one_does_not(task):
    for session in sessions(task):
        for patient in (True, False):
            session.begin((1, 2, 3), None)
            session.train(50, patient=patient)
            assert (session.epochs == 50) == patient


class _SynchronisingModule(nn.Module):
    """Looks at a number of the GPU's in the middle of an epoch, which no graph can record."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.layer = nn.Linear(features, classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = nn.functional.dropout(x, 0.2, self.training)
        return self.layer(x) / max(1.0, float(x.abs().max()))

    @staticmethod
    def build(features: int, classes: int, rng: Streams) -> Network:
        return Separate(lambda: _SynchronisingModule(features, classes), rng)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_a_model_that_cannot_be_captured_trains_by_single_kernels_and_logs_it(task, caplog):
    task_on_gpu, teachers = task.to("cuda"), []
    with caplog.at_level(logging.DEBUG, "bangs"):
        for _ in range(2):
            teachers.append(
                Trainer(_SynchronisingModule, epochs=40).fit(task_on_gpu, task_on_gpu.given, Streams((1, 2, 3)))
            )
    assert caplog.text.count("cannot be captured as a CUDA graph") == 2
    assert teachers[0].validation.min() > 0.5
    assert all(torch.equal(value, teachers[1].weights[name]) for name, value in teachers[0].weights.items())
    nn.functional.dropout(torch.ones(3, device="cuda"))  # the generator of all is free again


def test_rare_synchronisation_gives_the_same_teacher_as_one_after_every_epoch(task):
    eager, captured = sessions(task)
    for session in (eager, captured):
        session.begin((1, 2, 3), None)
        session.train(50)
    assert captured.epochs >= eager.epochs
    assert torch.equal(eager.accuracy, captured.accuracy)
    assert torch.equal(eager.best_epoch, captured.best_epoch)
    for name, value in eager.best().items():
        torch.testing.assert_close(captured.best()[name], value)


@pytest.mark.parametrize("which", [0, 1])
def test_a_session_begun_again_forgets_the_last_fit(task, which):
    session = sessions(task)[which]
    start = session.network.weights()
    results = []
    for _ in range(2):
        session.network.load(start)
        session.begin((1, 2, 3), None)
        session.train(8)
        results.append((session.best(), session.accuracy.clone(), session.best_epoch.clone()))
    (weights, *first), (others, *second) = results
    assert all(torch.equal(weights[name], others[name]) for name in weights)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_a_session_leaves_the_transition_it_was_given_alone(task):
    session, _ = sessions(task)
    first, second = torch.eye(2).expand(3, 2, 2), torch.full((3, 2, 2), 0.5)
    session.begin((1, 2, 3), first)
    session.begin((1, 2, 3), second)
    assert torch.equal(first, torch.eye(2).expand(3, 2, 2))
    assert torch.equal(session.transition, second)


@pytest.mark.parametrize(("which", "stride"), [(0, 1), (1, SYNC_EVERY)])
def test_a_stop_takes_effect_between_epochs(task, which, stride, monkeypatch):
    session, quiet = sessions(task)[which], iter(range(2))

    def check() -> None:
        if next(quiet, None) is None:
            raise Stopped(15)

    monkeypatch.setattr(signals, "check", check)
    session.begin((1, 2, 3), None)
    with pytest.raises(Stopped):
        session.train(200, patient=True)
    assert session.epochs == 2 * stride
