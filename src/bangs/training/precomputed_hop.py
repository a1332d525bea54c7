"""The first hop computed once before training, Â X, for models whose first layer is linear: (Â X) W.

An epoch then needs only the hidden layer of the labelled nodes' neighbours, for each run its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from bangs.graphs.sparse import Sparse
from bangs.nn.loss import Targets
from bangs.nn.matmul import GRADIENT_PIECES
from bangs.nn.subgraphs import DENSE_ABOVE, Features, Nodes, PreparedGraph, Subgraph
from bangs.training.epoch_loop import TargetNodes

NODE_MULTIPLE = 8 * GRADIENT_PIECES  # the number of nodes is rounded up to a multiple of it
MAX_BYTES = 2**31  # of the features of all runs


@dataclass(frozen=True, eq=False)
class PrecomputedHop(Subgraph):
    """A subgraph whose features, or their product with the first weight, already include the first hop."""

    def only(self, active: Tensor) -> "PrecomputedHop":
        """The same subgraph; inactive runs are not skipped, since the hops of all runs are one matrix."""
        return self

    def propagate(self, hop: int, x: Tensor) -> Tensor:
        return x if hop == 0 else super().propagate(hop - 1, x)


@dataclass(frozen=True, eq=False)
class FirstHop:
    """A graph's features after one hop, from which every run takes its own subgraph."""

    prepared: PreparedGraph
    features: Tensor  # Â X, float [N, F]

    @classmethod
    def of(cls, prepared: PreparedGraph) -> "FirstHop | None":
        """The first hop of a graph; None if features stay sparse, since sparse products then cost less."""
        x, matrix = prepared.features, prepared.matrix
        if not isinstance(x, Tensor):
            # an estimate that takes the features of neighbours as independent
            filled = 1 - (1 - x.nnz / np.prod(x.shape)) ** (matrix.nnz / matrix.shape[0])
            if filled < DENSE_ABOVE:
                return None
            x = torch.as_tensor(x.toarray())
        return cls(prepared, Sparse.of(matrix, prepared.device).matmul(x.to(prepared.device).float()))

    def target_nodes(self, targets: Targets, hops: int) -> TargetNodes | None:
        """The nodes with a target of each run and their subgraphs; None if they would exceed `MAX_BYTES`.

        Runs with fewer nodes are padded with nodes that have no target and no edges.
        """
        device, (runs, width) = self.features.device, (len(targets.target), int(self.features.shape[1]))
        labelled = [mask.nonzero().squeeze(1).cpu().numpy() for mask in targets.target >= 0]
        layers = [self.prepared.layers(nodes, hops - 1) for nodes in labelled]  # [run][layer]
        size = max(len(nodes) for run_layers in layers for nodes in run_layers)
        size += -size % NODE_MULTIPLE
        if 4 * runs * size * width > MAX_BYTES:
            return None
        x = torch.zeros(runs, size, width, device=device)
        output_nodes = torch.full((runs, size), -1, device=device)  # -1 = padding
        for run, run_layers in enumerate(layers):
            inputs, outputs = run_layers[0], run_layers[-1]
            x[run, : len(inputs)] = self.features[torch.as_tensor(inputs, device=device)]
            output_nodes[run, : len(outputs)] = torch.as_tensor(outputs)
        hop_ends = zip(*map(pairwise, layers), strict=True)  # for every hop, inputs and outputs of each run
        adjacencies = tuple(Sparse.of(self._block_diagonal(ends, size), device) for ends in hop_ends)
        index = output_nodes.clamp_min(0)
        target = targets.target.gather(1, index).masked_fill_(output_nodes < 0, -1)
        return TargetNodes(
            PrecomputedHop(runs, Features(runs, x), adjacencies),
            Targets(target, targets.weight.gather(1, index)),
        )

    def _block_diagonal(self, ends: Sequence[tuple[Nodes, Nodes]], size: int) -> "sp.csr_array[Any]":
        """The adjacency from the inputs to the outputs of every run, each padded to the size: [R·size, R·size]."""
        blocks: list[Any] = [self.prepared.matrix[outputs][:, inputs] for inputs, outputs in ends]
        for block in blocks:
            block.resize(size, size)
        return sp.csr_array(sp.block_diag(blocks, format="csr"))
