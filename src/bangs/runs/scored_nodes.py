"""ScoredNodes: the nodes that were scored in each round, adopted or not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bangs.errors import InvalidInput

if TYPE_CHECKING:
    from bangs.selftraining.loop import State

MAX_LOGGED_NODES = 2000  # best scored nodes per round; adopted nodes are always logged

_INTEGER_DTYPES = (torch.long, torch.int32, torch.int16, torch.int8, torch.uint8)


@dataclass(frozen=True, eq=False)
class ScoredNodes:
    """The scored nodes of all rounds, ordered by round and score: M lines.

    A round has its best 2,000 nodes and all adopted ones; a round of soft labels, which adopts all nodes, has none.
    """

    round: Tensor  # long
    node: Tensor  # long
    taken: Tensor  # bool, whether the node got a pseudo-label
    label: Tensor  # long, the teacher's
    raw_confidence: Tensor  # float
    confidence: Tensor  # float, calibrated
    score: Tensor  # float
    stderr: Tensor  # float, NaN if the score was not estimated
    place: Tensor  # long, rank by score among all nodes scored in the round: 1 = best
    among: Tensor  # long, number of nodes scored in the round

    @classmethod
    def of(cls, state: "State", run: int) -> "ScoredNodes":
        """The lines of one round."""
        adoption = state.adoption
        if adoption is None or adoption.soft:
            return cls(**{name: torch.zeros(0, dtype=dtype) for name, dtype in _DTYPES.items()})
        score = adoption.ranking.score[run]
        scored = score > float("-inf")
        best = score.argsort(descending=True, stable=True)
        rank = torch.empty_like(best).scatter(0, best, torch.arange(len(best), device=best.device))
        logged = scored & ((rank < MAX_LOGGED_NODES) | adoption.chosen[run])
        nodes = best[logged[best]]
        stderr = adoption.ranking.stderr
        columns = {
            "round": torch.full_like(nodes, state.index),
            "node": nodes,
            "taken": adoption.chosen[run, nodes],
            "label": adoption.label[run, nodes],
            "raw_confidence": adoption.raw_confidence[run, nodes],
            "confidence": adoption.confidence[run, nodes],
            "score": score[nodes],
            "stderr": torch.full_like(score[nodes], float("nan")) if stderr is None else stderr[run, nodes],
            "place": rank[nodes] + 1,
            "among": scored.sum().expand(len(nodes)),
        }
        return cls(**{name: column.cpu().to(_DTYPES[name]) for name, column in columns.items()})

    @classmethod
    def joined(cls, logs: "Sequence[ScoredNodes]") -> "ScoredNodes":
        """Concatenate logs."""
        return cls(*(torch.cat([getattr(log, field.name) for log in logs]) for field in fields(cls)))

    def where(self, mask: Tensor) -> "ScoredNodes":
        """The lines where mask [M] is true."""
        return ScoredNodes(*(getattr(self, field.name)[mask] for field in fields(self)))

    def __len__(self) -> int:
        return len(self.round)

    def to_plain(self) -> dict[str, Tensor]:
        """The columns as tensors, named as in files of earlier versions, for `from_plain`."""
        return {f"candidate_log.{field.name}": getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_plain(cls, tensors: Mapping[str, Tensor]) -> "ScoredNodes":
        """Read the tensors of `to_plain`; their types and lengths are checked."""
        columns = {name: tensors[f"candidate_log.{name}"] for name in _DTYPES}
        for name, column in columns.items():
            if column.dtype != _DTYPES[name] or column.dim() != 1 or len(column) != len(columns["round"]):
                raise InvalidInput(
                    f"'candidate_log.{name}' of the saved run must be {_DTYPES[name]}, one number a line "
                    f"[{columns['round'].numel()}], got {column.dtype} of shape {list(column.shape)}"
                )
        if (columns["round"].diff() < 0).any():
            raise InvalidInput("the lines of the saved candidate_log must be in the order of rounds")
        return cls(**columns)

    def check(self, nodes: int, classes: int, rounds: int) -> None:
        """Raise if a log from a file names nodes, classes or rounds that do not exist."""
        ranges = {"node": (0, nodes), "label": (0, classes), "round": (1, rounds)}
        for name, (low, high) in {**ranges, **dict.fromkeys(("place", "among"), (1, nodes + 1))}.items():
            check_integers(f"candidate_log.{name}", getattr(self, name), low, high)
        if (self.place > self.among).any():
            raise InvalidInput("'candidate_log.place' of the saved run must be one of 1 to 'candidate_log.among'")
        for name in ("raw_confidence", "confidence"):
            check_finite(f"candidate_log.{name}", getattr(self, name))
        if self.score.isnan().any():
            raise InvalidInput("'candidate_log.score' of the saved run must hold numbers, got NaN")

    def adopted(self, round: int) -> dict[str, list[Any]]:
        """The adopted nodes of a round, best first: label, confidence before and after calibration, and score."""
        lines = self.where(self.taken & (self.round == round))
        names = ("node", "label", "raw_confidence", "confidence", "score", "stderr")
        columns: dict[str, list[Any]] = {name: getattr(lines, name).tolist() for name in names}
        return columns if lines.stderr.isfinite().any() else {**columns, "stderr": []}


def check_integers(name: str, value: Tensor, low: int, high: int) -> None:
    """Raise unless a tensor of a file holds integers from low to high − 1."""
    # compared as Python integers, as 256 overflows to 0 in uint8
    is_integer = value.dtype in _INTEGER_DTYPES
    if not is_integer or (value.numel() and not low <= int(value.min()) <= int(value.max()) < high):
        raise InvalidInput(f"'{name}' of the saved run must hold whole numbers from {low} to {high - 1}")


def check_finite(name: str, value: Tensor, *, negative: bool = True) -> None:
    """Raise unless a tensor of a file holds finite numbers; without `negative`, also if one is below 0."""
    if not value.is_floating_point() or not value.isfinite().all():
        raise InvalidInput(f"'{name}' of the saved run must hold finite numbers")
    if not negative and (value < 0).any():
        raise InvalidInput(f"'{name}' of the saved run must hold no number below 0")


_DTYPES = {
    **dict.fromkeys(("round", "node", "label", "place", "among"), torch.long),
    **dict.fromkeys(("raw_confidence", "confidence", "score", "stderr"), torch.float32),
    "taken": torch.bool,
}
