"""Maxima: the largest number among those a node hears, column by column, of dense or of sparse features."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bangs import kernels
from bangs.graphs.sparse import Pattern, Sparse, csr

if TYPE_CHECKING:
    from bangs.kernels.spmm import Turns

CACHED = 2**17  # numbers that a processor compares at once, few enough for its cache
CHUNK = 2**25  # and another device, where no kernel of ours serves


@dataclass(frozen=True, eq=False)
class Heard:
    """Whose numbers a row takes the largest of: the entries of a pattern without empty rows."""

    pattern: Pattern  # [R·n, R·m]

    @classmethod
    def of(cls, pattern: Pattern) -> "Heard":
        """Of a copy, so that who remembers this by the pattern does not keep the pattern alive."""
        return cls(replace(pattern))

    @property
    def block(self) -> Pattern:
        """What all runs share."""
        return self.pattern.block or self.pattern

    @cached_property
    def turns(self) -> "Turns":
        """How a GPU's programs share out the rows of one run, none of them cut."""
        from bangs.kernels.spmm import Turns

        return Turns.of(self.block.rows, longest=2**30)

    @cached_property
    def flipped_turns(self) -> "Turns":
        """The same for the transpose."""
        from bangs.kernels.spmm import Turns

        return Turns.of(self.block.flipped.rows, longest=2**30)

    @cached_property
    def lines(self) -> Tensor:
        """The row of every entry: int [nnz]."""
        return self.pattern.lines

    @cached_property
    def csr(self) -> Tensor:
        """The pattern with ones as torch has it."""
        ones = torch.ones(len(self.pattern.cols), device=self.pattern.cols.device)
        return csr(self.pattern.rows, self.pattern.cols, ones, self.pattern.shape)


def largest(heard: Heard, x: Tensor, busy: Tensor | None = None) -> Tensor:
    """The maximum [R·n, d] over the lines of x [R·m, d] that each row hears; ties share its gradient evenly."""
    found: Tensor = _Largest.apply(x.contiguous(), heard, busy)
    return found


class _Largest(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, heard: Heard, busy: Tensor | None) -> Tensor:
        ctx.heard, ctx.busy = heard, busy
        if kernels.serves(x):
            from bangs.kernels.segment_max import largest as kernel

            found, share = kernel(heard.turns, heard.block.cols, x, heard.pattern.runs, busy)
            ctx.save_for_backward(x, found, share)
        else:
            found = _largest(heard, x)
            ctx.save_for_backward(x, found)
        return found

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        heard: Heard = ctx.heard
        x, found, *more = ctx.saved_tensors
        if not more:
            return _back(heard, x, found, gradient), None, None
        from bangs.kernels.segment_max import largest_back

        (share,) = more
        cols, runs = heard.block.flipped.cols, heard.pattern.runs
        return largest_back(heard.flipped_turns, cols, x, found, share * gradient, runs, ctx.busy), None, None


def _largest(heard: Heard, x: Tensor) -> Tensor:
    if x.device.type == "cpu":
        found: Tensor = torch.sparse.mm(heard.csr, x, "amax")
        return found
    return torch.cat([_reduced(part, heard.pattern) for (part,) in _columns(heard, x)], dim=1)


