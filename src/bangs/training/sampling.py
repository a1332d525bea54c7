"""Sampling: neighbourhoods drawn from a graph's links, hop by hop, as the subgraphs that networks read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.neighbours import NeighbourLists, pointed, ragged
from bangs.graphs.sparse import Normalise, Pattern, Sparse
from bangs.graphs.store import release
from bangs.nn.subgraphs import Features, Subgraph, sampled_rows

ALL = -1  # a fan-out without a bound


@dataclass(frozen=True)
class Sampling:
    """Training in batches of nodes, each with a drawn neighbourhood.

    `fanout` bounds the neighbours a node hears, hop by hop from the batch outwards; −1 takes all, and the last bound
    serves the hops beyond. `memory` bounds the bytes that logits of all nodes are computed with, beside the logits
    themselves. `workers` draw ahead of the training; what they draw does not depend on them. A step's nodes may fall
    into `pieces` that processes share under torchrun, each with a neighbourhood and dropout of its own.
    """

    size: int = 1024
    fanout: tuple[int, ...] = (10, 10)
    memory: int = 2**30
    pieces: int = 1
    workers: int = field(default=1, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, least in (("size", 1), ("memory", 1), ("pieces", 1), ("workers", 0)):
            if type(getattr(self, name)) is not int or getattr(self, name) < least:
                raise InvalidInput(
                    f"Sampling.{name} must be a whole number of at least {least}, got {getattr(self, name)!r}"
                )
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
        """The fan-out of every hop, the one next to the batch first."""
        return [self.fanout[min(hop, len(self.fanout) - 1)] for hop in range(hops)]

    @property
    def exact(self) -> bool:
        """Whether every neighbour is heard."""
        return set(self.fanout) == {ALL}


def sampling(size: int | None, fanout: Sequence[int] | None, pieces: int | None = None) -> Sampling | None:
    """The sampling that two options ask for: none if neither is given, the usual where one is left out."""
    if size is None and fanout is None:
        return None
    usual = Sampling()
    fanout = usual.fanout if fanout is None else tuple(fanout)
    return Sampling(usual.size if size is None else size, fanout, pieces=pieces or 1)


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws the subgraphs of nodes for one run from a graph in memory or on disk.

    A node i with n neighbours hears m of them, drawn uniformly without replacement, and itself:

        loops · s_i s_i h_i + (n / m) Σ_{j drawn} A_ij s_i s_j h_j,

    where s are the scales of the whole graph's normalisation ("symmetric": s = d^-½; "row": s_i s_j is d_i⁻¹). Every
    neighbour is drawn with probability m / n, so the expectation is the sum over all neighbours: each layer's linear
    part is unbiased under either normalisation (what comes after a ReLU is not, and less so the larger the fan-out).
    """

    links: NeighbourLists
    x: "Tensor | sp.csr_array[Any]"  # [N, F]
    loops: float
    normalise: Normalise

    @classmethod
    def of(cls, graph: Data, loops: float, normalise: Normalise) -> "Sampler":
        return cls(NeighbourLists.of(graph), sampled_rows(graph), loops, normalise)

    def draw(
        self, nodes: Tensor, bounds: Sequence[int], generator: torch.Generator, device: torch.device | str
    ) -> Subgraph:
        """The subgraph of some nodes long [n] on a device, with at most so many neighbours at each hop."""
        hops: list[Sparse] = []
        outputs = nodes.to(self.links.device)
        for bound in bounds:
            hop, outputs = self._hop(outputs, bound, generator)
            hops.insert(0, hop if hop.device == torch.device(device) else hop.to(device))
        return Subgraph(1, self.features(outputs, device), tuple(hops))

    def features(self, nodes: Tensor | slice, device: torch.device | str) -> Features:
        """The features of some nodes on a device."""
        rows: Any = nodes
        if isinstance(self.x, Tensor):
            # one index reads a mapped matrix row by row, and only those rows
            return Features(1, self.x[rows].to(device).float()[None])
        return Features.of(self.x[rows.cpu().numpy() if isinstance(nodes, Tensor) else rows], 1, torch.device(device))

    def scale(self, nodes: Tensor) -> Tensor:
        """What the normalisation multiplies a node's row with, and its column if it is symmetric: float [n]."""
        if self.normalise == "none":
            return torch.ones(len(nodes), device=nodes.device)
        degree = self.links.strength(nodes) + self.loops
        return degree.pow(-1.0 if self.normalise == "row" else -0.5).masked_fill(degree <= 0, 0.0)

    def release(self) -> None:
        """Let go of what was read of features and links on a disk."""
        for part in (self.x, self.links.nodes, self.links.weights):
            if isinstance(part, Tensor):
                release(part)

    def _hop(self, outputs: Tensor, bound: int, generator: torch.Generator) -> tuple[Sparse, Tensor]:
        """The matrix [n_out, n_in] of one hop, and the nodes n_in it takes from, in rising order."""
        links, size = self.links, len(outputs)
        starts, counts = links.spans(outputs)
        taken = counts if bound == ALL else counts.clamp(max=bound)
        places = ragged(starts, taken)
        if bound != ALL:
            crowded = (counts > bound).nonzero().squeeze(1)
            before = taken.cumsum(0) - taken
            drawn = subsets(counts[crowded], bound, generator) + starts[crowded]
            places[before[crowded] + torch.arange(bound, device=places.device)[:, None]] = drawn
        source = links.nodes[places].long()
        if len(source) and not 0 <= int(source.min()) <= int(source.max()) < len(links):
            raise InvalidInput("a link of a stored graph leads to no node; it is damaged, so convert it again")
        line = torch.arange(size, device=outputs.device).repeat_interleave(taken, output_size=len(source))
        inputs, local = torch.cat([outputs, source]).unique(return_inverse=True)
        own, others = local[:size], local[size:]
        scale = self.scale(inputs)
        mine = scale[own]
        heard = mine * counts / taken.clamp(min=1)
        value = heard[line]
        if self.normalise == "symmetric":
            value = value * scale[others]
        if links.weights is not None:
            value = value * links.weights[places]
        loop = self.loops * (mine * mine if self.normalise == "symmetric" else mine)
        # every row begins with the node itself
        rows = pointed(taken + 1)
        cols = torch.empty(len(source) + size, dtype=torch.int32, device=outputs.device)
        values = torch.empty(len(cols), device=outputs.device)
        cols[rows[:-1]], values[rows[:-1]] = own.int(), loop
        behind = torch.arange(len(source), device=outputs.device) + line + 1
        cols[behind], values[behind] = others.int(), value
        return Sparse(Pattern(rows.int(), cols, (size, len(inputs))), values), inputs


def subsets(counts: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Uniform subsets of `size` numbers below each count long [n], all of which are larger: long [size, n].

    Floyd's way: in step t a number is drawn from 0 … count − size + t, and where it is there already, the last takes
    its place.
    """
    draws = torch.rand(size, len(counts), generator=generator, device=generator.device, dtype=torch.float64)
    out = torch.empty(size, len(counts), dtype=torch.long, device=counts.device)
    for step, draw in enumerate(draws.to(counts.device)):
        last = counts - size + step
        pick = (draw * (last + 1)).long().minimum(last)
        there = (out[:step] == pick).any(0)
        out[step] = torch.where(there, last, pick)
    return out
