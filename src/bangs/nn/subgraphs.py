"""Subgraphs: the features and hops that the logits of some nodes depend on."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.graphs.sparse import Normalise, Sparse, adjacency, batched_adjacency, csr, to_scipy
from bangs.nn.dropout import DropoutMasks
from bangs.nn.matmul import batched_matmul

Nodes = np.ndarray[Any, Any]  # long [n], the numbers of some nodes

DENSE_ABOVE = 0.25  # share of stored values from which a dense product is faster


@dataclass(frozen=True, eq=False)
class Features:
    """The features of some nodes for R runs, kept sparse where they are."""

    runs: int
    stored: Sparse | Tensor  # Sparse [R·n, R·F], or float [1 or R, n, F]

    @classmethod
    def of(cls, x: "Tensor | sp.csr_array[Any]", runs: int, device: torch.device) -> "Features":
        """The same features for every run."""
        if isinstance(x, Tensor):
            return cls(runs, x.to(device).float()[None])
        if x.nnz > DENSE_ABOVE * np.prod(x.shape):
            return cls(runs, torch.as_tensor(x.toarray(), device=device)[None])
        return cls(runs, Sparse.of(x, device).repeat(runs))

    def drop(self, masks: DropoutMasks | None, rate: float) -> "Features":
        """Dropout on the stored values; zeros stay zeros."""
        if masks is None or rate <= 0:
            return self
        if isinstance(self.stored, Tensor):
            return Features(self.runs, masks.drop(self.stored, rate))
        values = self.stored.values.view(self.runs, -1)
        return Features(self.runs, self.stored.with_values(masks.drop(values, rate).flatten()))

    def matmul(self, weight: Tensor) -> Tensor:
        """The product [R, n, h] with each run's weight [R, F, h]."""
        if isinstance(self.stored, Tensor):
            return batched_matmul(self.stored, weight)
        return (self.stored @ weight.flatten(0, 1)).view(self.runs, -1, weight.shape[2])

    def only(self, active: Tensor) -> "Features":
        """The same features; products may skip runs that are not active [R]."""
        return self if isinstance(self.stored, Tensor) else Features(self.runs, self.stored.only(active))

    def dense(self) -> Tensor:
        """The features as float [1 or R, n, F]."""
        if isinstance(self.stored, Tensor):
            return self.stored
        one, values = self.stored.pattern.one_run, self.stored.values.view(self.runs, -1)
        return torch.stack([csr(one.rows, one.cols, run_values, one.shape).to_dense() for run_values in values])


@dataclass(frozen=True, eq=False)
class Subgraph:
    """The features of the input nodes, and the hops from them to the output nodes.

    Hop h multiplies with a matrix [R·n_out, R·n_in]; the first hop is the outermost. A subgraph of the whole graph
    has one matrix, used by every hop.
    """

    runs: int
    features: Features
    hops: tuple[Sparse, ...]
    graphs: tuple[Data, ...] = ()  # of the whole graph: one for all runs, or one each
    output_index: tuple[Tensor, ...] = ()  # long [n_out] per hop: its outputs among its inputs; () = identical

    def only(self, active: Tensor) -> "Subgraph":
        """The same subgraph; results of runs that are not active [R] are undefined."""
        hops = tuple(hop.only(active) for hop in self.hops)
        return Subgraph(self.runs, self.features.only(active), hops, self.graphs, self.output_index)

    def propagate(self, hop: int, x: Tensor) -> Tensor:
        """One hop: [R, n_in, d] -> [R, n_out, d]."""
        matrix = self.hops[min(hop, len(self.hops) - 1)]
        return (matrix @ x.reshape(-1, x.shape[-1])).view(self.runs, -1, x.shape[-1])


