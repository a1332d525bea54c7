"""Training of R models: `Trainer` holds the settings, `Learner` fits and predicts."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import getattr_static
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.core.types import Labels, Prediction, Task
from bangs.distributed import ranks
from bangs.errors import InvalidInput
from bangs.nn.dropout import DropoutMasks
from bangs.nn.loss import Targets
from bangs.nn.matmul import matmul_precision
from bangs.nn.models import GCN, Architecture
from bangs.nn.subgraphs import PreparedGraph, Subgraph, per_run_subgraph
from bangs.training.data_parallel import DistributedSession
from bangs.training.epoch_loop import CapturedSession, EagerSession, TargetNodes, TrainingSession
from bangs.training.first_layer_cache import shared_first_layer
from bangs.training.flush_denormals import flush_denormals
from bangs.training.layerwise_inference import Layerwise
from bangs.training.minibatch import MinibatchSession, NodeLoader
from bangs.training.neighbour_sampling import Sampler, Sampling
from bangs.training.precomputed_hop import FirstHop
from bangs.training.teacher import Teacher
from bangs.utils.setting_checks import check_choice, check_integer, check_number
from bangs.utils.torch_modes import default_torch_modes

WHOLE_GRAPH_FROM = 0.7  # share of labelled nodes above which a subgraph saves nothing


@dataclass(frozen=True)
class Trainer:
    """Full-batch training with Adam and early stopping; every run keeps its weights of the best validation accuracy.

    Ties are broken by the lower validation loss. A run stops when its accuracy has not improved for `patience` epochs.
    With `monitor = "loss"` both rules use the validation loss alone. `TrainingSession` implements them, on a GPU with
    `kernels/early_stopping.py`. With `subgraph = "needed"` an epoch computes only the nodes that influence the loss or
    the validation score; a GPU does so if the features are dense enough. `"whole"` always computes the whole graph, so
    that dropout does not depend on which nodes are labelled. With `batches` an epoch takes a step for every batch of
    labelled nodes, each with a sampled neighbourhood, one run at a time, of models with a fixed number of hops.
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
        if not _has_build(self.model):
            raise InvalidInput(
                f"Trainer.model must be an architecture such as GCN(hidden=64), got {self.model!r}; "
                "write Trainer(GCN(hidden=64))"
            )
        check_number("Trainer.lr", self.lr, within="(0, inf)")
        check_number("Trainer.weight_decay", self.weight_decay, within="[0, inf)")
        for name in ("epochs", "patience"):
            check_integer(f"Trainer.{name}", getattr(self, name), least=1)
        if self.batches is not None and not isinstance(self.batches, Sampling):
            raise InvalidInput(f"Trainer.batches must be None or a Sampling(size=…, fanout=…), got {self.batches!r}")
        choices = {"monitor": ("accuracy", "loss"), "subgraph": ("needed", "whole"), "precision": ("float32", "tf32")}
        for name, allowed in choices.items():
            check_choice(f"Trainer.{name}", getattr(self, name), allowed)

    def prepare(self, task: Task) -> "Learner":
        """A learner for this task; what rounds share is built once."""
        return Learner(self, task)

    @default_torch_modes()
    def fit(self, task: Task, labels: Labels, rng: Streams) -> "Teacher":
        """R models trained from scratch on the labels [R, N]."""
        return self.prepare(task).fit(labels, rng)


def _has_build(model: object) -> bool:
    """Whether `model.build` can be called; not for a class such as GCN instead of GCN(), unless it is static."""
    build = getattr_static(model, "build", None)
    return build is not None and (not isinstance(model, type) or isinstance(build, staticmethod | classmethod))


