"""Snapshot: what one run of self-training leaves for those who ask it questions later."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.loop import State

LEDGER = 2000  # scored nodes kept per round, the best


@dataclass(frozen=True, eq=False)
class Ledger:
    """Every node that was scored in some round, in the order of rounds and scores; taken or not. Length M."""

    round: Tensor  # long
    node: Tensor  # long
    taken: Tensor  # bool, whether it got a pseudo-label
    label: Tensor  # long, the teacher's
    raw_confidence: Tensor  # float
    confidence: Tensor  # float, calibrated
    score: Tensor  # float
    stderr: Tensor  # float, NaN where the score was not estimated

    @classmethod
    def of(cls, state: State, run: int) -> "Ledger":
        """The scored nodes of a round; at most the best 2,000 beside those that were taken."""
        facts = state.adoption
        if facts is None:
            empty = torch.zeros(0)
            return cls(*(empty.to(kind) for kind in _LEDGER_TYPES))
        score = facts.ranking.score[run]
        best = score.argsort(descending=True, stable=True)
        rank = torch.empty_like(best).scatter(0, best, torch.arange(len(best), device=best.device))
        kept = (score > float("-inf")) & ((rank < LEDGER) | facts.chosen[run])
        nodes = best[kept[best]]
        stderr = facts.ranking.stderr
        columns = (
            torch.full_like(nodes, state.index),
            nodes,
            facts.chosen[run, nodes],
            facts.label[run, nodes],
            facts.raw_confidence[run, nodes],
            facts.confidence[run, nodes],
            score[nodes],
            torch.full_like(score[nodes], float("nan")) if stderr is None else stderr[run, nodes],
        )
        return cls(*(column.cpu().to(kind) for column, kind in zip(columns, _LEDGER_TYPES, strict=True)))

    @classmethod
    def joined(cls, parts: "list[Ledger]") -> "Ledger":
        """One ledger after the other."""
        return cls(*(torch.cat([getattr(part, own.name) for part in parts]) for own in fields(cls)))

    def where(self, mask: Tensor) -> "Ledger":
        """The lines where mask [M] is true."""
        return Ledger(*(getattr(self, own.name)[mask] for own in fields(self)))

    def __len__(self) -> int:
        return len(self.round)

    def dress(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows that `bare` bared, with the nodes they adopted."""
        return [{**row, "adopted": [self._adopted(row["round"])]} if row["adopted"] is None else row for row in rows]

    def _adopted(self, round: int) -> dict[str, list[Any]]:
        here = self.where(self.taken & (self.round == round))
        names = ("node", "label", "raw_confidence", "confidence", "score", "stderr")
        columns: dict[str, list[Any]] = {name: getattr(here, name).tolist() for name in names}
        return columns if here.stderr.isfinite().any() else {**columns, "stderr": []}


def bare(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """History rows of one run without the nodes they adopted, which stand in the ledger; for `Ledger.dress`."""
    return [{**row, "adopted": None} for row in rows]


_LEDGER_TYPES = (
    torch.long,
    torch.long,
    torch.bool,
    torch.long,
    torch.float32,
    torch.float32,
    torch.float32,
    torch.float32,
)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One run seen from its end: N nodes, C classes, T rounds counting round 0; everything on the CPU.

    The chosen round is the one with the best validation accuracy; its student gave `raw` and learned from `target`.
    """

    edge_index: Tensor  # long [2, E]
    edge_weight: Tensor | None  # float [E]
    given: Tensor  # long [N], labels to learn from, -1 = none
    held: Tensor  # long [N], labels held for validation, -1 = none
    target: Tensor  # long [N], given labels and pseudo-labels the chosen student learned from, -1 = none
    born: Tensor  # long [N], 0 = given, t = adopted in round t, -1 = none
    raw: Tensor  # float [N, C], the chosen student's logits
    calibrated: Tensor  # float [N, C]
    said: Tensor  # long [T, N], the label each round's student gives
    sure: Tensor  # float [T, N], its calibrated confidence
    ledger: Ledger
    chosen: int
    rows: list[dict[str, Any]]  # of `history`

    @property
    def nodes(self) -> int:
        return len(self.given)

    @property
    def classes(self) -> int:
        return self.raw.shape[1]

    @cached_property
    def graph(self) -> Data:
        """The graph without features."""
        graph = Data(edge_index=self.edge_index, num_nodes=self.nodes)
        if self.edge_weight is not None:
            graph.edge_weight = self.edge_weight
        return graph

    @cached_property
    def probs(self) -> Tensor:
        """Calibrated probabilities: float [N, C]."""
        return self.calibrated.softmax(-1)

    def to_plain(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Named tensors and JSON-able facts, for `from_plain`."""
        tensors = {name: getattr(self, name) for name in _TENSORS if getattr(self, name) is not None}
        tensors |= {f"ledger.{own.name}": getattr(self.ledger, own.name) for own in fields(self.ledger)}
        return tensors, {"chosen": self.chosen, "rows": bare(self.rows)}

    @classmethod
    def from_plain(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> "Snapshot":
        """The snapshot that `to_plain` described; names, shapes and ranges are checked."""
        try:
            ledger = Ledger(*(tensors[f"ledger.{own.name}"] for own in fields(Ledger)))
            parts = {name: tensors[name] for name in _TENSORS if name != "edge_weight"}
            found = cls(
                edge_weight=tensors.get("edge_weight"),
                ledger=ledger,
                chosen=facts["chosen"],
                rows=ledger.dress(facts["rows"]),
                **parts,
            )
        except KeyError as error:
            raise InvalidInput(f"the saved run holds no '{error.args[0]}'; it was not written by bangs") from error
        found._check()
        return found

    def _check(self) -> None:
        """Raises where parts of a file from outside do not fit each other."""
        nodes, rounds = self.given.shape[0], self.said.shape[0]
        classes = self.raw.shape[-1]
        shapes = {
            **dict.fromkeys(("given", "held", "target", "born"), (nodes,)),
            **dict.fromkeys(("raw", "calibrated"), (nodes, classes)),
            **dict.fromkeys(("said", "sure"), (rounds, nodes)),
            "edge_index": (2, self.edge_index.shape[-1]),
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise InvalidInput(
                    f"'{name}' of the saved run must have shape {list(shape)}, got {list(getattr(self, name).shape)}"
                )
        within = {
            "edge_index": (self.edge_index, 0, nodes),
            "given": (self.given, -1, classes),
            "held": (self.held, -1, classes),
            "target": (self.target, -1, classes),
            "born": (self.born, -1, rounds),
            "said": (self.said, 0, classes),
            "ledger.node": (self.ledger.node, 0, nodes),
            "ledger.label": (self.ledger.label, 0, classes),
            "ledger.round": (self.ledger.round, 1, rounds),
        }
        for name, (value, low, high) in within.items():
            if value.is_floating_point() or (value.numel() and not (value.min() >= low and value.max() < high)):
                raise InvalidInput(f"'{name}' of the saved run must hold whole numbers from {low} to {high - 1}")
        lengths = {len(getattr(self.ledger, own.name)) for own in fields(self.ledger)}
        if len(lengths) > 1:
            raise InvalidInput(f"the columns of the saved ledger must be equally long, got {sorted(lengths)}")
        if type(self.chosen) is not int or not 0 <= self.chosen < rounds or not isinstance(self.rows, list):
            raise InvalidInput("the chosen round of the saved run must be one of its rounds")


_TENSORS = tuple(own.name for own in fields(Snapshot) if own.name not in ("ledger", "chosen", "rows"))