def _back(heard: Heard, x: Tensor, found: Tensor, gradient: Tensor) -> Tensor:
    """The gradient [R·m, d] of the maxima found in x, given theirs [R·n, d]."""
    if x.device.type != "cpu":
        return _back_in_order(heard, x, found, gradient)
    step = max(CACHED // x.shape[1], 1)
    parts = list(zip(heard.lines.split(step), heard.pattern.cols.split(step), strict=True))
    ties = torch.zeros_like(found)
    for line, col in parts:
        ties.index_add_(0, line, x.index_select(0, col).eq_(found.index_select(0, line)))
    share = gradient / ties
    back = torch.zeros_like(x)
    for line, col in parts:
        same = x.index_select(0, col).eq_(found.index_select(0, line))
        back.index_add_(0, col, same.mul_(share.index_select(0, line)))
    return back


def _back_in_order(heard: Heard, x: Tensor, found: Tensor, gradient: Tensor) -> Tensor:
    """The same on a device that adds up scattered numbers in any order: entries stand by their columns first."""
    pattern, lines = heard.pattern, heard.lines
    rows, _, order = pattern.flipped
    parts = []
    for own, most, wish in _columns(heard, x, found, gradient):
        same = own.index_select(0, pattern.cols).eq_(most.index_select(0, lines))
        ties = torch.segment_reduce(same, "sum", offsets=pattern.rows, unsafe=True)
        shared = same.mul_((wish / ties).index_select(0, lines)).index_select(0, order)
        parts.append(torch.segment_reduce(shared, "sum", offsets=rows, unsafe=True))
    return torch.cat(parts, dim=1)


def _reduced(x: Tensor, pattern: Pattern) -> Tensor:
    """The largest of the lines of x [R·m, …] that each row names: [R·n, …]."""
    return torch.segment_reduce(x.index_select(0, pattern.cols), "max", offsets=pattern.rows, unsafe=True)


def _columns(heard: Heard, *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """The same few columns of each tensor at a time, as many as may be laid out entry by entry."""
    step = max(CHUNK // max(len(heard.pattern.cols), 1), 1)
    return zip(*(tensor.split(step, dim=1) for tensor in tensors), strict=True)


@dataclass(frozen=True, eq=False)
class Overlaid:
    """Sparse features of every node and of those it hears, laid over one another; zeros that are not stored count."""

    runs: int
    pattern: Pattern  # [R·n, R·F], where a node or somebody it hears has a feature
    heard: Heard  # [nnz of one run, stored values of one run]: of which an entry is the largest
    full: Tensor  # bool [nnz of one run], whether all stored it; else a zero is among them
    own: Tensor  # long [nnz of one run], the node's own stored value, or the number of them where it has none

    @classmethod
    def of(cls, hop: Pattern, features: Pattern, own: Tensor | None = None) -> "Overlaid":
        """Of a hop [R·n, R·m] that hears features [R·m, R·F]; own long [n] says where the n stand among the m."""
        runs = features.runs
        if hop.runs == runs:
            hop, features = hop.block or hop, features.block or features
        else:  # a graph of its own for every run
            runs, own = 1, None
        width, stored = features.shape[1], len(features.cols)
        entry, place = _entries(features.rows, hop.cols)
        key = hop.lines.long()[entry] * width + features.cols[place]
        key, order = key.sort(stable=True)
        key, counts = key.unique_consecutive(return_counts=True)
        line = key // width
        mine = torch.arange(hop.shape[0], device=key.device) if own is None else own
        node, kept = _entries(features.rows, mine)
        at = torch.full((len(key),), stored, device=key.device)
        at[torch.searchsorted(key, node * width + features.cols[kept])] = kept
        found = Pattern(
            _pointers(torch.bincount(line, minlength=hop.shape[0])), (key % width).int(), (hop.shape[0], width)
        )
        return cls(
            runs,
            found if runs == 1 else found.repeat(runs),
            Heard(Pattern(_pointers(counts), place[order].int(), (len(key), stored))),
            counts == hop.rows.diff()[line],
            at,
        )

    def __call__(self, values: Tensor, share: float, busy: Tensor | None = None) -> Sparse:
        """Every node's own features times `share`, and the largest it hears, of all runs' stored values."""
        values = values.view(self.runs, -1)
        found = self._largest(values, busy)
        found = torch.where(self.full, found, found.clamp_min(0.0))
        mine = torch.cat([values, torch.zeros_like(values[:, :1])], dim=1).index_select(1, self.own)
        return Sparse(self.pattern, torch.add(found, mine, alpha=share).flatten(), busy)

    def _largest(self, values: Tensor, busy: Tensor | None) -> Tensor:
        if kernels.serves(values):
            from bangs.kernels.segment_max import largest as kernel

            cols = self.heard.pattern.cols
            return kernel(self.heard.turns, cols, values.reshape(-1, 1), self.runs, busy)[0].view(self.runs, -1)
        return torch.stack([_reduced(own, self.heard.pattern) for own in values])


def _entries(rows: Tensor, lines: Tensor) -> tuple[Tensor, Tensor]:
    """For some lines of a CSR the numbers 0, 1, … of the lines and the places of all their entries: long, long."""
    length = rows.diff()[lines]
    number = torch.arange(len(lines), device=rows.device).repeat_interleave(length)
    start = rows[:-1][lines].long() - (length.cumsum(0) - length)
    return number, torch.arange(len(number), device=rows.device) + start[number]


def _pointers(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()
