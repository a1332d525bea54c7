"""Recorder: an observer that remembers of one run what a snapshot needs."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bangs.calibration.calibrators import Calibrator
from bangs.core import part_checks
from bangs.core.types import Task
from bangs.errors import InvalidInput
from bangs.graphs.edges import EdgeList
from bangs.runs.candidate_log import CandidateLog
from bangs.runs.history import row
from bangs.runs.snapshot import Snapshot
from bangs.selftraining.best_round import Merit
from bangs.selftraining.loop import State


@dataclass(frozen=True, eq=False)
class _Chosen:
    """What the best round so far predicted and learned from; on the CPU."""

    round: int
    merit: Merit
    tensors: dict[str, Tensor]  # by their names in a snapshot


class Recorder:
    """Observes an experiment and keeps what a snapshot of its first run needs."""

    def __init__(self, calibrate: Calibrator):
        self.calibrate = calibrate
        self.rows: list[dict[str, Any]] = []
        self._task: Task | None = None
        self._labels: list[Tensor] = []
        self._confidences: list[Tensor] = []
        self._candidate_logs: list[CandidateLog] = []
        self._chosen: _Chosen | None = None

    def __call__(self, state: State) -> None:
        self._task = task = state.student.learner.task
        calibrated = part_checks.check_calibrated(self.calibrate(state.prediction, task), state.prediction)
        self.rows.append(row(state))
        self._labels.append(state.prediction.label[0].cpu())
        self._confidences.append(calibrated.confidence[0].cpu())
        self._candidate_logs.append(CandidateLog.of(state, 0))
        merit = Merit(float(state.validation[0]))
        if self._chosen is None or merit.beats(self._chosen.merit):
            labels = state.labels
            found = {
                "target": labels.target[0],
                "adopted_round": labels.adopted_round[0],
                "raw": state.prediction.logits[0],
                "calibrated": calibrated.logits[0],
                "belief": None if labels.belief is None else labels.belief[0],
                "weight": None if bool((labels.weight[0][labels.known[0]] == 1).all()) else labels.weight[0],
            }
            kept = {name: value.cpu() for name, value in found.items() if value is not None}
            self._chosen = _Chosen(state.index, merit, kept)

    @property
    def complete(self) -> bool:
        """Whether it has seen every round from the first on, as it has not where a run was resumed without it."""
        return bool(self.rows) and [row["round"] for row in self.rows] == list(range(len(self.rows)))

    def snapshot(self) -> Snapshot:
        """The run as far as it was seen."""
        task, chosen = self._task, self._chosen
        if task is None or chosen is None:
            raise InvalidInput("the recorder has seen no round yet; give it to SelfTrainer as an observer")
        weight = task.graph.get("edge_weight")
        return Snapshot(
            graph=EdgeList(task.graph.edge_index.cpu(), task.nodes, None if weight is None else weight.cpu()),
            given=task.given.target[0].cpu(),
            held=task.validation[0].cpu(),
            **chosen.tensors,
            said=torch.stack(self._labels),
            sure=torch.stack(self._confidences),
            candidate_log=CandidateLog.joined(self._candidate_logs),
            chosen=chosen.round,
            rows=self.rows,
        )
