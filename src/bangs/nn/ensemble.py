"""Networks of R models in one module: every parameter leads with the run axis."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from bangs.core.rng import Streams
from bangs.graphs.sparse import Normalise
from bangs.nn.dropout import DropoutMasks
from bangs.nn.loss import Targets
from bangs.nn.subgraphs import Features, Subgraph


class Network(nn.Module):
    """R models with one forward pass; a run's logits depend on its own weights only."""

    loops: float = 1.0  # weight of the self-loops in the adjacency it propagates with
    normalise: Normalise = "symmetric"
    hops: int | None = None  # receptive field; None = needs the whole graph
    hops_first: bool = False  # whether stage 0 is linear, so that the first hop may come before it
    staged: bool = True  # whether every hop is a plain product with the adjacency, as `stage` needs

    def stage(self, number: int, h: Features | Tensor, masks: DropoutMasks | None = None) -> Tensor:
        """The node-wise computation before hop `number`, or after the last hop: [R, n, d].

        Stage 0 takes the features, stage `number` the output of hop `number − 1`; stage `hops` returns the logits.
        """
        raise NotImplementedError(f"{type(self).__name__} has no stages")

    def forward(self, subgraph: Subgraph, masks: DropoutMasks | None = None) -> Tensor:
        """Logits [R, n, C] of the subgraph's nodes; dropout where masks is given."""
        h = self.stage(0, subgraph.features, masks)
        for hop in range(self.hops or 0):
            h = self.stage(hop + 1, subgraph.propagate(hop, h), masks)
        return h

    def decay(self, name: str) -> float:
        """The factor on the trainer's weight decay for this parameter."""
        return 1.0

    def embed(self, subgraph: Subgraph) -> Tensor:
        """The last hidden layer [R, n, h] of the subgraph's nodes; the logits if there is none."""
        return self(subgraph)

    def loss(self, subgraph: Subgraph, targets: Targets, masks: DropoutMasks, transition: Tensor | None) -> Tensor:
        """The training loss of every run [R] over the subgraph's nodes."""
        return targets.cross_entropy(self(subgraph, masks), transition)

    def weights(self) -> dict[str, Tensor]:
        """A copy of every parameter and buffer, each [R, …]."""
        return {name: value.detach().clone() for name, value in self.state_dict().items()}

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Copy these weights into the parameters, in place."""
        with torch.no_grad():
            for name, value in self.state_dict().items():
                value.copy_(weights[name])


class Separate(Network):
    """R copies of an ordinary PyG module `module(x, edge_index)`, run one after the other.

    If the module has a method `embed(x, edge_index)`, it must return the last hidden layer. Dropout draws from torch's
    global generator. On a CPU that generator is set to the run's own stream and restored. On a GPU it cannot be
    switched inside a captured graph, so a session seeds it once and runs draw from it in turn.
    """

    def __init__(self, build: Callable[[], nn.Module], rng: Streams):
        super().__init__()
        modules = []
        for number in rng.at("init").numbers():
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(number)
                modules.append(build())
        self._template = [modules[0]]  # in a list, so that torch does not register its parameters
        parameters, buffers = stack_module_state(modules)
        self._names = {name: name.replace(".", "-") for name in (*parameters, *buffers)}
        for name, stacked in parameters.items():
            self.register_parameter(self._names[name], nn.Parameter(stacked.detach()))
        for name, stacked in buffers.items():
            self.register_buffer(self._names[name], stacked)

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
        """The outputs of the module with every run's weights: [R, n, …]."""
        if not subgraph.graphs:
            raise ValueError("an ordinary module needs the whole graph")
        template.train(masks is not None)
        x = subgraph.features.dense()
        outputs = []
        with _dropout_rate(template, None if masks is None else masks.rate):
            for run in range(subgraph.runs):
                graph = subgraph.graphs[run % len(subgraph.graphs)]
                weights = {name: value[run] for name, value in stacked.items()}
                with _global_generator(None if masks is None or x.is_cuda else masks.generators[run]):
                    outputs.append(functional_call(template, weights, (x[run % len(x)], graph.edge_index)))
        return torch.stack(outputs)


class _Embedding(nn.Module):
    """A module whose forward is another module's `embed`."""

    module: Any

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.module.embed(x, edge_index)


@contextmanager
def _global_generator(generator: torch.Generator | None) -> Iterator[None]:
    """Inside, torch draws from this generator on a CPU, if one is given; the global one is restored."""
    if generator is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(generator.get_state())
        yield
        generator.set_state(torch.get_rng_state())


@contextmanager
def _dropout_rate(module: nn.Module, rate: float | None) -> Iterator[None]:
    """Inside, all dropout layers of the module have this rate, if one is given; the old rates are restored."""
    saved = []
    for layer in () if rate is None else module.modules():
        name = "p" if isinstance(layer, nn.Dropout) else "dropout"
        if isinstance(getattr(layer, name, None), int | float):
            saved.append((layer, name, getattr(layer, name)))
            setattr(layer, name, rate)
    try:
        yield
    finally:
        for layer, name, value in saved:
            setattr(layer, name, value)
