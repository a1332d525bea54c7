"""Push: personalised PageRank of graphs too large for whole columns, with a bound on what is left out."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from bangs.core.number_checks import check_number, check_whole
from bangs.errors import InvalidInput
from bangs.graphs import push_levels
from bangs.graphs.edges import EdgeList
from bangs.graphs.neighbours import NeighbourLists, ragged_index
from bangs.graphs.sparse import Sparse
from bangs.utils import signals

if TYPE_CHECKING:
    from torch_geometric.data import Data

BLOCK = 2**24  # links multiplied, or pushed, or numbers of whole columns made at once
WHOLE = {"cuda"}  # devices that push whole columns over all links sooner than parts of them over a few
ENTRIES = 2  # numbers of a whole column that are made in the bytes of one entry of `room`
PROBE = 8  # columns tried before all are made
COARSER = 4.0  # how much the threshold rises where columns take more room than they may

Indices = npt.NDArray[np.integer[Any]]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Push:
    """The operator of `PPR` with columns by forward push: the sparse twin, for graphs in memory or on disk.

    A column P e_i is Σ_{h<steps} alpha x_h + x_steps with x_0 = e_i and x_{h+1} = (1 − alpha) Ã x_h (Andersen, Chung
    and Lang 2006, level by level). Where an entry of x_h is at most error / steps it is not pushed on but stays where
    it is. What P would have made of such entries is at most the largest of them at any node, since rows of P sum to
    one, and so is what they are; hence every entry of a column is right to within `error`, and mass is kept. An entry
    of `ExactPPR` differs by (1 − alpha)^steps more at most.
    """

    alpha: float = 0.15
    steps: int = 10
    error: float = 1e-4

    def __post_init__(self) -> None:
        check_number("Push.alpha", self.alpha)
        check_whole("Push.steps", self.steps)
        check_number("Push.error", self.error)
        if not 0 < self.alpha <= 1:
            raise InvalidInput(f"Push.alpha must lie in (0, 1], got {self.alpha}")
        if self.steps < 1:
            raise InvalidInput(f"Push.steps must be at least 1, got {self.steps}")
        if not 0 <= self.error < 1:
            raise InvalidInput(f"Push.error must lie in [0, 1), got {self.error}")

    def __call__(self, graph: "Data") -> "Pushing":
        into = NeighbourLists.of(graph)
        return Pushing(into, _turned(graph, into), self.alpha, self.steps, self.error)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The entries of K columns of P, by player and node."""

    node: Tensor  # long [M]
    player: Tensor  # long [M], rising; of equals the nodes rise
    weight: Tensor  # float [M], P[node, player]
    bound: float  # no entry, here or not, is wrong by more

    def to(self, device: torch.device | str) -> "Pairs":
        return Pairs(self.node.to(device), self.player.to(device), self.weight.to(device), self.bound)


