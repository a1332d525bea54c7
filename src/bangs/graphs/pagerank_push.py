"""Personalised PageRank of large graphs by forward push, with an error bound."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy  # its `sparse` is imported when first used
import torch
from torch import Tensor

from bangs.graphs.edges import EdgeList
from bangs.graphs.neighbours import NeighbourLists
from bangs.graphs.sparse import Sparse
from bangs.utils import signals
from bangs.utils.setting_checks import check_integer, check_number

if TYPE_CHECKING:
    from torch_geometric.data import Data

BLOCK_SIZE = 2**24  # edges, or numbers of dense columns, processed at once
SPARSE_DEVICES = {"cpu"}  # devices on which sparse columns are faster than dense ones over all edges
DENSE_RATIO = 2  # numbers of a dense column that take as much memory as one sparse entry
TRIAL_COLUMNS = 8  # computed first to find the threshold
THRESHOLD_FACTOR = 4.0  # by which the threshold grows if columns have too many entries

Indices = npt.NDArray[np.integer[Any]]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Push:
    """The operator of `PPR` with sparse columns by forward push, for large graphs in memory or on disk.

    A column P e_i is Σ_{h<steps} alpha x_h + x_steps with x_0 = e_i and x_{h+1} = (1 − alpha) Ã x_h (Andersen, Chung
    and Lang 2006, level by level). An entry of x_h of at most error / steps is not pushed on but stays at its
    node. Rows of P sum to one, so at any node such entries would contribute at most the largest of them; hence every
    entry of a column has an error of at most `error`, and mass is conserved. The error against `ExactPPR` is larger by
    (1 − alpha)^steps at most.
    """

    alpha: float = 0.15
    steps: int = 10
    error: float = 1e-4

    def __post_init__(self) -> None:
        check_number("Push.alpha", self.alpha, within="(0, 1]")
        check_integer("Push.steps", self.steps, least=1)
        check_number("Push.error", self.error, within="[0, 1)")

    def __call__(self, graph: "Data") -> "PushOperator":
        into = NeighbourLists.of(graph)
        return PushOperator(into, _by_source(graph, into), self.alpha, self.steps, self.error)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The nonzero entries of K columns of P, by player and node."""

    node: Tensor  # long [M]
    player: Tensor  # long [M], sorted; nodes are sorted within a player
    weight: Tensor  # float [M], P[node, player]
    bound: float  # on the error of every entry, also of those left out

    def to(self, device: torch.device | str) -> "Pairs":
        return Pairs(self.node.to(device), self.player.to(device), self.weight.to(device), self.bound)


