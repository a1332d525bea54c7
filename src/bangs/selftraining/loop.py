"""The self-training loop: the parts of a method, and one round from start to end."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from bangs.calibration.calibrators import Calibrator, Uncalibrated
from bangs.core.part_checks import check_calibrated, check_mask, check_ranking, check_soft_labels
from bangs.core.rng import Streams
from bangs.core.types import Labels, Prediction, Ranking, Round, Task
from bangs.distributed import ranks
from bangs.errors import Diverged, InvalidInput
from bangs.graphs.augmentations import Same
from bangs.selection.quotas import Quota, Top
from bangs.selection.scores import Confidence, Score
from bangs.selftraining.best_round import beats
from bangs.selftraining.defaults import (
    CHOICES,
    MEMORY,
    POOL,
    ROUNDS,
    START,
    TEACHER,
    Memory,
    Pool,
    Start,
    TeacherChoice,
)
from bangs.selftraining.soft_labels import Believe
from bangs.training.augmented_prediction import ModelView, predict_view
from bangs.training.teacher import Teacher
from bangs.training.trainer import Learner, Trainer
from bangs.utils.setting_checks import check_choice, check_integer
from bangs.utils.torch_modes import default_torch_modes


class Weigh(Protocol):
    """The weight of every labelled node in the student's loss: float [R, N]."""

    def __call__(self, round: Round, labels: Labels) -> Tensor: ...


class Correct(Protocol):
    """The transition matrix that corrects the student's loss: float [R, C, C]."""

    def __call__(self, round: Round) -> Tensor: ...


@dataclass(frozen=True)
class Method:
    """A self-training method: its parts. The `repr` is the configuration.

    `memory`: keep pseudo-labels for good (accumulate), make all of them anew each round (rebuild), or anew from
    nodes that had none the round before (alternate). `pool`: nodes that have no label and are
    not held for validation (free), validation nodes too (open), or free nodes that are not test nodes (unused).
    """

    rounds: int = ROUNDS
    views: tuple[ModelView, ...] = (Same(),)  # of the graph, over which the teacher's logits are averaged
    calibrate: Calibrator = field(default_factory=Uncalibrated)
    score: Score = field(default_factory=Confidence)
    quota: Quota = field(default_factory=lambda: Top(100))
    believe: Believe | None = None  # None = hard labels: the teacher's class
    weigh: Weigh | None = None
    correct: Correct | None = None
    memory: Memory = MEMORY
    teacher: TeacherChoice = TEACHER  # who labels: the first model, the last, the best so far
    start: Start | int = START  # a student's weights; an int = the first model's at that epoch
    pool: Pool = POOL

    def __post_init__(self) -> None:
        check_integer("Method.rounds", self.rounds, least=0)
        for name, allowed in CHOICES.items():
            if name != "start" or not isinstance(self.start, int):
                check_choice(f"Method.{name}", getattr(self, name), allowed)
        if not isinstance(self.views, Sequence) or not self.views:
            raise InvalidInput("Method.views must hold at least one view, such as Same()")
        if isinstance(self.start, int) and self.start < 1:
            raise InvalidInput(f"Method.start must be 'fresh', 'teacher' or an epoch from 1, got {self.start}")


@dataclass(frozen=True, eq=False)
class Adoption:
    """The pseudo-labels that a round adopted, with their scores."""

    chosen: Tensor  # bool [R, N]
    label: Tensor  # long [R, N], the teacher's after calibration; of soft labels the most likely class
    raw_confidence: Tensor  # float [R, N]
    confidence: Tensor  # float [R, N], calibrated
    ranking: Ranking
    soft: bool = False  # whether the labels are distributions, made anew in every round


