"""Snapshot: what one run of self-training leaves for those who ask it questions later."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.links import Links
from bangs.graphs.store import Whereabouts
from bangs.loop import State

HERE = Path()  # the folder in which a store's path is told, where no file is written
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

    graph: Data | Whereabouts  # the edges, in memory or where a store has them; no features
    given: Tensor  # long [N], labels to learn from, -1 = none
    held: Tensor  # long [N], labels held for validation, -1 = none
    target: Tensor  # long [N], given labels and pseudo-labels the chosen student learned from, -1 = none
    born: Tensor  # long [N], 0 = given, t = adopted in round t, -1 = none
    raw: Tensor  # float [N, C], the chosen student's logits
    calibrated: Tensor  # float [N, C]
    said: Tensor  # long [T, N], the label each round's student gives; of a store one byte, where classes are few
    sure: Tensor  # float [T, N], its calibrated confidence; of a store float16
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
    def links(self) -> Links:
        """Whom every node hears; those of a store are mapped."""
        return Links.of(self.graph) if isinstance(self.graph, Data) else self.graph.store.unlabelled().into

    def with_store(self, path: str | Path) -> "Snapshot":
        """The same run, whose store lies at another place."""
        if isinstance(self.graph, Data):
            raise InvalidInput("it holds its graph itself and needs no store")
        return replace(self, graph=self.graph.at(path))

    def to_plain(self, folder: Path = HERE) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Named tensors and JSON-able facts, for `from_plain`, to be written to a file in the folder."""
        tensors = {name: getattr(self, name) for name in _TENSORS}
        tensors |= {f"ledger.{own.name}": getattr(self.ledger, own.name) for own in fields(self.ledger)}
        facts: dict[str, Any] = {"chosen": self.chosen, "rows": bare(self.rows)}
        if not isinstance(self.graph, Data):
            return tensors, {**facts, "store": self.graph.to_plain(folder)}
        edges = {name: self.graph.get(name) for name in ("edge_index", "edge_weight")}
        return {**{name: part for name, part in edges.items() if part is not None}, **tensors}, facts

    @classmethod
    def from_plain(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], folder: Path = HERE) -> "Snapshot":
        """The snapshot that `to_plain` described in a file in the folder; names, shapes and ranges are checked."""
        try:
            ledger = Ledger(*(tensors[f"ledger.{own.name}"] for own in fields(Ledger)))
            parts = {name: tensors[name] for name in _TENSORS}
            graph: Data | Whereabouts
            if "store" in facts:
                graph = Whereabouts.from_plain(facts["store"], folder)
            else:
                graph = Data(edge_index=tensors["edge_index"], num_nodes=len(parts["given"]))
                if "edge_weight" in tensors:
                    graph.edge_weight = tensors["edge_weight"]
            rows = ledger.dress(facts["rows"])
            found = cls(graph=graph, ledger=ledger, chosen=facts["chosen"], rows=rows, **parts)
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
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise InvalidInput(
                    f"'{name}' of the saved run must have shape {list(shape)}, got {list(getattr(self, name).shape)}"
                )
        self._check_graph()
        within = {
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
            _check_whole(name, value, low, high)
        lengths = {len(getattr(self.ledger, own.name)) for own in fields(self.ledger)}
        if len(lengths) > 1:
            raise InvalidInput(f"the columns of the saved ledger must be equally long, got {sorted(lengths)}")
        if type(self.chosen) is not int or not 0 <= self.chosen < rounds or not isinstance(self.rows, list):
            raise InvalidInput("the chosen round of the saved run must be one of its rounds")

    def _check_graph(self) -> None:
        if not isinstance(self.graph, Data):
            if self.graph.nodes != self.nodes:
                raise InvalidInput(f"its store must have {self.nodes:,} nodes, got {self.graph.nodes:,}")
            return
        edges = self.graph.edge_index
        if edges.dim() != 2 or len(edges) != 2:
            raise InvalidInput(f"'edge_index' of the saved run must have shape [2, E], got {list(edges.shape)}")
        _check_whole("edge_index", edges, 0, self.nodes)
        weight = self.graph.get("edge_weight")
        if weight is not None and (weight.shape != edges.shape[1:] or not weight.is_floating_point()):
            raise InvalidInput(
                f"'edge_weight' of the saved run must hold one number per edge, got {list(weight.shape)}"
            )


def _check_whole(name: str, value: Tensor, low: int, high: int) -> None:
    if value.is_floating_point() or (value.numel() and not (value.min() >= low and value.max() < high)):
        raise InvalidInput(f"'{name}' of the saved run must hold whole numbers from {low} to {high - 1}")


_TENSORS = tuple(own.name for own in fields(Snapshot) if own.name not in ("graph", "ledger", "chosen", "rows"))
