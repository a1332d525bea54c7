"""Members: models of one kind, one for each fold, and what they say of nodes they have not learned."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import torch
from torch import Tensor

from bangs.calibration.calibrators import Calibrator
from bangs.core import part_checks
from bangs.core.types import Labels, Prediction, Task, one_hot
from bangs.estimator.folds import held_out_labels, label_log_probs, mean_of_runs, unseen
from bangs.graphs.store import StoreReference
from bangs.nn.models import Architecture
from bangs.runs.candidate_log import CandidateLog
from bangs.runs.history import is_row, row, with_adopted, without_adopted
from bangs.selftraining.best_round import Merit, clearly_behind
from bangs.selftraining.loop import State

View = Literal["features", "structure", "both"]

_WEIGHTS = "weights."


@dataclass(frozen=True, eq=False)
class Member:
    """R models of one kind as their chosen round left them; N nodes, M of them judged, T rounds; on the CPU."""

    name: str
    view: View  # what the models see of a node
    architecture: Architecture
    weights: dict[str, Tensor]  # each [R, …], or [1, …] where the runs share it
    mean: Tensor  # float [N, C], log of the mean of the models' probabilities
    unseen: Tensor  # float [M, C], the same over models that have not learned the node
    target: Tensor  # long [N], all given labels, and pseudo-labels of the first model
    adopted_round: Tensor  # long [N]
    round_labels: Tensor  # long [T, N], the label each round's models give
    round_confidence: Tensor  # float [T, N], their calibrated confidence
    candidate_log: CandidateLog  # of the first model
    chosen: int
    rows: list[dict[str, Any]]
    ended: str
    seconds: float
    belief: Tensor | None = None  # float [N, C], soft labels of the first model; None = all are hard
    weight: Tensor | None = None  # float [N], of every label in its loss; None = all count alike

    def to_plain(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Named tensors and JSON-able facts, for `from_plain`."""
        named = {name: getattr(self, name) for name in (*_TENSORS, *_OPTIONAL)}
        tensors = {name: part for name, part in named.items() if part is not None} | self.candidate_log.to_plain()
        tensors |= {f"{_WEIGHTS}{name}": value for name, value in self.weights.items()}
        return tensors, {
            "name": self.name,
            "view": self.view,
            "chosen": self.chosen,
            "rows": without_adopted(self.rows),
            "ended": self.ended,
            "seconds": self.seconds,
        }

    @classmethod
    def from_plain(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], model: Architecture) -> "Member":
        """The member that `to_plain` told, of an architecture that is known."""
        log = CandidateLog.from_plain(tensors)
        weights = {name.removeprefix(_WEIGHTS): t for name, t in tensors.items() if name.startswith(_WEIGHTS)}
        told: dict[str, Any] = {name: facts[name] for name in ("name", "view", "chosen", "ended", "seconds")}
        parts: dict[str, Any] = {name: tensors[name] for name in _TENSORS}
        parts |= {name: tensors[name] for name in _OPTIONAL if name in tensors}
        return cls(
            architecture=model,
            weights=weights,
            candidate_log=log,
            rows=with_adopted(facts["rows"], log),
            **told,
            **parts,
        )


