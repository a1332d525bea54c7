"""The maximum over a node's neighbours, column by column, of dense or sparse features."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bangs import kernels
from bangs.graphs.neighbours import ragged_index
from bangs.graphs.sparse import Pattern, Sparse, row_pointers

CPU_CHUNK = 2**17  # numbers compared at once, few enough for a CPU's cache
GPU_CHUNK = 2**25  # the same for a GPU without our kernels


def segment_max(pattern: Pattern, x: Tensor, active: Tensor | None = None) -> Tensor:
    """The maximum [R·n, d] over the entries of each row, none of them empty, of x [R·m, d].

    Ties share the gradient evenly.
    """
    return _SegmentMax.apply(x.contiguous(), pattern, active)


class _SegmentMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, pattern: Pattern, active: Tensor | None) -> Tensor:
        ctx.pattern, ctx.active = pattern, active
        if kernels.serves(x):
            from bangs.kernels.segment_max import segment_max as kernel

            block = pattern.one_run
            maxima, share = kernel(block.whole_schedule, block.cols, x, pattern.runs, active)
            ctx.save_for_backward(x, maxima, share)
        else:
            maxima = _segment_max(pattern, x)
            ctx.save_for_backward(x, maxima)
        return maxima

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        pattern: Pattern = ctx.pattern
        x, maxima, *kernel_share = ctx.saved_tensors
        if not kernel_share:
            return _segment_max_back(pattern, x, maxima, gradient), None, None
        from bangs.kernels.segment_max import segment_max_back

        block = pattern.one_run.transposed.pattern
        shares = kernel_share[0] * gradient
        back = segment_max_back(block.whole_schedule, block.cols, x, maxima, shares, pattern.runs, ctx.active)
        return back, None, None


def _segment_max(pattern: Pattern, x: Tensor) -> Tensor:
    if x.device.type == "cpu":
        return torch.sparse.mm(pattern.ones, x, "amax")
    return torch.cat([_reduce_max(part, pattern) for (part,) in _column_chunks(pattern, x)], dim=1)


def _segment_max_back(pattern: Pattern, x: Tensor, maxima: Tensor, gradient: Tensor) -> Tensor:
    """The gradient [R·m, d] of x from the gradient [R·n, d] of the maxima."""
    if x.device.type != "cpu":
        return _segment_max_back_ordered(pattern, x, maxima, gradient)
    step = max(CPU_CHUNK // x.shape[1], 1)
    parts = list(zip(pattern.row_index.split(step), pattern.cols.split(step), strict=True))
    ties = torch.zeros_like(maxima)
    for row, col in parts:
        ties.index_add_(0, row, x.index_select(0, col).eq_(maxima.index_select(0, row)))
    share = gradient / ties
    back = torch.zeros_like(x)
    for row, col in parts:
        same = x.index_select(0, col).eq_(maxima.index_select(0, row))
        back.index_add_(0, col, same.mul_(share.index_select(0, row)))
    return back


def _segment_max_back_ordered(pattern: Pattern, x: Tensor, maxima: Tensor, gradient: Tensor) -> Tensor:
    """The same with a fixed order of sums, for a GPU, whose index_add has none: entries are sorted by column."""
    row_index, (transposed, order) = pattern.row_index, pattern.transposed
    parts = []
    for values, top, grad in _column_chunks(pattern, x, maxima, gradient):
        same = values.index_select(0, pattern.cols).eq_(top.index_select(0, row_index))
        ties = torch.segment_reduce(same, "sum", offsets=pattern.rows, unsafe=True)
        shared = same.mul_((grad / ties).index_select(0, row_index)).index_select(0, order)
        parts.append(torch.segment_reduce(shared, "sum", offsets=transposed.rows, unsafe=True))
    return torch.cat(parts, dim=1)


def _reduce_max(x: Tensor, pattern: Pattern) -> Tensor:
    """The maximum over each row's entries of x [R·m, …]: [R·n, …]."""
    return torch.segment_reduce(x.index_select(0, pattern.cols), "max", offsets=pattern.rows, unsafe=True)


