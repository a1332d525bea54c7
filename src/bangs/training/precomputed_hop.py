"""The first hop computed once, before training, for models whose first step is linear: (Â X) W.

Then an epoch needs the hidden layer of the labelled nodes' neighbours and nothing beyond them, each run its own.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from bangs import kernels
from bangs.graphs.sparse import Sparse
from bangs.nn.ensemble import Targets
from bangs.nn.matmul import WIDE, exact, times
from bangs.nn.subgraphs import DENSE_ABOVE, Features, PreparedGraph, Subgraph
from bangs.training.epochs import TargetNodes
from bangs.training.mutable_csr import MutableCSR

Nodes = np.ndarray[Any, Any]

ROUND = 64  # numbers of nodes are multiples of it
COLUMNS = 32  # numbers of features are filled up to multiples of it, which products read without asking
MOST = 2**31  # bytes of features that are laid out anew for every run


@dataclass(frozen=True, eq=False)
class PrecomputedHop(Subgraph):
    """A subgraph whose features, or their product with a weight (`once`), have had the first hop already."""

    def only(self, busy: Tensor) -> "PrecomputedHop":
        """The same subgraph; its hops are each run's own and leave none out."""
        return self if not isinstance(self.features, Lines) else replace(self, features=self.features.only(busy))

    def propagate(self, hop: int, x: Tensor) -> Tensor:
        return x if hop == 0 else super().propagate(hop - 1, x)


@dataclass(frozen=True, eq=False)
class Lines(Features):
    """Dense features float [R, n, ≥ F] of runs with n nodes or fewer; what follows the F columns is zeros."""

    stored: Tensor
    width: int  # F
    lines: Tensor  # int [R], nodes of each run
    busy: Tensor | None = None  # bool [R], runs whose products matter

    def only(self, busy: Tensor) -> "Lines":
        return replace(self, busy=busy)

    def times(self, weight: Tensor) -> Tensor:
        """The product [R, n, h] with each run's weight [R, F, h]; that of missing nodes leads nowhere."""
        if weight.shape[2] < WIDE or not exact() or not kernels.serves(self.stored, weight):
            return times(self.stored[:, :, : self.width], weight)
        product: Tensor = _Counted.apply(weight, self)
        return product


