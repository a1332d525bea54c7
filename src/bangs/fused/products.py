"""Triton kernels for products of all runs at once; sums are taken in a fixed order."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

WIDEST = 128  # columns of a dense factor that one program holds
TILE = 1024  # numbers that one warp gathers at once
STRETCH = 128  # entries of a row that one program adds up
CHUNK = 256  # nodes whose share of a weight's gradient one program adds up


@triton.jit
def _product(
    rows, cols, values, order, dense, out, n, m, entries, width,
    ORDERED: tl.constexpr, PLAIN: tl.constexpr, E: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    row, run = tl.program_id(0), tl.program_id(2).to(tl.int64)
    column = tl.program_id(1) * D + tl.arange(0, D)
    wide = column < width
    begin, end = tl.load(rows + row), tl.load(rows + row + 1)
    total = tl.zeros([D], dtype=tl.float32)
    for start in range(begin, end, E):
        entry = start + tl.arange(0, E)
        inside = entry < end
        seen = inside[:, None] & wide[None, :]
        if PLAIN:
            line = dense + (run * m + entry[:, None]) * width + column[None, :]
            total += tl.sum(tl.load(line, mask=seen, other=0.0), axis=0)
        else:
            source = tl.load(cols + entry, mask=inside, other=0).to(tl.int64)
            place = tl.load(order + entry, mask=inside, other=0) if ORDERED else entry
            value = tl.load(values + run * entries + place, mask=inside, other=0.0)
            line = dense + (run * m + source[:, None]) * width + column[None, :]
            total += tl.sum(value[:, None] * tl.load(line, mask=seen, other=0.0), axis=0)
    tl.store(out + (run * n + row) * width + column, total, mask=wide)


@triton.jit
def _tall(left, right, out, nodes, a, b, chunk, N: tl.constexpr, A: tl.constexpr, B: tl.constexpr):
    part, run = tl.program_id(0), tl.program_id(2).to(tl.int64)
    line = tl.program_id(1) * A + tl.arange(0, A)
    column = tl.arange(0, B)
    total = tl.zeros([A, B], dtype=tl.float32)
    for start in range(part * chunk, tl.minimum((part + 1) * chunk, nodes), N):
        node = start + tl.arange(0, N)
        inside = (node < nodes) & (node < (part + 1) * chunk)
        place = run * nodes + node
        one = tl.load(left + place[:, None] * a + line[None, :], mask=inside[:, None] & (line < a)[None, :], other=0.0)
        two = tl.load(
            right + place[:, None] * b + column[None, :], mask=inside[:, None] & (column < b)[None, :], other=0.0
        )
        total += tl.dot(tl.trans(one), two, input_precision="ieee")
    place = out + ((run * tl.num_programs(0) + part) * a + line[:, None]) * b + column[None, :]
    tl.store(place, total, mask=(line < a)[:, None] & (column < b)[None, :])


class Stretches(NamedTuple):
    """Long rows of a CSR cut into pieces, so that no program works while all others are done."""

    cuts: Tensor  # int [P + 1], where a piece begins among the entries
    rows: Tensor  # int [n + 1], where a row begins among the pieces

    @classmethod
    def of(cls, rows: Tensor, longest: int = STRETCH) -> "Stretches":
        """The pieces of the rows of a CSR [n + 1]; a row without entries has one, empty."""
        pieces = (rows.diff() + longest - 1).div(longest, rounding_mode="floor").clamp_min(1)
        first = torch.cat([torch.zeros_like(rows[:1]), pieces.cumsum(0).to(rows.dtype)])
        owner = torch.arange(len(pieces), device=rows.device).repeat_interleave(pieces)
        within = torch.arange(len(owner), device=rows.device) - first[owner]
        cuts = torch.cat([(rows[owner] + within * longest).to(rows.dtype), rows[-1:]])
        return cls(cuts, first)


def product(
    stretches: Stretches, cols: Tensor, values: Tensor, dense: Tensor, runs: int, order: Tensor | None = None
) -> Tensor:
    """The product [R·n, d] of R matrices of one pattern with dense [R·m, d].

    The pattern is a CSR of one run with cols [E]; values [R·E] are each run's own, entry e at order[e] where an
    order is given.
    """
    cuts, rows = stretches
    parts = _multiply(cuts, cols, values, order, dense, runs)
    return parts if len(cuts) == len(rows) else _multiply(rows, cols, None, None, parts, runs)


def _multiply(
    rows: Tensor, cols: Tensor, values: Tensor | None, order: Tensor | None, dense: Tensor, runs: int
) -> Tensor:
    """Sums over the rows of a CSR; without values, of the dense lines that stand beside each other."""
    n, m, entries, width = len(rows) - 1, len(dense) // runs, len(cols), dense.shape[1]
    out = torch.empty(runs * n, width, dtype=dense.dtype, device=dense.device)
    columns = min(WIDEST, triton.next_power_of_2(width))
    together = max(4, min(TILE // columns, triton.next_power_of_2(entries // max(n, 1) + 1)))
    _product[(n, triton.cdiv(width, columns), runs)](
        rows, cols, dense if values is None else values, cols if order is None else order, dense, out,
        n, m, entries, width,
        ORDERED=order is not None, PLAIN=values is None, E=together, D=columns, num_warps=1,
    )  # fmt: skip
    return out


def tall(left: Tensor, right: Tensor) -> Tensor:
    """leftᵀ·right [R, a, b] of left [R, n, a] and right [R, n, b] with few columns and many rows."""
    (runs, nodes, a), b = left.shape, right.shape[2]
    parts, lines = triton.cdiv(nodes, CHUNK), min(64, max(16, triton.next_power_of_2(a)))
    out = torch.empty(runs, parts, a, b, dtype=left.dtype, device=left.device)
    _tall[(parts, triton.cdiv(a, lines), runs)](
        left.contiguous(), right.contiguous(), out, nodes, a, b, CHUNK,
        N=32, A=lines, B=max(16, triton.next_power_of_2(b)), num_warps=4,
    )  # fmt: skip
    return out.sum(1)
