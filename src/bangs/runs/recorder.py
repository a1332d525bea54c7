"""Recorder: an observer that remembers of a run what a snapshot needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from bangs.calibration.calibrators import Calibrator
from bangs.core import metrics, part_checks
from bangs.core.types import Prediction, Task
from bangs.errors import InvalidInput
from bangs.graphs.edges import EdgeList
from bangs.graphs.store import StoreReference
from bangs.runs.candidate_log import CandidateLog, bare
from bangs.runs.history import is_row, row
from bangs.runs.snapshot import Snapshot
from bangs.selftraining.loop import State

_WEIGHTS = "weights."


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The student with the best validation score so far; on the CPU."""

    round: int
    merit: tuple[float, float]
    weights: dict[str, Tensor]  # each [1, …]
    target: Tensor  # long [N]
    adopted_round: Tensor  # long [N]
    raw: Tensor  # float [N, C]
    calibrated: Tensor  # float [N, C]
    belief: Tensor | None  # float [N, C], the soft labels; None = all are hard
    weight: Tensor | None  # float [N], of every label in the loss; None = all count alike

    def tensors(self) -> dict[str, Tensor]:
        """Its tensors by name, without the weights of the network."""
        found = {name: getattr(self, name) for name in (*_TENSORS, *_OPTIONAL)}
        return {name: value for name, value in found.items() if value is not None}


class Recorder:
    """Observes a run and keeps what a snapshot needs, the chosen student's weights among it.

    The chosen round has the best validation accuracy. Between equal accuracies the lower validation loss after
    calibration wins if `ties = "loss"`, as it does between the epochs of a fit, and the earlier round otherwise.

    `where` says where the graph lies, if it stays on the disk; of every round it then keeps three bytes a node.
    """

    def __init__(
        self,
        calibrate: Calibrator,
        run: int = 0,
        ties: Literal["loss", "earliest"] = "loss",
        where: StoreReference | None = None,
    ):
        self.calibrate, self.run, self.ties, self.where = calibrate, run, ties, where
        self.rows: list[dict[str, Any]] = []
        self._task: Task | None = None
        self._said: list[Tensor] = []
        self._sure: list[Tensor] = []
        self._candidate_logs: list[CandidateLog] = []
        self._chosen: _Chosen | None = None

    def __call__(self, state: State) -> None:
        run = self.run
        self._task = task = state.student.learner.task
        calibrated = part_checks.check_calibrated(self.calibrate(state.prediction, task), state.prediction)
        self.rows.append(row(state))
        said, sure = state.prediction.label[run].cpu(), calibrated.confidence[run].cpu()
        if self.where is not None:
            said, sure = said.to(torch.uint8 if task.classes <= 256 else torch.int32), sure.half()
        self._said.append(said)
        self._sure.append(sure)
        self._candidate_logs.append(CandidateLog.of(state, run))
        merit = (float(state.validation[run]), -self._loss(calibrated, task))
        if self._chosen is None or merit > self._chosen.merit:
            self._chosen = _Chosen(
                state.index,
                merit,
                {name: value[[run]].cpu() for name, value in state.student.weights.items()},
                state.labels.target[run].cpu(),
                state.labels.adopted_round[run].cpu(),
                state.prediction.logits[run].cpu(),
                calibrated.logits[run].cpu(),
                None if state.labels.belief is None else state.labels.belief[run].cpu(),
                _weight(state, run),
            )

    @property
    def complete(self) -> bool:
        """Whether it has seen every round from the first on, as it has not where a run was resumed without it."""
        return bool(self.rows) and [row["round"] for row in self.rows] == list(range(len(self.rows)))

    @property
    def weights(self) -> dict[str, Tensor]:
        """The chosen student's weights, each [1, …]."""
        return self._seen()[1].weights

    def snapshot(self) -> Snapshot:
        """The run as it stands."""
        task, chosen = self._seen()
        return Snapshot(
            graph=_edges(task) if self.where is None else self.where,
            given=task.given.target[self.run].cpu(),
            held=task.validation[self.run].cpu(),
            **chosen.tensors(),
            said=torch.stack(self._said),
            sure=torch.stack(self._sure),
            candidate_log=CandidateLog.joined(self._candidate_logs),
            chosen=chosen.round,
            rows=self.rows,
        )

    def to_plain(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All it remembers as named tensors and JSON-able facts, for `recall`."""
        _, chosen = self._seen()
        tensors = {"said": torch.stack(self._said), "sure": torch.stack(self._sure)}
        tensors |= chosen.tensors()
        tensors |= {f"{_WEIGHTS}{name}": value for name, value in chosen.weights.items()}
        tensors |= CandidateLog.joined(self._candidate_logs).to_plain()
        return tensors, {"rows": bare(self.rows), "chosen": chosen.round, "merit": list(chosen.merit)}

    def recall(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], task: Task) -> None:
        """Remember what `to_plain` told of the first rounds of a run on this task."""
        rounds, nodes = tensors["said"].shape
        if nodes != task.nodes or len(facts["rows"]) != rounds:
            raise InvalidInput(f"the record holds {rounds} rounds of {nodes} nodes, the task has {task.nodes}")
        if not all(map(is_row, facts["rows"])):
            raise InvalidInput("the record's rows are not those of a history")
        candidate_log = CandidateLog.from_plain(tensors)
        self.rows, self._task, self._candidate_logs = candidate_log.dress(facts["rows"]), task, [candidate_log]
        self._said, self._sure = list(tensors["said"]), list(tensors["sure"])
        accuracy, loss = (float(part) for part in facts["merit"])
        self._chosen = _Chosen(
            facts["chosen"],
            (accuracy, loss),
            {name.removeprefix(_WEIGHTS): value for name, value in tensors.items() if name.startswith(_WEIGHTS)},
            *(tensors[name] for name in _TENSORS),
            *(tensors.get(name) for name in _OPTIONAL),
        )

    def _loss(self, calibrated: Prediction, task: Task) -> float:
        """What decides between rounds of equal accuracy."""
        if self.ties == "earliest":
            return 0.0
        held = task.held[self.run]
        said = Prediction(calibrated.logits[self.run : self.run + 1, held])
        return float(metrics.negative_log_likelihood(said, task.validation[self.run : self.run + 1, held]))

    def _seen(self) -> tuple[Task, _Chosen]:
        if self._task is None or self._chosen is None:
            raise InvalidInput("the recorder has seen no round yet; give it to SelfTrainer as an observer")
        return self._task, self._chosen


def _weight(state: State, run: int) -> Tensor | None:
    """The weight of every label in the student's loss: float [N]; None where all count alike."""
    labels = state.labels
    weight = labels.weight[run].cpu()
    return None if bool((weight[labels.known[run].cpu()] == 1).all()) else weight


def _edges(task: Task) -> EdgeList:
    """The graph without features, on the CPU."""
    weight = task.graph.get("edge_weight")
    return EdgeList(task.graph.edge_index.cpu(), task.nodes, None if weight is None else weight.cpu())


_TENSORS = ("target", "adopted_round", "raw", "calibrated")
_OPTIONAL = ("belief", "weight")
