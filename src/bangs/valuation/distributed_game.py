"""Sharing: a game whose coalitions are valued by several processes, each a part of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bangs.distributed import ranks
from bangs.graphs.push import Pairs, PushOperator, raised
from bangs.valuation.information import Information


@dataclass(frozen=True, eq=False)
class SharedGame:
    """The information game, played by all ranks together.

    Every rank values the coalitions that are its own and leaves zeros for the others'; the sum over ranks is what one
    process would have found, up to how many coalitions were multiplied at once. On a large graph ranks also push
    their share of the players' columns, and propagate their share of the numbers that are known.
    """

    game: Information

    @classmethod
    def of(cls, game: Information) -> "SharedGame":
        """The game prepared by all ranks together, all of which must call this."""
        if isinstance(game.operator, PushOperator) and ranks.world_size() > 1:
            made = {run: _pairs(game.operator, nodes, game.room) for run, nodes in enumerate(game.nodes)}
            game = replace(game, made={**made, "base": _base(game)})
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
        return _together(self.game, members, members.shape[:2], torch.float64)

    def marginals(self, members: Tensor) -> Tensor:
        """U(S ∪ i) − U(S∖i) of coalitions bool [R, B, K]: float32 [R, B, K]."""
        return _together(self.game.marginals, members, members.shape, torch.float32)

    def gradient(self, members: Tensor) -> Tensor:
        """∂U/∂mᵢ at memberships [R, B, K]: float32 [R, B, K]."""
        return _together(self.game.gradient, members, members.shape, torch.float32)


def _together(value: Callable[[Tensor], Tensor], members: Tensor, shape: torch.Size, dtype: torch.dtype) -> Tensor:
    found = torch.zeros(shape, dtype=dtype, device=members.device)
    mine = torch.tensor(ranks.shard(members.shape[1]), dtype=torch.long, device=members.device)
    if len(mine):
        found[:, mine] = value(members[:, mine]).to(dtype)
    return ranks.all_reduce(found)


def _pairs(operator: PushOperator, nodes: Tensor, max_entries: int) -> Pairs:
    """The columns of some nodes long [K], each pushed by one rank; the same as one process would have pushed."""
    mine = torch.tensor(ranks.shard(len(nodes)), dtype=torch.long)
    threshold = operator.threshold(nodes, max_entries)
    while True:
        found = operator.push(nodes[mine.to(nodes.device)], threshold, max_entries)
        taken = max_entries + 1 if found is None else len(found.node)
        if int(ranks.all_reduce(torch.tensor(taken))) <= max_entries and found is not None:
            break
        threshold = raised(threshold)
    node, player, weight = (ranks.all_gather(x) for x in (found.node, mine[found.player], found.weight))
    order = player.argsort(stable=True)
    bound = float(ranks.all_gather(torch.tensor([found.bound])).max())
    return Pairs(node[order], player[order], weight[order], bound)


def _base(game: Information) -> Tensor:
    """P X̂(∅) [D, R, N], each rank propagating its share of the D · R columns."""
    mine = ranks.shard(game.width * game.runs)
    base = torch.zeros(game.width * game.runs, game.logits.shape[1], device=game.device)
    base[mine.start :: mine.step] = game.heard(mine)
    return ranks.all_reduce(base).view(game.width, game.runs, -1)
