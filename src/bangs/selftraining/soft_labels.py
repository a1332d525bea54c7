"""Soft labels: how a teacher's probabilities become the labels of a student."""

from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from bangs.core.types import Round
from bangs.utils.setting_checks import check_choice, check_number


class Believe(Protocol):
    """Soft labels of a round: float [R, N, C], rows that sum to one."""

    def __call__(self, round: Round) -> Tensor: ...


@dataclass(frozen=True)
class Sharpen:
    """The teacher's probabilities, sharpened: q_c ∝ p_c^(1/temperature), rows of [R, N, C] that sum to one.

    With `shares = "validation"` or `"given"` the class shares are aligned first: p_c is multiplied by s_c / p̄_c, where
    s is the share of each class among the validation labels, or in the weights of the given labels, smoothed by one
    label a class, and p̄ the mean prediction over the pool. This helps where a weak teacher favours some classes.
    `temperature = 1` keeps p as it is; 0.5 squares it.
    """

    temperature: float = 0.5
    shares: Literal["none", "validation", "given"] = "none"

    def __post_init__(self) -> None:
        check_number("Sharpen.temperature", self.temperature, within="(0, inf)")
        check_choice("Sharpen.shares", self.shares, ("none", "validation", "given"))

    def __call__(self, round: Round) -> Tensor:
        logs = round.prediction.log_probs
        if self.shares != "none":
            logs = logs + self._shift(round)[:, None]
        return (logs / self.temperature).softmax(-1)

    def _shift(self, round: Round) -> Tensor:
        """log s_c − log p̄_c: float [R, C]."""
        probs, task = round.prediction.probs, round.task
        pool = round.pool[..., None].to(probs.dtype)
        mean = (probs * pool).sum(1) / pool.sum(1).clamp_min(1)
        validation = self.shares == "validation"
        target, weight = (task.validation, task.held) if validation else (task.given.target, task.given.weight)
        masses = [((target == c) * weight).sum(1) for c in range(task.classes)]
        counts = torch.stack(masses, dim=1).to(probs.dtype) + 1
        share = counts / counts.sum(1, keepdim=True)
        return share.log() - mean.clamp_min(1e-12).log()
