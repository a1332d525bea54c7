"""Networks of R models run as one: every parameter leads with the run axis."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.graphs.sparse import Normalise
from bangs.nn.dropout import DropoutMasks
from bangs.nn.subgraphs import Features, Subgraph


class Network(nn.Module):
    """R models with one forward pass; a run's logits depend on its own weights only."""

    loops: float = 1.0  # weight of the self-loops in the adjacency it propagates with
    normalise: Normalise = "symmetric"
    hops: int | None = None  # how far a node sees; None = only the whole graph will do
    hops_first: bool = False  # whether stage 0 is one product with the features, so that a hop may come before it
    staged: bool = True  # whether a hop is a product with the adjacency and nothing else, as `stage` needs it

    def stage(self, number: int, h: Features | Tensor, masks: DropoutMasks | None = None) -> Tensor:
        """What a network with `hops` does to every node by itself before hop `number`, and after the last: [R, n, d].

        Stage 0 takes the features, every other one what hop `number − 1` brought, stage `hops` gives the logits.
        """
        raise NotImplementedError(f"{type(self).__name__} is not made of hops and stages")

    def forward(self, subgraph: Subgraph, masks: DropoutMasks | None = None) -> Tensor:
        """Logits [R, n, C] of the subgraph's nodes; dropout where masks is given."""
        h = self.stage(0, subgraph.features, masks)
        for hop in range(self.hops or 0):
            h = self.stage(hop + 1, subgraph.propagate(hop, h), masks)
        return h

    def decay(self, name: str) -> float:
        """How many times the trainer's weight decay the parameter of this name has."""
        return 1.0

    def embed(self, subgraph: Subgraph) -> Tensor:
        """The last hidden layer [R, n, h] of the subgraph's nodes; the logits where there is none to be had."""
        out: Tensor = self(subgraph)
        return out

    def loss(self, subgraph: Subgraph, targets: "Targets", masks: DropoutMasks, transition: Tensor | None) -> Tensor:
        """The training loss of every run [R] over the subgraph's nodes."""
        return targets.cross_entropy(self(subgraph, masks), transition)

    def weights(self) -> dict[str, Tensor]:
        """A copy of every parameter and buffer, each [R, …]."""
        return {name: value.detach().clone() for name, value in self.state_dict().items()}

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Take these weights, in place."""
        with torch.no_grad():
            for name, value in self.state_dict().items():
                value.copy_(weights[name])


@dataclass(frozen=True, eq=False)
class Targets:
    """What some nodes are trained towards: a class each, or a distribution over the classes."""

    target: Tensor  # long [R, n], -1 = none
    weight: Tensor  # float [R, n]
    belief: Tensor | None = None  # float [R, n, C], zeros where target is -1; None = hard labels

    @cached_property
    def counts(self) -> Tensor:
        """How many nodes of a run have a target: long [R]."""
        return (self.target >= 0).sum(1)

    def at(self, nodes: Tensor) -> "Targets":
        """Those of some of the nodes, long [n]."""
        belief = None if self.belief is None else self.belief[:, nodes].contiguous()
        return Targets(self.target[:, nodes].contiguous(), self.weight[:, nodes].contiguous(), belief)

    def copy_(self, other: "Targets") -> None:
        """Write the other targets in place, where a captured epoch reads them."""
        self.target.copy_(other.target)
        self.weight.copy_(other.weight)
        if self.belief is not None and other.belief is not None:
            self.belief.copy_(other.belief)

    def cross_entropy(self, logits: Tensor, transition: Tensor | None = None) -> Tensor:
        """Mean of weight · H(q, p) per run [R], over the nodes with a target, whatever their weight.

        H(q, p) = −Σ_c q_c log p_c with the belief q, which is −log p(target) for hard labels. With a transition
        T [R, C, C], p = softmax(logits)·T: what a noisy labeller would say (DR-GST's correction).
        """
        log_p = log_softmax(logits) if transition is None else (logits.softmax(-1) @ transition).clamp_min(1e-12).log()
        if self.belief is None:
            # counted here, since a captured epoch reads targets that are written in place
            return (surprise(log_p, self.target) * self.weight).sum(1) / (self.target >= 0).sum(1)
        cross = -(self.belief * log_p).sum(-1)
        return (cross * self.weight).sum(1) / (self.target >= 0).sum(1)


def log_softmax(logits: Tensor) -> Tensor:
    """log p of every class [R, n, C]; a processor takes all nodes of a class at once, since classes are few."""
    if logits.is_cuda:
        return logits.log_softmax(-1)
    return logits.transpose(1, 2).log_softmax(1).transpose(1, 2)


def surprise(log_probs: Tensor, target: Tensor) -> Tensor:
    """−log p(target) of every node, zero where there is no target: [R, n]."""
    if not log_probs.is_cuda:
        return nn.functional.nll_loss(log_probs.transpose(1, 2), target, ignore_index=-1, reduction="none")
    flat = nn.functional.nll_loss(log_probs.flatten(0, 1), target.flatten(), ignore_index=-1, reduction="none")
    return flat.view(target.shape)


class Separate(Network):
    """R copies of an ordinary PyG module `module(x, edge_index)`, run one after the other.

    Where it has a method `embed(x, edge_index)`, that gives its last hidden layer. Its dropout draws from torch's
    global generator. On a CPU that is set to the run's own stream and put back; a GPU's cannot be switched inside a
    captured graph, so there a session seeds it once and runs draw from it in turn.
    """

    def __init__(self, build: Callable[[], nn.Module], rng: Streams):
        super().__init__()
        modules = []
        for number in rng.at("init").numbers():
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(number)
                modules.append(build())
        self._template = [modules[0]]  # in a list, so that its parameters are not ours
        self._names = {}
        for name, _ in modules[0].named_parameters():
            flat = name.replace(".", "-")
            self._names[name] = flat
            self.register_parameter(
                flat, nn.Parameter(torch.stack([dict(m.named_parameters())[name] for m in modules]).detach())
            )
        for name, _ in modules[0].named_buffers():
            flat = name.replace(".", "-")
            self._names[name] = flat
            self.register_buffer(flat, torch.stack([dict(m.named_buffers())[name] for m in modules]))

    def forward(self, subgraph: Subgraph, masks: DropoutMasks | None = None) -> Tensor:
        stacked = {name: getattr(self, flat) for name, flat in self._names.items()}
        return self._each(self._template[0], stacked, subgraph, masks)

    def embed(self, subgraph: Subgraph) -> Tensor:
        if not hasattr(self._template[0], "embed"):
            return super().embed(subgraph)
        stacked = {f"module.{name}": getattr(self, flat) for name, flat in self._names.items()}
        return self._each(_Embedding(self._template[0]), stacked, subgraph, None)

    def _each(
        self, template: nn.Module, stacked: Mapping[str, Tensor], subgraph: Subgraph, masks: DropoutMasks | None
    ) -> Tensor:
        """What the module makes of every run's weights: [R, n, …]."""
        if not subgraph.graphs:
            raise ValueError("a stock module sees the whole graph only")
        template.train(masks is not None)
        x = subgraph.features.dense()
        outputs = []
        with _dropping(template, None if masks is None else masks.rate):
            for run in range(subgraph.runs):
                graph = subgraph.graphs[run % len(subgraph.graphs)]
                weights = {name: value[run] for name, value in stacked.items()}
                features = x[run % len(x)]
                outputs.append(self._run(template, weights, features, graph, run, masks))
        return torch.stack(outputs)

    def _run(
        self,
        template: nn.Module,
        weights: dict[str, Tensor],
        x: Tensor,
        graph: Data,
        run: int,
        masks: DropoutMasks | None,
    ) -> Tensor:
        inputs = (x, graph.edge_index)
        if masks is None or x.is_cuda:
            out: Tensor = functional_call(template, weights, inputs)
            return out
        generator = masks.generators[run]
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(generator.get_state())
            out = functional_call(template, weights, inputs)
            generator.set_state(torch.get_rng_state())
        return out


class _Embedding(nn.Module):
    """A module that gives what another one's `embed` gives."""

    module: Any

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.module.embed(x, edge_index)
        return out


@contextmanager
def _dropping(module: nn.Module, rate: float | None) -> Iterator[None]:
    """The module with all its dropout at this rate, where one is given; its own rates come back."""
    own = []
    for part in () if rate is None else module.modules():
        name = "p" if isinstance(part, nn.Dropout) else "dropout"
        if isinstance(getattr(part, name, None), int | float):
            own.append((part, name, getattr(part, name)))
            setattr(part, name, rate)
    try:
        yield
    finally:
        for part, name, value in own:
            setattr(part, name, value)
