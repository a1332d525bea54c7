"""Sessions: the epochs of one fit, step by step on any device or as one captured graph on a GPU."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from bangs import kernels
from bangs.nn.dropout import source
from bangs.nn.ensemble import Network, Targets, log_softmax, surprise
from bangs.nn.subgraphs import Subgraph
from bangs.training.adam import Adam
from bangs.training.malloc_tuning import keep_freed_memory
from bangs.utils import signals

LOOK_EVERY = 32  # epochs between two looks of the host at a GPU

log = logging.getLogger(__name__)


class Settings(Protocol):
    """What a session takes from its trainer."""

    @property
    def lr(self) -> float: ...
    @property
    def weight_decay(self) -> float: ...
    @property
    def patience(self) -> int: ...
    @property
    def monitor(self) -> Literal["accuracy", "loss"]: ...


@dataclass(frozen=True, eq=False)
class TargetNodes:
    """A subgraph with the targets of its nodes."""

    subgraph: Subgraph
    targets: Targets

    def only(self, busy: Tensor) -> "TargetNodes":
        """The same nodes, to be computed for the busy runs [R] only."""
        return TargetNodes(self.subgraph.only(busy), self.targets)


class TrainingSession(ABC):
    """The best weights of every run so far, and who is still learning.

    Everything an epoch changes is changed in place, so that a captured epoch can be replayed.
    """

    def __init__(self, network: Network, train_nodes: TargetNodes, val_nodes: TargetNodes, settings: Settings):
        self.network, self.train_nodes, self.val_nodes, self.settings = network, train_nodes, val_nodes, settings
        runs, device = train_nodes.targets.target.shape[0], train_nodes.targets.target.device
        self.device = device
        self.busy = torch.ones(runs, dtype=torch.bool, device=device)
        self.optimiser = _optimiser(network, settings, self.busy)
        self.numbers: Sequence[int] = [0] * runs
        self.masks = source(self.numbers, device)
        self.kept = network.weights()
        self.accuracy = torch.empty(runs, dtype=torch.float64, device=device)
        self.nll = torch.empty(runs, dtype=torch.float64, device=device)
        self.best_epoch = torch.empty(runs, dtype=torch.long, device=device)
        self.better = torch.empty(runs, dtype=torch.long, device=device)
        self.active = torch.empty(runs, dtype=torch.bool, device=device)
        self.clock = torch.empty(runs, dtype=torch.long, device=device)
        self.epochs = 0
        self.transition: Tensor | None = None

    def begin(self, numbers: Sequence[int], transition: Tensor | None) -> None:
        """Forget the last fit; the network holds the weights to start from."""
        self.numbers = numbers
        self.masks.restart(numbers)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(numbers[0])  # what stock modules draw from
        if transition is not None:
            self.transition = transition.clone() if self.transition is None else self.transition.copy_(transition)
        self.optimiser.restart()
        for name, value in self.network.state_dict().items():
            self.kept[name].copy_(value)
        self.accuracy.fill_(-1.0)
        self.nll.fill_(torch.inf)
        self.best_epoch.zero_()
        self.better.zero_()
        self.active.fill_(True)
        self.busy.fill_(True)
        self.clock.zero_()
        self.epochs = 0

    @abstractmethod
    def train(self, limit: int, *, patient: bool = False) -> None:
        """Epochs until `limit` have been run or, unless `patient`, every run has lost patience."""

    def best(self) -> dict[str, Tensor]:
        """A copy of the best weights of every run."""
        return {name: value.clone() for name, value in self.kept.items()}

    def sound(self) -> Tensor:
        """Runs that had at least one epoch with a finite loss: bool [R]."""
        return torch.isfinite(self.nll)

    def epoch(self) -> Tensor:
        """One step of Adam and one look at the validation nodes; which runs improved: bool [R]."""
        self.optimiser.zero_grad()
        part = self.train_nodes
        # a sum over runs keeps them independent
        self.network.loss(part.subgraph, part.targets, self.masks, self.transition).sum().backward()
        self.optimiser.step()
        with torch.no_grad():
            logits = self.network(self.val_nodes.subgraph)
        return self._judge(logits)

    def _judge(self, logits: Tensor) -> Tensor:
        """Keep the score of the validation nodes' logits [R, n, C]; which runs improved: bool [R]."""
        part, settings = self.val_nodes.targets, self.settings
        if kernels.serves(logits):
            from bangs.kernels.epoch import judge

            state = (self.accuracy, self.nll, self.better, self.best_epoch, self.clock, self.active)
            return judge(logits, part.target, part.counts, state, settings.patience, settings.monitor)
        log_probs = log_softmax(logits)
        accuracy = (logits.argmax(-1) == part.target).sum(1).double() / part.counts
        nll = surprise(log_probs, part.target).sum(1, dtype=torch.float64) / part.counts
        sound = (nll < torch.inf) & self.active
        progress = improved = sound & (nll < self.nll)
        if settings.monitor == "accuracy":
            progress = sound & (accuracy > self.accuracy)
            improved = progress | (improved & (accuracy == self.accuracy))
        torch.where(improved, accuracy, self.accuracy, out=self.accuracy)
        torch.where(improved, nll, self.nll, out=self.nll)
        torch.where(progress, self.clock, self.better, out=self.better)
        self.active.logical_and_(self.clock - self.better < settings.patience)
        self.clock.add_(1)
        torch.where(improved, self.clock, self.best_epoch, out=self.best_epoch)
        return improved