class Learner:
    """A task prepared for training: its graph, its validation nodes and R models."""

    def __init__(self, trainer: Trainer, task: Task):
        self.trainer, self.task = trainer, task
        self._width = int(task.graph.x.shape[1])
        self.network = trainer.model.build(self._width, task.classes, Streams((0,) * task.runs)).to(task.device)
        self._captured_sessions: dict[tuple[bool, bool], CapturedSession] = {}
        # the weights of the last fit and their logits
        self._last_prediction: tuple[dict[str, Tensor], Prediction] | None = None
        if trainer.batches is not None and (self.network.hops is None or not self.network.staged):
            raise InvalidInput(
                f"Trainer.batches needs a model of a few hops, such as GCN, GraphSAGE or SGC; "
                f"{type(trainer.model).__name__} needs the whole graph, so leave batches (--batch-size, --fanout) out"
            )

    @cached_property
    def prepared(self) -> PreparedGraph:
        """The whole graph, prepared for all runs."""
        return PreparedGraph.of(self.task.graph, self.task.runs, self.network.loops, self.network.normalise)

    @cached_property
    def first_hop(self) -> FirstHop | None:
        """The features after one hop, for models whose first layer is linear; None on a CPU, where it does not pay."""
        wanted = self.network.hops_first and self.trainer.subgraph == "needed" and self.task.device.type == "cuda"
        return FirstHop.of(self.prepared) if wanted else None

    @cached_property
    def sampler(self) -> Sampler:
        """The graph, prepared for neighbour sampling and layer-wise inference."""
        return Sampler.of(self.task.graph, self.network.loops, self.network.normalise)

    @cached_property
    def val_nodes(self) -> TargetNodes:
        """The validation nodes and their subgraph."""
        return self._target_nodes(self._val_targets)

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
        batches = self.trainer.batches
        # so a run draws the same numbers alone and in a batch; on a CPU one run also fits the cache better than all
        one_run_each = self.task.runs > 1 and (batches is not None or self.task.device.type == "cpu")
        if one_run_each:
            teachers = []
            for run, learner in enumerate(self._single_run_learners):
                run_start = None if start is None else {name: value[[run]] for name, value in start.items()}
                run_transition = None if transition is None else transition[[run]]
                teachers.append(learner._train(labels.only([run]), rng.only([run]), run_start, run_transition, early))
            teacher = Teacher.concat(self, teachers)
        else:
            teacher = self._train(labels, rng, start, transition, early)
        return teacher if batches is None or batches.exact else self._with_exact_accuracy(teacher)

    def _train(
        self,
        labels: Labels,
        rng: Streams,
        start: dict[str, Tensor] | None,
        transition: Tensor | None,
        early: int | None,
    ) -> Teacher:
        """The models of all runs, trained in one session."""
        fresh = self.trainer.model.build(self._width, self.task.classes, rng)
        self.network.load(fresh.weights() if start is None else start)
        session = self._session(labels, transition)
        session.begin(rng.at("dropout").numbers(), transition)
        early_weights = None
        with matmul_precision(self.trainer.precision), flush_denormals():
            if early is not None:
                session.train(min(early, self.trainer.epochs), patient=True)
                early_weights = self.network.weights()
            session.train(self.trainer.epochs)
        # ranks learn the same weights, but on GPUs not to the last bit
        return Teacher(
            self,
            ranks.broadcast_weights(session.best()),
            ranks.broadcast(session.accuracy.clone()),
            ranks.broadcast(session.best_epoch.clone()),
            ranks.broadcast(session.sound()),
            None if early_weights is None else ranks.broadcast_weights(early_weights),
        )

    def predict(
        self, weights: dict[str, Tensor], graph: Data | Sequence[Data], masks: DropoutMasks | None = None
    ) -> Prediction:
        """Logits [R, N, C] under the given weights; with dropout where masks is given."""
        if self._last_prediction is not None and graph is self.task.graph and masks is None:
            fitted_weights, prediction = self._last_prediction
            if fitted_weights is weights:
                self._last_prediction = None
                return prediction
        self.network.load(weights)
        with torch.no_grad(), matmul_precision(self.trainer.precision):
            if self.trainer.batches is not None and graph is self.task.graph:
                layerwise = Layerwise(self.trainer.batches.memory)
                return Prediction(layerwise(self.network, self.sampler, self.task.runs, masks))
            return Prediction(self.network(self._whole_subgraph(graph), masks))

    def embed(self, weights: dict[str, Tensor], graph: Data) -> Tensor:
        """The last hidden layer [R, N, h] under the given weights."""
        self.network.load(weights)
        with torch.no_grad(), matmul_precision(self.trainer.precision):
            return self.network.embed(self._whole_subgraph(graph))

    @cached_property
    def _single_run_learners(self) -> list["Learner"]:
        """One learner per run; they share the prepared graph."""
        learners = [Learner(self.trainer, self.task.only([run])) for run in range(self.task.runs)]
        for learner in learners:
            if self.trainer.batches is not None:
                learner.sampler = self.sampler
            else:
                learner.prepared = learners[0].prepared
        return learners

    def _with_exact_accuracy(self, teacher: Teacher) -> Teacher:
        """The teacher with its validation accuracy over all neighbours; training compared epochs by sampled ones.

        The logits are kept for the next call of `predict`.
        """
        prediction = self.predict(teacher.weights, self.task.graph)
        self._last_prediction = teacher.weights, prediction
        correct = (prediction.label == self.task.validation).sum(1)  # a label is never -1
        return replace(teacher, validation=ranks.broadcast(correct.double() / self.task.held.sum(1)))

    def _whole_subgraph(self, graph: Data | Sequence[Data]) -> Subgraph:
        loops, normalise = self.network.loops, self.network.normalise
        if isinstance(graph, Sequence):
            return per_run_subgraph(graph, loops, normalise, self.prepared.whole)
        if graph is self.task.graph:
            return self.prepared.whole
        return PreparedGraph.of(graph, self.task.runs, loops, normalise).whole

    def _session(self, labels: Labels, transition: Tensor | None) -> TrainingSession:
        """The training session for these labels; on a GPU a captured CUDA graph, which rounds on all nodes reuse."""
        targets = Targets(labels.target, labels.weight, labels.belief)
        if self.trainer.batches is not None:
            loader = self._loader(targets)
            if self.trainer.batches.pieces > 1:
                return DistributedSession(self.network, loader, self._val_loader, self.trainer, self.task.classes)
            return MinibatchSession(self.network, loader, self._val_loader, self.trainer)
        captured = self.task.device.type == "cuda"
        if not captured and self.network.hops_first and self.first_hop is None:
            whole, hops = self.trainer.subgraph == "whole", self.network.hops or 0
            nodes = shared_first_layer(self.prepared, hops, targets, self._val_targets, whole=whole)
            return EagerSession(self.network, *nodes, self.trainer)
        if not captured:
            return EagerSession(self.network, self._target_nodes(targets), self.val_nodes, self.trainer)
        if targets.belief is None and self.first_hop is not None:  # soft labels cover all nodes
            train_nodes = self.first_hop.target_nodes(targets, self.network.hops or 0)
            if train_nodes is not None:
                return CapturedSession(self.network, train_nodes, self.val_nodes, self.trainer)
        return self._whole_graph_session(targets, transition is not None)

    def _whole_graph_session(self, targets: Targets, corrected: bool) -> CapturedSession:
        """A CUDA graph over all nodes; all rounds with the same kind of labels reuse it."""
        kind = corrected, targets.belief is not None
        if kind not in self._captured_sessions:
            belief = None if targets.belief is None else targets.belief.clone()
            static = Targets(targets.target.clone(), targets.weight.clone(), belief)
            nodes = TargetNodes(self.prepared.whole, static)
            self._captured_sessions[kind] = CapturedSession(self.network, nodes, self.val_nodes, self.trainer)
        session = self._captured_sessions[kind]
        session.train_nodes.targets.copy_(targets)
        return session

    @property
    def _val_targets(self) -> Targets:
        """The validation labels, each of weight 1."""
        validation = self.task.validation
        return Targets(validation, torch.ones_like(validation, dtype=torch.float32))

    @cached_property
    def _val_loader(self) -> NodeLoader:
        """The validation nodes in batches."""
        return self._loader(self._val_targets)

    def _loader(self, targets: Targets) -> NodeLoader:
        """The nodes with a target of a single run, in batches."""
        assert self.trainer.batches is not None
        nodes = targets.nodes
        common = self.sampler, self.trainer.batches, self.network.hops or 0, nodes, targets.at(nodes)
        if targets.belief is None:
            return NodeLoader(*common)
        return NodeLoader.of_soft_labels(*common, given=self.task.given.known[0, nodes])

    def _target_nodes(self, targets: Targets) -> TargetNodes:
        """The nodes with a target, of any run or of each, and the subgraph that their logits depend on."""
        if self.first_hop is not None:
            target_nodes = self.first_hop.target_nodes(targets, self.network.hops or 0)
            if target_nodes is not None:
                return target_nodes
        nodes = targets.nodes
        whole = self.network.hops is None or self.trainer.subgraph == "whole"
        if whole or len(nodes) > WHOLE_GRAPH_FROM * targets.target.shape[1]:
            return TargetNodes(self.prepared.whole, targets)
        subgraph = self.prepared.k_hop_subgraph(nodes.cpu().numpy(), self.network.hops or 0)
        return TargetNodes(subgraph, targets.at(nodes))
