"""Trainer: the only place where weights are learned."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import getattr_static
from math import inf
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.number_checks import check_number, check_whole
from bangs.core.rng import Streams
from bangs.core.types import Labels, Prediction, Task
from bangs.distributed import ranks
from bangs.errors import InvalidInput
from bangs.nn.dropout import DropoutMasks
from bangs.nn.ensemble import Targets
from bangs.nn.matmul import products_of
from bangs.nn.models import GCN, Architecture
from bangs.nn.subgraphs import PreparedGraph, Subgraph, many
from bangs.training.assignment import Assignment
from bangs.training.data_parallel import DistributedSession
from bangs.training.epochs import CapturedSession, EagerSession, TargetNodes, TrainingSession
from bangs.training.first_layer_cache import parts
from bangs.training.flush_denormals import flush_denormals
from bangs.training.layerwise import Layerwise
from bangs.training.minibatch import MinibatchSession, NodeLoader
from bangs.training.precomputed_hop import FirstHop, Frame, roomy
from bangs.training.sampling import Sampler, Sampling
from bangs.training.teacher import Teacher
from bangs.utils.torch_modes import usual_modes

WHOLE_FROM = 0.7  # share of nodes from which a partial subgraph saves nothing


@dataclass(frozen=True)
class Trainer:
    """Full-batch training with Adam, the best weights by validation accuracy kept for every run.

    Between equal accuracies the lower validation loss wins. A run stops when its accuracy has not improved for
    `patience` epochs. With `monitor = "loss"` both go by the validation loss alone. With `subgraph = "needed"` an epoch
    on a CPU, and on a GPU where features are dense enough, touches only the nodes that decide the loss or the
    validation score; `"whole"` always takes the whole graph, so that dropout does not depend on who has labels. With
    `batches` an epoch is a step for every batch of labelled nodes, each with a drawn neighbourhood, run by run; models
    that see further than their hops say cannot learn so.
    """

    model: Architecture = field(default_factory=GCN)
    lr: float = 0.01
    weight_decay: float = 5e-4
    epochs: int = 2000
    patience: int = 200
    monitor: Literal["accuracy", "loss"] = "accuracy"
    subgraph: Literal["needed", "whole"] = "needed"
    precision: Literal["float32", "tf32"] = "float32"  # of matrix products on a GPU
    batches: Sampling | None = None  # None = the whole graph in every step

    def __post_init__(self) -> None:
        if not _builds(self.model):
            raise InvalidInput(
                f"Trainer.model must be an architecture such as GCN(hidden=64), got {self.model!r}; "
                "bangs.training.presets.trainer makes a Trainer from names"
            )
        for name in ("lr", "weight_decay"):
            check_number(f"Trainer.{name}", getattr(self, name))
        for name in ("epochs", "patience"):
            check_whole(f"Trainer.{name}", getattr(self, name))
            if getattr(self, name) < 1:
                raise InvalidInput(f"Trainer.{name} must be at least 1, got {getattr(self, name)}")
        if not 0 < self.lr < inf:
            raise InvalidInput(f"Trainer.lr must be positive, got {self.lr}")
        if not 0 <= self.weight_decay < inf:
            raise InvalidInput(f"Trainer.weight_decay must not be negative, got {self.weight_decay}")
        if self.batches is not None and not isinstance(self.batches, Sampling):
            raise InvalidInput(f"Trainer.batches must be None or a Sampling(size=…, fanout=…), got {self.batches!r}")
        choices = {"monitor": ("accuracy", "loss"), "subgraph": ("needed", "whole"), "precision": ("float32", "tf32")}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise InvalidInput(f"Trainer.{name} must be one of {', '.join(known)}, got '{getattr(self, name)}'")

    def prepare(self, task: Task) -> "Learner":
        """A learner of this task; what does not change between rounds is built once."""
        return Learner(self, task)

    @usual_modes()
    def fit(self, task: Task, labels: Labels, rng: Streams) -> "Teacher":
        """One teacher, from scratch."""
        return self.prepare(task).fit(labels, rng)


def _builds(model: object) -> bool:
    """Whether a model has a `build` that can be called; a class has one only if it is static, so GCN is not GCN()."""
    build = getattr_static(model, "build", None)
    return build is not None and (not isinstance(model, type) or isinstance(build, staticmethod | classmethod))


class Learner:
    """A task prepared for training: its graph, its validation nodes and R models."""

    def __init__(self, trainer: Trainer, task: Task):
        self.trainer, self.task = trainer, task
        width = int(task.graph.x.shape[1])
        self.network = trainer.model.build(width, task.classes, Streams((0,) * task.runs)).to(task.device)
        self._width = width
        self._captured: dict[tuple[bool, bool], CapturedSession] = {}
        self._frames: dict[bool, tuple[Frame, CapturedSession]] = {}
        self._said: tuple[dict[str, Tensor], Prediction] | None = None  # under the weights just learned
        if trainer.batches is not None and (self.network.hops is None or not self.network.staged):
            raise InvalidInput(
                f"Trainer.batches needs a model whose nodes see a few hops, such as GCN, GraphSAGE or SGC; "
                f"{type(trainer.model).__name__} needs the whole graph, so leave batches out"
            )

    @cached_property
    def prepared(self) -> PreparedGraph:
        """The whole graph, prepared for all runs."""
        return PreparedGraph.of(self.task.graph, self.task.runs, self.network.loops, self.network.normalise)

    @cached_property
    def first_hop(self) -> FirstHop | None:
        """The features after one hop, where the model may multiply them with its first weight and a GPU gains by it."""
        wanted = self.network.hops_first and self.trainer.subgraph == "needed" and self.task.device.type == "cuda"
        return FirstHop.of(self.prepared) if wanted else None

    @cached_property
    def sampler(self) -> Sampler:
        """The graph, prepared for drawing neighbourhoods and for inference layer by layer."""
        return Sampler.of(self.task.graph, self.network.loops, self.network.normalise)

    @cached_property
    def val_nodes(self) -> TargetNodes:
        """The validation nodes."""
        return self._part(self._val_targets)

    def fit(
        self,
        labels: Labels,
        rng: Streams,
        *,
        start: dict[str, Tensor] | None = None,
        transition: Tensor | None = None,
        early: int | None = None,
    ) -> Teacher:
        """R models trained on the labels [R, N]: from scratch, or from the weights `start`.

        `early` keeps the weights of that epoch besides the best; `transition` [R, C, C] corrects the loss.
        """
        if len(rng) != self.task.runs:
            raise InvalidInput(f"{len(rng)} random streams for {self.task.runs} runs; there must be one per run")
        asked = Assignment(labels, rng, start, transition, early)
        batches = self.trainer.batches
        # what a run draws then does not depend on its company, and a processor's cache holds one run better than all
        alone = self.task.runs > 1 and (batches is not None or self.task.device.type == "cpu")
        taught = self._one_by_one(asked) if alone else self._train(asked)
        return taught if batches is None or batches.exact else self._examined(taught)

    def _train(self, asked: Assignment) -> Teacher:
        fresh = self.trainer.model.build(self._width, self.task.classes, asked.rng)
        self.network.load(fresh.weights() if asked.start is None else asked.start)
        session = self._session(asked.labels, asked.transition)
        session.begin(asked.rng.at("dropout").numbers(), asked.transition)
        limit = self.trainer.epochs
        kept = None
        with products_of(self.trainer.precision), flush_denormals():
            if asked.early is not None:
                session.train(min(asked.early, limit), patient=True)
                kept = self.network.weights()
            session.train(limit)
        # ranks have learned the same, but on GPUs not to the last bit
        return Teacher(
            self,
            ranks.broadcast_weights(session.best()),
            ranks.broadcast(session.accuracy.clone()),
            ranks.broadcast(session.best_epoch.clone()),
            ranks.broadcast(session.sound()),
            None if kept is None else ranks.broadcast_weights(kept),
        )

    def predict(
        self, weights: dict[str, Tensor], graph: Data | Sequence[Data], masks: DropoutMasks | None = None
    ) -> Prediction:
        """Logits [R, N, C] under the given weights; with dropout where masks is given."""
        if self._said is not None and self._said[0] is weights and graph is self.task.graph and masks is None:
            (_, said), self._said = self._said, None
            return said
        self.network.load(weights)
        with torch.no_grad(), products_of(self.trainer.precision):
            if self.trainer.batches is not None and graph is self.task.graph:
                layerwise = Layerwise(self.trainer.batches.memory)
                return Prediction(layerwise(self.network, self.sampler, self.task.runs, masks))
            return Prediction(self.network(self._seen(graph), masks))

    def embed(self, weights: dict[str, Tensor], graph: Data) -> Tensor:
        """The last hidden layer [R, N, h] under the given weights."""
        self.network.load(weights)
        with torch.no_grad(), products_of(self.trainer.precision):
            return self.network.embed(self._seen(graph))

    def _one_by_one(self, asked: Assignment) -> Teacher:
        """Every run trained alone."""
        return Teacher.joined(self, [learner._train(asked.only(run)) for run, learner in enumerate(self._alone)])

    @cached_property
    def _alone(self) -> list["Learner"]:
        """A learner for every run, all of one prepared graph."""
        learners = [Learner(self.trainer, self.task.only([run])) for run in range(self.task.runs)]
        for learner in learners:
            if self.trainer.batches is not None:
                learner.sampler = self.sampler
            else:
                learner.prepared = learners[0].prepared
        return learners

    def _examined(self, teacher: Teacher) -> Teacher:
        """The teacher with its accuracy where every neighbour is heard; epochs were compared by drawn ones.

        The logits are kept for whoever asks for them next.
        """
        said = self.predict(teacher.weights, self.task.graph)
        self._said = teacher.weights, said
        right = (said.label == self.task.validation).sum(1)  # a label is never -1
        return replace(teacher, validation=ranks.broadcast(right.double() / self.task.held.sum(1)))

    def _seen(self, graph: Data | Sequence[Data]) -> Subgraph:
        loops, normalise = self.network.loops, self.network.normalise
        if isinstance(graph, Sequence):
            return many(graph, loops, normalise, self.prepared.whole)
        if graph is self.task.graph:
            return self.prepared.whole
        return PreparedGraph.of(graph, self.task.runs, loops, normalise).whole

    def _session(self, labels: Labels, transition: Tensor | None) -> TrainingSession:
        """Who runs the epochs: on a GPU a captured graph, which rounds reuse."""
        targets = Targets(labels.target, labels.weight, labels.belief)
        if self.trainer.batches is not None:
            loader = self._loader(targets)
            if self.trainer.batches.pieces > 1:
                return DistributedSession(self.network, loader, self._val_loader, self.trainer, self.task.classes)
            return MinibatchSession(self.network, loader, self._val_loader, self.trainer)
        captured = self.task.device.type == "cuda"
        if not captured and self.network.hops_first and self.first_hop is None:
            return EagerSession(self.network, *self._parts(targets), self.trainer)
        if not captured:
            return EagerSession(self.network, self._part(targets), self.val_nodes, self.trainer)
        corrected = transition is not None
        return self._framed(targets, corrected) or self._whole(targets, corrected)

    def _framed(self, targets: Targets, corrected: bool) -> CapturedSession | None:
        """A captured graph of the labelled nodes' neighbourhoods, reused by all rounds that fit in its frame."""
        if self.first_hop is None or targets.belief is not None:  # soft labels are everywhere
            return None
        chain = self.first_hop.chain(targets.target, self.network.hops or 0)
        size = roomy(chain.least)
        frame, session = self._frames.get(corrected, (None, None))
        if frame is None or session is None or not frame.holds(chain, size):
            self._frames.pop(corrected, None)  # its room is needed for what comes
            frame, session = self.first_hop.frame(chain, size), None
            if frame is None:
                return None
        part = frame.written(chain, targets)
        if session is None:
            session = CapturedSession(self.network, part, self.val_nodes, self.trainer)
            self._frames[corrected] = frame, session
        return session

    def _whole(self, targets: Targets, corrected: bool) -> CapturedSession:
        """A captured graph of the whole graph, whoever is labelled; all rounds of one kind of labels reuse it."""
        kind = corrected, targets.belief is not None
        if kind not in self._captured:
            belief = None if targets.belief is None else targets.belief.clone()
            static = Targets(targets.target.clone(), targets.weight.clone(), belief)
            nodes = TargetNodes(self.prepared.whole, static)
            self._captured[kind] = CapturedSession(self.network, nodes, self.val_nodes, self.trainer)
        session = self._captured[kind]
        session.train_nodes.targets.copy_(targets)
        return session

    def _parts(self, targets: Targets) -> tuple[TargetNodes, TargetNodes]:
        """The labelled nodes and those of validation, sharing their first layer."""
        whole = self.trainer.subgraph == "whole"
        return parts(self.prepared, self.network.hops or 0, targets, self._val_targets, whole=whole)

    @property
    def _val_targets(self) -> Targets:
        """The labels of the validation nodes, each of weight 1."""
        validation = self.task.validation
        return Targets(validation, torch.ones_like(validation, dtype=torch.float32))

    @cached_property
    def _val_loader(self) -> NodeLoader:
        """The validation nodes, to be read in batches."""
        return self._loader(self._val_targets)

    def _loader(self, targets: Targets) -> NodeLoader:
        """The nodes of the one run that have a target, to be read in batches."""
        assert self.trainer.batches is not None
        nodes = (targets.target >= 0).any(0).nonzero().squeeze(1)
        return NodeLoader(self.sampler, self.trainer.batches, self.network.hops or 0, nodes, targets.at(nodes))

    def _part(self, targets: Targets) -> TargetNodes:
        """The nodes with a target in any run, or in each by itself, and the subgraph that decides their logits."""
        own = None if self.first_hop is None else self.first_hop.part(targets, self.network.hops or 0)
        if own is not None:
            return own
        nodes = (targets.target >= 0).any(0).nonzero().squeeze(1)
        whole = self.network.hops is None or self.trainer.subgraph == "whole"
        if whole or len(nodes) > WHOLE_FROM * targets.target.shape[1]:
            return TargetNodes(self.prepared.whole, targets)
        seen = self.prepared.k_hop_subgraph(nodes.cpu().numpy(), self.network.hops or 0)
        return TargetNodes(seen, targets.at(nodes))
