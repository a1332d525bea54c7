"""Snapshot: what one run of self-training leaves for those who ask it questions later."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs import metrics
from bangs.errors import InvalidInput
from bangs.history import row
from bangs.learners.calibration import Calibrator
from bangs.learners.training import Teacher
from bangs.loop import State
from bangs.types import Labels, Prediction, Task

LEDGER = 2000  # scored nodes kept per round, the best


@dataclass(frozen=True, eq=False)
class Ledger:
    """Every node that was scored in some round, in the order of rounds and scores; taken or not. Length M."""

    round: Tensor  # long
    node: Tensor  # long
    taken: Tensor  # bool, whether it got a pseudo-label
    label: Tensor  # long, the teacher's
    raw_confidence: Tensor  # float
    confidence: Tensor  # float, calibrated
    score: Tensor  # float
    stderr: Tensor  # float, NaN where the score was not estimated

    @classmethod
    def of(cls, state: State, run: int) -> "Ledger":
        """The scored nodes of a round; at most the best 2,000 beside those that were taken."""
        facts = state.adoption
        if facts is None:
            empty = torch.zeros(0)
            return cls(*(empty.to(kind) for kind in _LEDGER_TYPES))
        score = facts.ranking.score[run]
        best = score.argsort(descending=True, stable=True)
        rank = torch.empty_like(best).scatter(0, best, torch.arange(len(best), device=best.device))
        kept = (score > float("-inf")) & ((rank < LEDGER) | facts.chosen[run])
        nodes = best[kept[best]]
        stderr = facts.ranking.stderr
        columns = (
            torch.full_like(nodes, state.index),
            nodes,
            facts.chosen[run, nodes],
            facts.label[run, nodes],
            facts.raw_confidence[run, nodes],
            facts.confidence[run, nodes],
            score[nodes],
            torch.full_like(score[nodes], float("nan")) if stderr is None else stderr[run, nodes],
        )
        return cls(*(column.cpu().to(kind) for column, kind in zip(columns, _LEDGER_TYPES, strict=True)))

    @classmethod
    def joined(cls, parts: "list[Ledger]") -> "Ledger":
        """One ledger after the other."""
        return cls(*(torch.cat([getattr(part, own.name) for part in parts]) for own in fields(cls)))

    def where(self, mask: Tensor) -> "Ledger":
        """The lines where mask [M] is true."""
        return Ledger(*(getattr(self, own.name)[mask] for own in fields(self)))

    def __len__(self) -> int:
        return len(self.round)


_LEDGER_TYPES = (
    torch.long,
    torch.long,
    torch.bool,
    torch.long,
    torch.float32,
    torch.float32,
    torch.float32,
    torch.float32,
)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One run seen from its end: N nodes, C classes, T rounds counting round 0; everything on the CPU.

    The chosen round is the one with the best validation accuracy; its student gave `raw` and learned from `target`.
    """

    edge_index: Tensor  # long [2, E]
    edge_weight: Tensor | None  # float [E]
    given: Tensor  # long [N], labels to learn from, -1 = none
    held: Tensor  # long [N], labels held for validation, -1 = none
    target: Tensor  # long [N], given labels and pseudo-labels the chosen student learned from, -1 = none
    born: Tensor  # long [N], 0 = given, t = adopted in round t, -1 = none
    raw: Tensor  # float [N, C], the chosen student's logits
    calibrated: Tensor  # float [N, C]
    said: Tensor  # long [T, N], the label each round's student gives
    sure: Tensor  # float [T, N], its calibrated confidence
    ledger: Ledger
    chosen: int
    rows: list[dict[str, Any]]  # of `history`

    @property
    def nodes(self) -> int:
        return len(self.given)

    @property
    def classes(self) -> int:
        return self.raw.shape[1]

    @cached_property
    def graph(self) -> Data:
        """The graph without features."""
        graph = Data(edge_index=self.edge_index, num_nodes=self.nodes)
        if self.edge_weight is not None:
            graph.edge_weight = self.edge_weight
        return graph

    @property
    def task(self) -> Task:
        """What a calibrator may see of the run: edges, given labels, validation labels."""
        return Task(self.graph, Labels.given(self.given[None]), self.held[None], self.classes)

    @cached_property
    def probs(self) -> Tensor:
        """Calibrated probabilities: float [N, C]."""
        return self.calibrated.softmax(-1)

    def recalibrated(self, calibrate: Calibrator) -> "Snapshot":
        """The same run under another calibrator."""
        return replace(self, calibrated=calibrate(Prediction(self.raw[None]), self.task).logits[0])

    def to_plain(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Named tensors and JSON-able facts, for `from_plain`."""
        tensors = {name: getattr(self, name) for name in _TENSORS if getattr(self, name) is not None}
        tensors |= {f"ledger.{own.name}": getattr(self.ledger, own.name) for own in fields(self.ledger)}
        return tensors, {"chosen": self.chosen, "rows": self.rows}

    @classmethod
    def from_plain(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> "Snapshot":
        """The snapshot that `to_plain` described; names, shapes and ranges are checked."""
        try:
            ledger = Ledger(*(tensors[f"ledger.{own.name}"] for own in fields(Ledger)))
            parts = {name: tensors[name] for name in _TENSORS if name != "edge_weight"}
            found = cls(
                edge_weight=tensors.get("edge_weight"),
                ledger=ledger,
                chosen=facts["chosen"],
                rows=facts["rows"],
                **parts,
            )
        except KeyError as error:
            raise InvalidInput(f"the saved run holds no '{error.args[0]}'; it was not written by bangs") from error
        found._check()
        return found

    def _check(self) -> None:
        """Raises where parts of a file from outside do not fit each other."""
        nodes, rounds = self.given.shape[0], self.said.shape[0]
        classes = self.raw.shape[-1]
        shapes = {
            **dict.fromkeys(("given", "held", "target", "born"), (nodes,)),
            **dict.fromkeys(("raw", "calibrated"), (nodes, classes)),
            **dict.fromkeys(("said", "sure"), (rounds, nodes)),
            "edge_index": (2, self.edge_index.shape[-1]),
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise InvalidInput(
                    f"'{name}' of the saved run must have shape {list(shape)}, got {list(getattr(self, name).shape)}"
                )
        within = {
            "edge_index": (self.edge_index, 0, nodes),
            "given": (self.given, -1, classes),
            "held": (self.held, -1, classes),
            "target": (self.target, -1, classes),
            "born": (self.born, -1, rounds),
            "said": (self.said, 0, classes),
            "ledger.node": (self.ledger.node, 0, nodes),
            "ledger.label": (self.ledger.label, 0, classes),
            "ledger.round": (self.ledger.round, 1, rounds),
        }
        for name, (value, low, high) in within.items():
            if value.is_floating_point() or (value.numel() and not (value.min() >= low and value.max() < high)):
                raise InvalidInput(f"'{name}' of the saved run must hold whole numbers from {low} to {high - 1}")
        lengths = {len(getattr(self.ledger, own.name)) for own in fields(self.ledger)}
        if len(lengths) > 1:
            raise InvalidInput(f"the columns of the saved ledger must be equally long, got {sorted(lengths)}")
        if type(self.chosen) is not int or not 0 <= self.chosen < rounds or not isinstance(self.rows, list):
            raise InvalidInput("the chosen round of the saved run must be one of its rounds")


_TENSORS = tuple(own.name for own in fields(Snapshot) if own.name not in ("ledger", "chosen", "rows"))


class Recorder:
    """Observes a run and keeps what a snapshot needs, the chosen student's weights among it.

    The chosen round has the best validation accuracy. Between equal accuracies the lower validation loss after
    calibration wins if `ties = "loss"`, as it does between the epochs of a fit, and the earlier round otherwise.
    """

    def __init__(self, calibrate: Calibrator, run: int = 0, ties: Literal["loss", "earliest"] = "loss"):
        self.calibrate, self.run, self.ties = calibrate, run, ties
        self.rows: list[dict[str, Any]] = []
        self._said: list[Tensor] = []
        self._sure: list[Tensor] = []
        self._ledgers: list[Ledger] = []
        self._best: tuple[float, float] | None = None
        self._chosen = 0
        self._kept: tuple[Teacher, Labels, Tensor, Tensor] | None = None

    def __call__(self, state: State) -> None:
        run, task = self.run, state.student.learner.task
        calibrated = self.calibrate(state.prediction, task)
        self.rows.append(row(state))
        self._said.append(state.prediction.label[run].cpu())
        self._sure.append(calibrated.confidence[run].cpu())
        self._ledgers.append(Ledger.of(state, run))
        loss = float(metrics.negative_log_likelihood(calibrated, task.validation)[run]) if self.ties == "loss" else 0.0
        merit = (float(state.validation[run]), -loss)
        if self._best is None or merit > self._best:
            self._best, self._chosen = merit, state.index
            self._kept = state.student, state.labels, state.prediction.logits[run].cpu(), calibrated.logits[run].cpu()

    @property
    def complete(self) -> bool:
        """Whether it has seen every round from the first on, as it has not where a run was resumed."""
        return bool(self.rows) and [row["round"] for row in self.rows] == list(range(len(self.rows)))

    @property
    def weights(self) -> dict[str, Tensor]:
        """The chosen student's weights, each [1, …]."""
        return {name: value[[self.run]].cpu() for name, value in self._best_so_far()[0].weights.items()}

    def snapshot(self) -> Snapshot:
        """The run as it stands."""
        student, labels, raw, calibrated = self._best_so_far()
        task = student.learner.task
        weight = task.graph.get("edge_weight")
        run = self.run
        return Snapshot(
            edge_index=task.graph.edge_index.cpu(),
            edge_weight=None if weight is None else weight.cpu(),
            given=task.given.target[run].cpu(),
            held=task.validation[run].cpu(),
            target=labels.target[run].cpu(),
            born=labels.born[run].cpu(),
            raw=raw,
            calibrated=calibrated,
            said=torch.stack(self._said),
            sure=torch.stack(self._sure),
            ledger=Ledger.joined(self._ledgers),
            chosen=self._chosen,
            rows=self.rows,
        )

    def _best_so_far(self) -> tuple[Teacher, Labels, Tensor, Tensor]:
        if self._kept is None:
            raise InvalidInput("the recorder has seen no round yet; give it to SelfTrainer as an observer")
        return self._kept
