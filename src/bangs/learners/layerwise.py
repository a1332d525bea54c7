"""Layerwise: the logits of all nodes, one hop after the other, in blocks of nodes that fit a bound of bytes."""

import tempfile
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bangs import signals
from bangs.errors import InvalidInput
from bangs.graphs.sparse import Pattern, Sparse
from bangs.graphs.store import release
from bangs.learners.batches import Features
from bangs.learners.ensemble import Network
from bangs.learners.noise import Noise
from bangs.learners.sampling import Sampler

LINK = 32  # bytes of a link while its block is multiplied: a column, a value and what makes it


@dataclass(frozen=True)
class Layerwise:
    """Runs a network of hops over a whole graph without a field of the whole graph.

    Before a hop, every node's numbers are laid down on a shelf [R, N, d]: in memory where that takes at most half of
    `memory` bytes, else in a temporary file (TMPDIR says where). After it, a block of nodes gathers what its links
    lead to. What is in use at once, beside the logits [R, N, C] that come out and the pages of mapped files that the
    system may take back, stays below `memory`.
    """

    memory: int

    def __call__(self, network: Network, sampler: Sampler, runs: int, noise: Noise | None = None) -> Tensor:
        """Logits [R, N, C] on the network's device."""
        device = next(network.parameters()).device
        nodes, hops = len(sampler.links), network.hops or 0
        scale = sampler.scale(torch.arange(nodes, device=sampler.links.device))
        shelf: Tensor | None = None
        for rows in self._rows(sampler, runs):
            made = network.stage(0, _features(sampler, rows, runs, device), noise)
            shelf = self._put(shelf, rows, made.expand(runs, -1, -1), nodes, last=hops == 0)
        if isinstance(sampler.x, Tensor):
            release(sampler.x)
        for hop in range(hops):
            before, shelf = shelf, None
            assert before is not None  # a graph has nodes
            for rows in self._blocks(sampler, before):
                signals.check()
                made = network.stage(hop + 1, _gather(sampler, scale, before, rows).to(device), noise)
                shelf = self._put(shelf, rows, made, nodes, last=hop == hops - 1)
                release(before)
            release(sampler.links.nodes)
        assert shelf is not None
        return shelf.to(device)

    def _put(self, shelf: Tensor | None, rows: slice, made: Tensor, nodes: int, *, last: bool) -> Tensor:
        """The shelf with a block [R, n, d] in its place; a new one for the first block."""
        made = made.detach()
        if shelf is None:
            shape = (made.shape[0], nodes, made.shape[2])
            if last or made.is_cuda or 4 * made.shape[0] * nodes * made.shape[2] <= self.memory // 2:
                shelf = torch.empty(shape, device=made.device)
            else:
                with tempfile.TemporaryFile() as file:
                    shelf = torch.from_numpy(np.memmap(file, np.float32, "w+", shape=shape))
        shelf[:, rows] = made
        release(shelf)
        return shelf

    def _rows(self, sampler: Sampler, runs: int) -> Iterator[slice]:
        """Blocks of nodes whose features, and what becomes of them, take a quarter of the memory."""
        width = int(sampler.x.shape[1])
        nodes = len(sampler.links)
        step = max(self.memory // (4 * 4 * 3 * runs * width), 1)
        for start in range(0, nodes, step):
            yield slice(start, min(start + step, nodes))

    def _blocks(self, sampler: Sampler, shelf: Tensor) -> Iterator[slice]:
        """Blocks of nodes whose links and sums take a quarter of the memory; one node at the least."""
        nodes, pointers = len(sampler.links), sampler.links.pointers
        row = 4 * 4 * shelf.shape[0] * shelf.shape[2]
        start = 0
        while start < nodes:
            begin = int(pointers[start])

            def cost(end: int, start: int = start, begin: int = begin) -> int:
                return LINK * (int(pointers[end]) - begin) + row * (end - start)

            end = max(bisect_right(range(nodes + 1), self.memory // 4, lo=start + 1, key=cost) - 1, start + 1)
            yield slice(start, end)
            start = end


def _features(sampler: Sampler, rows: slice, runs: int, device: torch.device) -> Features:
    found = sampler.features(rows, device)
    if isinstance(found.stored, Tensor) or runs == 1:
        return Features(runs, found.stored)
    return Features(runs, found.stored.repeat(runs))


def _gather(sampler: Sampler, scale: Tensor, shelf: Tensor, rows: slice) -> Tensor:
    """The rows of the normalised adjacency times the shelf: [R, n, d]."""
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
    block = Sparse(Pattern((pointers - begin).int(), sources.int(), (len(own), len(links))), value)
    loop = sampler.loops * (own * own if sampler.normalise == "symmetric" else own)
    return torch.stack([block @ of_run + loop[:, None] * of_run[rows] for of_run in shelf])
