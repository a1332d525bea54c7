"""Assignment: what R models are to learn, and how they begin."""

from dataclasses import dataclass

from torch import Tensor

from bangs.core.rng import Streams
from bangs.core.types import Labels


@dataclass(frozen=True, eq=False)
class Assignment:
    """One fit of R models."""

    labels: Labels  # [R, N]
    rng: Streams
    start: dict[str, Tensor] | None = None  # weights to start from; None = fresh ones
    transition: Tensor | None = None  # [R, C, C], corrects the loss
    early: int | None = None  # the epoch whose weights are kept besides the best

    def only(self, run: int) -> "Assignment":
        """That of one run."""
        return Assignment(
            self.labels.only([run]),
            self.rng.only([run]),
            None if self.start is None else {name: value[[run]] for name, value in self.start.items()},
            None if self.transition is None else self.transition[[run]],
            self.early,
        )
