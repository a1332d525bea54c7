"""Gathering: the reach of the players of several runs, from their whole columns."""

import torch
from torch import Tensor

from bangs.graphs.propagation import Operator
from bangs.valuation.ppr_columns import Whole
from bangs.valuation.reach import Reach, Reading, read

COLUMNS = 64  # players of a run whose columns a processor propagates together; a GPU takes all
COLUMN = 12  # bytes of a number of a column, which is read from one buffer into another and then dense_reach


def dense_reach(
    operator: Operator, nodes: Tensor, base: Tensor, brought: Tensor, open: Tensor, normalise: Reading
) -> Reach:
    """The reach of the players `nodes` long [g, K] of g runs, whose columns are one product.

    `base` [D, g, N] is P X̂(∅), `brought` [g, K, D] what players bring, `open` bool [g, N] who counts. Runs are filled
    up to the longest by nodes that no player tells anything and that weigh nothing; one run alone is as it is.
    """
    width = COLUMNS if nodes.device.type == "cpu" else nodes.shape[1]
    chunks = [operator.columns(some.flatten()).view(-1, *some.shape) for some in nodes.split(width, dim=1)]
    reached = torch.stack([chunk.amax(2) for chunk in chunks]).amax(0).T > 0
    rows, weight = _places(reached & open)
    runs = torch.arange(len(nodes), device=nodes.device)[:, None]
    lines = (rows * len(nodes) + runs).flatten()
    shares = torch.cat([chunk.flatten(0, 1).index_select(0, lines) for chunk in chunks], dim=1)
    shares = shares.view(*rows.shape, nodes.shape[1])
    total, certainty = _others(base, open & ~reached, normalise)
    return Reach(
        columns=Whole(shares if weight is None else shares.mul_(weight[..., None])),
        base=base.gather(2, rows.expand(len(base), -1, -1)),
        brought=brought,
        total=total,
        certainty=certainty,
        count=open.sum(1),
        normalise=normalise,
        weight=weight,
    )


def _others(base: Tensor, others: Tensor, normalise: Reading) -> tuple[Tensor, Tensor]:
    """Σ p_j and −Σ H(p_j) over the open nodes bool [g, N] that nobody reaches: float64 [C, g] and [g]."""
    rows, weight = _places(others)
    p = read(base.gather(2, rows.expand(len(base), -1, -1)), normalise).softmax(0)
    if weight is not None:
        p *= weight
    return p.double().sum(2), torch.xlogy(p, p).double().sum((0, 2))


def _places(mask: Tensor) -> tuple[Tensor, Tensor | None]:
    """Where a mask [g, N] is true in every run: long [g, n], and float [g, n], 1 where a place is true and 0 where it
    only fills a run up to the longest; None for one run, which nothing fills up."""
    run, node = mask.nonzero().unbind(1)
    if len(mask) == 1:
        return node[None], None
    counts = mask.sum(1)
    within = torch.arange(len(run), device=run.device) - (counts.cumsum(0) - counts)[run]
    places = node.new_zeros(len(mask), int(counts.max()))
    places[run, within] = node
    return places, (torch.arange(places.shape[1], device=run.device) < counts[:, None]).float()
