"""CandidateSearch: fits the candidates one after the other, and averages them by their out-of-fold predictions."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from bangs.calibration.calibrators import Calibrator
from bangs.core.types import Task
from bangs.errors import Diverged
from bangs.estimator.candidates import Candidate
from bangs.estimator.fit_checkpoints import FitCheckpoints
from bangs.estimator.folds import Folds, held_out_labels, label_log_probs, label_weights
from bangs.estimator.members import FoldRecorder, Member, View
from bangs.estimator.stacking import (
    common_factor,
    far_behind,
    mean_interval,
    member_temperatures,
    mixture,
    share_interval,
    stacking_weights,
)
from bangs.graphs.store import StoreReference
from bangs.selftraining.loop import Observer, SelfTrainer, State

FOLD_MEAN_CORRECTION = 0.75  # labels per class, see `CandidateSearch._fold_mean_factor`
NEURAL_DEADLINE = 0.5  # share of a time limit after which no neural network starts: its first round may take long


@dataclass(frozen=True)
class Progress:
    """A report before every candidate."""

    name: str
    number: int
    count: int
    leader: str  # the best candidate so far; "" = none yet
    accuracy: float  # of the leader, on held-out labels
    seconds: float


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The weighted average of members."""

    members: list[Member]  # those with a weight, the heaviest first
    weights: Tensor  # float64 [K]
    temperatures: Tensor  # float64 [K], of a member's out-of-fold predictions
    fold_mean_factor: float = 1.0  # times these temperatures, for the mean over all folds of a member
    leaderboard: list[dict[str, Any]] = field(default_factory=list)  # every candidate tried, the heaviest first

    @property
    def heaviest(self) -> Member:
        return self.members[0]

    @property
    def mean(self) -> Tensor:
        """Log-probabilities float [N, C]."""
        temperatures = (self.temperatures * self.fold_mean_factor).tolist()
        return mixture([member.mean / t for member, t in zip(self.members, temperatures, strict=True)], self.weights)

    @property
    def unseen(self) -> Tensor:
        """Out-of-fold log-probabilities of held-out nodes: float [M, C]."""
        temperatures = self.temperatures.tolist()
        return mixture([member.unseen / t for member, t in zip(self.members, temperatures, strict=True)], self.weights)


class _Stopped(Exception):
    """A candidate was stopped before its last round."""

    def __init__(self, state: State, standing: str):
        super().__init__(standing)
        self.state, self.standing = state, standing  # "behind", or "time" for the time limit


