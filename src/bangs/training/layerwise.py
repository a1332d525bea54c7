"""Layerwise: the logits of all nodes, one hop after the other, in blocks of nodes that fit a bound of bytes."""

import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.graphs.sparse import Pattern, Sparse
from bangs.graphs.store import mapped, release
from bangs.nn.dropout import DropoutMasks
from bangs.nn.ensemble import Network
from bangs.nn.subgraphs import Features
from bangs.training.sampling import Sampler
from bangs.utils import signals

LINK = 32  # bytes of a link while its block is multiplied: a column, a value and what makes it


@dataclass(frozen=True)
class Layerwise:
    """Runs a network of hops over a whole graph without a subgraph of the whole graph.

    Before a hop, every node's numbers are laid down on shelves [R, N, g], as many columns on one as take half of
    `memory` bytes: in memory where one shelf is enough, else in temporary files (TMPDIR says where), of which the
    pages of one are in memory at a time. After it, a block of nodes gathers what its links lead to. What is in use at
    once, beside the logits [R, N, C] that come out and a few numbers a node, stays near `memory`.
    """

    memory: int

    def __call__(self, network: Network, sampler: Sampler, runs: int, masks: DropoutMasks | None = None) -> Tensor:
        """Logits [R, N, C] on the network's device."""
        device = next(network.parameters()).device
        nodes, hops = len(sampler.links), network.hops or 0
        scale = sampler.scale(torch.arange(nodes, device=sampler.links.device))
        shelves: list[Tensor] = []
        for rows in self._rows(sampler, runs):
            signals.check()
            made = network.stage(0, _features(sampler, rows, runs, device), masks).expand(runs, -1, -1)
            shelves = shelves or self._shelves(made, nodes, last=hops == 0)
            _put(shelves, rows, made)
            sampler.release()
        for hop in range(hops):
            before, shelves = shelves, []
            for rows in self._blocks(sampler, before):
                signals.check()
                made = network.stage(hop + 1, _gather(sampler, scale, before, rows).to(device), masks)
                shelves = shelves or self._shelves(made, nodes, last=hop == hops - 1)
                _put(shelves, rows, made)
                sampler.release()
        return shelves[0]

    def _shelves(self, made: Tensor, nodes: int, *, last: bool) -> list[Tensor]:
        """Room [R, N, g] for what is made of all nodes; the logits, which come last, have it in one piece."""
        runs, _, width = made.shape
        most = max(self.memory // 2 // (4 * runs * nodes), 1)
        if last or made.is_cuda or width <= most:
            return [torch.empty(runs, nodes, width, device=made.device)]
        found = []
        for start in range(0, width, most):
            with tempfile.TemporaryFile() as file:
                shape = (runs, nodes, min(most, width - start))
                found.append(torch.from_numpy(mapped(file, np.float32, shape, "w+")))
        return found

    def _rows(self, sampler: Sampler, runs: int) -> Iterator[slice]:
        """Blocks of nodes whose features, and what becomes of them, take a quarter of the memory."""
        width, nodes = int(sampler.x.shape[1]), len(sampler.links)
        step = max(self.memory // (4 * 4 * 3 * runs * width), 1)
        for start in range(0, nodes, step):
            yield slice(start, min(start + step, nodes))

    def _blocks(self, sampler: Sampler, shelves: Sequence[Tensor]) -> Iterator[slice]:
        """Blocks of nodes whose links and sums take a quarter of the memory; one node at the least."""
        nodes, pointers = len(sampler.links), sampler.links.pointers
        row = 4 * 4 * shelves[0].shape[0] * sum(shelf.shape[2] for shelf in shelves)
        start = 0
        while start < nodes:
            begin = int(pointers[start])

            def cost(end: int, start: int = start, begin: int = begin) -> int:
                return LINK * (int(pointers[end]) - begin) + row * (end - start)

            end = max(bisect_right(range(nodes + 1), self.memory // 4, lo=start + 1, key=cost) - 1, start + 1)
            yield slice(start, end)
            start = end


def _put(shelves: Sequence[Tensor], rows: slice, made: Tensor) -> None:
    """Lay a block [R, n, d] down in its place."""
    start = 0
    for shelf in shelves:
        shelf[:, rows] = made[..., start : start + shelf.shape[2]]
        start += shelf.shape[2]
        release(shelf)


def _features(sampler: Sampler, rows: slice, runs: int, device: torch.device) -> Features:
    found = sampler.features(rows, device)
    if isinstance(found.stored, Tensor) or runs == 1:
        return Features(runs, found.stored)
    return Features(runs, found.stored.repeat(runs))


def _gather(sampler: Sampler, scale: Tensor, shelves: Sequence[Tensor], rows: slice) -> Tensor:
    """The rows of the normalised adjacency times what lies on the shelves: [R, n, d]."""
    links = sampler.links
    pointers = links.pointers[rows.start : rows.stop + 1]
    begin, end = int(pointers[0]), int(pointers[-1])
    sources, counts = links.nodes[begin:end], pointers.diff()
    if begin > end or (len(counts) and int(counts.min()) < 0) or end > len(links.nodes):
        raise InvalidInput("the pointers of a stored graph do not rise; it is damaged, so convert it again")
    if len(sources) and not 0 <= int(sources.min()) <= int(sources.max()) < len(links):
        raise InvalidInput("a link of a stored graph leads to no node; it is damaged, so convert it again")
    own = scale[rows]
    value = own.repeat_interleave(counts, output_size=len(sources))
    if sampler.normalise == "symmetric":
        value = value * scale.index_select(0, sources)
    if links.weights is not None:
        value = value * links.weights[begin:end]
    device = shelves[0].device  # a GPU's, while the links may have stayed on a disk
    block = Sparse(Pattern((pointers - begin).int(), sources.int(), (len(own), len(links))), value).to(device)
    loop = (sampler.loops * (own * own if sampler.normalise == "symmetric" else own)).to(device)
    found = []
    for shelf in shelves:
        found.append(torch.stack([block @ of_run + loop[:, None] * of_run[rows] for of_run in shelf]))
        release(shelf)
    return found[0] if len(found) == 1 else torch.cat(found, dim=2)
