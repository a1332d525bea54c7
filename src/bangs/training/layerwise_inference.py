"""Layer-wise inference: the logits of all nodes, hop by hop, in blocks of nodes within a memory bound."""

import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.graphs.neighbours import BAD_POINTERS
from bangs.graphs.sparse import Pattern, Sparse
from bangs.graphs.store import mapped, release
from bangs.nn.dropout import DropoutMasks
from bangs.nn.ensemble import Network
from bangs.training.neighbour_sampling import Sampler
from bangs.utils import signals

EDGE_BYTES = 32  # per edge while its block is multiplied: column, value and temporaries


@dataclass(frozen=True)
class Layerwise:
    """Runs a network of hops over a whole graph, one layer at a time.

    The output of each layer is stored in buffers [R, N, g], each of as many columns as take half of `memory` bytes. One
    buffer stays in memory; several are temporary files (in TMPDIR), of which one is in memory at a time. The next hop
    then reads the neighbours of one block of nodes after another. Beside the logits [R, N, C] and a few numbers per
    node, the memory in use stays near `memory` bytes.
    """

    memory: int

    def __call__(self, network: Network, sampler: Sampler, runs: int, masks: DropoutMasks | None = None) -> Tensor:
        """Logits [R, N, C] on the network's device."""
        device = next(network.parameters()).device
        nodes, hops = len(sampler.neighbours), network.hops or 0
        scale = sampler.scale(torch.arange(nodes, device=sampler.neighbours.device))
        buffers: list[Tensor] = []
        for rows in self._rows(sampler, runs):
            signals.check()
            h = network.stage(0, sampler.features(rows, device, runs), masks).expand(runs, -1, -1)
            buffers = buffers or self._buffers(h, nodes, last=hops == 0)
            _store(buffers, rows, h)
            sampler.release()
        for hop in range(hops):
            inputs, buffers = buffers, []
            for rows in self._blocks(sampler, inputs):
                signals.check()
                h = network.stage(hop + 1, _gather(sampler, scale, inputs, rows).to(device), masks)
                buffers = buffers or self._buffers(h, nodes, last=hop == hops - 1)
                _store(buffers, rows, h)
                sampler.release()
        return buffers[0]

    def _buffers(self, h: Tensor, nodes: int, *, last: bool) -> list[Tensor]:
        """Empty buffers [R, N, g] for the output of a layer; one buffer for the last layer."""
        runs, _, width = h.shape
        max_columns = max(self.memory // 2 // (4 * runs * nodes), 1)
        if last or h.is_cuda or width <= max_columns:
            return [torch.empty(runs, nodes, width, device=h.device)]
        parts = []
        for start in range(0, width, max_columns):
            with tempfile.TemporaryFile() as file:
                shape = (runs, nodes, min(max_columns, width - start))
                parts.append(torch.from_numpy(mapped(file, np.float32, shape, "w+")))
        return parts

    def _rows(self, sampler: Sampler, runs: int) -> Iterator[slice]:
        """Blocks of nodes whose features and first layer take a quarter of the memory."""
        width, nodes = int(sampler.x.shape[1]), len(sampler.neighbours)
        step = max(self.memory // (4 * 4 * 3 * runs * width), 1)
        for start in range(0, nodes, step):
            yield slice(start, min(start + step, nodes))

    def _blocks(self, sampler: Sampler, buffers: Sequence[Tensor]) -> Iterator[slice]:
        """Blocks of nodes whose edges and sums take a quarter of the memory; at least one node."""
        nodes, pointers = len(sampler.neighbours), sampler.neighbours.pointers
        row_bytes = 4 * 4 * buffers[0].shape[0] * sum(buffer.shape[2] for buffer in buffers)
        start = 0
        while start < nodes:
            begin = int(pointers[start])

            def cost(end: int, start: int = start, begin: int = begin) -> int:
                return EDGE_BYTES * (int(pointers[end]) - begin) + row_bytes * (end - start)

            end = max(bisect_right(range(nodes + 1), self.memory // 4, lo=start + 1, key=cost) - 1, start + 1)
            yield slice(start, end)
            start = end


def _store(buffers: Sequence[Tensor], rows: slice, h: Tensor) -> None:
    """Write a block of rows [R, n, d] into the buffers."""
    start = 0
    for buffer in buffers:
        buffer[:, rows] = h[..., start : start + buffer.shape[2]]
        start += buffer.shape[2]
        release(buffer)


def _gather(sampler: Sampler, scale: Tensor, buffers: Sequence[Tensor], rows: slice) -> Tensor:
    """Some rows of the normalised adjacency times the buffers: [R, n, d]."""
    neighbours = sampler.neighbours
    pointers = neighbours.pointers[rows.start : rows.stop + 1]
    begin, end = int(pointers[0]), int(pointers[-1])
    counts = pointers.diff()
    if begin > end or (len(counts) and int(counts.min()) < 0) or end > len(neighbours.nodes):
        raise InvalidInput(BAD_POINTERS)
    sources = neighbours.checked(neighbours.nodes[begin:end])
    row_scale = scale[rows]
    value = row_scale.repeat_interleave(counts, output_size=len(sources))
    if sampler.normalise == "symmetric":
        value = value * scale.index_select(0, sources)
    if neighbours.weights is not None:
        value = value * neighbours.weights[begin:end]
    device = buffers[0].device  # may be a GPU while the edges stay on disk
    block = Sparse(Pattern((pointers - begin).int(), sources.int(), (len(row_scale), len(neighbours))), value).to(
        device
    )
    loop = sampler.loop_weights(row_scale).to(device)
    parts = []
    for buffer in buffers:
        parts.append(torch.stack([block @ x + loop[:, None] * x[rows] for x in buffer]))
        release(buffer)
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)
