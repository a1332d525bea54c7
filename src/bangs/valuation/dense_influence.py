"""The influence of players from dense PPR columns, for several runs at once."""

import torch
from torch import Tensor

from bangs.graphs.pagerank import Operator
from bangs.valuation.influence import Influence, Normalisation, to_logits
from bangs.valuation.ppr_columns import DenseColumns

COLUMNS = 64  # players whose columns a CPU propagates together; a GPU takes all
COLUMN_BYTES = 12  # of one number of a column, including temporaries


def dense_influence(
    operator: Operator, nodes: Tensor, base: Tensor, player_signals: Tensor, open: Tensor, normalise: Normalisation
) -> Influence:
    """The influence of the players `nodes` long [g, K] of g runs.

    `base` [D, g, N] is P X̂(∅), `player_signals` [g, K, D] the players' signals, `open` bool [g, N] the nodes that
    count. Runs are padded to the longest with nodes of weight zero; a single run needs no padding.
    """
    width = COLUMNS if nodes.device.type == "cpu" else nodes.shape[1]
    chunks = [operator.columns(some.flatten()).view(-1, *some.shape) for some in nodes.split(width, dim=1)]
    reached = torch.stack([chunk.amax(2) for chunk in chunks]).amax(0).T > 0
    rows, weight = _positions(reached & open)
    runs = torch.arange(len(nodes), device=nodes.device)[:, None]
    flat = (rows * len(nodes) + runs).flatten()
    shares = torch.cat([chunk.flatten(0, 1).index_select(0, flat) for chunk in chunks], dim=1)
    shares = shares.view(*rows.shape, nodes.shape[1])
    total, neg_entropy = _unreached(base, open & ~reached, normalise)
    return Influence(
        columns=DenseColumns(shares if weight is None else shares.mul_(weight[..., None])),
        base=base.gather(2, rows.expand(len(base), -1, -1)),
        player_signals=player_signals,
        total=total,
        neg_entropy=neg_entropy,
        count=open.sum(1),
        normalise=normalise,
        weight=weight,
    )


def _unreached(base: Tensor, others: Tensor, normalise: Normalisation) -> tuple[Tensor, Tensor]:
    """Σ p_j and −Σ H(p_j) over the open nodes bool [g, N] that no player reaches: float64 [C, g] and [g]."""
    rows, weight = _positions(others)
    p = to_logits(base.gather(2, rows.expand(len(base), -1, -1)), normalise).softmax(0)
    if weight is not None:
        p *= weight
    return p.double().sum(2), torch.xlogy(p, p).double().sum((0, 2))


def _positions(mask: Tensor) -> tuple[Tensor, Tensor | None]:
    """The true positions of a mask [g, N]: long [g, n], and float [g, n], 1 for a position and 0 for padding; None for
    a single run, which has no padding."""
    run, node = mask.nonzero().unbind(1)
    if len(mask) == 1:
        return node[None], None
    counts = mask.sum(1)
    within = torch.arange(len(run), device=run.device) - (counts.cumsum(0) - counts)[run]
    positions = node.new_zeros(len(mask), int(counts.max()))
    positions[run, within] = node
    return positions, (torch.arange(positions.shape[1], device=run.device) < counts[:, None]).float()
