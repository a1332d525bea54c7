"""The rule by which the best round of a run is chosen.

The best round has the highest validation accuracy. Of rounds with equal accuracy it is the one with the lowest
validation loss, if losses were measured; of rounds with equal losses, or none, the earliest. A fit with few labels,
where the best of all rounds is mostly luck, takes the last round that is not clearly behind the best.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Merit:
    """How well a round did on the validation nodes."""

    accuracy: float
    loss: float = 0.0  # 0 if it is not measured

    def beats(self, earlier: "Merit") -> bool:
        """Whether this round is better than an earlier one."""
        return (self.accuracy, -self.loss) > (earlier.accuracy, -earlier.loss)


def best_round(accuracy: Sequence[float]) -> int:
    """The number of the best round, from the validation accuracy of every round."""
    return max(range(len(accuracy)), key=accuracy.__getitem__, default=0)  # the first of equals


def beats(accuracy: "Tensor", earlier: "Tensor") -> "Tensor":
    """Where a round's accuracy [R] makes it better than an earlier round: bool [R]."""
    return accuracy > earlier


def leads(likelihood: "Tensor", best: "Tensor") -> bool:
    """Whether a round's mean log-probability of the validation labels [M] is higher than that of the best one."""
    return float((likelihood - best).mean()) > 0


def clearly_behind(likelihood: "Tensor", best: "Tensor") -> bool:
    """Whether a round is behind the best one by a standard error of the mean difference or more.

    Both are log-probabilities of the validation labels: float [M].
    """
    gap = likelihood - best
    error = float(gap.std()) / len(gap) ** 0.5 if len(gap) > 1 else float("inf")
    return float(gap.mean()) <= -error