class FoldRecorder:
    """Observes the rounds of R runs on one graph and keeps what a `Member` needs.

    The chosen round by `rule`:
    "accuracy": the best accuracy on judged nodes, between equals the higher likelihood.
    "likelihood": the last round that is not clearly behind the best so far: behind by less than one standard error of
    the mean difference between the log-probabilities they give to the judged nodes' labels. With few labels the best
    of all rounds is mostly luck.
    """

    def __init__(
        self,
        labels: Tensor,
        calibrate: Calibrator,
        rule: Literal["accuracy", "likelihood"],
        where: StoreReference | None = None,
    ):
        self.labels, self.calibrate, self.rule, self.where = labels.cpu(), calibrate, rule, where
        self.rows: list[dict[str, Any]] = []
        self._labels: list[Tensor] = []
        self._confidence: list[Tensor] = []
        self._logs: list[CandidateLog] = []
        self._round = -1  # the chosen one
        self._chosen: dict[str, Tensor] = {}  # its tensors by their names in a `Member`, and its weights; on the CPU
        self._best: Tensor | None = None  # float64 [M], log-probabilities of the labels in the best round so far
        self._merit = Merit(-1.0)

    def __call__(self, state: State) -> None:
        task = state.student.learner.task
        mean = mean_of_runs(state.prediction)
        told = unseen(state.prediction, task.validation)
        label = held_out_labels(task.validation)
        likely = label_log_probs(told.logits[0], label).cpu()
        accuracy = float((told.label[0] == label).double().mean())
        self.rows.append(_row(state, accuracy))
        self._remember(mean, told, task)
        self._logs.append(CandidateLog.of(state, 0))
        if self._counts(accuracy, likely):
            labelled = self.labels >= 0
            first = state.labels.only([0]).to("cpu")
            self._round = state.index
            self._chosen = {
                "mean": mean.logits[0].cpu(),
                "unseen": told.logits[0].cpu(),
                "target": torch.where(labelled, self.labels, first.target[0]),
                "adopted_round": torch.where(labelled, 0, first.adopted_round[0]),
                **{f"{_WEIGHTS}{name}": value.cpu() for name, value in state.student.weights.items()},
            }
            if first.belief is not None:
                hard = one_hot(self.labels, task.classes)
                self._chosen["belief"] = torch.where(labelled[:, None], hard, first.belief[0])
            if not bool((first.weight[first.known] == 1).all()):
                self._chosen["weight"] = first.weight[0]

    @property
    def unseen(self) -> Tensor:
        """What the chosen round says of judged nodes: float [M, C]."""
        return self._chosen["unseen"]

    def member(self, name: str, view: View, model: Architecture, state: State, seconds: float) -> Member:
        """The models of the chosen round; `state` is that of the last one."""
        tensors, facts = self.to_plain()
        shared = getattr(state.student.learner, "shared", {})
        tensors = {f"{_WEIGHTS}{name}": value.cpu() for name, value in shared.items()} | tensors
        facts |= {"name": name, "view": view, "ended": _ended(state), "seconds": seconds}
        return Member.from_plain(tensors, facts, model)

    def to_plain(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All it remembers as named tensors and JSON-able facts, for `recall`."""
        tensors = {
            "round_labels": torch.stack(self._labels),
            "round_confidence": torch.stack(self._confidence),
            **self._chosen,
        }
        tensors |= CandidateLog.joined(self._logs).to_plain()
        if self._best is not None:
            tensors["best"] = self._best
        return tensors, {"rows": without_adopted(self.rows), "chosen": self._round, "merit": asdict(self._merit)}

    def recall(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], task: Task) -> None:
        """Remember what `to_plain` told of the first rounds of the same runs."""
        rounds, nodes = tensors["round_labels"].shape
        if nodes != task.nodes or len(facts["rows"]) != rounds or not all(map(is_row, facts["rows"])):
            raise ValueError(f"the record holds {rounds} rounds of {nodes} nodes, the task has {task.nodes}")
        log = CandidateLog.from_plain(tensors)
        self.rows, self._logs = with_adopted(facts["rows"], log), [log]
        self._labels, self._confidence = list(tensors["round_labels"]), list(tensors["round_confidence"])
        self._best = tensors.get("best")
        self._merit = Merit(**{name: float(part) for name, part in facts["merit"].items()})
        others = {name: t for name, t in tensors.items() if name in _OPTIONAL or name.startswith(_WEIGHTS)}
        self._round, self._chosen = int(facts["chosen"]), {name: tensors[name] for name in _CHOSEN} | others

    def _remember(self, mean: Prediction, told: Prediction, task: Task) -> None:
        """The label of every node and its calibrated confidence, of judged nodes as unseen."""
        labels = mean.label[0].cpu()
        confidence = calibrated_together(mean, told, task, self.calibrate).confidence[0].cpu()
        if self.where is not None:  # of a graph on disk three bytes a node
            labels, confidence = labels.to(torch.uint8 if task.classes <= 256 else torch.int32), confidence.half()
        self._labels.append(labels)
        self._confidence.append(confidence)

    def _counts(self, accuracy: float, likely: Tensor) -> bool:
        """Whether this round is the one to choose so far."""
        if self.rule == "accuracy":
            merit = Merit(accuracy, -float(likely.mean()))
            better = not self._chosen or merit.beats(self._merit)
            self._merit = merit if better else self._merit
            return better
        best = self._best
        if best is None or float((likely - best).mean()) > 0:
            self._best = likely
            return True
        return not clearly_behind(likely, best)


def calibrated_together(mean: Prediction, told: Prediction, task: Task, calibrate: Calibrator) -> Prediction:
    """The mean prediction [1, N, C], calibrated by judged nodes, which count as unseen."""
    judged = task.validation.amax(0, keepdim=True)
    logits = mean.logits
    if task.runs > 1:
        logits = logits.clone()
        logits[0, judged[0] >= 0] = told.logits[0]
    whole = Prediction(logits)
    given = task.given.only([0])
    alone = Task(task.graph, Labels.given(torch.where(judged >= 0, -1, given.target)), judged, task.classes)
    return part_checks.check_calibrated(calibrate(whole, alone), whole)


def _row(state: State, accuracy: float) -> dict[str, Any]:
    """The facts of a round as of one run: accuracy over all folds, labels of the first model."""
    own = row(state)
    first = {name: own[name][:1] for name in ("labelled", "class_counts", "adopted")}
    epochs = [round(sum(own["epochs"]) / len(own["epochs"]))]
    return {**own, **first, "validation": [accuracy], "epochs": epochs, "took_part": [any(own["took_part"])]}


def _ended(state: State) -> str:
    task = state.student.learner.task
    if bool(state.running.any()):
        return "max_iter"
    return "no_change" if bool((~state.labels.known & ~task.held).any()) else "all_labeled"


_TENSORS = tuple(own.name for own in fields(Member) if own.type is Tensor)
_OPTIONAL = ("belief", "weight")
_CHOSEN = ("mean", "unseen", "target", "adopted_round")
