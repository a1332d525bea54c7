"""Members: the models of one candidate, one per fold, with their out-of-fold predictions."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import torch
from torch import Tensor

from bangs.calibration.calibrators import Calibrator
from bangs.core import part_checks
from bangs.core.types import Labels, Prediction, Task, one_hot
from bangs.estimator.folds import held_out_labels, label_log_probs, label_weights, mean_of_runs, unseen_prediction
from bangs.graphs.store import StoreReference
from bangs.nn.models import Architecture
from bangs.runs.checkpoint_content import with_prefix
from bangs.runs.history_rows import is_row, row, with_adopted, without_adopted
from bangs.runs.scored_nodes import ScoredNodes
from bangs.selftraining.best_round import Merit, clearly_behind, leads
from bangs.selftraining.loop import State

View = Literal["features", "structure", "both"]

_WEIGHTS = "weights."


@dataclass(frozen=True, eq=False)
class Member:
    """R models of one candidate after their chosen round; N nodes, M of them held out, T rounds; on the CPU."""

    name: str
    view: View  # what the models see of a node
    architecture: Architecture
    weights: dict[str, Tensor]  # each [R, …], or [1, …] where the runs share it
    mean: Tensor  # float [N, C], log of the mean of the models' probabilities
    unseen: Tensor  # float [M, C], out-of-fold: the same over models that have not learned the node
    target: Tensor  # long [N], all given labels, and pseudo-labels of the first model
    adopted_round: Tensor  # long [N]
    round_labels: Tensor  # long [T, N], the label each round's models give
    round_confidence: Tensor  # float [T, N], their calibrated confidence
    scored_nodes: ScoredNodes  # of the first model
    chosen: int
    rows: list[dict[str, Any]]
    ended: str
    seconds: float
    belief: Tensor | None = None  # float [N, C], soft labels of the first model; None = all are hard
    weight: Tensor | None = None  # float [N], of every label in the loss; None = all are equal

    def to_plain(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors by name and JSON values, for `from_plain`."""
        named = {name: getattr(self, name) for name in (*_TENSORS, *_OPTIONAL)}
        tensors = {name: part for name, part in named.items() if part is not None} | self.scored_nodes.to_plain()
        tensors |= {f"{_WEIGHTS}{name}": value for name, value in self.weights.items()}
        return tensors, {name: getattr(self, name) for name in _FACTS} | {"rows": without_adopted(self.rows)}

    @classmethod
    def from_plain(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], model: Architecture) -> "Member":
        """The member that `to_plain` described, with its architecture."""
        log = ScoredNodes.from_plain(tensors)
        values: dict[str, Any] = {name: facts[name] for name in _FACTS}
        values |= {name: tensors[name] for name in (*_TENSORS, *_OPTIONAL) if name in tensors}
        return cls(
            architecture=model,
            weights=with_prefix(dict(tensors), _WEIGHTS),
            scored_nodes=log,
            rows=with_adopted(facts["rows"], log),
            **values,
        )