@dataclass(frozen=True, eq=False)
class Pushing:
    """The operator of `Push`; a product takes blocks of links, a column takes the links it reaches."""

    into: NeighbourLists  # A by target
    out: NeighbourLists  # A by source
    alpha: float
    steps: int
    error: float

    def __call__(self, x: Tensor) -> Tensor:
        """P x: [N, M] -> [N, M]."""
        return self._iterate(x, forward=True)

    def adjoint(self, x: Tensor) -> Tensor:
        """Pᵀ x: [N, M] -> [N, M]."""
        return self._iterate(x, forward=False)

    def columns(self, nodes: Tensor) -> Tensor:
        """The columns P[:, nodes] of some nodes long [K], whole: float [N, K]."""
        pairs = self.pairs(nodes)
        whole = torch.zeros(len(self.into), len(nodes))
        whole[pairs.node, pairs.player] = pairs.weight
        return whole.to(self.into.device)

    def pairs(self, nodes: Tensor, room: int | None = None) -> Pairs:
        """The columns of some nodes long [K] where they are not zero, with at most `room` entries in all.

        Where there would be more, the threshold below which nothing is pushed on rises, and the bound with it. Left
        on the processor, wherever they were made.
        """
        threshold = self.threshold(nodes, room)
        while (found := self.pushed(nodes, threshold, room)) is None:
            threshold = coarser(threshold)
        if found.bound > self.error:
            log.info(
                "influence of %d candidates within %.1e, not %.1e; a larger budget allows more",
                *(len(nodes), found.bound, self.error),
            )
        return found

    def threshold(self, nodes: Tensor, room: int | None) -> float:
        """What entries must exceed to be pushed on: what the error asks for, or more where a few columns tell so."""
        threshold = self.error / self.steps
        if room is not None and len(nodes) > PROBE:
            few = nodes[:: len(nodes) // PROBE]
            while self.pushed(few, threshold, room * len(few) // len(nodes)) is None:
                threshold = coarser(threshold)
        return threshold

    def pushed(self, nodes: Tensor, threshold: float, room: int | None) -> Pairs | None:
        """The columns of some nodes at a threshold, or None where they have more than `room` entries."""
        if self.into.device.type in WHOLE:
            return self._whole(nodes.to(self.into.device), threshold, room)
        return self._all(nodes.cpu().numpy(), threshold, room)

    def _whole(self, nodes: Tensor, threshold: float, room: int | None) -> Pairs | None:
        """What `_all` gives, by whole columns [N, c], as many at once as take no more than a block or the room."""
        size, taken, bound = len(self.into), 0, 0.0
        none = torch.empty(0, dtype=torch.long)
        found = [(none, none, torch.empty(0))]
        width = max(1, min(BLOCK, ENTRIES * (BLOCK if room is None else room)) // size)
        for first in range(0, len(nodes), width):
            signals.check()
            own = nodes[first : first + width]
            start = torch.zeros(size, len(own), device=nodes.device)
            start[own, torch.arange(len(own), device=nodes.device)] = 1
            columns, missed = push_levels.pushed(self._hop, start, self.alpha, self.steps, threshold)
            lines = columns.T.contiguous()
            player, node = lines.nonzero().unbind(1)
            bound, taken = max(bound, float(missed.max())), taken + len(node)
            if room is not None and taken > room:
                return None
            found.append((node.cpu(), (player + first).cpu(), lines[player, node].cpu()))
        node, player, weight = (torch.cat(parts) for parts in zip(*found, strict=True))
        return Pairs(node, player, weight, bound)

    def _hop(self, told: Tensor) -> Tensor:
        """Ã x: [N, M] -> [N, M]."""
        factor = torch.empty_like(told)
        for rows, matrix in self._blocks(self.into):
            factor[rows] = matrix.matmul(told).add_(told[rows]).mul_(self._shares[rows])
        return factor

    def _all(self, nodes: Indices, threshold: float, room: int | None) -> Pairs | None:
        """All columns at a threshold, or None where they do not fit; players in groups whose links fit a block."""
        done: list[sp.csr_array[Any]] = []
        waiting, bound, taken = [nodes], 0.0, 0
        while waiting:
            signals.check()
            group = waiting.pop()
            pushed = self._push(group, threshold)
            if pushed is None:
                half = len(group) // 2
                waiting += [group[half:], group[:half]]
                continue
            columns, missed = pushed
            done.append(columns)
            bound, taken = max(bound, missed), taken + columns.nnz
            if room is not None and taken > room:
                return None
        whole = sp.vstack(done, format="csr")
        player = np.repeat(np.arange(len(nodes)), np.diff(whole.indptr))
        node, weight = whole.indices.astype(np.int64), whole.data.astype(np.float32)
        return Pairs(torch.from_numpy(node), torch.from_numpy(player), torch.from_numpy(weight), bound)

    def _push(self, nodes: Indices, threshold: float) -> "tuple[sp.csr_array[Any], float] | None":
        """The columns of some nodes as rows [k, N], and their bound.

        None where more than a block of links would be pushed at once, and there are nodes to do without.
        """
        shape = (len(nodes), len(self.into))
        now = sp.csr_array((np.ones(len(nodes)), nodes, np.arange(len(nodes) + 1)), shape=shape)
        settled, bound = [], 0.0
        for _ in range(self.steps):
            large = now.data > threshold
            bound += float(now.data.max(initial=0.0, where=~large))
            settled.append(_valued(now, np.where(large, self.alpha * now.data, now.data)))
            active = _valued(now, np.where(large, (1 - self.alpha) * now.data, 0.0))
            active.eliminate_zeros()
            pushed = self._spread(active)
            if pushed is None:
                return None
            now = pushed
        return _added([*settled, now]), bound

    def _spread(self, rows: "sp.csr_array[Any]") -> "sp.csr_array[Any] | None":
        """Rows [k, N] times Ãᵀ, or None where that is too much at once; reads the links of nodes in the rows alone."""
        out = self._links[1]
        nodes, place = np.unique(rows.indices, return_inverse=True)
        starts, counts = out.row_ranges(torch.from_numpy(nodes.astype(np.int64)))
        if int(counts[torch.from_numpy(place)].sum()) > BLOCK and rows.shape[0] > 1:
            return None
        places = ragged_index(starts, counts)
        target = out.nodes[places].long()
        # a node also hears itself
        factor = np.concatenate([target.numpy(), nodes])
        value = (
            np.ones(len(factor)) if out.weights is None else np.concatenate([out.weights[places], np.ones(len(nodes))])
        )
        value *= self._share(torch.from_numpy(factor.astype(np.int64))).double().numpy()
        line = np.concatenate([np.repeat(np.arange(len(nodes)), counts.numpy()), np.arange(len(nodes))])
        matrix = sp.csr_array((value, (line, factor)), shape=(len(nodes), rows.shape[1]))
        local = sp.csr_array((rows.data, place, rows.indptr), shape=(rows.shape[0], len(nodes)))
        product: sp.csr_array[Any] = local @ matrix
        return product

    @cached_property
    def _links(self) -> tuple[NeighbourLists, NeighbourLists]:
        """The links by target and by source where numpy can read them."""
        into = _on_processor(self.into)
        return into, into if self.out is self.into else _on_processor(self.out)

    def _share(self, nodes: Tensor) -> Tensor:
        """1 / d̂ of some nodes: float [n]."""
        return 1 / (self._links[0].degree(nodes) + 1.0)

    @cached_property
    def _shares(self) -> Tensor:
        """1 / d̂ of all nodes where the links are: float [N, 1]."""
        return (1 / (self.into.degree(torch.arange(len(self.into), device=self.into.device)) + 1.0))[:, None]

    def _blocks(self, neighbours: NeighbourLists) -> "Iterator[tuple[slice, Sparse]]":
        """The adjacency in blocks of rows; a GPU keeps them, a processor reads them again from wherever they are."""
        if neighbours.device.type == "cpu":
            return neighbours.blocks(BLOCK)
        return iter(self._kept[neighbours is not self.into])

    @cached_property
    def _kept(self) -> "tuple[list[tuple[slice, Sparse]], list[tuple[slice, Sparse]]]":
        """The blocks by target and by source."""
        into = list(self.into.blocks(BLOCK))
        return into, into if self.out is self.into else list(self.out.blocks(BLOCK))

    def _iterate(self, x: Tensor, *, forward: bool) -> Tensor:
        """`steps` products with Ã, or its transpose, each in blocks of rows."""
        neighbours = self.into if forward else self.out
        first = x.to(neighbours.device)
        now, free = first, torch.empty_like(first)
        for step in range(self.steps):
            signals.check()
            told = now if forward else now * self._shares
            for rows, matrix in self._blocks(neighbours):
                factor = matrix.matmul(told) + told[rows]
                if forward:
                    factor *= self._shares[rows]
                torch.add(self.alpha * first[rows], factor, alpha=1 - self.alpha, out=free[rows])
            # two buffers take turns; the argument itself is never written to
            now, free = free, torch.empty_like(first) if step == 0 and self.steps > 1 else now
        return now.to(x.device)


def coarser(threshold: float) -> float:
    """The next threshold to try."""
    return max(threshold, 1e-9) * COARSER


def _turned(graph: "Data", into: NeighbourLists) -> NeighbourLists:
    """The links by source."""
    if hasattr(graph, "out"):
        out: NeighbourLists = graph.out
        return out
    weight = graph.get("edge_weight")
    if weight is None and graph.is_undirected():
        return into
    return NeighbourLists.of(EdgeList(graph.edge_index.flip(0), int(graph.num_nodes or 0), weight))


def _on_processor(neighbours: NeighbourLists) -> NeighbourLists:
    parts = (neighbours.pointers, neighbours.nodes, neighbours.weights, neighbours.sums)
    return NeighbourLists(*(part if part is None else part.cpu() for part in parts))  # type: ignore[arg-type]


def _valued(rows: "sp.csr_array[Any]", data: "npt.NDArray[Any]") -> "sp.csr_array[Any]":
    return sp.csr_array((data, rows.indices, rows.indptr), shape=rows.shape, copy=True)


def _added(parts: "list[sp.csr_array[Any]]") -> "sp.csr_array[Any]":
    """The sum of sparse matrices, nodes rising in every row."""
    lines = [np.repeat(np.arange(part.shape[0]), np.diff(part.indptr)) for part in parts]
    data, cols = (np.concatenate([getattr(part, name) for part in parts]) for name in ("data", "indices"))
    return sp.csr_array((data, (np.concatenate(lines), cols)), shape=parts[0].shape)