@dataclass(frozen=True, eq=False)
class State:
    """Where R runs (seeds or folds) stand after a round; round 0 is the first model, of the given labels alone."""

    index: int
    labels: Labels
    student: Teacher  # of this round
    prediction: Prediction  # the student's
    teacher: Teacher  # who labels the next round
    best: Teacher  # the student of the round with the best validation score
    best_round: Tensor  # long [R]
    running: Tensor  # bool [R], False where a run has ended
    took_part: Tensor  # bool [R], True where this round changed the run
    adoption: Adoption | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    rejected: tuple[int, ...] = ()  # runs whose student diverged; their round was undone
    teacher_predictions: tuple[Prediction, Prediction] | None = (
        None  # raw and calibrated, if the next round sees the same
    )

    @property
    def validation(self) -> Tensor:
        """The student's validation accuracy: float [R]."""
        return self.student.validation


Observer = Callable[[State], None]


@dataclass(frozen=True)
class SelfTrainer:
    """Runs a method with a trainer, and calls the observers after every round."""

    trainer: Trainer
    method: Method
    observers: Sequence[Observer] = ()

    @default_torch_modes()
    def fit(self, task: Task, seeds: Sequence[int], resume: Callable[[Learner], State] | None = None) -> State:
        """The state after the last round; `state.best` holds the students chosen by validation score."""
        if len(seeds) != task.runs:
            raise InvalidInput(f"{len(seeds)} seeds for {task.runs} runs; there must be one seed per run")
        rng = Streams(tuple(seeds))
        learner = self.trainer.prepare(task)
        state = self.begin(learner, rng) if resume is None else resume(learner)
        if resume is None:
            self._notify(state)
        while state.index < self.method.rounds and state.running.any():
            state = self.advance(state, rng)
            self._notify(state)
        return state

    def begin(self, learner: Learner, rng: Streams) -> State:
        """Round 0: the first model learns the given labels."""
        task = learner.task
        seconds: dict[str, float] = {}
        with _timed(seconds, "train"):
            early = self.method.start if isinstance(self.method.start, int) else None
            first = learner.fit(task.given, rng.at("round", 0), early=early)
            prediction = first.predict(task.graph)
        if diverged := _indices(~_sound(first, prediction)):
            raise Diverged(
                f"the first model of run {diverged[0]} diverged: its loss was never finite; "
                "lower the learning rate or scale the features"
            )
        all_runs = torch.ones(task.runs, dtype=torch.bool, device=task.device)
        zero = torch.zeros(task.runs, dtype=torch.long, device=task.device)
        return State(0, task.given, first, prediction, first, first, zero, all_runs, all_runs, None, seconds)

    def advance(self, state: State, rng: Streams) -> State:
        """One round: predict, score, choose, adopt, train, and choose the next teacher."""
        method, learner = self.method, state.student.learner
        seconds: dict[str, float] = {}
        task, index = learner.task, state.index + 1
        rng = rng.at("round", index)

        with _timed(seconds, "calibrate"):
            raw, prediction = state.teacher_predictions or self._predict(state, task, rng)
        with _timed(seconds, "select"):
            base = state.labels if method.memory == "accumulate" else task.given
            pool = self._pool(task, base if method.memory == "rebuild" else state.labels)
            round = Round(index, task, base, raw, prediction, pool, state.teacher, rng)
            ranking = check_ranking(method.score(round), pool)
            wanted = check_mask(method.quota(ranking.score, prediction.label), pool)
            chosen = ranks.broadcast(wanted & pool & state.running[:, None])
            took_part = chosen.any(1)
            can_continue = (pool & ~chosen).any(1) if method.memory == "accumulate" else took_part
            # on GPUs ranks differ in the last bits; that must not change which nodes are adopted, or with which label
            label = ranks.broadcast(self._pseudo_labels(round))
            labels = base.adopt(chosen, label, 1.0, index)
            if method.weigh is not None:
                labels = labels.weighted(method.weigh(round, labels))
            labels = Labels.where(took_part, labels, state.labels)
        with _timed(seconds, "train"):
            student, student_prediction, rejected = state.student, state.prediction, torch.zeros_like(took_part)
            if took_part.any():
                transition = None if method.correct is None else method.correct(round)
                fitted = learner.fit(labels, rng, start=self._start(state), transition=transition)
                predicted = fitted.predict(task.graph)
                rejected = took_part & ~_sound(fitted, predicted)
                if rejected.any():
                    took_part, chosen = took_part & ~rejected, chosen & ~rejected[:, None]
                    labels = Labels.where(took_part, labels, state.labels)
                student = Teacher.where(took_part, fitted, state.student)
                student_prediction = Prediction.where(took_part, predicted, state.prediction)

        better = beats(student.validation, state.best.validation)
        return State(
            index=index,
            labels=labels,
            student=student,
            prediction=student_prediction,
            teacher=self._next_teacher(state.teacher, student),
            best=Teacher.where(better, student, state.best),
            best_round=torch.where(better, index, state.best_round),
            running=rejected | took_part & can_continue,  # a rejected round is undone, and the run goes on
            took_part=took_part,
            adoption=Adoption(
                chosen,
                label if label.dim() == 2 else label.argmax(-1),
                raw.confidence,
                prediction.confidence,
                ranking,
                soft=label.dim() == 3,
            ),
            seconds=seconds,
            rejected=_indices(rejected),
            teacher_predictions=(raw, prediction) if self._same_every_round else None,
        )

    @property
    def _same_every_round(self) -> bool:
        """Whether every round sees the same prediction: one teacher for all rounds, and no random views."""
        return self.method.teacher == "first" and all(isinstance(view, Same) for view in self.method.views)

    def _predict(self, state: State, task: Task, rng: Streams) -> tuple[Prediction, Prediction]:
        """The teacher's logits, averaged over the method's views, as they are and calibrated."""
        total: Tensor | None = None
        for number, view in enumerate(self.method.views):
            if isinstance(view, Same) and state.teacher is state.student:
                prediction = state.prediction
            else:
                prediction = predict_view(state.teacher, task.graph, view, rng.at("view", number))
            total = prediction.logits if total is None else total + prediction.logits
        assert total is not None  # a method has at least one view
        # a single view is not divided, since [R, N, C] may be large
        raw = Prediction(total if len(self.method.views) == 1 else total / len(self.method.views))
        return raw, check_calibrated(self.method.calibrate(raw, task), raw)

    def _pseudo_labels(self, round: Round) -> Tensor:
        """The pseudo-labels of all nodes: long [R, N], or float [R, N, C] for soft labels."""
        if self.method.believe is None:
            return round.prediction.label
        return check_soft_labels(self.method.believe(round), round.prediction)

    def _pool(self, task: Task, labels: Labels) -> Tensor:
        """Nodes that may be adopted: bool [R, N]."""
        pool = ~labels.known
        if self.method.pool != "open":
            pool = pool & ~task.held
        if self.method.pool == "unused":
            if task.reserved is None:
                raise InvalidInput(
                    "Method.pool = 'unused' leaves out test nodes; make the task by Task.of(data, split)"
                )
            pool = pool & ~task.reserved
        return pool

    def _start(self, state: State) -> dict[str, Tensor] | None:
        if self.method.start == "fresh":
            return None
        return state.teacher.weights if self.method.start == "teacher" else state.student.early

    def _next_teacher(self, teacher: Teacher, student: Teacher) -> Teacher:
        if self.method.teacher == "first":
            return teacher
        if self.method.teacher == "latest":
            return student
        return Teacher.where(beats(student.validation, teacher.validation), student, teacher)

    def _notify(self, state: State) -> None:
        for observer in self.observers:
            observer(state)


def _sound(model: Teacher, prediction: Prediction) -> Tensor:
    """Runs whose model had a finite loss and has finite logits for every node: bool [R]."""
    return model.sound & prediction.logits.isfinite().flatten(1).all(1)


def _indices(mask: Tensor) -> tuple[int, ...]:
    return tuple(mask.nonzero().squeeze(1).tolist())


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Store how many seconds the block took as `seconds[stage]`."""
    begin = time.perf_counter()
    yield
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    seconds[stage] = time.perf_counter() - begin
