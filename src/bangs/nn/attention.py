"""Sparse attention: softmax over neighbours and weighted aggregation, for every run and head."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bangs import kernels
from bangs.graphs.neighbours import ragged_index
from bangs.graphs.sparse import Pattern, Sparse, row_pointers
from bangs.nn.dropout import DropoutMasks

SLOPE = 0.2  # LeakyReLU's slope below zero
CHUNK = 2**24  # numbers of each factor gathered at once on a GPU without our kernels


@dataclass(frozen=True, eq=False)
class Heads:
    """The pattern of a hop [R·n, R·m] for H heads: row i·H + h is node i under head h."""

    pattern: Pattern  # [R·n·H, R·m·H]
    counts: Tensor | None  # float [nnz], multiplicity of every edge; None = 1

    @classmethod
    def of(cls, hop: Sparse, heads: int) -> "Heads":
        """The heads of an adjacency whose values are edge multiplicities."""
        block = hop.pattern.one_run
        length = block.rows.diff().repeat_interleave(heads)
        entry = ragged_index(block.rows[:-1].repeat_interleave(heads), length)
        head = torch.arange(heads, device=entry.device).repeat(block.shape[0]).repeat_interleave(length)
        cols = (block.cols[entry] * heads + head).int()
        shape = (block.shape[0] * heads, block.shape[1] * heads)
        pattern = Pattern(row_pointers(length, block.rows.dtype), cols, shape)
        pattern = pattern if hop.pattern.block is None else pattern.repeat(hop.pattern.runs)
        counts = hop.values[entry].repeat(pattern.runs)
        return cls(pattern, None if bool((counts == 1).all()) else counts)

    @property
    def one_run_counts(self) -> Tensor | None:
        """The multiplicities of one run's edges."""
        return None if self.counts is None else self.counts[: len(self.pattern.one_run.cols)]


def attention_weights(heads: Heads, source: Tensor, target: Tensor, active: Tensor | None = None) -> Tensor:
    """Attention weights [nnz] from the scores of nodes as source [R, m, H] and as target [R, n, H].

    w_ij = softmax over j of LeakyReLU(source_j + target_i), among the entries of row i; a repeated edge counts
    repeatedly. The largest score of a row is subtracted first.
    """
    return _Softmax.apply(source.flatten(), target.flatten(), heads, active)


def aggregate(heads: Heads, weights: Tensor, z: Tensor, active: Tensor | None = None) -> Tensor:
    """The weighted sum [R, n, H, d] of the neighbours' z [R, m, H, d] by weights [nnz]; differentiable in both."""
    out: Tensor = _Aggregate.apply(weights, z.reshape(-1, z.shape[-1]), heads, active)
    return out.view(len(z), -1, *z.shape[2:])


def drop_weights(heads: Heads, weights: Tensor, runs: int, masks: DropoutMasks | None, rate: float) -> Tensor:
    """Dropout of the weights [nnz], each run with its own mask."""
    if masks is None:
        return weights
    if heads.pattern.runs == runs:
        return masks.drop(weights.view(runs, -1), rate).flatten()
    # every run has its own graph: pad all to the largest
    counts = heads.pattern.rows[:: heads.pattern.shape[0] // runs].diff()
    real = torch.arange(int(counts.max()), device=weights.device) < counts[:, None]
    return masks.drop(torch.zeros_like(real, dtype=weights.dtype).masked_scatter(real, weights), rate)[real]


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, source: Tensor, target: Tensor, heads: Heads, active: Tensor | None) -> Tensor:
        if kernels.serves(source, target):
            from bangs.kernels.attention import softmax

            block, runs = heads.pattern.one_run, heads.pattern.runs
            counts = heads.one_run_counts
            weights = softmax(block.whole_schedule, block.cols, source, target, runs, SLOPE, counts, active)
        else:
            weights = _softmax(heads, source, target)
        ctx.save_for_backward(source, target, weights)
        ctx.heads, ctx.active = heads, active
        return weights

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        heads: Heads = ctx.heads
        source, target, weights = ctx.saved_tensors
        if kernels.serves(source, target):
            from bangs.kernels.attention import softmax_back

            block = heads.pattern.one_run
            tensors = (source, target, weights, gradient.contiguous(), heads.pattern.runs, SLOPE)
            change, to_target = softmax_back(block.whole_schedule, block.cols, *tensors, ctx.active)
            ones = torch.ones(len(target), 1, device=target.device)
            return Sparse(heads.pattern, change, ctx.active).matmul_transposed(ones).flatten(), to_target, None, None
        mean = _sums(weights * gradient, heads.pattern.rows).index_select(0, heads.pattern.row_index)
        slope = torch.where(_scores(heads, source, target) > 0, 1.0, SLOPE)
        change = weights * (gradient - mean) * slope
        transposed, order = heads.pattern.transposed
        return _sums(change.index_select(0, order), transposed.rows), _sums(change, heads.pattern.rows), None, None


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, z: Tensor, heads: Heads, active: Tensor | None) -> Tensor:
        matrix = Sparse(heads.pattern, weights, active)
        ctx.matrix, ctx.heads = matrix, heads
        ctx.save_for_backward(z)
        return matrix.matmul(z)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (z,) = ctx.saved_tensors
        gradient = gradient.contiguous()
        return sddmm(ctx.heads, gradient, z, ctx.matrix), ctx.matrix.matmul_transposed(gradient), None, None


def sddmm(heads: Heads, left: Tensor, right: Tensor, matrix: Sparse) -> Tensor:
    """left·rightᵀ of left [R·n·H, d] and right [R·m·H, d] at the entries of the heads (SDDMM): [nnz]."""
    if kernels.serves(left, right):
        from bangs.kernels.attention import sddmm as kernel

        block = heads.pattern.one_run
        return kernel(block.row_index, block.cols, left, right, heads.pattern.runs, matrix.active)
    if left.device.type == "cpu":
        product: Tensor = torch.sparse.sampled_addmm(matrix.csr, left, right.t(), beta=0.0)
        return product.values()
    step = max(CHUNK // left.shape[1], 1)
    pairs = zip(heads.pattern.row_index.split(step), heads.pattern.cols.split(step), strict=True)
    return torch.cat([(left.index_select(0, i) * right.index_select(0, j)).sum(1) for i, j in pairs])


def _softmax(heads: Heads, source: Tensor, target: Tensor) -> Tensor:
    score = torch.nn.functional.leaky_relu_(_scores(heads, source, target), SLOPE)
    top = torch.segment_reduce(score, "max", offsets=heads.pattern.rows, unsafe=True)
    weights = score.sub_(top.index_select(0, heads.pattern.row_index)).exp_()
    if heads.counts is not None:
        weights.mul_(heads.counts)
    return weights.div_(_sums(weights, heads.pattern.rows).index_select(0, heads.pattern.row_index))


def _scores(heads: Heads, source: Tensor, target: Tensor) -> Tensor:
    return source.index_select(0, heads.pattern.cols).add_(target.index_select(0, heads.pattern.row_index))


def _sums(values: Tensor, rows: Tensor) -> Tensor:
    return torch.segment_reduce(values, "sum", offsets=rows, unsafe=True)
