"""The information game with its coalitions divided among several processes."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bangs.distributed import ranks
from bangs.graphs.pagerank_push import Pairs, PushOperator, raised_threshold
from bangs.valuation.information import Information


@dataclass(frozen=True, eq=False)
class DistributedGame:
    """The information game, computed by all ranks together.

    Every rank computes its shard of the coalitions and leaves zeros for the others; the sum over ranks is the result of
    one process, up to rounding. On a large graph ranks also share the players' PPR columns and the propagation of the
    known logits.
    """

    game: Information

    @classmethod
    def of(cls, game: Information) -> "DistributedGame":
        """The game prepared by all ranks; all of them must call this."""
        if isinstance(game.operator, PushOperator) and ranks.world_size() > 1:
            pairs = tuple(_pairs(game.operator, nodes, game.max_pairs) for nodes in game.nodes)
            game = replace(game, shared_pairs=pairs, shared_base=_base(game))
        return cls(game)

    @property
    def runs(self) -> int:
        return self.game.runs

    @property
    def players(self) -> int:
        return self.game.players

    @property
    def device(self) -> torch.device:
        return self.game.device

    def __call__(self, members: Tensor) -> Tensor:
        """U of coalitions [R, B, K]: float64 [R, B]."""
        return _sum_over_ranks(self.game, members, members.shape[:2], torch.float64)

    def marginals(self, members: Tensor) -> Tensor:
        """U(S ∪ i) − U(S∖i) of coalitions bool [R, B, K]: float32 [R, B, K]."""
        return _sum_over_ranks(self.game.marginals, members, members.shape, torch.float32)

    def gradient(self, members: Tensor) -> Tensor:
        """∂U/∂mᵢ at memberships [R, B, K]: float32 [R, B, K]."""
        return _sum_over_ranks(self.game.gradient, members, members.shape, torch.float32)


def _sum_over_ranks(
    value: Callable[[Tensor], Tensor], members: Tensor, shape: torch.Size, dtype: torch.dtype
) -> Tensor:
    result = torch.zeros(shape, dtype=dtype, device=members.device)
    shard = torch.tensor(ranks.shard(members.shape[1]), dtype=torch.long, device=members.device)
    if len(shard):
        result[:, shard] = value(members[:, shard]).to(dtype)
    return ranks.all_reduce(result)


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
