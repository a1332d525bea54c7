"""Constant sparse matrices in CSR, and their products with dense ones, forward and backward, on any device."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import scipy  # its `sparse` is imported when first used
import torch
from torch import Tensor

from bangs import kernels
from bangs.errors import InvalidInput
from bangs.graphs import deterministic_spmm
from bangs.graphs.edges import EdgeList
from bangs.kernels.row_schedule import WHOLE, RowSchedule

if TYPE_CHECKING:
    from torch_geometric.data import Data

Normalise = Literal["row", "symmetric", "none", "count"]

MIN_EMBEDDING_BAG_COLUMNS = 32  # from here on `embedding_bag` is faster on a CPU than a sparse product
MAX_INT32 = 2**31 - 1  # indices of a matrix are int32

# every command would print these: CSR products are stable since torch 2.0, and `csr` leaves checks out on purpose
warnings.filterwarnings(
    "ignore", message="Sparse (CSR tensor support is in beta|invariant checks are implicitly disabled)"
)


class Transposed(NamedTuple):
    """The transpose of a pattern."""

    pattern: "Pattern"  # [m, n]
    order: Tensor  # long [nnz]: values[order] are the transpose's values


@dataclass(frozen=True, eq=False)
class Pattern:
    """The sparsity pattern of a matrix [n, m] in CSR; int32, which MKL uses without conversion."""

    rows: Tensor  # int [n + 1], row pointers
    cols: Tensor  # int [nnz]
    shape: tuple[int, int]
    block: "Pattern | None" = None  # if the matrix is copies of this block along the diagonal

    def __post_init__(self) -> None:
        _check_size(self.shape, len(self.cols))

    @property
    def runs(self) -> int:
        """The number of copies of the block."""
        return 1 if self.block is None else self.shape[0] // self.block.shape[0]

    @property
    def one_run(self) -> "Pattern":
        """The pattern of one run: the block, or the pattern itself."""
        return self.block or self

    @cached_property
    def schedule(self) -> RowSchedule:
        """The schedule of the rows for kernels that sum."""
        return RowSchedule.of(self.rows)

    @cached_property
    def whole_schedule(self) -> RowSchedule:
        """The schedule of the rows, none of them divided, for kernels that take a maximum or a softmax."""
        return RowSchedule.of(self.rows, WHOLE)

    @cached_property
    def pieces(self) -> deterministic_spmm.RowPieces:
        """The rows in pieces, for a GPU without our kernels."""
        return deterministic_spmm.RowPieces.of(self.rows)

    @cached_property
    def transposed(self) -> Transposed:
        """The transpose, computed when a gradient first needs it."""
        if self.block is not None:
            block, order = self.block.transposed
            step = torch.arange(self.runs, device=order.device)[:, None]
            return Transposed(block.repeat(self.runs), (order + step * len(order)).flatten())
        order = self.cols.argsort(stable=True)
        rows = row_pointers(torch.bincount(self.cols, minlength=self.shape[1]), self.rows.dtype)
        return Transposed(Pattern(rows, _row_index(self)[order], (self.shape[1], self.shape[0])), order)

    @cached_property
    def row_index(self) -> Tensor:
        """The row of every entry: int [nnz]."""
        return _row_index(self)

    @cached_property
    def ones(self) -> Tensor:
        """The pattern with values of one, as a torch CSR tensor."""
        return csr(self.rows, self.cols, torch.ones(len(self.cols), device=self.cols.device), self.shape)

    def repeat(self, runs: int) -> "Pattern":
        """R copies along the diagonal [R·n, R·m]."""
        shape = (runs * self.shape[0], runs * self.shape[1])
        _check_size(shape, runs * len(self.cols))  # before int32 overflows
        step = torch.arange(runs, dtype=self.rows.dtype, device=self.rows.device)[:, None]
        starts = (self.rows[:-1] + step * len(self.cols)).flatten()
        end = torch.tensor([runs * len(self.cols)], dtype=starts.dtype, device=starts.device)
        cols = (self.cols + step * self.shape[1]).flatten()
        return Pattern(torch.cat([starts, end]), cols, shape, self)

    def to(self, device: torch.device | str) -> "Pattern":
        block = None if self.block is None else self.block.to(device)
        return Pattern(self.rows.to(device), self.cols.to(device), self.shape, block)


@dataclass(frozen=True, eq=False)
class Sparse:
    """A sparse matrix [n, m]; a gradient costs one more product."""

    pattern: Pattern
    values: Tensor  # float [nnz]
    active: Tensor | None = None  # bool [R]; a GPU may skip the products of the other blocks

    @classmethod
    def of(cls, matrix: "scipy.sparse.csr_array[Any]", device: torch.device | str = "cpu") -> "Sparse":
        """The matrix of a scipy CSR array."""
        matrix = scipy.sparse.csr_array(matrix)

        def index(array: Any) -> Tensor:
            return torch.as_tensor(np.ascontiguousarray(array, dtype=np.int32), device=device)

        shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        values = torch.as_tensor(np.ascontiguousarray(matrix.data, dtype=np.float32), device=device)
        return cls(Pattern(index(matrix.indptr), index(matrix.indices), shape), values)

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.shape

    @property
    def device(self) -> torch.device:
        return self.values.device

    @cached_property
    def T(self) -> "Sparse":  # noqa: N802
        """The transpose [m, n]."""
        pattern, order = self.pattern.transposed
        return Sparse(pattern, self.values[order])

    @cached_property
    def csr(self) -> Tensor:
        """The matrix as a torch CSR tensor."""
        return csr(self.pattern.rows, self.pattern.cols, self.values, self.shape)

    def with_values(self, values: Tensor) -> "Sparse":
        """The same pattern with other values."""
        return Sparse(self.pattern, values, self.active)

    def only(self, active: Tensor) -> "Sparse":
        """The same matrix; products may skip runs that are not active [R]."""
        return Sparse(self.pattern, self.values, active)

    def repeat(self, runs: int) -> "Sparse":
        """R copies along the diagonal [R·n, R·m]: one product serves all runs."""
        return self if runs == 1 else Sparse(self.pattern.repeat(runs), self.values.repeat(runs))

    def to(self, device: torch.device | str) -> "Sparse":
        return Sparse(self.pattern.to(device), self.values.to(device))

    def __matmul__(self, dense: Tensor) -> Tensor:
        """The product [n, d] with a dense [m, d]; differentiable in the dense factor."""
        if not torch.is_grad_enabled() or not dense.requires_grad:
            return self.matmul(dense)
        product: Tensor = _Product.apply(dense, self)
        return product

    def matmul(self, dense: Tensor, plus: Tensor | None = None, beta: float = 0.0) -> Tensor:
        """The product [n, d] with a dense [m, d], plus beta · plus [n, d]."""
        if dense.device.type == "cpu":
            return multiply(self.csr, dense, plus, beta)
        if kernels.serves(dense):
            return _plus(_fused(self, dense), plus, beta)
        return _plus(deterministic_spmm.product(self.pattern.pieces, self.pattern.cols, self.values, dense), plus, beta)

    def matmul_transposed(self, dense: Tensor, plus: Tensor | None = None, beta: float = 0.0) -> Tensor:
        """The product [m, d] of the transpose with a dense [n, d], plus beta · plus [m, d]."""
        if kernels.serves(dense):
            return _plus(_fused(self, dense, transposed=True), plus, beta)
        return self.T.matmul(dense, plus, beta)


def batched_adjacency(
    graphs: "list[Data] | list[EdgeList]", loops: float = 1.0, normalise: Normalise = "row"
) -> Sparse:
    """The normalised adjacencies A[target, source] of graphs with N nodes each, as one block diagonal [G·N, G·N].

    `row` gives D⁻¹(A + loops·I), rows summing to one; `symmetric` gives D^-½(A + loops·I)D^-½ with D the row sums;
    `none` keeps the weights, `count` gives every edge the weight 1. Weights of repeated edges add up. Computed on the
    graphs' device.
    """
    nodes = int(graphs[0].num_nodes or 0)
    size = len(graphs) * nodes
    edges = torch.cat([graph.edge_index + number * nodes for number, graph in enumerate(graphs)], dim=1)
    loop_index = torch.arange(size, device=edges.device)
    source, target = torch.cat([edges, loop_index.expand(2, -1)], dim=1)
    weight = torch.cat([*(edge_weights(graph) for graph in graphs), torch.full((size,), loops, device=edges.device)])
    order = (target * size + source).argsort()
    target, source, weight = target[order], source[order], weight[order]
    rows = row_pointers(torch.bincount(target, minlength=size), torch.int32)
    if normalise == "count":
        weight = torch.ones_like(weight)
    elif normalise != "none":
        scale = degree_scale(row_sums(rows, weight), normalise)
        weight = weight * scale[target] * (1.0 if normalise == "row" else scale[source])
    return Sparse(Pattern(rows, source.int(), (size, size)), weight)


def degree_scale(degree: Tensor, normalise: Normalise) -> Tensor:
    """The factor of a node's row in an adjacency normalised by `row`; of its row and its column by `symmetric`."""
    return degree.pow(-1.0 if normalise == "row" else -0.5).masked_fill(degree <= 0, 0.0)