class _Counted(torch.autograd.Function):
    """The product of lines that have no gradient themselves."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, x: Lines) -> Tensor:
        from bangs.kernels.matmul import product

        ctx.x = x
        return product(x.stored, weight, lines=x.lines, busy=x.busy)

    @staticmethod
    def backward(ctx: Any, pull: Tensor) -> tuple[Tensor, None]:
        from bangs.kernels.matmul import gradient

        x: Lines = ctx.x
        return gradient(x.stored, pull, x.width, lines=x.lines, busy=x.busy), None


@dataclass(frozen=True, eq=False)
class Chain:
    """The nodes that decide some answers, run by run, and the matrices that lead from them to the answers."""

    answers: list[Nodes]
    inputs: list[Nodes]
    layers: "list[list[sp.csr_array[Any]]]"  # hop by hop, the outermost first, each run's own

    @property
    def least(self) -> int:
        """The size that every step of every run fits in."""
        shapes = [matrix.shape for layer in self.layers for matrix in layer]
        return max([*map(len, self.answers), *map(len, self.inputs), *(side for shape in shapes for side in shape)])

    def blocks(self, size: int) -> "list[sp.csr_array[Any]]":
        """The matrices of every hop along one diagonal [R·size, R·size]."""
        return [_blocks(layer, size) for layer in self.layers]


@dataclass(frozen=True, eq=False)
class FirstHop:
    """A graph's features after one hop; gives the subgraphs of every run's own nodes."""

    matrix: "sp.csr_array[Any]"  # Â [N, N]
    features: Tensor  # Â X, float [N, F]

    @classmethod
    def of(cls, around: PreparedGraph) -> "FirstHop | None":
        """None where a hop leaves the features sparse, so that sparse products cost less."""
        x, matrix = around.features, around.matrix
        if not isinstance(x, Tensor):
            # words of neighbours taken as independent of each other
            filled = 1 - (1 - x.nnz / np.prod(x.shape)) ** (matrix.nnz / matrix.shape[0])
            if filled < DENSE_ABOVE:
                return None
            x = torch.as_tensor(x.toarray())
        return cls(matrix, Sparse.of(matrix, around.device).times(x.to(around.device).float()))

    def chain(self, target: Tensor, hops: int) -> Chain:
        """What decides the nodes with a target [R, N]."""
        found = [own.nonzero().squeeze(1).cpu().numpy() for own in target >= 0]
        outputs = found
        layers: list[list[sp.csr_array[Any]]] = []
        for _ in range(hops - 1):
            rows = [self.matrix[own] for own in outputs]
            inputs = [np.unique(own.indices) for own in rows]
            layers.insert(0, [own[:, below] for own, below in zip(rows, inputs, strict=True)])
            outputs = inputs
        return Chain(found, outputs, layers)

    def frame(self, chain: Chain, size: int) -> "Frame | None":
        """A frame of the size that holds the chain, still empty; None where it takes too much room."""
        runs, width = len(chain.answers), _filled(self.features.shape[1], COLUMNS)
        return None if 4 * runs * size * width > MOST else Frame(self, chain, size)

    def part(self, targets: Targets, hops: int) -> TargetNodes | None:
        """The nodes with a target and what decides their logits, run by run; None where it takes too much room.

        Runs with fewer nodes are filled up with nodes of no target, and with features that nothing leads to.
        """
        chain = self.chain(targets.target, hops)
        frame = self.frame(chain, _filled(chain.least, ROUND))
        return None if frame is None else frame.written(chain, targets)


class Frame:
    """Room for the lessons of several rounds, in the places that a captured epoch goes on reading."""

    def __init__(self, first: FirstHop, chain: Chain, size: int):
        device, runs, width = first.features.device, len(chain.answers), int(first.features.shape[1])
        self.first, self.size = first, size
        self.seen = torch.zeros(runs, size, _filled(width, COLUMNS), device=device)
        self.lines = torch.zeros(runs, dtype=torch.int32, device=device)
        self.hops = tuple(self._hop(matrix) for matrix in chain.blocks(size))
        subgraph = PrecomputedHop(runs, Lines(runs, self.seen, width, self.lines), self.hops)
        target = torch.full((runs, size), -1, device=device)
        self.part = TargetNodes(subgraph, Targets(target, torch.ones(runs, size, device=device)))

    @cached_property
    def rewritable(self) -> bool:
        """Whether another chain may be written in place: only our own kernels read it anew."""
        return kernels.serves(self.seen)

    def holds(self, chain: Chain, size: int) -> bool:
        """Whether there is room for the chain, which asks for this size."""
        entries = [sum(matrix.nnz for matrix in layer) for layer in chain.layers]
        rooms = [len(hop.values) for hop in self.hops]
        return self.rewritable and size == self.size and all(map(int.__le__, entries, rooms))

    def written(self, chain: Chain, targets: Targets) -> TargetNodes:
        """The part of the nodes with a hard target, whose chain is given."""
        for run, nodes in enumerate(chain.inputs):
            at = torch.as_tensor(nodes, device=self.seen.device)
            self.seen[run, : len(nodes), : self.first.features.shape[1]] = self.first.features[at]
        self.lines.copy_(torch.tensor([len(nodes) for nodes in chain.inputs]))
        if self.rewritable:
            for hop, matrix in zip(self.hops, chain.blocks(self.size), strict=True):
                assert isinstance(hop.pattern, MutableCSR)
                fresh = Sparse.of(matrix, self.seen.device)
                hop.pattern.write(fresh.pattern)
                hop.values[: len(fresh.values)] = fresh.values
        place = torch.full_like(self.part.targets.target, -1)
        for run, own in enumerate(chain.answers):
            place[run, : len(own)] = torch.as_tensor(own)
        known = place.clamp_min(0)
        self.part.targets.target.copy_(targets.target.gather(1, known).masked_fill_(place < 0, -1))
        self.part.targets.weight.copy_(targets.weight.gather(1, known))
        return self.part

    def _hop(self, matrix: "sp.csr_array[Any]") -> Sparse:
        fresh = Sparse.of(matrix, self.seen.device)
        if not self.rewritable:
            return fresh
        room = roomy(len(fresh.values))
        return Sparse(MutableCSR.of(fresh.pattern, room), torch.zeros(room, device=self.seen.device))


def roomy(count: int) -> int:
    """The next of few sizes, each up to half as large again as the one before: 64, 128, 192, 256, 384, 512, 768 …"""
    size = ROUND
    while size < count:
        size *= 2
    return size * 3 // 4 if size > 2 * ROUND and count <= size * 3 // 4 else size


def _filled(count: int, unit: int) -> int:
    return -(-count // unit) * unit


def _blocks(matrices: "list[sp.csr_array[Any]]", size: int) -> "sp.csr_array[Any]":
    """Matrices along a diagonal, each filled up to the size."""
    grown = []
    for matrix in matrices:
        rows = np.pad(matrix.indptr, (0, size - matrix.shape[0]), mode="edge")
        grown.append(sp.csr_array((matrix.data, matrix.indices, rows), shape=(size, size)))
    return sp.csr_array(sp.block_diag(grown, format="csr"))
