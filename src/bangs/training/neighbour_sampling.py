"""Neighbour sampling: random subgraphs around batches of nodes, hop by hop."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.neighbours import NeighbourLists, ragged_index
from bangs.graphs.sparse import Normalise, Pattern, Sparse, degree_scale, row_pointers
from bangs.graphs.store import release
from bangs.nn.subgraphs import Features, Subgraph, feature_rows_for_sampling
from bangs.utils.setting_checks import check_integer

ALL = -1  # fan-out: all neighbours


@dataclass(frozen=True)
class Sampling:
    """Settings of training in batches of `size` nodes, each with a sampled neighbourhood.

    `fanout` is the largest number of neighbours per node, hop by hop from the batch outwards; −1 takes all, and the
    last number also applies to further hops. `memory` bounds the bytes used to compute the logits of all nodes, beside
    the logits themselves. `workers` sample ahead of training and do not change the result. A batch may be divided into
    `pieces` that processes share under torchrun, each with its own neighbourhood and dropout.
    """

    size: int = 1024
    fanout: tuple[int, ...] = (10, 10)
    memory: int = 2**30
    pieces: int = 1
    workers: int = field(default=1, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, least in (("size", 1), ("memory", 1), ("pieces", 1), ("workers", 0)):
            check_integer(f"Sampling.{name}", getattr(self, name), least=least)
        if (
            not isinstance(self.fanout, tuple)
            or not self.fanout
            or any(type(bound) is not int or bound < ALL or bound == 0 for bound in self.fanout)
        ):
            raise InvalidInput(
                f"Sampling.fanout must hold a number of neighbours for every hop, at least 1 or −1 for all, "
                f"got {self.fanout!r}"
            )

    def bounds(self, hops: int) -> list[int]:
        """The fan-out of every hop, from the batch outwards."""
        return [self.fanout[min(hop, len(self.fanout) - 1)] for hop in range(hops)]

    @property
    def exact(self) -> bool:
        """Whether all neighbours are used."""
        return set(self.fanout) == {ALL}


def sampling(size: int | None, fanout: Sequence[int] | None, pieces: int | None = None) -> Sampling | None:
    """The sampling for two options: None if neither is given, the default for the one left out."""
    if size is None and fanout is None:
        return None
    given = {"size": size, "fanout": None if fanout is None else tuple(fanout), "pieces": pieces}
    return Sampling(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Sampler:
    """Samples the subgraphs of nodes for one run from a graph in memory or on disk.

    A node i with n neighbours aggregates itself and m of them, sampled uniformly without replacement:

        loops · s_i s_i h_i + (n / m) Σ_{j sampled} A_ij s_i s_j h_j,

    where s are the scales of the whole graph's normalisation ("symmetric": s = d^-½; "row": s_i s_j is d_i⁻¹). Every
    neighbour is sampled with probability m / n, so the expectation is the sum over all neighbours: the linear part of
    each layer is unbiased under either normalisation. What follows a ReLU is biased, less so with a larger fan-out.
    """

    neighbours: NeighbourLists
    x: "Tensor | sp.csr_array[Any]"  # [N, F]
    loops: float
    normalise: Normalise

    @classmethod
    def of(cls, graph: Data, loops: float, normalise: Normalise) -> "Sampler":
        return cls(NeighbourLists.of(graph), feature_rows_for_sampling(graph), loops, normalise)

    def draw(
        self, nodes: Tensor, bounds: Sequence[int], generator: torch.Generator, device: torch.device | str
    ) -> Subgraph:
        """The subgraph of some nodes long [n] on a device, with at most `bounds` neighbours at each hop."""
        hops: list[Sparse] = []
        outputs = nodes.to(self.neighbours.device)
        for bound in bounds:
            hop, outputs = self._hop(outputs, bound, generator)
            hops.insert(0, hop if hop.device == torch.device(device) else hop.to(device))
        return Subgraph(1, self.features(outputs, device), tuple(hops))

    def features(self, nodes: Tensor | slice, device: torch.device | str, runs: int = 1) -> Features:
        """The features of some nodes on a device; of a mapped matrix only these rows are read."""
        rows: Any = nodes.cpu().numpy() if isinstance(nodes, Tensor) and not isinstance(self.x, Tensor) else nodes
        return Features.of(self.x[rows], runs, torch.device(device))

    def scale(self, nodes: Tensor) -> Tensor:
        """The normalisation factor of some nodes' rows, and of their columns if it is symmetric: float [n]."""
        if self.normalise == "none":
            return torch.ones(len(nodes), device=nodes.device)
        return degree_scale(self.neighbours.degree(nodes) + self.loops, self.normalise)

    def loop_weights(self, scale: Tensor) -> Tensor:
        """The weights of some nodes' own features, from their scales: float [n]."""
        return self.loops * (scale * scale if self.normalise == "symmetric" else scale)

    def release(self) -> None:
        """Release the memory pages of features and edges on disk."""
        for part in (self.x, self.neighbours.nodes, self.neighbours.weights):
            if isinstance(part, Tensor):
                release(part)

    def _hop(self, outputs: Tensor, bound: int, generator: torch.Generator) -> tuple[Sparse, Tensor]:
        """The matrix [n_out, n_in] of one hop, and its input nodes, sorted."""
        neighbours, size = self.neighbours, len(outputs)
        starts, counts = neighbours.row_ranges(outputs)
        sampled = counts if bound == ALL else counts.clamp(max=bound)
        edges = ragged_index(starts, sampled)
        if bound != ALL:
            truncated = (counts > bound).nonzero().squeeze(1)
            before = sampled.cumsum(0) - sampled
            drawn = subsets(counts[truncated], bound, generator) + starts[truncated]
            edges[before[truncated] + torch.arange(bound, device=edges.device)[:, None]] = drawn
        source = neighbours.checked(neighbours.nodes[edges].long())
        row = torch.arange(size, device=outputs.device).repeat_interleave(sampled, output_size=len(source))
        inputs, local = torch.cat([outputs, source]).unique(return_inverse=True)
        output_cols, source_cols = local[:size], local[size:]
        scale = self.scale(inputs)
        output_scale = scale[output_cols]
        factor = output_scale * counts / sampled.clamp(min=1)
        value = factor[row]
        if self.normalise == "symmetric":
            value = value * scale[source_cols]
        if neighbours.weights is not None:
            value = value * neighbours.weights[edges]
        # every row begins with the node itself
        rows = row_pointers(sampled + 1)
        cols = torch.empty(len(source) + size, dtype=torch.int32, device=outputs.device)
        values = torch.empty(len(cols), device=outputs.device)
        cols[rows[:-1]], values[rows[:-1]] = output_cols.int(), self.loop_weights(output_scale)
        after = torch.arange(len(source), device=outputs.device) + row + 1
        cols[after], values[after] = source_cols.int(), value
        return Sparse(Pattern(rows.int(), cols, (size, len(inputs))), values), inputs


def subsets(counts: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """A uniform subset of `size` numbers below each count long [n]; counts must exceed `size`: long [size, n].

    Floyd's algorithm: step t draws a number from 0 … count − size + t, or takes the last one if it was drawn before.
    """
    draws = torch.rand(size, len(counts), generator=generator, device=generator.device, dtype=torch.float64)
    out = torch.empty(size, len(counts), dtype=torch.long, device=counts.device)
    for step, draw in enumerate(draws.to(counts.device)):
        last = counts - size + step
        pick = (draw * (last + 1)).long().minimum(last)
        out[step] = torch.where((out[:step] == pick).any(0), last, pick)
    return out
