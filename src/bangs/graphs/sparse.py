"""Sparse: a constant sparse matrix that multiplies dense ones, forward and backward, on any device."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

Normalise = Literal["row", "symmetric", "none"]

# CSR products have been stable since torch 2.0; the notice would greet every user of the command line
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")


@dataclass(frozen=True, eq=False)
class Sparse:
    """A sparse matrix [n, m] with its transpose at hand, so that gradients cost one more product.

    Indices are int32 on the CPU, which MKL multiplies without converting.
    """

    rows: Tensor  # int [n + 1], CSR row pointers
    cols: Tensor  # int [nnz]
    values: Tensor  # float [nnz]
    shape: tuple[int, int]
    transposed_rows: Tensor  # int [m + 1]
    transposed_cols: Tensor  # int [nnz]
    order: Tensor  # long [nnz]: values[order] are the transpose's values

    @classmethod
    def of(cls, matrix: "sp.csr_array[Any]", device: torch.device | str = "cpu") -> "Sparse":
        """The matrix of a scipy CSR array."""
        matrix = sp.csr_array(matrix)
        numbered = sp.csr_array(
            (np.arange(1, matrix.nnz + 1, dtype=np.int64), matrix.indices, matrix.indptr), shape=matrix.shape
        )
        flipped = sp.csr_array(numbered.T)

        def index(array: Any) -> Tensor:
            return torch.as_tensor(np.ascontiguousarray(array, dtype=np.int32), device=device)

        return cls(
            rows=index(matrix.indptr),
            cols=index(matrix.indices),
            values=torch.as_tensor(np.ascontiguousarray(matrix.data, dtype=np.float32), device=device),
            shape=(int(matrix.shape[0]), int(matrix.shape[1])),
            transposed_rows=index(flipped.indptr),
            transposed_cols=index(flipped.indices),
            order=torch.as_tensor(flipped.data - 1, device=device),
        )

    @property
    def device(self) -> torch.device:
        return self.values.device

    @property
    def T(self) -> "Sparse":  # noqa: N802
        """The transpose [m, n]."""
        back = torch.empty_like(self.order)
        back[self.order] = torch.arange(len(back), device=back.device)
        return Sparse(
            rows=self.transposed_rows,
            cols=self.transposed_cols,
            values=self.values[self.order],
            shape=(self.shape[1], self.shape[0]),
            transposed_rows=self.rows,
            transposed_cols=self.cols,
            order=back,
        )

    def valued(self, values: Tensor) -> "Sparse":
        """The same pattern with other values."""
        return Sparse(
            self.rows,
            self.cols,
            values,
            self.shape,
            self.transposed_rows,
            self.transposed_cols,
            self.order,
        )

    def repeat(self, runs: int) -> "Sparse":
        """R copies along the diagonal [R·n, R·m]: one product serves all runs."""
        if runs == 1:
            return self

        def pointers(rows: Tensor) -> Tensor:
            shifts = torch.arange(runs, device=rows.device, dtype=rows.dtype) * len(self.values)
            return torch.cat([(rows[:-1] + shifts[:, None]).flatten(), (shifts[-1:] + rows[-1:])])

        def columns(cols: Tensor, width: int) -> Tensor:
            shifts = torch.arange(runs, device=cols.device, dtype=cols.dtype) * width
            return (cols + shifts[:, None]).flatten()

        shifts = torch.arange(runs, device=self.device)[:, None] * len(self.values)
        return Sparse(
            rows=pointers(self.rows),
            cols=columns(self.cols, self.shape[1]),
            values=self.values.repeat(runs),
            shape=(runs * self.shape[0], runs * self.shape[1]),
            transposed_rows=pointers(self.transposed_rows),
            transposed_cols=columns(self.transposed_cols, self.shape[0]),
            order=(self.order + shifts).flatten(),
        )

    def __matmul__(self, dense: Tensor) -> Tensor:
        """The product [n, d] with a dense [m, d]; differentiable in the dense factor."""
        if not torch.is_grad_enabled() or not dense.requires_grad:
            return _multiply(self.rows, self.cols, self.values, self.shape, dense)
        product: Tensor = _Product.apply(dense, self)
        return product

    def to(self, device: torch.device | str) -> "Sparse":
        return Sparse(
            rows=self.rows.to(device),
            cols=self.cols.to(device),
            values=self.values.to(device),
            shape=self.shape,
            transposed_rows=self.transposed_rows.to(device),
            transposed_cols=self.transposed_cols.to(device),
            order=self.order.to(device),
        )


def adjacency(graph: Data, loops: float = 1.0, normalise: Normalise = "row") -> "sp.csr_array[Any]":
    """The normalised adjacency A[target, source] of a graph with `loops` added on the diagonal: float32 [N, N].

    `row` gives D⁻¹(A + loops·I), rows summing to one; `symmetric` gives D^-½(A + loops·I)D^-½ with D the row
    sums; `none` leaves the weights alone. Repeated edges add up.
    """
    nodes = int(graph.num_nodes or 0)
    source, target = graph.edge_index.cpu().numpy()
    weight = graph.get("edge_weight")
    values = np.ones(len(source), np.float32) if weight is None else weight.cpu().numpy().astype(np.float32)
    diagonal = np.arange(nodes)
    matrix = sp.coo_array(
        (
            np.concatenate([values, np.full(nodes, loops, np.float32)]),
            (np.concatenate([target, diagonal]), np.concatenate([source, diagonal])),
        ),
        shape=(nodes, nodes),
    ).tocsr()
    if normalise == "none":
        return matrix
    degree = np.asarray(matrix.sum(axis=1)).ravel()
    power = -1.0 if normalise == "row" else -0.5
    scale = np.power(degree, power, where=degree > 0, out=np.zeros(nodes, np.float32))
    per_row = np.repeat(scale, np.diff(matrix.indptr))
    data = matrix.data * per_row
    if normalise == "symmetric":
        data *= scale[matrix.indices]
    return sp.csr_array((data.astype(np.float32), matrix.indices, matrix.indptr), shape=matrix.shape)


def to_scipy(matrix: Tensor) -> "sp.csr_array[Any]":
    """The scipy twin of a torch sparse tensor in CSR layout."""
    matrix = matrix.cpu()
    return sp.csr_array(
        (matrix.values().numpy(), matrix.col_indices().numpy(), matrix.crow_indices().numpy()),
        shape=(matrix.shape[0], matrix.shape[1]),
    )


def to_torch(matrix: "sp.csr_array[Any]") -> Tensor:
    """A float32 torch CSR tensor from a scipy matrix; the form sparse features take in `Data.x`."""
    matrix = sp.csr_array(matrix)
    return csr(
        torch.as_tensor(matrix.indptr.astype(np.int64)),
        torch.as_tensor(matrix.indices.astype(np.int64)),
        torch.as_tensor(matrix.data.astype(np.float32)),
        (int(matrix.shape[0]), int(matrix.shape[1])),
    )


def csr(rows: Tensor, cols: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """The torch tensor of CSR parts that are known to be sound."""
    return torch.sparse_csr_tensor(rows, cols, values, size=shape, check_invariants=False)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: Sparse) -> Tensor:
        ctx.matrix = matrix
        return _multiply(matrix.rows, matrix.cols, matrix.values, matrix.shape, dense)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        matrix: Sparse = ctx.matrix
        shape = (matrix.shape[1], matrix.shape[0])
        values = matrix.values[matrix.order]
        return _multiply(matrix.transposed_rows, matrix.transposed_cols, values, shape, gradient), None


def _multiply(rows: Tensor, cols: Tensor, values: Tensor, shape: tuple[int, int], dense: Tensor) -> Tensor:
    matrix = csr(rows, cols, values, shape)
    out = torch.empty(shape[0], dense.shape[1], dtype=dense.dtype, device=dense.device)
    return torch.addmm(out, matrix, dense.contiguous(), beta=0, out=out)
