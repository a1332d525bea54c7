"""Mini-batch training of one run, with neighbourhoods sampled ahead of the training steps."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from bangs.core.rng import Streams
from bangs.nn.ensemble import Network
from bangs.nn.loss import Targets
from bangs.training.epoch_loop import EagerSession, TargetNodes
from bangs.training.neighbour_sampling import Sampler, Sampling
from bangs.utils import signals

if TYPE_CHECKING:
    from bangs.training.trainer import Trainer

CACHE_BYTES = 2**24  # of sampled batches that are kept if every epoch samples the same
VAL_BATCHES = 2  # a validation batch is this many times as large, since it needs no gradient
PREFETCH = 1  # batches sampled ahead, per worker

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class NodeLoader:
    """Batches of one run's nodes with targets; a batch is a pure function of its random stream.

    With soft labels, where nearly all nodes have a target, an epoch has the `given` nodes and a sample of the others.
    """

    sampler: Sampler
    sampling: Sampling
    hops: int
    nodes: Tensor  # long [n], sorted
    targets: Targets  # of the one run, [1, n]
    given: Tensor | None = None  # bool [n], nodes that every epoch has; None = all
    _cached: list[TargetNodes] = field(default_factory=list)

    @classmethod
    def of_soft_labels(
        cls, sampler: Sampler, sampling: Sampling, hops: int, nodes: Tensor, targets: Targets, given: Tensor
    ) -> "NodeLoader":
        """Batches whose mean loss over an epoch has the expectation of the loss of all nodes.

        Of n nodes with g given ones an epoch has m, all given and f of the n − g others, so that weights are multiplied
        by m / n, and those of the others by (n − g) / f as well.
        """
        n, g = len(nodes), int(given.sum())
        f = _sample_size(n, g, sampling.size)
        factor = torch.where(given, 1.0, (n - g) / max(f, 1)) * ((g + f) / n)
        weighted = replace(targets, weight=targets.weight * factor.to(targets.weight))
        return cls(sampler, sampling, hops, nodes, weighted, given.cpu())

    def order(self, rng: Streams) -> Tensor:
        """The positions of an epoch's nodes in random order: long [m]."""
        generator = rng.at("order").generators()[0]
        if self.given is None:
            return torch.randperm(len(self.nodes), generator=generator)
        given, others = self.given.nonzero().squeeze(1), (~self.given).nonzero().squeeze(1)
        size = _sample_size(len(self.nodes), len(given), self.sampling.size)
        epoch = torch.cat([given, others[torch.randperm(len(others), generator=generator)[:size]]])
        return epoch[torch.randperm(len(epoch), generator=generator)]

    def shuffled(self, rng: Streams) -> Iterator[TargetNodes]:
        """An epoch's nodes, each once, in random order."""
        if self.sampling.exact and self.given is None and len(self.nodes) <= self.sampling.size:
            yield from self.ordered()
            return
        yield from self._batches(self.order(rng), self.sampling.size, rng)

    def ordered(self) -> Iterator[TargetNodes]:
        """All nodes once, in order, with neighbourhoods that are the same in every epoch, round and run."""
        if self._cached:
            yield from self._cached
            return
        parts: list[TargetNodes] = []
        size = 0
        batch = self.sampling.size * (1 if self.sampling.exact else VAL_BATCHES)
        for part in self._batches(torch.arange(len(self.nodes)), batch, Streams((0,)).at("look")):
            size += _bytes(part)
            parts = [*parts, part] if size <= CACHE_BYTES else []
            yield part
        if size <= CACHE_BYTES:
            self._cached.extend(parts)

    def _batches(self, order: Tensor, size: int, rng: Streams) -> Iterator[TargetNodes]:
        batches = [order[start : start + size].sort().values for start in range(0, len(order), size)]
        draws = [partial(self.part, index, rng.at("batch", number)) for number, index in enumerate(batches)]
        return prefetch(draws, self.sampling.workers)

    def part(self, index: Tensor, rng: Streams) -> TargetNodes:
        """The nodes at these positions, with a sampled neighbourhood."""
        device = self.targets.target.device
        generator = rng.generators(self.sampler.neighbours.device)[0]
        chosen = self.nodes[index.to(self.nodes.device)]
        subgraph = self.sampler.draw(chosen, self.sampling.bounds(self.hops), generator, device)
        return TargetNodes(subgraph, self.targets.at(index.to(device)))


class MinibatchSession(EagerSession):
    """A step of Adam for every batch of one run; an epoch uses every labelled node once, or a sample (`NodeLoader`).

    Validation samples the same neighbourhoods in every epoch, so that epochs are comparable.
    """

    def __init__(self, network: Network, train_nodes: NodeLoader, val_nodes: NodeLoader, settings: "Trainer"):
        super().__init__(network, train_nodes, val_nodes, settings)  # type: ignore[arg-type]  # the base class reads only `targets`
        self.train_loader, self.val_loader = train_nodes, val_nodes

    def epoch(self) -> Tensor:
        """One step for every batch and one validation; returns whether the run improved: bool [1]."""
        rng = Streams(tuple(self.numbers))
        for part in self.train_loader.shuffled(rng.at("epoch", self.epochs)):
            signals.check()
            self.step(part)
        with torch.no_grad():
            logits = [self.network(part.subgraph) for part in self.val_loader.ordered()]
        self.train_loader.sampler.release()
        return self._update_best(torch.cat(logits, dim=1))


def _sample_size(nodes: int, given: int, size: int) -> int:
    """How many nodes that were not given an epoch has: at least as many as given ones, in full batches."""
    steps = max(1, -(-2 * given // size))
    return min(nodes - given, steps * size - given)


def prefetch(draws: Sequence[Callable[[], T]], workers: int) -> Iterator[T]:
    """The results of the calls, in order; worker threads compute a few of them ahead."""
    if workers == 0:
        for draw in draws:
            yield draw()
        return
    with ThreadPoolExecutor(workers) as pool:
        depth = PREFETCH * workers
        waiting = deque(pool.submit(draw) for draw in draws[:depth])
        for number in range(len(draws)):
            result = waiting.popleft().result()
            if number + depth < len(draws):
                waiting.append(pool.submit(draws[number + depth]))
            yield result


def _bytes(part: TargetNodes) -> int:
    hops = sum(8 * len(hop.values) for hop in part.subgraph.hops)
    stored = part.subgraph.features.stored
    return hops + 4 * (stored.numel() if isinstance(stored, Tensor) else 2 * len(stored.values))
