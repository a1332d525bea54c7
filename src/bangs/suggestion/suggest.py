"""Suggest: the nodes of a finished run to label next, with their names and a reason each."""

import numbers
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from bangs.errors import InvalidInput
from bangs.graphs.edges import EdgeList
from bangs.runs.snapshot import Snapshot
from bangs.suggestion.batches import Skipped, Taken, batch
from bangs.suggestion.reasons import Suggestion, with_reasons
from bangs.suggestion.strategies import DEFAULT, strategy
from bangs.suggestion.strategy_input import StrategyInput
from bangs.utils.csv_safe import to_csv
from bangs.utils.limits import MAX_COUNT

MAX_LISTED = 5  # skipped nodes that a note names


@dataclass(frozen=True)
class Suggestions:
    """Nodes to label next, the best first; `print` shows them as text."""

    strategy: str
    nodes: list[Suggestion]
    notes: list[str]  # what was skipped, and what there was not enough of

    @property
    def order(self) -> str:
        """The quantity that orders the nodes, in words."""
        if self.strategy.endswith("lookahead"):
            return (
                "how far a label is expected to lower the number of errors or, where none would, "
                "how uncertain the node and those like it are"
            )
        meaning = (strategy(self.strategy).__doc__ or self.strategy).split("\n")[0].rstrip(".")
        return meaning[0].lower() + meaning[1:]

    def __iter__(self) -> Iterator[Suggestion]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, rank: int) -> Suggestion:
        return self.nodes[rank]

    def __str__(self) -> str:
        width = max((len(item.node) for item in self.nodes), default=0)
        lines = [f"{item.rank:>3}  {item.node:<{width}}  {item.reason}" for item in self.nodes]
        head = f"Label these next, the best first (strategy '{self.strategy}': {self.order}):"
        return "\n".join([head, *lines, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """All fields, for JSON."""
        nodes = [{**asdict(item), "label": str(item.label), "second": _text(item.second)} for item in self.nodes]
        return {"strategy": self.strategy, "nodes": nodes, "notes": self.notes}

    def to_csv(self) -> str:
        """CSV with a row for every node, safe to open in a spreadsheet."""
        header = ["rank", "id", "predicted", "confidence", "second", "second_confidence", "score", "like", "reason"]
        rows = (
            [item.rank, item.node, str(item.label), round(item.confidence, 4), _text(item.second) or "",
             round(item.second_confidence, 4), float(f"{item.score:.6g}"), item.like, item.reason]
            for item in self.nodes
        )  # fmt: skip
        return to_csv(header, rows)


def suggest(
    snapshot: Snapshot,
    names: Any,
    classes: Sequence[Any],
    count: Any = 20,
    name: str | None = None,
    *,
    seed: int = 0,
    exclude: Tensor | None = None,
) -> Suggestions:
    """The nodes of a run to label next, by the strategy of that name; nodes in `exclude` bool [N] are left out."""
    if isinstance(count, bool) or not isinstance(count, numbers.Integral) or not 1 <= int(count) <= MAX_COUNT:
        raise InvalidInput(f"count must be a whole number of at least 1, got {count!r}")
    name = DEFAULT if name is None else name
    choose, label = strategy(name), snapshot.known
    pool = label < 0 if exclude is None else (label < 0) & ~exclude
    if not bool(pool.any()):
        raise InvalidInput("every node has a label already, so there is none to suggest")
    graph = snapshot.graph if isinstance(snapshot.graph, EdgeList) else snapshot.graph.store.unlabelled()
    features = None if snapshot.points is None else snapshot.points.float()
    disagreement = None if snapshot.disagreement is None else snapshot.disagreement.float()
    probs = snapshot.calibrated.float().softmax(-1)
    inputs = StrategyInput(graph, probs, label, pool, features, disagreement, seed=seed, count=int(count))
    taken, skipped = batch(inputs, choose)
    nodes = list(with_reasons(inputs, taken, names, classes, name))
    return Suggestions(name, nodes, _notes(inputs, taken, skipped, names))


def _notes(inputs: StrategyInput, taken: Sequence[Taken], skipped: Sequence[Skipped], names: Any) -> list[str]:
    out = []
    if any(item.like is None for item in skipped):
        nodes = (inputs.isolated & inputs.pool).nonzero()[:, 0].tolist()
        listed = _listed([str(names[node]) for node in nodes[:MAX_LISTED]], len(nodes))
        out.append(f"skipped, because they have no edge to another node: {listed}")
    twins = [f"{names[item.node]} (like {names[item.like]})" for item in skipped if item.like is not None]
    if twins:
        listed = _listed(twins[:MAX_LISTED], len(twins))
        out.append(f"skipped, because another label gives the same information: {listed}")
    if len(taken) < inputs.count:
        out.append(f"{len(taken):,} nodes instead of {inputs.count:,}: no other label would give new information")
    return out


def _listed(names: list[str], total: int) -> str:
    return ", ".join(names) + (f" and {total - len(names):,} more" if total > len(names) else "")


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