@dataclass(frozen=True, eq=False)
class PreparedGraph:
    """A graph prepared for R runs, from which the subgraph of any nodes is taken."""

    runs: int
    matrix: "sp.csr_array[Any]"  # the model's adjacency [N, N]
    features: "Tensor | sp.csr_array[Any]"  # [N, F]
    device: torch.device
    whole: Subgraph

    @classmethod
    def of(cls, graph: Data, runs: int, loops: float, normalise: Normalise) -> "PreparedGraph":
        """The graph with the adjacency of a model, the same for every run, on the graph's device."""
        matrix = adjacency(graph, loops, normalise)
        features = feature_rows(graph)
        device = graph.edge_index.device
        whole = Subgraph(runs, Features.of(features, runs, device), (Sparse.of(matrix, device).repeat(runs),), (graph,))
        return cls(runs, matrix, features, device, whole)

    def k_hop_subgraph(self, nodes: Nodes, hops: int) -> Subgraph:
        """The subgraph of the given nodes (sorted), `hops` steps deep; the same logits as the whole graph's."""
        layers = self.layers(nodes, hops)
        matrices = tuple(self.hop(inputs, outputs) for inputs, outputs in pairwise(layers))
        positions = (np.searchsorted(inputs, outputs) for inputs, outputs in pairwise(layers))
        output_index = tuple(torch.as_tensor(index, device=self.device) for index in positions)
        return Subgraph(self.runs, self.read(layers[0]), matrices, output_index=output_index)

    def layers(self, nodes: Nodes, hops: int) -> list[Nodes]:
        """The nodes of every layer that the given nodes depend on, from the first layer to the last: hops + 1."""
        layers = [nodes]
        for _ in range(hops):
            layers.insert(0, self.inputs(layers[0]))
        return layers

    def inputs(self, outputs: Nodes) -> Nodes:
        """The input nodes of a hop to the given nodes, sorted."""
        is_input = np.zeros(self.matrix.shape[1], dtype=bool)
        is_input[self.matrix[outputs].indices] = True
        return np.flatnonzero(is_input)

    def hop(self, inputs: Nodes, outputs: Nodes) -> Sparse:
        """The hop of all runs from some nodes to others [R·n_out, R·n_in]."""
        if self._is_all_nodes(inputs) and self._is_all_nodes(outputs):
            return self.whole.hops[0]
        return Sparse.of(sp.csr_array(self.matrix[outputs][:, inputs]), self.device).repeat(self.runs)

    def read(self, nodes: Nodes) -> Features:
        """The features of some nodes."""
        if self._is_all_nodes(nodes):
            return self.whole.features
        needed = torch.as_tensor(nodes, device=self.device) if isinstance(self.features, Tensor) else nodes
        return Features.of(self.features[needed], self.runs, self.device)

    def _is_all_nodes(self, nodes: Nodes) -> bool:
        return np.array_equal(nodes, np.arange(self.matrix.shape[0]))


def per_run_subgraph(graphs: Sequence[Data], loops: float, normalise: Normalise, like: Subgraph) -> Subgraph:
    """A different graph for every run, as one subgraph; edges and features equal to those of `like` are reused."""
    original = like.graphs[0]
    same_edges = all(
        graph.edge_index is original.edge_index and graph.get("edge_weight") is original.get("edge_weight")
        for graph in graphs
    )
    hops = like.hops if same_edges else (batched_adjacency(list(graphs), loops, normalise),)
    features = like.features
    if any(graph.x is not original.x for graph in graphs):
        features = _stacked([graph.x for graph in graphs], like.features)
    return Subgraph(like.runs, features, hops, tuple(graphs))


def _stacked(x: list[Tensor], like: Features) -> Features:
    """The features of every run: sparse if they have the pattern of `like`, else dense."""
    if isinstance(like.stored, Sparse) and all(features.layout == torch.sparse_csr for features in x):
        one = like.stored.pattern.one_run
        patterns = [(features.crow_indices().int(), features.col_indices().int()) for features in x]
        if all(torch.equal(rows, one.rows) and torch.equal(cols, one.cols) for rows, cols in patterns):
            return Features(like.runs, like.stored.with_values(torch.cat([features.values() for features in x])))
    return Features(like.runs, torch.stack([features.to_dense() for features in x]))


def feature_rows(graph: Data) -> "Tensor | sp.csr_array[Any]":
    """The features [N, F] of a graph in a form with fast row indexing."""
    return to_scipy(graph.x) if graph.x.layout == torch.sparse_csr else graph.x


def feature_rows_for_sampling(graph: Data) -> "Tensor | sp.csr_array[Any]":
    """The same, dense if they are hardly sparse, since sampling reads the same rows many times."""
    x = feature_rows(graph)
    return x if isinstance(x, Tensor) or x.nnz <= DENSE_ABOVE * np.prod(x.shape) else torch.from_numpy(x.toarray())
