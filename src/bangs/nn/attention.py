"""Attention: products with the adjacency whose values every run and head weighs for itself."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bangs import kernels
from bangs.graphs.sparse import Pattern, Sparse
from bangs.nn.dropout import DropoutMasks

if TYPE_CHECKING:
    from bangs.kernels.spmm import Turns

SLOPE = 0.2  # of a LeakyReLU below zero
CHUNK = 2**24  # numbers of either factor that are gathered at once where no kernel of ours serves


@dataclass(frozen=True, eq=False)
class Heads:
    """A hop [R·n, R·m] as H heads see it: row i·H + h is node i under head h, so a head's weights are values of it."""

    pattern: Pattern  # [R·n·H, R·m·H]
    lines: Tensor  # int [nnz], the row of every entry
    counts: Tensor | None  # float [nnz], how often an edge is there; None = once

    @classmethod
    def of(cls, hop: Sparse, heads: int) -> "Heads":
        """The heads of an adjacency whose values count edges."""
        block = hop.pattern.block or hop.pattern
        length = block.rows.diff().repeat_interleave(heads)
        rows = torch.cat([block.rows[:1], length.cumsum(0, dtype=block.rows.dtype)])
        line = torch.arange(len(length), device=rows.device).repeat_interleave(length)
        place = torch.arange(len(line), device=rows.device) - rows[line] + block.rows[line // heads]
        cols = (block.cols[place] * heads + line % heads).int()
        pattern = Pattern(rows, cols, (block.shape[0] * heads, block.shape[1] * heads))
        pattern = pattern if hop.pattern.block is None else pattern.repeat(hop.pattern.runs)
        counts = hop.values[place].repeat(pattern.runs)
        return cls(pattern, pattern.lines, None if bool((counts == 1).all()) else counts)

    @cached_property
    def turns(self) -> "Turns":
        """How a GPU's programs share out the rows of one run, none of them cut."""
        from bangs.kernels.spmm import Turns

        return Turns.of(self.block.rows, longest=2**30)

    @property
    def block(self) -> Pattern:
        """What all runs share."""
        return self.pattern.block or self.pattern


def weigh(heads: Heads, source: Tensor, target: Tensor, busy: Tensor | None = None) -> Tensor:
    """Attention weights [nnz] of nodes that score as source [R, m, H] and as target [R, n, H].

    w_ij = softmax over j of LeakyReLU(source_j + target_i), among the entries of row i; an edge that is there twice
    counts twice. The largest score of a row is subtracted first.
    """
    weights: Tensor = _Softmax.apply(source.flatten(), target.flatten(), heads, busy)
    return weights


def attend(heads: Heads, weights: Tensor, z: Tensor, busy: Tensor | None = None) -> Tensor:
    """What every node hears [R, n, H, d]: the sum of z [R, m, H, d] by weights [nnz]; differentiable in both."""
    heard: Tensor = _Weighted.apply(weights, z.reshape(-1, z.shape[-1]), heads, busy)
    return heard.view(len(z), -1, *z.shape[2:])


def drop(heads: Heads, weights: Tensor, runs: int, masks: DropoutMasks | None, rate: float) -> Tensor:
    """Dropout of the weights [nnz], every run's mask its own."""
    if masks is None:
        return weights
    if heads.pattern.runs == runs:
        return masks.drop(weights.view(runs, -1), rate).flatten()
    # a graph of its own for every run: as many numbers each as the largest needs
    counts = heads.pattern.rows[:: heads.pattern.shape[0] // runs].diff()
    real = torch.arange(int(counts.max()), device=weights.device) < counts[:, None]
    return masks.drop(torch.zeros_like(real, dtype=weights.dtype).masked_scatter(real, weights), rate)[real]


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, source: Tensor, target: Tensor, heads: Heads, busy: Tensor | None) -> Tensor:
        if kernels.serves(source, target):
            from bangs.kernels.attention import softmax

            parts = (heads.turns, heads.block.cols, source, target, heads.pattern.runs, SLOPE)
            weights = softmax(*parts, _shared(heads), busy)
        else:
            weights = _softmax(heads, source, target)
        ctx.save_for_backward(source, target, weights)
        ctx.heads, ctx.busy = heads, busy
        return weights

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        heads: Heads = ctx.heads
        source, target, weights = ctx.saved_tensors
        if kernels.serves(source, target):
            from bangs.kernels.attention import softmax_back

            parts = (source, target, weights, gradient.contiguous(), heads.pattern.runs, SLOPE)
            change, to_target = softmax_back(heads.turns, heads.block.cols, *parts, ctx.busy)
            ones = torch.ones(len(target), 1, device=target.device)
            return Sparse(heads.pattern, change, ctx.busy).back(ones).flatten(), to_target, None, None
        mean = _sums(weights * gradient, heads.pattern.rows).index_select(0, heads.lines)
        slope = torch.where(_scores(heads, source, target) > 0, 1.0, SLOPE)
        change = weights * (gradient - mean) * slope
        rows, _, order = heads.pattern.flipped
        return _sums(change.index_select(0, order), rows), _sums(change, heads.pattern.rows), None, None


class _Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, z: Tensor, heads: Heads, busy: Tensor | None) -> Tensor:
        matrix = Sparse(heads.pattern, weights, busy)
        ctx.matrix, ctx.heads = matrix, heads
        ctx.save_for_backward(z)
        return matrix.times(z)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (z,) = ctx.saved_tensors
        gradient = gradient.contiguous()
        return sampled(ctx.heads, gradient, z, ctx.matrix), ctx.matrix.back(gradient), None, None


def sampled(heads: Heads, left: Tensor, right: Tensor, matrix: Sparse) -> Tensor:
    """The product left·rightᵀ of left [R·n·H, d] and right [R·m·H, d] at the entries of the heads: [nnz]."""
    if kernels.serves(left, right):
        from bangs.kernels.attention import sampled as kernel

        block = heads.block
        return kernel(heads.lines[: len(block.cols)], block.cols, left, right, heads.pattern.runs, matrix.busy)
    if left.device.type == "cpu":
        product: Tensor = torch.sparse.sampled_addmm(matrix.csr, left, right.t(), beta=0.0)
        return product.values()
    step = max(CHUNK // left.shape[1], 1)
    pairs = zip(heads.lines.split(step), heads.pattern.cols.split(step), strict=True)
    return torch.cat([(left.index_select(0, i) * right.index_select(0, j)).sum(1) for i, j in pairs])


def _softmax(heads: Heads, source: Tensor, target: Tensor) -> Tensor:
    score = torch.nn.functional.leaky_relu_(_scores(heads, source, target), SLOPE)
    top = torch.segment_reduce(score, "max", offsets=heads.pattern.rows, unsafe=True)
    weights = score.sub_(top.index_select(0, heads.lines)).exp_()
    if heads.counts is not None:
        weights.mul_(heads.counts)
    return weights.div_(_sums(weights, heads.pattern.rows).index_select(0, heads.lines))


def _scores(heads: Heads, source: Tensor, target: Tensor) -> Tensor:
    return source.index_select(0, heads.pattern.cols).add_(target.index_select(0, heads.lines))


def _sums(values: Tensor, rows: Tensor) -> Tensor:
    return torch.segment_reduce(values, "sum", offsets=rows, unsafe=True)


def _shared(heads: Heads) -> Tensor | None:
    """The counts of one run's entries."""
    return None if heads.counts is None else heads.counts[: len(heads.block.cols)]
