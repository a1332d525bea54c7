"""The adjacency in CSR, in memory or mapped from disk."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.graphs.edges import EdgeList
from bangs.graphs.sparse import Pattern, Sparse, row_pointers, row_sums
from bangs.utils import signals

if TYPE_CHECKING:
    from torch_geometric.data import Data


BAD_POINTERS = "the row pointers of a stored graph decrease; the store is damaged, so convert it again"
BAD_NODES = "an edge of a stored graph has an end that is not a node; the store is damaged, so convert it again"
EDGES_PER_CHECK = 2**24  # edges checked at once


@dataclass(frozen=True, eq=False)
class NeighbourLists:
    """The adjacency A[target, source] in CSR: row i lists the sources of node i's incoming edges."""

    pointers: Tensor  # long [N + 1]
    nodes: Tensor  # int32 or long [E]
    weights: Tensor | None = None  # float [E]
    sums: Tensor | None = None  # float [N], Σ_j A_ij, where edges have weights

    @classmethod
    def of(cls, graph: "Data | EdgeList") -> "NeighbourLists":
        """The neighbours of a graph, on its device; those of a stored graph stay on disk."""
        into: NeighbourLists | None = getattr(graph, "into", None)
        if into is not None:
            return into
        (source, target), nodes = graph.edge_index, int(graph.num_nodes or 0)
        order = target.argsort(stable=True)
        pointers = row_pointers(torch.bincount(target, minlength=nodes))
        weight = graph.get("edge_weight")
        weights = sums = None
        if weight is not None:
            weights = weight.float()[order]
            sums = row_sums(pointers, weights)
        return cls(pointers, source[order].int(), weights, sums)

    def __len__(self) -> int:
        return len(self.pointers) - 1

    @property
    def device(self) -> torch.device:
        return self.pointers.device

    def row_ranges(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """The starts of some nodes' rows, and their lengths: long [n] each."""
        starts = self.pointers[nodes]
        counts = self.pointers[nodes + 1] - starts
        if len(nodes) and (int(counts.min()) < 0 or int(starts.min()) < 0 or int(starts.max()) > len(self.nodes)):
            raise InvalidInput(BAD_POINTERS)
        return starts, counts

    def rows(self, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The edges into some nodes long [n]: their number for each node, long [n], and for every edge its source,
        long [m], and its weight, float [m]."""
        starts, counts = self.row_ranges(nodes)
        positions = ragged_index(starts, counts)
        sources = self.checked(self.nodes[positions].long())
        weights = torch.ones(len(sources), device=sources.device) if self.weights is None else self.weights[positions]
        return counts, sources, weights

    def checked(self, sources: Tensor) -> Tensor:
        """The same sources of edges; raises `InvalidInput` if one is not a node."""
        if not self._exist(sources):
            raise InvalidInput(BAD_NODES)
        return sources

    def check(self) -> None:
        """Raises `InvalidInput` if rows or nodes of a store are damaged; a product with them would crash."""
        if self._damage is not None:
            raise InvalidInput(self._damage)

    @cached_property
    def _damage(self) -> str | None:
        """The first error found in the edges; all of them are read, once."""
        if bool((self.pointers.diff() < 0).any()):
            return BAD_POINTERS
        return None if all(map(self._exist, self.nodes.split(EDGES_PER_CHECK))) else BAD_NODES

    def _exist(self, nodes: Tensor) -> bool:
        return len(nodes) == 0 or 0 <= int(nodes.min()) <= int(nodes.max()) < len(self)

    def degree(self, nodes: Tensor) -> Tensor:
        """The weighted in-degree Σ_j A_ij of some nodes: float [n]."""
        if self.sums is not None:
            return self.sums[nodes]
        return (self.pointers[nodes + 1] - self.pointers[nodes]).float()

    def blocks(self, max_edges: int) -> Iterator[tuple[slice, Sparse]]:
        """The adjacency A in blocks of rows, each with at most `max_edges` edges, or a single row with more."""
        self.check()
        ones = torch.ones(0 if self.weights is not None else min(max_edges, len(self.nodes)), device=self.device)
        start = 0
        while start < len(self):
            signals.check()
            begin = int(self.pointers[start])
            end = max(int(torch.searchsorted(self.pointers, begin + max_edges, right=True)) - 1, start + 1)
            stop = int(self.pointers[end])
            if self.weights is not None:
                weights = self.weights[begin:stop]
            else:  # one tensor serves all blocks
                weights = ones[: stop - begin] if stop - begin <= len(ones) else ones.new_ones(stop - begin)
            rows = (self.pointers[start : end + 1] - begin).int()
            yield (
                slice(start, end),
                Sparse(Pattern(rows, self.nodes[begin:stop].int(), (end - start, len(self))), weights),
            )
            start = end


def ragged_index(starts: Tensor, counts: Tensor) -> Tensor:
    """The concatenated ranges start_i … start_i + count_i − 1: long [Σ counts]."""
    before = counts.cumsum(0) - counts
    shift = (starts - before).repeat_interleave(counts)
    return torch.arange(len(shift), device=starts.device) + shift
