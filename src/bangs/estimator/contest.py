"""Contest: candidates fitted one after the other, and averaged as far as unseen labels cannot tell them apart."""

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
from bangs.estimator.folds import Folds, judged_labels, label_logs
from bangs.estimator.keeper import Keeper
from bangs.estimator.members import FoldRecorder, Member, View
from bangs.estimator.stacking import (
    common_factor,
    far_behind,
    mean_interval,
    member_temperatures,
    mixed,
    share_interval,
    stack,
)
from bangs.graphs.store import StoreReference
from bangs.selftraining.loop import Observer, SelfTrainer, State

MISSED = 0.75  # labels a class
NEURAL = 0.5  # share of a time limit after which no neural network is begun, since its first round may take long


@dataclass(frozen=True)
class Tried:
    """What is reported while candidates are tried."""

    name: str
    number: int
    count: int
    leader: str  # who is ahead; "" = nobody yet
    accuracy: float  # of the leader, on unseen labels
    seconds: float


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Members and their weights, as one."""

    members: list[Member]  # those with a weight, the heaviest first
    weights: Tensor  # float64 [K]
    temperatures: Tensor  # float64 [K], of what members say of nodes they have not learned
    sharper: float = 1.0  # a factor of these for what all models of a member say together
    board: list[dict[str, Any]] = field(default_factory=list)  # every candidate tried, the best first

    @property
    def leader(self) -> Member:
        return self.members[0]

    @property
    def mean(self) -> Tensor:
        """Log-probabilities float [N, C]."""
        scales = (self.temperatures * self.sharper).tolist()
        return mixed([own.mean / scale for own, scale in zip(self.members, scales, strict=True)], self.weights)

    @property
    def unseen(self) -> Tensor:
        """Log-probabilities of judged nodes float [M, C], by models that have not learned them."""
        scales = self.temperatures.tolist()
        return mixed([own.unseen / scale for own, scale in zip(self.members, scales, strict=True)], self.weights)


class _Stopped(Exception):
    """The end of a candidate before its last round."""

    def __init__(self, state: State, standing: str):
        super().__init__(standing)
        self.state, self.standing = state, standing


@dataclass(frozen=True, eq=False)
class Contest:
    """Fits candidates in their order, within a time limit, and averages them."""

    folds: Folds
    labels: Tensor  # long [N], all labels that may be learned from
    tasks: Mapping[View, Task]
    seeds: Sequence[int]
    calibrate: Calibrator
    where: StoreReference | None = None
    limit: float | None = None  # seconds; the first candidate is always fitted
    tell: Callable[[Tried], None] | None = None
    refine: Callable[[Sequence[Candidate]], list[Candidate]] | None = None  # what else to try, given the best first

    def __call__(self, candidates: Sequence[Candidate], observers: Sequence[Observer], keep: Keeper | None) -> Ensemble:
        began = time.perf_counter()
        members: list[Member] = []
        standings: list[str] = []
        queue, tried, refine = list(candidates), list[Candidate](), self.refine if self.folds.judged else None
        later = 0 if refine is None else len(refine([own for own in queue if own.cheap]))  # as many, whoever is ahead
        while queue:
            candidate, number = queue.pop(0), len(tried)
            spent = time.perf_counter() - began
            if members and self.limit is not None and spent > self.limit * (1 if candidate.cheap else NEURAL):
                break
            if self.tell is not None:
                leader = self._leader(members)
                accuracy = float(self._right(leader).double().mean()) if leader is not None else 0.0
                name = "" if leader is None else leader.name
                self.tell(Tried(candidate.name, number + 1, number + 1 + len(queue) + later, name, accuracy, spent))
            found = None if keep is None else keep.finished(candidate)
            if found is None:
                try:
                    found = self._fit(candidate, members, observers, keep, began)
                    if keep is not None and len(candidates) > 1:
                        keep.done(candidate, *found)
                except Diverged:
                    if not members and not queue:
                        raise
            if found is not None:
                tried.append(candidate)
                members.append(found[0])
                standings.append(found[1])
            if refine is not None and tried and candidate.cheap and not any(own.cheap for own in queue):
                ranked = sorted(range(len(tried)), key=lambda own: -float(self._likely(members[own].unseen).mean()))
                queue, refine, later = refine([tried[own] for own in ranked]) + queue, None, 0
        return self._averaged(members, standings)

    def _fit(
        self,
        candidate: Candidate,
        members: Sequence[Member],
        observers: Sequence[Observer],
        keep: Keeper | None,
        began: float,
    ) -> tuple[Member, str]:
        task, start = self.tasks[candidate.view], time.perf_counter()
        rule = "likelihood" if self.folds.runs > 1 else "accuracy"
        recorder = FoldRecorder(self.labels, self.calibrate, rule, self.where)  # type: ignore[arg-type]
        leader = self._leader(members)
        resume = None if keep is None or candidate.cheap else keep.resume(candidate, task, recorder)

        def write(state: State) -> None:
            if keep is not None and not candidate.cheap:
                keep.keep(candidate, state, recorder)

        def stop(state: State) -> None:
            if leader is not None and not candidate.cheap and self.folds.judged:
                if far_behind(self._likely(recorder.unseen), self._likely(leader.unseen)):
                    raise _Stopped(state, "behind")
                if self.limit is not None and time.perf_counter() - began > self.limit:
                    raise _Stopped(state, "time")

        everyone = (recorder, write, *observers, stop)
        standing = "whole"
        try:
            state = SelfTrainer(candidate.trainer, candidate.method, everyone).fit(task, self.seeds, resume)  # type: ignore[arg-type]
        except _Stopped as stopped:
            state, standing = stopped.state, stopped.standing
        seconds = time.perf_counter() - start
        return recorder.member(candidate.name, candidate.view, candidate.trainer.model, state, seconds), standing

    def _averaged(self, members: list[Member], standings: list[str]) -> Ensemble:
        count = len(members)
        scales, sharper = torch.ones(count, dtype=torch.float64), 1.0
        weights = scales / count
        if self.folds.judged and count > 1:
            unseen, label = [own.unseen for own in members], self._judged
            scales, sharper = member_temperatures(unseen, label), self._sharper()
            scaled = [own / scale for own, scale in zip(unseen, scales.tolist(), strict=True)]
            whole = [own for own in range(count) if standings[own] != "behind"]  # who was stopped gets no weight
            likely = torch.stack([self._likely(scaled[own]) for own in whole]).exp()
            weights = torch.zeros_like(scales).index_copy(0, torch.tensor(whole), stack(likely))
            scales = scales * common_factor(scaled, weights, label)
        order = sorted(range(count), key=lambda own: -float(weights[own]))
        board = [self._line(members[own], float(weights[own]), float(scales[own]), standings[own]) for own in order]
        kept = [own for own in order if weights[own] > 0]
        return Ensemble([members[own] for own in kept], weights[kept], scales[kept], sharper, board)

    def _sharper(self) -> float:
        """How much sharper the mean of all folds may be than models that have not learned a node: 1 − 0.75/m.

        With m labels a class a fold's model misses a quarter of them, and it stands alone.
        """
        return 1 - MISSED / (len(self._judged) / len(self._judged.unique())) if self.folds.runs > 1 else 1.0

    def _line(self, member: Member, weight: float, scale: float, standing: str) -> dict[str, Any]:
        model, method, view = [*member.name.split(" · "), "", ""][:3]
        score = {}
        if self.folds.judged:
            score = {
                "accuracy": share_interval(self._right(member)),
                "log_likelihood": mean_interval(self._likely(member.unseen / scale)),
            }
        return {
            "model": model,
            "method": method,
            "features": view,
            "weight": round(weight, 6),
            **score,
            "temperature": round(scale, 4),
            "round": member.chosen,
            "standing": standing,
            "seconds": round(member.seconds, 3),
        }

    def _leader(self, members: Sequence[Member]) -> Member | None:
        return max(members, key=lambda own: float(self._likely(own.unseen).mean()), default=None)

    def _likely(self, logs: Tensor) -> Tensor:
        """The log-probabilities of the judged nodes' labels: float64 [M]."""
        return label_logs(logs, self._judged)

    def _right(self, member: Member) -> Tensor:
        return member.unseen.argmax(-1) == self._judged

    @property
    def _judged(self) -> Tensor:
        return judged_labels(self.folds.held)
