"""Training sessions: the epochs of one fit with early stopping, eager or as a captured CUDA graph."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bangs import kernels
from bangs.nn.dropout import dropout_masks
from bangs.nn.ensemble import Network
from bangs.nn.loss import Targets, log_softmax, node_nll
from bangs.nn.subgraphs import Subgraph
from bangs.training.adam import Adam
from bangs.training.malloc_tuning import keep_freed_memory
from bangs.utils import signals

if TYPE_CHECKING:
    from bangs.training.trainer import Trainer

SYNC_EVERY = 32  # epochs between two checks of early stopping on a GPU

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class TargetNodes:
    """A subgraph with the targets of its nodes."""

    subgraph: Subgraph
    targets: Targets

    def only(self, active: Tensor) -> "TargetNodes":
        """The same nodes, computed for the active runs [R] only."""
        return TargetNodes(self.subgraph.only(active), self.targets)


class TrainingSession(ABC):
    """The best weights of every run so far, and the state of early stopping.

    An epoch changes everything in place, so that a captured epoch can be replayed. `unfinished` runs have not used up
    their patience; `active` runs are those the kernels compute, updated from `unfinished` now and then.
    """

    def __init__(self, network: Network, train_nodes: TargetNodes, val_nodes: TargetNodes, settings: "Trainer"):
        self.network, self.train_nodes, self.val_nodes, self.settings = network, train_nodes, val_nodes, settings
        runs, device = train_nodes.targets.target.shape[0], train_nodes.targets.target.device
        self.device = device
        self.active = torch.ones(runs, dtype=torch.bool, device=device)
        self.optimiser = _optimiser(network, settings, self.active)
        self.numbers: Sequence[int] = [0] * runs
        self.masks = dropout_masks(self.numbers, device)
        self.best_weights = network.weights()
        self.accuracy = torch.empty(runs, dtype=torch.float64, device=device)
        self.nll = torch.empty(runs, dtype=torch.float64, device=device)
        self.best_epoch = torch.empty(runs, dtype=torch.long, device=device)
        self.last_progress = torch.empty(runs, dtype=torch.long, device=device)
        self.unfinished = torch.empty(runs, dtype=torch.bool, device=device)
        self.epoch_count = torch.empty(runs, dtype=torch.long, device=device)
        self.epochs = 0
        self.transition: Tensor | None = None
        keep_freed_memory()

    def begin(self, numbers: Sequence[int], transition: Tensor | None) -> None:
        """Reset the state for a new fit; the network holds the weights to start from."""
        self.numbers = numbers
        self.masks.restart(numbers)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(numbers[0])  # for the dropout of PyG modules
        if transition is not None:
            self.transition = transition.clone() if self.transition is None else self.transition.copy_(transition)
        self.optimiser.restart()
        for name, value in self.network.state_dict().items():
            self.best_weights[name].copy_(value)
        self.accuracy.fill_(-1.0)
        self.nll.fill_(torch.inf)
        self.best_epoch.zero_()
        self.last_progress.zero_()
        self.unfinished.fill_(True)
        self.active.fill_(True)
        self.epoch_count.zero_()
        self.epochs = 0

    @abstractmethod
    def train(self, limit: int, *, patient: bool = False) -> None:
        """Run epochs up to `limit` in all or, unless `patient`, until every run has used up its patience."""

    def best(self) -> dict[str, Tensor]:
        """A copy of the best weights of every run."""
        return {name: value.clone() for name, value in self.best_weights.items()}

    def sound(self) -> Tensor:
        """Runs that had at least one epoch with a finite loss: bool [R]."""
        return torch.isfinite(self.nll)

    def epoch(self) -> Tensor:
        """One step of Adam and one validation; returns which runs improved: bool [R]."""
        self.step(self.train_nodes)
        with torch.no_grad():
            logits = self.network(self.val_nodes.subgraph)
        return self._update_best(logits)

    def step(self, part: TargetNodes) -> None:
        """One step of Adam."""
        self.optimiser.zero_grad()
        # a sum over runs keeps them independent
        self.network.loss(part.subgraph, part.targets, self.masks, self.transition).sum().backward()
        self.optimiser.step()

    def _update_best(self, logits: Tensor) -> Tensor:
        """Update early stopping by the validation logits [R, n, C]; returns which runs improved: bool [R]."""
        part, settings = self.val_nodes.targets, self.settings
        if kernels.serves(logits):
            from bangs.kernels.early_stopping import update_best

            state = (self.accuracy, self.nll, self.last_progress, self.best_epoch, self.epoch_count, self.unfinished)
            return update_best(logits, part.target, part.counts, state, settings.patience, settings.monitor)
        log_probs = log_softmax(logits)
        accuracy = (logits.argmax(-1) == part.target).sum(1).double() / part.counts
        nll = node_nll(log_probs, part.target).sum(1, dtype=torch.float64) / part.counts
        sound = (nll < torch.inf) & self.unfinished
        progress = improved = sound & (nll < self.nll)
        if settings.monitor == "accuracy":
            progress = sound & (accuracy > self.accuracy)
            improved = progress | (improved & (accuracy == self.accuracy))
        torch.where(improved, accuracy, self.accuracy, out=self.accuracy)
        torch.where(improved, nll, self.nll, out=self.nll)
        torch.where(progress, self.epoch_count, self.last_progress, out=self.last_progress)
        self.unfinished.logical_and_(self.epoch_count - self.last_progress < settings.patience)
        self.epoch_count.add_(1)
        torch.where(improved, self.epoch_count, self.best_epoch, out=self.best_epoch)
        return improved

    def _keep_best(self, improved: Tensor) -> None:
        """Copy the weights of the runs that improved."""
        for name, value in self.network.state_dict().items():
            if kernels.serves(value):
                from bangs.kernels.early_stopping import copy_improved

                copy_improved(improved, value, self.best_weights[name])
            else:
                pick = improved.view(-1, *[1] * (value.dim() - 1))
                torch.where(pick, value, self.best_weights[name], out=self.best_weights[name])


class EagerSession(TrainingSession):
    """Runs epochs one by one."""

    def train(self, limit: int, *, patient: bool = False) -> None:
        while self.epochs < limit and (patient or self.unfinished.any()):
            signals.check()
            improved = self.epoch()
            self.epochs += 1
            if improved.any():
                self._keep_best(improved)


class CapturedSession(TrainingSession):
    """Runs each epoch as one CUDA graph with early stopping on the device; falls back to single kernels if it must.

    Every `SYNC_EVERY` epochs, runs that have used up their patience become inactive; our kernels then skip them.
    """

    def __init__(self, network: Network, train_nodes: TargetNodes, val_nodes: TargetNodes, settings: "Trainer"):
        super().__init__(network, train_nodes, val_nodes, settings)
        self.train_nodes, self.val_nodes = train_nodes.only(self.active), val_nodes.only(self.active)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.capture_tried = False

    def train(self, limit: int, *, patient: bool = False) -> None:
        if not self.capture_tried:
            self._capture()
        while self.epochs < limit:
            signals.check()
            count = min(SYNC_EVERY, limit - self.epochs)
            for _ in range(count):
                if self.graph is None:
                    self._keep_best(self.epoch())
                else:
                    self.graph.replay()
            self.epochs += count
            if not patient:
                self.active.copy_(self.unfinished)
                if not self.unfinished.any():
                    return

    def _capture(self) -> None:
        """Record one epoch as a CUDA graph, then restore what the warm-up changed."""
        self.capture_tried = True
        start, numbers = self.network.weights(), self.numbers
        try:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(3):
                    self._keep_best(self.epoch())
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            for generator in self.masks.generators:
                graph.register_generator_state(generator)
            self.optimiser.zero_grad()
            with torch.cuda.graph(graph):
                self._keep_best(self.epoch())
            self.graph = graph
        except RuntimeError as reason:
            log.debug("%s cannot be captured as a CUDA graph: %s", type(self.network).__name__, reason)
            torch.cuda.synchronize()
            for generator in (torch.cuda.default_generators[torch.cuda.current_device()], *self.masks.generators):
                # a fresh state, since a capture that failed keeps the old one
                generator.graphsafe_set_state(torch.Generator(generator.device).graphsafe_get_state())
        self.network.load(start)
        self.begin(numbers, self.transition)


def _optimiser(network: Network, settings: "Trainer", active: Tensor) -> "Adam | kernels.adam.Adam":
    """Adam by our own kernel if it is available, else by torch."""
    named = dict(network.named_parameters())
    weights, decays = list(named.values()), [settings.weight_decay * network.decay(name) for name in named]
    if kernels.serves(*weights):
        from bangs.kernels.adam import Adam as Fused

        return Fused(weights, settings.lr, decays, active)
    return Adam(weights, settings.lr, decays)
