"""Snapshot: the data of a finished run that explanations and report pages need."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.graphs.edges import EdgeList
from bangs.graphs.neighbours import NeighbourLists
from bangs.runs.history_rows import is_row, with_adopted, without_adopted
from bangs.runs.scored_nodes import ScoredNodes, check_finite, check_integers

if TYPE_CHECKING:
    from bangs.graphs.store import StoreReference

HERE = Path()  # the path of a store is relative to this folder, if no file is written


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A finished run: N nodes, C classes, T rounds counting round 0; everything on the CPU.

    The chosen round is the one with the best validation accuracy; its student predicts `raw` and learned from `target`.
    """

    graph: "EdgeList | StoreReference"  # the edges, in memory or in a store; no features
    given: Tensor  # long [N], labels to learn from, -1 = none
    held: Tensor  # long [N], labels held for validation, -1 = none
    target: Tensor  # long [N], given labels and pseudo-labels the chosen student learned from, -1 = none
    adopted_round: Tensor  # long [N], 0 = given, t = adopted in round t, -1 = none
    raw: Tensor  # float [N, C], the chosen student's logits
    calibrated: Tensor  # float [N, C]
    round_labels: Tensor  # long [T, N], the prediction of each round's student; of a store uint8 if classes are few
    round_confidence: Tensor  # float [T, N], its calibrated confidence; of a store float16
    scored_nodes: ScoredNodes
    chosen: int
    rows: list[dict[str, Any]]  # of `history`
    belief: Tensor | None = None  # float [N, C], the soft labels the chosen student learned from; None = all are hard
    weight: Tensor | None = None  # float [N], the weight of every label in the chosen student's loss; None = all equal
    unseen: Tensor | None = None  # float [M, C], logits of the M held nodes by models that have not learned them
    unseen_calibrated: Tensor | None = None  # float [M, C], calibrated without their labels; None = as all nodes
    points: Tensor | None = None  # float [N, d], embeddings of the nodes; None = not saved
    disagreement: Tensor | None = None  # float [N], between the models of the folds, in nats; None = not saved

    @property
    def nodes(self) -> int:
        return len(self.given)

    @property
    def classes(self) -> int:
        return self.raw.shape[1]

    @property
    def known(self) -> Tensor:
        """All labels of the run, given or held for validation, -1 = none: long [N]."""
        return self.given.maximum(self.held)

    @property
    def folds(self) -> bool:
        """Whether the run had folds: held labels were also given, to the models of the other folds."""
        return bool(((self.held >= 0) & (self.given >= 0)).any())

    @property
    def judged(self) -> tuple[Tensor, Tensor, Tensor]:
        """Logits of the M held nodes before and after calibration [M, C], and their labels [M].

        With folds, the logits are of models that have not learned the node.
        """
        held = self.held >= 0
        before = self.raw[held] if self.unseen is None else self.unseen
        after = self.calibrated[held] if self.unseen_calibrated is None else self.unseen_calibrated
        return before, after, self.held[held]

    @cached_property
    def links(self) -> NeighbourLists:
        """The incoming neighbours of every node; those of a store are memory-mapped."""
        return NeighbourLists.of(self.graph) if isinstance(self.graph, EdgeList) else self.graph.store.unlabelled().into

    def with_store(self, path: str | Path) -> "Snapshot":
        """The same snapshot with its store at another path."""
        if isinstance(self.graph, EdgeList):
            raise InvalidInput("it holds its graph itself and needs no store")
        return replace(self, graph=self.graph.at(path))

    def to_plain(self, folder: Path = HERE) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Named tensors and JSON-able facts for a file in the folder; see `from_plain`."""
        named = {name: getattr(self, name) for name in (*_TENSORS, *_OPTIONAL)}
        tensors = {name: part for name, part in named.items() if part is not None} | self.scored_nodes.to_plain()
        facts: dict[str, Any] = {"chosen": self.chosen, "rows": without_adopted(self.rows)}
        if not isinstance(self.graph, EdgeList):
            return tensors, {**facts, "store": self.graph.to_plain(folder)}
        edges = {name: self.graph.get(name) for name in ("edge_index", "edge_weight")}
        return {**{name: part for name, part in edges.items() if part is not None}, **tensors}, facts

    @classmethod
    def from_plain(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], folder: Path = HERE) -> "Snapshot":
        """Read the tensors and facts of `to_plain`; types, shapes and ranges are checked."""
        try:
            scored_nodes = ScoredNodes.from_plain(tensors)
            parts = {name: tensors[name] for name in _TENSORS}
            parts |= {name: tensors[name] for name in _OPTIONAL if name in tensors}
            _check_shapes(parts)
            graph = _graph(tensors, facts, folder)
            chosen, rows = facts["chosen"], facts["rows"]
        except KeyError as error:
            raise InvalidInput(
                f"the saved run holds no '{error.args[0]}', so this version of bangs did not write it; fit again"
            ) from error
        _check_rounds(chosen, rows, len(parts["round_labels"]))
        snapshot = cls(
            graph=graph, scored_nodes=scored_nodes, chosen=chosen, rows=with_adopted(rows, scored_nodes), **parts
        )
        snapshot._check()
        return snapshot

    def _check(self) -> None:
        """Raise if the tensors of a file do not fit together."""
        rounds, classes = len(self.round_labels), self.classes
        self._check_graph()
        minimum = {"given": -1, "held": -1, "target": -1, "adopted_round": -1, "round_labels": 0}
        for name, low in minimum.items():
            check_integers(name, getattr(self, name), low, rounds if name == "adopted_round" else classes)
        given, known = self.adopted_round == 0, self.adopted_round >= 0
        if ((given != (self.given >= 0)) | (known != (self.target >= 0))).any():
            raise InvalidInput("'adopted_round' of the saved run must be 0 for given labels, and -1 where 'target' is")
        for name in ("raw", "calibrated", "unseen", "unseen_calibrated"):
            if (part := getattr(self, name)) is not None and len(part):
                check_finite(name, part.amax(-1))  # a logit may be -inf, but not all of a node
        for name in ("round_confidence", "points", "belief", "weight", "disagreement"):
            if (part := getattr(self, name)) is not None:
                check_finite(name, part, negative=name in ("round_confidence", "points"))
        self.scored_nodes.check(self.nodes, classes, rounds)

    def _check_graph(self) -> None:
        if not isinstance(self.graph, EdgeList):
            if self.graph.nodes != self.nodes:
                raise InvalidInput(f"its store must have {self.nodes:,} nodes, got {self.graph.nodes:,}")
            return
        edges = self.graph.edge_index
        if edges.dim() != 2 or len(edges) != 2:
            raise InvalidInput(f"'edge_index' of the saved run must have shape [2, E], got {list(edges.shape)}")
        check_integers("edge_index", edges, 0, self.nodes)
        weight = self.graph.get("edge_weight")
        if weight is None:
            return
        if weight.shape != edges.shape[1:] or weight.dtype not in _FLOAT_DTYPES:
            raise InvalidInput(
                f"'edge_weight' of the saved run must hold one number per edge, got {list(weight.shape)}"
            )
        check_finite("edge_weight", weight, negative=False)


def _graph(tensors: Mapping[str, Tensor], facts: Mapping[str, Any], folder: Path) -> "EdgeList | StoreReference":
    """The edges in a file, or the store that it names."""
    if "store" not in facts:
        return EdgeList(tensors["edge_index"], len(tensors["given"]), tensors.get("edge_weight"))
    from bangs.graphs.store import StoreReference  # its import takes a second

    return StoreReference.from_plain(facts["store"], folder)


def _check_shapes(parts: Mapping[str, Tensor]) -> None:
    """Raise if a tensor of a file has the wrong type, or the wrong shape for N nodes, C classes and T rounds."""
    if parts["raw"].dim() != 2 or parts["raw"].shape[1] < 1 or parts["round_labels"].dim() != 2:
        raise InvalidInput("'raw' and 'round_labels' of the saved run must have shapes [N, C] and [T, N]")
    (nodes, classes), rounds = parts["raw"].shape, len(parts["round_labels"])
    per_node, per_class, per_round = (nodes,), (nodes, classes), (rounds, nodes)
    wanted = {
        **dict.fromkeys(("given", "held", "target", "adopted_round"), (per_node, (torch.long,))),
        **dict.fromkeys(("raw", "calibrated"), (per_class, _FLOAT_DTYPES)),
        "round_labels": (per_round, (torch.long, torch.int32, torch.uint8)),
        "round_confidence": (per_round, _FLOAT_DTYPES),
        "belief": (per_class, _FLOAT_DTYPES),
        **dict.fromkeys(("unseen", "unseen_calibrated"), ((int((parts["held"] >= 0).sum()), classes), _FLOAT_DTYPES)),
        "weight": (per_node, _FLOAT_DTYPES),
        "disagreement": (per_node, _FLOAT_DTYPES),
        "points": ((nodes, max(1, parts["points"][:1].numel()) if "points" in parts else 1), _FLOAT_DTYPES),
    }
    for name, part in parts.items():
        shape, dtypes = wanted[name]
        if part.shape != shape or part.dtype not in dtypes:
            raise InvalidInput(
                f"'{name}' of the saved run must have shape {list(shape)} and be {dtypes[0]}, "
                f"got {list(part.shape)} of {part.dtype}"
            )


def _check_rounds(chosen: Any, rows: Any, rounds: int) -> None:
    """Raise if the chosen round does not exist, or if there are rows but not one per round."""
    if type(chosen) is not int or not 0 <= chosen < rounds:
        raise InvalidInput("the chosen round of the saved run must be one of its rounds")
    if not isinstance(rows, list) or not all(map(is_row, rows)):
        raise InvalidInput("the rows of the saved run are not those of a history")
    if rows and [row["round"] for row in rows] != list(range(rounds)):
        raise InvalidInput(f"the rows of the saved run must be those of rounds 0 to {rounds - 1}")


_FLOAT_DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_OPTIONAL = ("belief", "weight", "unseen", "unseen_calibrated", "points", "disagreement")
_TENSORS = tuple(
    field.name
    for field in fields(Snapshot)
    if field.name not in ("graph", "scored_nodes", "chosen", "rows", *_OPTIONAL)
)
