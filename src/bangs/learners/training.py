"""Trainer: the only place where weights are learned."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.learners.batches import Field, Surroundings, many
from bangs.learners.ensemble import Network
from bangs.learners.models import GCN, Architecture
from bangs.learners.noise import Noise
from bangs.rng import Streams
from bangs.types import Labels, Prediction, Task

WHOLE_FROM = 0.7  # share of nodes from which a partial field saves nothing


@dataclass(frozen=True)
class Trainer:
    """Full-batch training with Adam, the best weights by validation accuracy kept for every run.

    Between equal accuracies the lower validation loss wins. A run stops when its accuracy has not improved for
    `patience` epochs. With `field = "needed"` an epoch touches only the nodes that decide the loss or the
    validation score; `"whole"` always takes the whole graph, so that dropout does not depend on a run's company.
    """

    model: Architecture = field(default_factory=GCN)
    lr: float = 0.01
    weight_decay: float = 5e-4
    epochs: int = 2000
    patience: int = 200
    field: str = "needed"

    def __post_init__(self) -> None:
        for name in ("epochs", "patience"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"Trainer.{name} must be at least 1, got {getattr(self, name)}")
        if self.lr <= 0:
            raise InvalidInput(f"Trainer.lr must be positive, got {self.lr}")
        if self.field not in ("needed", "whole"):
            raise InvalidInput(f"Trainer.field must be 'needed' or 'whole', got '{self.field}'")

    def prepare(self, task: Task) -> "Learner":
        """A learner of this task; what does not change between rounds is built once."""
        return Learner(self, task)

    def fit(self, task: Task, labels: Labels, rng: Streams) -> "Teacher":
        """One teacher, from scratch."""
        return self.prepare(task).fit(labels, rng)


@dataclass(frozen=True, eq=False)
class Teacher:
    """R trained models."""

    learner: "Learner"
    weights: dict[str, Tensor]  # each [R, …]
    validation: Tensor  # float [R], accuracy on the validation nodes
    epochs: Tensor  # long [R], until the best weights
    sound: Tensor  # bool [R], False where training diverged
    early: dict[str, Tensor] | None = None  # the weights at the epoch asked for, to start a student from

    def predict(self, graph: Data | Sequence[Data]) -> Prediction:
        """Logits [R, N, C] of every node; a sequence holds one graph per run."""
        return self.learner.predict(self.weights, graph, None)

    def sample(self, graph: Data, rng: Streams) -> Prediction:
        """Logits [R, N, C] of one pass with dropout on."""
        return self.learner.predict(self.weights, graph, rng)

    @staticmethod
    def where(run: Tensor, first: "Teacher", second: "Teacher") -> "Teacher":
        """The first teacher where run [R] is true, the second elsewhere."""

        def pick(one: Tensor, other: Tensor) -> Tensor:
            return torch.where(run.view(-1, *[1] * (one.dim() - 1)), one, other)

        return Teacher(
            first.learner,
            {name: pick(first.weights[name], second.weights[name]) for name in first.weights},
            pick(first.validation, second.validation),
            pick(first.epochs, second.epochs),
            pick(first.sound, second.sound),
            first.early if first.early is not None else second.early,
        )


class Learner:
    """A task prepared for training: its graph, its validation nodes and R models."""

    def __init__(self, trainer: Trainer, task: Task):
        self.trainer, self.task = trainer, task
        width = int(task.graph.x.shape[1])
        self.network = trainer.model.build(width, task.classes, Streams((0,) * task.runs)).to(task.device)
        self.surroundings = Surroundings.of(task.graph, task.runs, self.network.loops, self.network.normalise)
        self.examiner = self._part(task.validation)
        self._width = width
        self._captured: Any = None

    def fit(
        self,
        labels: Labels,
        rng: Streams,
        *,
        start: dict[str, Tensor] | None = None,
        transition: Tensor | None = None,
        early: int | None = None,
        epochs: int | None = None,
    ) -> Teacher:
        """R models trained on the labels [R, N]: from scratch, or from the weights `start`.

        `early` keeps the weights of that epoch besides the best; `transition` [R, C, C] corrects the loss.
        """
        fresh = self.trainer.model.build(self._width, self.task.classes, rng)
        self.network.load(fresh.weights() if start is None else start)
        noise = Noise(rng.at("dropout").generators(self.task.device))
        session = _Session(self, self._part(labels.target, labels.weight), noise, transition)
        limit = self.trainer.epochs if epochs is None else epochs
        kept = None
        for epoch in range(limit):
            session.epoch(epoch)
            if early is not None and epoch + 1 == early:
                kept = self.network.weights()
            if not session.active.any():
                break
        return Teacher(
            self,
            session.weights,
            session.accuracy,
            session.born,
            torch.isfinite(session.nll),
            self.network.weights() if early is not None and kept is None else kept,
        )

    def predict(self, weights: dict[str, Tensor], graph: Data | Sequence[Data], rng: Streams | None) -> Prediction:
        """Logits [R, N, C] under the given weights; with dropout where a stream is given."""
        if not isinstance(graph, Data):
            seen = many(graph, self.network.loops, self.network.normalise)
        elif graph is self.task.graph:
            seen = self.surroundings.whole
        else:
            seen = Surroundings.of(graph, self.task.runs, self.network.loops, self.network.normalise).whole
        noise = None if rng is None else Noise(rng.generators(self.task.device))
        self.network.load(weights)
        with torch.no_grad():
            return Prediction(self.network(seen, noise))

    def _part(self, target: Tensor, weight: Tensor | None = None) -> "_Part":
        """The nodes with a target in any run, and the field that decides their logits."""
        nodes = (target >= 0).any(0).nonzero().squeeze(1)
        weight = torch.ones_like(target, dtype=torch.float32) if weight is None else weight
        part = self.network.hops is not None and self.trainer.field == "needed" and target.device.type == "cpu"
        if part and len(nodes) < WHOLE_FROM * target.shape[1]:
            seen = self.surroundings.field(np.asarray(nodes), self.network.hops or 0)
            return _Part(seen, target[:, nodes].contiguous(), weight[:, nodes].contiguous())
        return _Part(self.surroundings.whole, target, weight)


@dataclass(frozen=True, eq=False)
class _Part:
    """A field with the targets of its nodes."""

    field: Field
    target: Tensor  # long [R, n], -1 = none
    weight: Tensor  # float [R, n]


class _Session:
    """One fit: the best weights of every run so far and who is still learning."""

    def __init__(self, learner: Learner, lesson: _Part, noise: Noise, transition: Tensor | None):
        self.network: Network = learner.network
        self.patience = learner.trainer.patience
        self.lesson, self.examiner, self.noise, self.transition = lesson, learner.examiner, noise, transition
        self.optimiser = torch.optim.Adam(
            self.network.parameters(), lr=learner.trainer.lr, weight_decay=learner.trainer.weight_decay, fused=True
        )
        runs, device = learner.task.runs, learner.task.device
        self.weights = self.network.weights()
        self.accuracy = torch.full((runs,), -1.0, dtype=torch.float64, device=device)
        self.nll = torch.full((runs,), torch.inf, dtype=torch.float64, device=device)
        self.born = torch.zeros(runs, dtype=torch.long, device=device)
        self.better = torch.zeros(runs, dtype=torch.long, device=device)
        self.active = torch.ones(runs, dtype=torch.bool, device=device)

    def epoch(self, index: int) -> None:
        """One step of Adam and one look at the validation nodes."""
        self.optimiser.zero_grad()
        part = self.lesson
        # a sum over runs keeps them independent
        self.network.loss(part.field, part.target, part.weight, self.noise, self.transition).sum().backward()
        self.optimiser.step()
        accuracy, nll = self._look()
        sound = torch.isfinite(nll) & self.active
        higher = sound & (accuracy > self.accuracy)
        improved = higher | (sound & (accuracy == self.accuracy) & (nll < self.nll))
        self.accuracy = torch.where(improved, accuracy, self.accuracy)
        self.nll = torch.where(improved, nll, self.nll)
        self.born = torch.where(improved, index + 1, self.born)
        self.better = torch.where(higher, index, self.better)
        self.active = self.active & (index - self.better < self.patience)
        if improved.any():
            for name, value in self.network.state_dict().items():
                self.weights[name][improved] = value[improved]

    def _look(self) -> tuple[Tensor, Tensor]:
        part = self.examiner
        with torch.no_grad():
            log_probs = self.network(part.field).log_softmax(-1)
        counted = part.target >= 0
        nll = -log_probs.gather(-1, part.target.clamp_min(0)[..., None]).squeeze(-1).double()
        total = counted.sum(1)
        right = (log_probs.argmax(-1) == part.target) & counted
        return right.sum(1).double() / total, torch.where(counted, nll, 0.0).sum(1) / total
