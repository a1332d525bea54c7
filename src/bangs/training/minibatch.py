"""MinibatchSession: the epochs of one run's fit in batches, drawn ahead of the steps that learn from them."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from bangs.core.rng import Streams
from bangs.nn.ensemble import Network, Targets
from bangs.training.epochs import EagerSession, Settings, TargetNodes
from bangs.training.sampling import Sampler, Sampling
from bangs.utils import signals

KEPT = 2**24  # bytes of drawn batches that are kept where every epoch draws the same
LOOK = 2  # batches' worth of nodes in one look, which keeps nothing for a gradient
AHEAD = 1  # batches drawn before they are asked for, per worker

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class NodeLoader:
    """Nodes with targets of one run, read in batches; every batch is a pure function of the streams it is given."""

    sampler: Sampler
    sampling: Sampling
    hops: int
    nodes: Tensor  # long [n], rising
    targets: Targets  # of the one run, [1, n]
    _kept: list[TargetNodes] = field(default_factory=list)

    def shuffled(self, rng: Streams) -> Iterator[TargetNodes]:
        """All nodes once, in an order of their own."""
        if self.sampling.exact and len(self.nodes) <= self.sampling.size:
            yield from self.ordered()
            return
        order = torch.randperm(len(self.nodes), generator=rng.at("order").generators()[0])
        yield from self._read(order, self.sampling.size, rng)

    def ordered(self) -> Iterator[TargetNodes]:
        """All nodes once, in their order, with neighbourhoods that are the same in every epoch, round and run."""
        if self._kept:
            yield from self._kept
            return
        parts: list[TargetNodes] = []
        size = 0
        batch = self.sampling.size * (1 if self.sampling.exact else LOOK)
        for part in self._read(torch.arange(len(self.nodes)), batch, Streams((0,)).at("look")):
            size += _bytes(part)
            parts = [*parts, part] if size <= KEPT else []
            yield part
        if size <= KEPT:
            self._kept.extend(parts)

    def _read(self, order: Tensor, size: int, rng: Streams) -> Iterator[TargetNodes]:
        batches = [order[start : start + size].sort().values for start in range(0, len(order), size)]
        draws = [partial(self.part, places, rng.at("batch", number)) for number, places in enumerate(batches)]
        return ahead(draws, self.sampling.workers)

    def part(self, places: Tensor, rng: Streams) -> TargetNodes:
        """The nodes at some places, with a neighbourhood drawn for them."""
        device = self.targets.target.device
        generator = rng.generators(self.sampler.links.device)[0]
        chosen = self.nodes[places.to(self.nodes.device)]
        seen = self.sampler.draw(chosen, self.sampling.bounds(self.hops), generator, device)
        return TargetNodes(seen, self.targets.at(places.to(device)))


class MinibatchSession(EagerSession):
    """One run, a step of Adam for every batch; an epoch reads every labelled node once.

    The validation nodes are looked at through neighbourhoods that are the same in every epoch, so that epochs are
    compared on equal terms.
    """

    def __init__(self, network: Network, train_nodes: NodeLoader, val_nodes: NodeLoader, settings: Settings):
        super().__init__(network, train_nodes, val_nodes, settings)  # type: ignore[arg-type]  # it reads targets and counts
        self.pages, self.exam = train_nodes, val_nodes

    def epoch(self) -> Tensor:
        """One step for every batch and one look at the validation nodes; whether the run improved: bool [1]."""
        rng = Streams(tuple(self.numbers))
        for part in self.pages.shuffled(rng.at("epoch", self.epochs)):
            signals.check()
            self.step(part)
        with torch.no_grad():
            logits = [self.network(part.subgraph) for part in self.exam.ordered()]
        self.pages.sampler.release()
        return self._judge(torch.cat(logits, dim=1))

    def step(self, part: TargetNodes) -> None:
        """One step of Adam on a batch."""
        self.optimiser.zero_grad()
        self.network.loss(part.subgraph, part.targets, self.masks, self.transition).sum().backward()
        self.optimiser.step()


def ahead(draws: Sequence[Callable[[], T]], workers: int) -> Iterator[T]:
    """What the calls give, in their order; threads are a few calls ahead of whoever asks."""
    if workers == 0:
        for draw in draws:
            yield draw()
        return
    with ThreadPoolExecutor(workers) as pool:
        depth = AHEAD * workers
        waiting = deque(pool.submit(draw) for draw in draws[:depth])
        for number in range(len(draws)):
            found = waiting.popleft().result()
            if number + depth < len(draws):
                waiting.append(pool.submit(draws[number + depth]))
            yield found


def _bytes(part: TargetNodes) -> int:
    hops = sum(8 * len(hop.values) for hop in part.subgraph.hops)
    stored = part.subgraph.features.stored
    return hops + 4 * (stored.numel() if isinstance(stored, Tensor) else 2 * len(stored.values))
