"""Personalised PageRank of a graph as a linear operator."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.graphs.pagerank_push import Push, PushOperator
from bangs.graphs.sparse import Sparse, adjacency, batched_adjacency
from bangs.utils.setting_checks import check_integer, check_number

if TYPE_CHECKING:
    from torch_geometric.data import Data

MAX_POWER_ITERATION_NODES = 200_000  # a larger graph gets its columns from `Push`

log = logging.getLogger(__name__)


class Operator(Protocol):
    """A linear operator P [N, N]; it need not be stored as a matrix."""

    def __call__(self, x: Tensor) -> Tensor:
        """P x: [N, M] -> [N, M]."""
        ...

    def adjoint(self, x: Tensor) -> Tensor:
        """Pᵀ x: [N, M] -> [N, M]."""
        ...

    def columns(self, nodes: Tensor) -> Tensor:
        """The columns P[:, nodes] of some nodes long [K]: [N, K]."""
        ...


class Propagator(Protocol):
    """Makes the operator of a graph, on the device of the graph."""

    def __call__(self, graph: "Data") -> Operator: ...


@dataclass(frozen=True)
class PPR:
    """Personalised PageRank by power iteration.

    X⁽ʰ⁾ = (1 − alpha) Ã X⁽ʰ⁻¹⁾ + alpha X⁽⁰⁾ for h = 1 … steps, with Ã = D̂⁻¹(A + I), rows summing to one; or
    Ã = D̂^-½(A + I)D̂^-½ if `symmetric`. Gasteiger et al., "Predict then propagate", 2019. The
    truncation error is at most (1 − alpha)^steps of a row's mass; that mass stays where step `steps` left it, so rows
    sum to one at any number of steps. For a graph on disk or of more than 200,000 nodes, `Push` computes the columns
    instead, which is logged.
    """

    alpha: float = 0.15
    steps: int = 10
    symmetric: bool = False

    def __post_init__(self) -> None:
        check_number("PPR.alpha", self.alpha, within="(0, 1]")
        check_integer("PPR.steps", self.steps, least=1)

    def __call__(self, graph: "Data") -> "PowerIteration | PushOperator":
        if hasattr(graph, "into") or int(graph.num_nodes or 0) > MAX_POWER_ITERATION_NODES:
            if self.symmetric:
                raise InvalidInput(
                    f"PPR.symmetric works for graphs in memory of at most {MAX_POWER_ITERATION_NODES:,} nodes, "
                    f"not one of {graph.num_nodes:,} or on disk; leave it out"
                )
            push = Push(self.alpha, self.steps)
            log.info("%s: the graph is large, so columns are computed by %s", self, push)
            return push(graph)
        matrix = batched_adjacency([graph], normalise="symmetric" if self.symmetric else "row")
        return PowerIteration(matrix, self.alpha, self.steps)


@dataclass(frozen=True)
class ExactPPR:
    """Personalised PageRank in closed form, P = alpha (I − (1 − alpha) Ã)⁻¹: the slow twin of `PPR`.

    A dense matrix [N, N], for small graphs.
    """

    alpha: float = 0.15
    symmetric: bool = False

    def __post_init__(self) -> None:
        check_number("ExactPPR.alpha", self.alpha, within="(0, 1]")

    def __call__(self, graph: "Data") -> "Matrix":
        step = adjacency(graph, normalise="symmetric" if self.symmetric else "row").toarray()
        walk = torch.as_tensor(step, dtype=torch.float64)
        identity = torch.eye(len(walk), dtype=torch.float64)
        closed = self.alpha * torch.linalg.solve(identity - (1 - self.alpha) * walk, identity)
        return Matrix(closed.float().to(graph.edge_index.device))


@dataclass(frozen=True, eq=False)
class PowerIteration:
    """The operator of `PPR`, without a matrix [N, N]. Not differentiable."""

    step: Sparse  # Ã [N, N]
    alpha: float
    steps: int

    def __call__(self, x: Tensor) -> Tensor:
        return self._iterate(self._damped.matmul, x)

    def adjoint(self, x: Tensor) -> Tensor:
        # P is a polynomial in Ã, so its transpose is the same polynomial in Ãᵀ
        return self._iterate(self._damped.matmul_transposed, x)

    def columns(self, nodes: Tensor) -> Tensor:
        device, count = self.step.device, len(nodes)
        # X⁽⁰⁾ has one entry per column; adding just it is cheaper than reading a dense [N, K] in every step
        index = nodes.to(device) * count + torch.arange(count, device=device)
        start = torch.full((count,), self.alpha, device=device)
        x = torch.zeros(self.step.shape[0], count, device=device)
        x.view(-1)[index] = 1
        for _ in range(self.steps):
            x = self._damped.matmul(x)
            x.view(-1).index_add_(0, index, start)
        return x

    def _iterate(self, multiply: Callable[[Tensor, Tensor, float], Tensor], x: Tensor) -> Tensor:
        result = x = x.contiguous()
        for _ in range(self.steps):
            result = multiply(result, x, self.alpha)
        return result

    @cached_property
    def _damped(self) -> Sparse:
        """(1 − alpha) Ã."""
        return self.step.with_values((1 - self.alpha) * self.step.values)


@dataclass(frozen=True, eq=False)
class Matrix:
    """An operator stored as a dense matrix."""

    matrix: Tensor  # float [N, N]

    def __call__(self, x: Tensor) -> Tensor:
        return self.matrix @ x

    def adjoint(self, x: Tensor) -> Tensor:
        return self.matrix.T @ x

    def columns(self, nodes: Tensor) -> Tensor:
        return self.matrix[:, nodes.to(self.matrix.device)]