def _column_chunks(pattern: Pattern, *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """A few columns of every tensor at a time, so that one number per entry and column fits in memory."""
    step = max(GPU_CHUNK // max(len(pattern.cols), 1), 1)
    return zip(*(tensor.split(step, dim=1) for tensor in tensors), strict=True)


@dataclass(frozen=True, eq=False)
class SparseNeighbourMax:
    """The neighbour maximum of sparse features, whose result is sparse too; zeros that are not stored count."""

    runs: int
    pattern: Pattern  # [R·n, R·F], where a node or one of its neighbours has a feature
    segments: Pattern  # [nnz of one run, stored values of one run]: the values that each entry is the maximum of
    full: Tensor  # bool [nnz of one run], whether all neighbours store it; else a zero is among them
    self_index: Tensor  # long [nnz of one run], index of the node's own stored value; their number if it has none

    @classmethod
    def of(cls, hop: Pattern, features: Pattern, output_index: Tensor | None = None) -> "SparseNeighbourMax":
        """Of a hop [R·n, R·m] and features [R·m, R·F]; `output_index` long [n] are the outputs among the inputs."""
        runs = features.runs
        if hop.runs == runs:
            hop, features = hop.one_run, features.one_run
        else:  # every run has its own graph
            runs, output_index = 1, None
        width, stored = features.shape[1], len(features.cols)
        entry, position = _entries(features.rows, hop.cols)
        key = hop.row_index.long()[entry] * width + features.cols[position]
        key, order = key.sort(stable=True)
        key, counts = key.unique_consecutive(return_counts=True)
        row = key // width
        outputs = torch.arange(hop.shape[0], device=key.device) if output_index is None else output_index
        node, own_position = _entries(features.rows, outputs)
        self_index = torch.full((len(key),), stored, device=key.device)
        self_index[torch.searchsorted(key, node * width + features.cols[own_position])] = own_position
        pattern = Pattern(
            row_pointers(torch.bincount(row, minlength=hop.shape[0]), torch.int32),
            (key % width).int(),
            (hop.shape[0], width),
        )
        return cls(
            runs,
            pattern if runs == 1 else pattern.repeat(runs),
            Pattern(row_pointers(counts, torch.int32), position[order].int(), (len(key), stored)),
            counts == hop.rows.diff()[row],
            self_index,
        )

    def __call__(self, values: Tensor, share: float, active: Tensor | None = None) -> Sparse:
        """`share` times every node's own features plus the neighbour maximum, from all runs' stored values."""
        values = values.view(self.runs, -1)
        maxima = self._segment_max(values, active)
        maxima = torch.where(self.full, maxima, maxima.clamp_min(0.0))
        own = torch.cat([values, torch.zeros_like(values[:, :1])], dim=1).index_select(1, self.self_index)
        return Sparse(self.pattern, torch.add(maxima, own, alpha=share).flatten(), active)

    def _segment_max(self, values: Tensor, active: Tensor | None) -> Tensor:
        if kernels.serves(values):
            from bangs.kernels.segment_max import segment_max as kernel

            parts = self.segments.whole_schedule, self.segments.cols, values.reshape(-1, 1)
            return kernel(*parts, self.runs, active)[0].view(self.runs, -1)
        return torch.stack([_reduce_max(run_values, self.segments) for run_values in values])


def _entries(rows: Tensor, row_index: Tensor) -> tuple[Tensor, Tensor]:
    """For some rows of a CSR: for each of their entries the position of the row, and the index of the entry; long."""
    length = rows.diff()[row_index]
    number = torch.arange(len(row_index), device=rows.device).repeat_interleave(length)
    return number, ragged_index(rows[:-1][row_index].long(), length)
