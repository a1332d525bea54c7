"""The information game computed by several processes together."""

from dataclasses import replace

import torch
from torch import Tensor

from bangs.distributed import ranks
from bangs.graphs.pagerank_push import Pairs, PushOperator, raised_threshold
from bangs.valuation.information import Information


def share(game: Information) -> Information:
    """The game, computed by all ranks together; all of them must call this and ask for the same coalitions.

    On a large graph ranks also share the players' PPR columns and the propagation of the known logits. Without several
    ranks the game is unchanged.
    """
    if ranks.world_size() == 1:
        return game
    game = replace(game, shared=True)
    if not isinstance(game.operator, PushOperator):
        return game
    pairs = tuple(_pairs(game.operator, nodes, game.max_pairs) for nodes in game.nodes)
    return replace(game, shared_pairs=pairs, shared_base=_base(game))


def _pairs(operator: PushOperator, nodes: Tensor, max_entries: int) -> Pairs:
    """The PPR columns of some nodes long [K], each computed by one rank; the same as by one process."""
    shard = torch.tensor(ranks.shard(len(nodes)), dtype=torch.long)
    threshold = operator.threshold(nodes, max_entries)
    while True:
        pairs = operator.push(nodes[shard.to(nodes.device)], threshold, max_entries)
        count = max_entries + 1 if pairs is None else len(pairs.node)
        if int(ranks.all_reduce(torch.tensor(count))) <= max_entries and pairs is not None:
            break
        threshold = raised_threshold(threshold)
    node, player, weight = (ranks.all_gather(x) for x in (pairs.node, shard[pairs.player], pairs.weight))
    order = player.argsort(stable=True)
    bound = float(ranks.all_gather(torch.tensor([pairs.bound])).max())
    return Pairs(node[order], player[order], weight[order], bound)


def _base(game: Information) -> Tensor:
    """P X̂(∅) [D, R, N]; each rank propagates its shard of the D · R columns."""
    shard = ranks.shard(game.width * game.runs)
    base = torch.zeros(game.width * game.runs, game.logits.shape[1], device=game.device)
    base[shard.start :: shard.step] = game.propagate_known(shard)
    return ranks.all_reduce(base).view(game.width, game.runs, -1)