class FoldRecorder:
    """An observer that records the rounds of R runs on one graph, for a `Member`.

    `rule` chooses the round:
    "accuracy": the best accuracy on held-out nodes; a tie is broken by the likelihood.
    "likelihood": the last round that is not clearly behind the best so far: the log-probabilities of the held-out
    labels, times their weights, are lower by less than one standard error of the mean difference. With few labels the
    single best round is mostly chance.
    """

    def __init__(
        self,
        labels: Tensor,
        class_weights: Tensor,
        calibrate: Calibrator,
        rule: Literal["accuracy", "likelihood"],
        store_reference: StoreReference | None = None,
    ):
        self.labels, self.class_weights, self.calibrate, self.rule = labels.cpu(), class_weights, calibrate, rule
        self.on_disk = store_reference is not None
        self.rows: list[dict[str, Any]] = []
        self._labels: list[Tensor] = []
        self._confidence: list[Tensor] = []
        self._logs: list[ScoredNodes] = []
        self._round = -1  # the chosen round
        self._chosen: dict[str, Tensor] = {}  # its tensors by their names in a `Member`, and its weights; on the CPU
        self._best: Tensor | None = None  # float64 [M], log-probabilities of held-out labels in the best round so far
        self._merit = Merit(-1.0)

    def __call__(self, state: State) -> None:
        task = state.student.learner.task
        mean = mean_of_runs(state.prediction)
        unseen = unseen_prediction(state.prediction, task.validation)
        held_out = held_out_labels(task.validation)
        log_probs = label_log_probs(unseen.logits[0], held_out).cpu() * label_weights(
            held_out.cpu(), self.class_weights
        )
        accuracy = float((unseen.label[0] == held_out).double().mean())
        self.rows.append(_row(state, accuracy))
        self._record_predictions(mean, unseen, task)
        self._logs.append(ScoredNodes.of(state, 0))
        if self._is_chosen(accuracy, log_probs):
            labelled = self.labels >= 0
            first = state.labels.only([0]).to("cpu")
            self._round = state.index
            self._chosen = {
                "mean": mean.logits[0].cpu(),
                "unseen": unseen.logits[0].cpu(),
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
        """The out-of-fold log-probabilities of the chosen round: float [M, C]."""
        return self._chosen["unseen"]

    def member(self, name: str, view: View, model: Architecture, state: State, seconds: float) -> Member:
        """The models of the chosen round; `state` is that of the last one."""
        tensors, facts = self.to_plain()
        shared = getattr(state.student.learner, "shared", {})
        tensors = {f"{_WEIGHTS}{name}": value.cpu() for name, value in shared.items()} | tensors
        facts |= {"name": name, "view": view, "ended": _ended(state), "seconds": seconds}
        return Member.from_plain(tensors, facts, model)

    def to_plain(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything recorded as tensors by name and JSON values, for `restore`."""
        tensors = {
            "round_labels": torch.stack(self._labels),
            "round_confidence": torch.stack(self._confidence),
            **self._chosen,
        }
        tensors |= ScoredNodes.joined(self._logs).to_plain()
        if self._best is not None:
            tensors["best"] = self._best
        return tensors, {"rows": without_adopted(self.rows), "chosen": self._round, "merit": asdict(self._merit)}

    def restore(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], task: Task) -> None:
        """Load what `to_plain` returned after the first rounds of the same runs."""
        rounds, nodes = tensors["round_labels"].shape
        if nodes != task.nodes or len(facts["rows"]) != rounds or not all(map(is_row, facts["rows"])):
            raise ValueError(f"the record holds {rounds} rounds of {nodes} nodes, the task has {task.nodes}")
        log = ScoredNodes.from_plain(tensors)
        self.rows, self._logs = with_adopted(facts["rows"], log), [log]
        self._labels, self._confidence = list(tensors["round_labels"]), list(tensors["round_confidence"])
        self._best = tensors.get("best")
        self._merit = Merit(**{name: float(value) for name, value in facts["merit"].items()})
        optional = {name: t for name, t in tensors.items() if name in _OPTIONAL or name.startswith(_WEIGHTS)}
        self._round, self._chosen = int(facts["chosen"]), {name: tensors[name] for name in _CHOSEN} | optional

    def _record_predictions(self, mean: Prediction, unseen: Prediction, task: Task) -> None:
        """Record the label and the calibrated confidence of every node, out-of-fold where it was held out."""
        labels, held, logits = mean.label[0].cpu(), task.validation.amax(0), mean.logits[0]
        if task.runs > 1:
            logits = logits.clone()
            logits[held >= 0] = unseen.logits[0]
        given = torch.where(held >= 0, -1, task.given.target[0])
        confidence = calibrated(self.calibrate, logits, task.graph, held, given).confidence[0].cpu()
        if self.on_disk:  # three bytes per node
            labels, confidence = labels.to(torch.uint8 if task.classes <= 256 else torch.int32), confidence.half()
        self._labels.append(labels)
        self._confidence.append(confidence)

    def _is_chosen(self, accuracy: float, log_probs: Tensor) -> bool:
        """Whether this round is the chosen one so far."""
        if self.rule == "accuracy":
            merit = Merit(accuracy, -float(log_probs.mean()))
            better = not self._chosen or merit.beats(self._merit)
            self._merit = merit if better else self._merit
            return better
        if self._best is None or leads(log_probs, self._best):
            self._best = log_probs
            return True
        return not clearly_behind(log_probs, self._best)


def calibrated(calibrate: Calibrator, logits: Tensor, graph: Any, held: Tensor, given: Tensor) -> Prediction:
    """The calibrated prediction [1, n, C] of n nodes of a graph, with held-out and given labels [n]."""
    raw = Prediction(logits[None])
    task = Task(graph, Labels.given(given[None]), held[None], logits.shape[1])
    return part_checks.check_calibrated(calibrate(raw, task), raw)


def _row(state: State, accuracy: float) -> dict[str, Any]:
    """A round as one row of the history: accuracy over all folds, labels of the first model."""
    facts = row(state)
    return {
        **facts,
        **{name: facts[name][:1] for name in ("labelled", "class_counts", "adopted")},
        "validation": [accuracy],
        "epochs": [round(sum(facts["epochs"]) / len(facts["epochs"]))],
        "took_part": [any(facts["took_part"])],
    }


def _ended(state: State) -> str:
    task = state.student.learner.task
    if bool(state.running.any()):
        return "max_iter"
    return "no_change" if bool((~state.labels.known & ~task.held).any()) else "all_labeled"


_TENSORS = tuple(field.name for field in fields(Member) if field.type is Tensor)
_OPTIONAL = ("belief", "weight")
_FACTS = ("name", "view", "chosen", "ended", "seconds")
_CHOSEN = ("mean", "unseen", "target", "adopted_round")
