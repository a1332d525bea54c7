"""Levels: the push of whole columns, level by level over all links, which is how a GPU does it."""

from collections.abc import Callable

import torch
from torch import Tensor


def pushed(
    hop: Callable[[Tensor], Tensor], start: Tensor, alpha: float, steps: int, threshold: float
) -> tuple[Tensor, Tensor]:
    """The columns [N, c] that start as [N, c], which is overwritten, and how far off an entry of each may be: [c].

    `hop` gives Ã x of x [N, c]. Entries of at most the threshold stay where they are, as in `Push`.
    """
    now, settled = start, torch.zeros_like(start)
    bound = torch.zeros(start.shape[1], device=start.device)
    for _ in range(steps):
        small = now <= threshold
        bound += (now * small).amax(0)
        settled += torch.where(small, now, alpha * now)
        now = hop(now.masked_fill_(small, 0.0).mul_(1 - alpha))
    return settled.add_(now), bound