class EagerSession(TrainingSession):
    """Epoch by epoch; the weights are copied only where a run improved."""

    def __init__(self, network: Network, train_nodes: TargetNodes, val_nodes: TargetNodes, settings: Settings):
        super().__init__(network, train_nodes, val_nodes, settings)
        keep_freed_memory()

    def train(self, limit: int, *, patient: bool = False) -> None:
        while self.epochs < limit and (patient or self.active.any()):
            signals.check()
            improved = self.epoch()
            self.epochs += 1
            if improved.all():
                for name, value in self.network.state_dict().items():
                    self.kept[name].copy_(value)
            elif improved.any():
                for name, value in self.network.state_dict().items():
                    self.kept[name][improved] = value[improved]


class CapturedSession(TrainingSession):
    """One CUDA graph per epoch, early stopping kept on the device; falls back to single kernels where it must.

    Runs that have lost patience rest from the host's next look on: our kernels pass them over.
    """

    def __init__(self, network: Network, train_nodes: TargetNodes, val_nodes: TargetNodes, settings: Settings):
        super().__init__(network, train_nodes, val_nodes, settings)
        self.train_nodes, self.val_nodes = train_nodes.only(self.busy), val_nodes.only(self.busy)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.tried = False

    def train(self, limit: int, *, patient: bool = False) -> None:
        if not self.tried:
            self._capture()
        while self.epochs < limit:
            signals.check()
            count = min(LOOK_EVERY, limit - self.epochs)
            for _ in range(count):
                if self.graph is None:
                    self._whole_epoch()
                else:
                    self.graph.replay()
            self.epochs += count
            if not patient:
                self.busy.copy_(self.active)
                if not self.active.any():
                    return

    def _whole_epoch(self) -> None:
        improved = self.epoch()
        for name, value in self.network.state_dict().items():
            if kernels.serves(value):
                from bangs.kernels.epoch import keep

                keep(improved, value, self.kept[name])
            else:
                pick = improved.view(-1, *[1] * (value.dim() - 1))
                torch.where(pick, value, self.kept[name], out=self.kept[name])

    def _capture(self) -> None:
        """Record one epoch; what the warm-up changed is put back."""
        self.tried = True
        start, numbers = self.network.weights(), self.numbers
        try:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(3):
                    self._whole_epoch()
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            for generator in self.masks.generators:
                graph.register_generator_state(generator)
            self.optimiser.zero_grad()
            with torch.cuda.graph(graph):
                self._whole_epoch()
            self.graph = graph
        except RuntimeError as reason:
            log.debug("%s cannot be captured as a CUDA graph: %s", type(self.network).__name__, reason)
            torch.cuda.synchronize()
            for generator in (torch.cuda.default_generators[torch.cuda.current_device()], *self.masks.generators):
                _released(generator)
        self.network.load(start)
        self.begin(numbers, self.transition)


def _released(generator: torch.Generator) -> None:
    """Give a generator a state of its own again: a capture that failed does not let go of the one it had."""
    generator.graphsafe_set_state(torch.Generator(generator.device).graphsafe_get_state())


def _optimiser(network: Network, settings: Settings, busy: Tensor) -> "Adam | kernels.epoch.Adam":
    """Adam by torch's kernel, or by our own where it serves."""
    named = dict(network.named_parameters())
    weights, decays = list(named.values()), [settings.weight_decay * network.decay(name) for name in named]
    if kernels.serves(*weights):
        from bangs.kernels.epoch import Adam as Fused

        return Fused(weights, settings.lr, decays, busy)
    return Adam(weights, settings.lr, decays)
