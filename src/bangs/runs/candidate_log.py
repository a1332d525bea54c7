"""CandidateLog: the nodes that were scored in some round, taken or not."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bangs.errors import InvalidInput

if TYPE_CHECKING:
    from bangs.selftraining.loop import State

KEPT = 2000  # scored nodes of a round that are kept, the best

_WHOLE = (torch.long, torch.int32, torch.int16, torch.int8, torch.uint8)


@dataclass(frozen=True, eq=False)
class CandidateLog:
    """The scored nodes of every round, in the order of rounds and scores: M lines.

    Of a round it keeps the best 2,000 and all that were taken; of a round of soft labels, which takes all nodes, none.
    """

    round: Tensor  # long
    node: Tensor  # long
    taken: Tensor  # bool, whether it got a pseudo-label
    label: Tensor  # long, the teacher's
    raw_confidence: Tensor  # float
    confidence: Tensor  # float, calibrated
    score: Tensor  # float
    stderr: Tensor  # float, NaN where the score was not estimated
    place: Tensor  # long, by score among all nodes scored in the round: 1 = the best
    among: Tensor  # long, how many were scored in the round

    @classmethod
    def of(cls, state: "State", run: int) -> "CandidateLog":
        """The lines of one round."""
        facts = state.adoption
        if facts is None or facts.soft:
            return cls(**{name: torch.zeros(0, dtype=kind) for name, kind in _TYPES.items()})
        score = facts.ranking.score[run]
        scored = score > float("-inf")
        best = score.argsort(descending=True, stable=True)
        rank = torch.empty_like(best).scatter(0, best, torch.arange(len(best), device=best.device))
        kept = scored & ((rank < KEPT) | facts.chosen[run])
        nodes = best[kept[best]]
        stderr = facts.ranking.stderr
        columns = {
            "round": torch.full_like(nodes, state.index),
            "node": nodes,
            "taken": facts.chosen[run, nodes],
            "label": facts.label[run, nodes],
            "raw_confidence": facts.raw_confidence[run, nodes],
            "confidence": facts.confidence[run, nodes],
            "score": score[nodes],
            "stderr": torch.full_like(score[nodes], float("nan")) if stderr is None else stderr[run, nodes],
            "place": rank[nodes] + 1,
            "among": scored.sum().expand(len(nodes)),
        }
        return cls(**{name: column.cpu().to(_TYPES[name]) for name, column in columns.items()})

    @classmethod
    def joined(cls, parts: "list[CandidateLog]") -> "CandidateLog":
        """One candidate_log after the other."""
        return cls(*(torch.cat([getattr(part, own.name) for part in parts]) for own in fields(cls)))

    def where(self, mask: Tensor) -> "CandidateLog":
        """The lines where mask [M] is true."""
        return CandidateLog(*(getattr(self, own.name)[mask] for own in fields(self)))

    def __len__(self) -> int:
        return len(self.round)

    def to_plain(self) -> dict[str, Tensor]:
        """Its columns as named tensors, for `from_plain`."""
        return {f"candidate_log.{own.name}": getattr(self, own.name) for own in fields(self)}

    @classmethod
    def from_plain(cls, tensors: Mapping[str, Tensor]) -> "CandidateLog":
        """The log that `to_plain` gave, with columns of the right types and of one length."""
        columns = {name: tensors[f"candidate_log.{name}"] for name in _TYPES}
        for name, column in columns.items():
            if column.dtype != _TYPES[name] or column.dim() != 1 or len(column) != len(columns["round"]):
                raise InvalidInput(
                    f"'candidate_log.{name}' of the saved run must be {_TYPES[name]}, one number a line "
                    f"[{columns['round'].numel()}], got {column.dtype} of shape {list(column.shape)}"
                )
        if (columns["round"].diff() < 0).any():
            raise InvalidInput("the lines of the saved candidate_log must be in the order of rounds")
        return cls(**columns)

    def check(self, nodes: int, classes: int, rounds: int) -> None:
        """Raise if a log from outside names nodes, classes or rounds that do not exist."""
        check_whole("candidate_log.node", self.node, 0, nodes)
        check_whole("candidate_log.label", self.label, 0, classes)
        check_whole("candidate_log.round", self.round, 1, rounds)
        check_whole("candidate_log.place", self.place, 1, nodes + 1)
        check_whole("candidate_log.among", self.among, 1, nodes + 1)
        if (self.place > self.among).any():
            raise InvalidInput("'candidate_log.place' of the saved run must be one of 1 to 'candidate_log.among'")
        for name in ("raw_confidence", "confidence"):
            check_finite(f"candidate_log.{name}", getattr(self, name))
        if self.score.isnan().any():
            raise InvalidInput("'candidate_log.score' of the saved run must hold numbers, got NaN")

    def adopted(self, round: int) -> dict[str, list[Any]]:
        """The nodes a round adopted, best first: label, confidence before and after calibration, and value."""
        here = self.where(self.taken & (self.round == round))
        names = ("node", "label", "raw_confidence", "confidence", "score", "stderr")
        columns: dict[str, list[Any]] = {name: getattr(here, name).tolist() for name in names}
        return columns if here.stderr.isfinite().any() else {**columns, "stderr": []}


def check_whole(name: str, value: Tensor, low: int, high: int) -> None:
    """Raises where a tensor of a file holds anything but whole numbers from low to high − 1."""
    # as Python's numbers, since 256 is 0 beside a byte
    if value.dtype not in _WHOLE or (value.numel() and not (low <= int(value.min()) and int(value.max()) < high)):
        raise InvalidInput(f"'{name}' of the saved run must hold whole numbers from {low} to {high - 1}")


def check_finite(name: str, value: Tensor, *, negative: bool = True) -> None:
    """Raises where a tensor of a file holds anything but finite numbers, or negative ones if there must be none."""
    if not value.is_floating_point() or not value.isfinite().all():
        raise InvalidInput(f"'{name}' of the saved run must hold finite numbers")
    if not negative and (value < 0).any():
        raise InvalidInput(f"'{name}' of the saved run must hold no number below 0")


_TYPES = {
    **dict.fromkeys(("round", "node", "label", "place", "among"), torch.long),
    **dict.fromkeys(("raw_confidence", "confidence", "score", "stderr"), torch.float32),
    "taken": torch.bool,
}