def adjacency(
    graph: "Data | EdgeList", loops: float = 1.0, normalise: Normalise = "row"
) -> "scipy.sparse.csr_array[Any]":
    """The normalised adjacency of one graph (see `batched_adjacency`) as a scipy array: float32 [N, N]."""
    array = to_scipy(batched_adjacency([graph], loops, normalise).csr)
    array.sum_duplicates()
    return array


def to_scipy(matrix: Tensor) -> "scipy.sparse.csr_array[Any]":
    """A torch CSR tensor as a scipy array."""
    matrix = matrix.cpu()
    return scipy.sparse.csr_array(
        (matrix.values().numpy(), matrix.col_indices().numpy(), matrix.crow_indices().numpy()),
        shape=(matrix.shape[0], matrix.shape[1]),
    )


def to_torch(matrix: "scipy.sparse.csr_array[Any]") -> Tensor:
    """A scipy matrix as a float32 torch CSR tensor, the form of sparse features in `Data.x`."""
    matrix = scipy.sparse.csr_array(matrix)
    return csr(
        torch.as_tensor(matrix.indptr.astype(np.int64)),
        torch.as_tensor(matrix.indices.astype(np.int64)),
        torch.as_tensor(matrix.data.astype(np.float32)),
        (int(matrix.shape[0]), int(matrix.shape[1])),
    )


