"""Sharing: a game whose coalitions are valued by several processes, each a part of them."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from bangs import ranks
from bangs.valuation.utility import Information


@dataclass(frozen=True, eq=False)
class Shared:
    """The information game, played by all ranks together.

    Every rank values the coalitions that are its own and leaves zeros for the others'; the sum over ranks is what one
    process would have found, up to how many coalitions were multiplied at once.
    """

    game: Information

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
    mine = torch.tensor(ranks.own(members.shape[1]), dtype=torch.long, device=members.device)
    if len(mine):
        found[:, mine] = value(members[:, mine]).to(dtype)
    return ranks.summed(found)