@dataclass(frozen=True, eq=False)
class PushOperator:
    """The operator of `Push`; a product reads edges in blocks, a column reads only the edges it reaches."""

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
        """The dense columns P[:, nodes] of some nodes long [K]: float [N, K]."""
        pairs = self.pairs(nodes)
        dense = torch.zeros(len(self.into), len(nodes))
        dense[pairs.node, pairs.player] = pairs.weight
        return dense.to(self.into.device)

    def pairs(self, nodes: Tensor, max_entries: int | None = None) -> Pairs:
        """The nonzero entries of some nodes' columns long [K], at most `max_entries` in all, on the CPU.

        If there would be more, the push threshold is raised, and the error bound with it.
        """
        threshold = self.threshold(nodes, max_entries)
        while (pairs := self.push(nodes, threshold, max_entries)) is None:
            threshold = raised_threshold(threshold)
        if pairs.bound > self.error:
            log.info(
                "error bound of the PPR columns of %d candidates is %.1e, not %.1e; a larger budget allows more",
                *(len(nodes), pairs.bound, self.error),
            )
        return pairs

    def threshold(self, nodes: Tensor, max_entries: int | None) -> float:
        """The push threshold: error / steps, or more if a few trial columns have too many entries."""
        threshold = self.error / self.steps
        if max_entries is not None and len(nodes) > TRIAL_COLUMNS:
            trial = nodes[:: len(nodes) // TRIAL_COLUMNS]
            while self.push(trial, threshold, max_entries * len(trial) // len(nodes)) is None:
                threshold = raised_threshold(threshold)
        return threshold

    def push(self, nodes: Tensor, threshold: float, max_entries: int | None) -> Pairs | None:
        """The columns of some nodes at a threshold, or None if they have more than `max_entries` entries."""
        if self.into.device.type in SPARSE_DEVICES:
            return self._push_sparse(nodes.cpu().numpy(), threshold, max_entries)
        return self._push_dense(nodes.to(self.into.device), threshold, max_entries)

    def _push_dense(self, nodes: Tensor, threshold: float, max_entries: int | None) -> Pairs | None:
        """The same as `_push_sparse` by dense columns [N, c], as many at once as a block or `max_entries` allow."""
        size, entries, bound = len(self.into), 0, 0.0
        empty = torch.empty(0, dtype=torch.long)
        parts = [(empty, empty, torch.empty(0))]
        width = max(1, min(BLOCK_SIZE, DENSE_RATIO * (BLOCK_SIZE if max_entries is None else max_entries)) // size)
        for first in range(0, len(nodes), width):
            signals.check()
            chunk = nodes[first : first + width]
            start = torch.zeros(size, len(chunk), device=nodes.device)
            start[chunk, torch.arange(len(chunk), device=nodes.device)] = 1
            columns, bounds = push_dense(self._hop, start, self.alpha, self.steps, threshold)
            rows = columns.T.contiguous()
            player, node = rows.nonzero().unbind(1)
            bound, entries = max(bound, float(bounds.max())), entries + len(node)
            if max_entries is not None and entries > max_entries:
                return None
            parts.append((node.cpu(), (player + first).cpu(), rows[player, node].cpu()))
        node, player, weight = (torch.cat(part) for part in zip(*parts, strict=True))
        return Pairs(node, player, weight, bound)

    def _hop(self, x: Tensor) -> Tensor:
        """Ã x: [N, M] -> [N, M]."""
        out = torch.empty_like(x)
        for rows, product in self._products(x, forward=True):
            out[rows] = product
        return out

    def _push_sparse(self, nodes: Indices, threshold: float, max_entries: int | None) -> Pairs | None:
        """All columns at a threshold, or None if there are too many entries; in groups whose edges fit a block."""
        done: list[scipy.sparse.csr_array[Any]] = []
        groups, bound, entries = [nodes], 0.0, 0
        while groups:
            signals.check()
            group = groups.pop()
            pushed = self._push_group(group, threshold)
            if pushed is None:
                half = len(group) // 2
                groups += [group[half:], group[:half]]
                continue
            columns, group_bound = pushed
            done.append(columns)
            bound, entries = max(bound, group_bound), entries + columns.nnz
            if max_entries is not None and entries > max_entries:
                return None
        rows = scipy.sparse.vstack(done, format="csr")
        player = np.repeat(np.arange(len(nodes)), np.diff(rows.indptr))
        node, weight = rows.indices.astype(np.int64), rows.data.astype(np.float32)
        return Pairs(torch.from_numpy(node), torch.from_numpy(player), torch.from_numpy(weight), bound)

    def _push_group(self, nodes: Indices, threshold: float) -> "tuple[scipy.sparse.csr_array[Any], float] | None":
        """The columns of some nodes as rows [k, N], and their bound.

        None if a group of several nodes would push more than a block of edges at once.
        """
        shape = (len(nodes), len(self.into))
        start = np.ones(len(nodes)), nodes, np.arange(len(nodes) + 1)
        current: scipy.sparse.csr_array[Any] = scipy.sparse.csr_array(start, shape=shape)
        settled: list[scipy.sparse.csr_array[Any]] = []
        bound = 0.0
        for _ in range(self.steps):
            large = current.data > threshold
            bound += float(current.data.max(initial=0.0, where=~large))
            settled.append(current.copy())
            settled[-1].data[large] *= self.alpha
            current.data = np.where(large, (1 - self.alpha) * current.data, 0.0)
            current.eliminate_zeros()
            pushed = self._push_level(current)
            if pushed is None:
                return None
            current = pushed
        return _sum([*settled, current]), bound

    def _push_level(self, rows: "scipy.sparse.csr_array[Any]") -> "scipy.sparse.csr_array[Any] | None":
        """Rows [k, N] times Ãᵀ, reading only the edges of their nodes; None if those are too many at once."""
        nodes, local_index = np.unique(rows.indices, return_inverse=True)
        pushed = torch.from_numpy(nodes.astype(np.int64))
        _, counts = self.out.row_ranges(pushed)
        if int(counts[torch.from_numpy(local_index)].sum()) > BLOCK_SIZE and rows.shape[0] > 1:
            return None
        _, target, weight = self.out.rows(pushed)
        # every node has a self-loop
        receivers = np.concatenate([target.numpy(), nodes])
        value = np.concatenate([weight.numpy(), np.ones(len(nodes))])
        degree = self.into.degree(torch.from_numpy(receivers.astype(np.int64)))
        value *= (1 / (degree + 1.0)).double().numpy()
        row = np.concatenate([np.repeat(np.arange(len(nodes)), counts.numpy()), np.arange(len(nodes))])
        matrix = scipy.sparse.csr_array((value, (row, receivers)), shape=(len(nodes), rows.shape[1]))
        local = scipy.sparse.csr_array((rows.data, local_index, rows.indptr), shape=(rows.shape[0], len(nodes)))
        product: scipy.sparse.csr_array[Any] = local @ matrix
        return product

    @cached_property
    def _inverse_degrees(self) -> Tensor:
        """1 / d̂ of all nodes, on the device of the graph: float [N, 1]."""
        return (1 / (self.into.degree(torch.arange(len(self.into), device=self.into.device)) + 1.0))[:, None]

    def _blocks(self, neighbours: NeighbourLists) -> "Iterator[tuple[slice, Sparse]]":
        """The adjacency in blocks of rows; cached on a GPU, read again each time on a CPU."""
        if neighbours.device.type == "cpu":
            return neighbours.blocks(BLOCK_SIZE)
        return iter(self._cached_blocks[neighbours is not self.into])

    @cached_property
    def _cached_blocks(self) -> "tuple[list[tuple[slice, Sparse]], list[tuple[slice, Sparse]]]":
        """The blocks by target and by source."""
        into = list(self.into.blocks(BLOCK_SIZE))
        return into, into if self.out is self.into else list(self.out.blocks(BLOCK_SIZE))

    def _iterate(self, x: Tensor, *, forward: bool) -> Tensor:
        """`steps` products with Ã, or its transpose, each in blocks of rows."""
        first = x.to(self.into.device)
        current, buffer = first, torch.empty_like(first)
        for step in range(self.steps):
            signals.check()
            for rows, product in self._products(current, forward):
                torch.add(self.alpha * first[rows], product, alpha=1 - self.alpha, out=buffer[rows])
            # two buffers take turns; the argument is never overwritten
            current, buffer = buffer, torch.empty_like(first) if step == 0 and self.steps > 1 else current
        return current.to(x.device)

    def _products(self, x: Tensor, forward: bool) -> Iterator[tuple[slice, Tensor]]:
        """Ã x, or Ãᵀ x, in blocks of rows."""
        x = x if forward else x * self._inverse_degrees
        for rows, matrix in self._blocks(self.into if forward else self.out):
            product = matrix.matmul(x).add_(x[rows])
            yield rows, product.mul_(self._inverse_degrees[rows]) if forward else product


def push_dense(
    hop: Callable[[Tensor], Tensor], start: Tensor, alpha: float, steps: int, threshold: float
) -> tuple[Tensor, Tensor]:
    """The columns [N, c] by forward push from `start` [N, c], which is overwritten, and their error bounds [c].

    `hop` computes Ã x of x [N, c]. Entries of at most the threshold are not pushed on, as in `Push`.
    """
    current, settled = start, torch.zeros_like(start)
    bound = torch.zeros(start.shape[1], device=start.device)
    for _ in range(steps):
        small = current <= threshold
        bound += (current * small).amax(0)
        settled += torch.where(small, current, alpha * current)
        current = hop(current.masked_fill_(small, 0.0).mul_(1 - alpha))
    return settled.add_(current), bound


def raised_threshold(threshold: float) -> float:
    """The next threshold to try."""
    return max(threshold, 1e-9) * THRESHOLD_FACTOR


def _by_source(graph: "Data", into: NeighbourLists) -> NeighbourLists:
    """The neighbours by source."""
    if hasattr(graph, "out"):
        out: NeighbourLists = graph.out
        return out
    weight = graph.get("edge_weight")
    if weight is None and graph.is_undirected():
        return into
    return NeighbourLists.of(EdgeList(graph.edge_index.flip(0), int(graph.num_nodes or 0), weight))


def _sum(parts: "list[scipy.sparse.csr_array[Any]]") -> "scipy.sparse.csr_array[Any]":
    """The sum of sparse matrices, with sorted columns in every row."""
    rows = [np.repeat(np.arange(part.shape[0]), np.diff(part.indptr)) for part in parts]
    data, cols = (np.concatenate([getattr(part, name) for part in parts]) for name in ("data", "indices"))
    return scipy.sparse.csr_array((data, (np.concatenate(rows), cols)), shape=parts[0].shape)