def csr(rows: Tensor, cols: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A torch CSR tensor of parts that are known to be valid; they are not checked."""
    return torch.sparse_csr_tensor(rows, cols, values, size=shape, check_invariants=False)


def row_sums(rows: Tensor, values: Tensor) -> Tensor:
    """The row sums [n] of values [nnz] with row pointers [n + 1]; the order of sums is fixed on any device."""
    return torch.segment_reduce(values, "sum", offsets=rows)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: Sparse) -> Tensor:
        ctx.matrix = matrix
        return matrix.matmul(dense)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.matrix.matmul_transposed(gradient), None


def multiply(matrix: Tensor, dense: Tensor, plus: Tensor | None = None, beta: float = 0.0) -> Tensor:
    """The product [n, d] of a torch CSR matrix and a dense one on a CPU, plus beta · plus [n, d]."""
    if dense.shape[1] >= MIN_EMBEDDING_BAG_COLUMNS and dense.dtype == torch.float32:
        # weighted sums of rows, up to twice as fast as MKL's sparse product
        product = deterministic_spmm.weighted_row_sums(
            dense, matrix.col_indices(), matrix.crow_indices(), matrix.values()
        )
        return _plus(product, plus, beta)
    out = torch.empty(matrix.shape[0], dense.shape[1], dtype=dense.dtype, device=dense.device)
    return torch.addmm(out if plus is None else plus, matrix, dense.contiguous(), beta=beta, out=out)


def _plus(product: Tensor, plus: Tensor | None, beta: float) -> Tensor:
    return product if plus is None else product.add_(plus, alpha=beta)


def _fused(matrix: Sparse, dense: Tensor, *, transposed: bool = False) -> Tensor:
    """The product by our own kernel, which reads one block's pattern for all runs."""
    from bangs.kernels.spmm import spmm

    block, order = matrix.pattern.one_run.transposed if transposed else (matrix.pattern.one_run, None)
    return spmm(
        block.schedule, block.cols, matrix.values, dense.contiguous(), matrix.pattern.runs, order, matrix.active
    )


def _check_size(shape: tuple[int, int], entries: int) -> None:
    if max(entries, *shape) > MAX_INT32:
        raise InvalidInput(
            f"a sparse matrix of {shape[0]:,} × {shape[1]:,} with {entries:,} entries is too large; each may be at "
            f"most {MAX_INT32:,}. Run fewer seeds at once, or train with --batch-size and --fanout"
        )


def _row_index(pattern: Pattern) -> Tensor:
    numbers = torch.arange(pattern.shape[0], dtype=pattern.cols.dtype, device=pattern.cols.device)
    return numbers.repeat_interleave(pattern.rows.diff(), output_size=len(pattern.cols))


def edge_weights(graph: "Data | EdgeList") -> Tensor:
    """The weights of a graph's edges, 1 where they have none: float [E]."""
    weight: Tensor | None = graph.get("edge_weight")
    if weight is None:
        return torch.ones(graph.edge_index.shape[1], device=graph.edge_index.device)
    return weight.float()


def row_pointers(counts: Tensor, dtype: torch.dtype = torch.long) -> Tensor:
    """CSR row pointers [n + 1] from the length of every row."""
    return torch.cat([torch.zeros(1, dtype=torch.long, device=counts.device), counts.cumsum(0)]).to(dtype)