@dataclass(frozen=True, eq=False)
class CandidateSearch:
    """Fits candidates in their order, within a time limit, and averages them."""

    folds: Folds
    labels: Tensor  # long [N], all labels that may be learned from
    class_weights: Tensor  # float64 [C], how much a held-out label of each class counts
    tasks: Mapping[View, Task]
    seeds: Sequence[int]
    calibrate: Calibrator
    store_reference: StoreReference | None = None
    time_limit: float | None = None  # seconds; the first candidate is always fitted
    tell: Callable[[Progress], None] | None = None
    refine: Callable[[Sequence[Candidate]], list[Candidate]] | None = None  # what else to try, given the best first

    def __call__(
        self, candidates: Sequence[Candidate], observers: Sequence[Observer], checkpoints: FitCheckpoints | None
    ) -> Ensemble:
        """Fit the candidates in their order, until the time limit, and average them.

        After the last linear one, the refined ones come next. A candidate that diverges is left out.
        """
        start = time.perf_counter()
        members: list[Member] = []
        standings: list[str] = []
        queue, tried, refine = list(candidates), list[Candidate](), self.refine if self.folds.has_held_out else None
        # the number of refined candidates does not depend on which are the best
        to_refine = 0 if refine is None else len(refine([candidate for candidate in queue if candidate.is_linear]))
        while queue:
            candidate, number = queue.pop(0), len(tried) + 1
            seconds = time.perf_counter() - start
            deadline = 1 if candidate.is_linear else NEURAL_DEADLINE
            if members and self.time_limit is not None and seconds > deadline * self.time_limit:
                break
            if self.tell is not None:
                leader = self._leader(members)
                accuracy = float(self._correct(leader).double().mean()) if leader is not None else 0.0
                leader_name = "" if leader is None else leader.name
                count = number + len(queue) + to_refine
                self.tell(Progress(candidate.name, number, count, leader_name, accuracy, seconds))
            fitted = None if checkpoints is None else checkpoints.finished(candidate)
            if fitted is None:
                try:
                    fitted = self._fit(candidate, members, observers, checkpoints, start)
                    if checkpoints is not None and len(candidates) > 1:
                        checkpoints.save_member(candidate, *fitted)
                except Diverged:
                    if not members and not queue:
                        raise
            if fitted is not None:
                tried.append(candidate)
                members.append(fitted[0])
                standings.append(fitted[1])
            if refine is not None and tried and candidate.is_linear and not any(other.is_linear for other in queue):
                ranked = sorted(range(len(tried)), key=lambda i: self._log_likelihood(members[i]), reverse=True)
                queue, refine, to_refine = refine([tried[i] for i in ranked]) + queue, None, 0
        return self._average(members, standings)

    def _fit(
        self,
        candidate: Candidate,
        members: Sequence[Member],
        observers: Sequence[Observer],
        checkpoints: FitCheckpoints | None,
        search_start: float,
    ) -> tuple[Member, str]:
        task, start = self.tasks[candidate.view], time.perf_counter()
        rule = "likelihood" if self.folds.runs > 1 else "accuracy"
        recorder = FoldRecorder(self.labels, self.class_weights, self.calibrate, rule, self.store_reference)  # type: ignore[arg-type]
        leader = self._leader(members)
        resume = None if checkpoints is None or candidate.is_linear else checkpoints.resume(candidate, task, recorder)

        def save_round(state: State) -> None:
            if checkpoints is not None and not candidate.is_linear:
                checkpoints.save_round(candidate, state, recorder)

        def stop(state: State) -> None:
            if leader is not None and not candidate.is_linear and self.folds.has_held_out:
                if far_behind(recorder.unseen, leader.unseen, self._held_out, self._label_weight):
                    raise _Stopped(state, "behind")
                if self.time_limit is not None and time.perf_counter() - search_start > self.time_limit:
                    raise _Stopped(state, "time")

        trainer = SelfTrainer(candidate.trainer, candidate.method, (recorder, save_round, *observers, stop))  # type: ignore[arg-type]
        standing = "whole"
        try:
            state = trainer.fit(task, self.seeds, resume)
        except _Stopped as stopped:
            state, standing = stopped.state, stopped.standing
        seconds = time.perf_counter() - start
        return recorder.member(candidate.name, candidate.view, candidate.trainer.model, state, seconds), standing

    def _average(self, members: list[Member], standings: list[str]) -> Ensemble:
        count = len(members)
        temperatures, fold_mean_factor = torch.ones(count, dtype=torch.float64), 1.0
        weights = temperatures / count
        if self.folds.has_held_out and count > 1:
            unseen, labels = [member.unseen for member in members], self._held_out
            label_weight = self._label_weight
            temperatures = member_temperatures(unseen, labels, label_weight)
            fold_mean_factor = self._fold_mean_factor()
            scaled = [logits / t for logits, t in zip(unseen, temperatures.tolist(), strict=True)]
            eligible = [i for i in range(count) if standings[i] != "behind"]  # one stopped as behind gets no weight
            probs = torch.stack([self._log_probs(scaled[i]) for i in eligible]).exp()
            eligible_weights = stacking_weights(probs, label_weight)
            weights = torch.zeros_like(temperatures).index_copy(0, torch.tensor(eligible), eligible_weights)
            temperatures = temperatures * common_factor(scaled, weights, labels, label_weight)
        order = sorted(range(count), key=lambda i: -float(weights[i]))
        leaderboard = [self._row(members[i], float(weights[i]), float(temperatures[i]), standings[i]) for i in order]
        used = [i for i in order if weights[i] > 0]
        return Ensemble([members[i] for i in used], weights[used], temperatures[used], fold_mean_factor, leaderboard)

    def _fold_mean_factor(self) -> float:
        """How much sharper the mean over all folds may be than out-of-fold predictions: 1 − 0.75/m, for any folds.

        With m labels per class, the model of one fold learns fewer of them, and no other fold supports it.
        """
        if self.folds.runs == 1:
            return 1.0
        return 1 - FOLD_MEAN_CORRECTION / (len(self._held_out) / len(self._held_out.unique()))

    def _row(self, member: Member, weight: float, temperature: float, standing: str) -> dict[str, Any]:
        model, method, view = [*member.name.split(" · "), "", ""][:3]
        score = {}
        if self.folds.has_held_out:
            score = {
                "accuracy": share_interval(self._correct(member)),
                "log_likelihood": mean_interval(self._log_probs(member.unseen / temperature)),
            }
        return {
            "model": model,
            "method": method,
            "features": view,
            "weight": round(weight, 6),
            **score,
            "temperature": round(temperature, 4),
            "round": member.chosen,
            "standing": standing,
            "seconds": round(member.seconds, 3),
        }

    def _leader(self, members: Sequence[Member]) -> Member | None:
        return max(members, key=self._log_likelihood, default=None)

    def _log_likelihood(self, member: Member) -> float:
        """The weighted mean log-probability of the held-out labels."""
        return float((self._log_probs(member.unseen) * self._label_weight).mean())

    def _log_probs(self, logits: Tensor) -> Tensor:
        """The log-probabilities that logits [M, C] give to the held-out labels: float64 [M]."""
        return label_log_probs(logits, self._held_out)

    def _correct(self, member: Member) -> Tensor:
        return member.unseen.argmax(-1) == self._held_out

    @property
    def _held_out(self) -> Tensor:
        """The held-out labels long [M]."""
        return held_out_labels(self.folds.held)

    @property
    def _label_weight(self) -> Tensor:
        """The weights of the held-out labels: float64 [M]."""
        return label_weights(self._held_out, self.class_weights)
