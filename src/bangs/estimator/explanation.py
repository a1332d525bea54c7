"""Explanation: why a node has its label, with the names of nodes and classes, and as text."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from numbers import Integral
from typing import Any

import numpy as np
import torch

from bangs.errors import InvalidInput
from bangs.estimator.explanation_facts import (
    Heaviest,
    Influence,
    Neighbour,
    Origin,
    PseudoLabel,
    SoftLabel,
    adoption,
    influences,
    neighbours,
    origins,
    soft_label,
)
from bangs.runs.snapshot import Snapshot
from bangs.utils.text import percent

_SCORE_MEANING = {
    "banzhaf": "The value says how much its label adds to what the model would know of the other nodes, "
    "on average over the sets of nodes that the round could have adopted.",
    "confidence": "The value is the teacher's confidence.",
    "agreement": "The value is the teacher's confidence, where a clustering of the nodes agrees with its label.",
    "random": "The value is a random number.",
}
_ORIGIN_TEXT = {"held": "held for validation", "soft": "predicted"}  # the others are written as they are


@dataclass(frozen=True)
class Explanation:
    """Why a node has its label; nodes and classes are written by their names. `print` shows it as text."""

    node: str
    origin: Origin
    label: Any  # the prediction of the chosen model
    known: Any  # the label that came with the data; None = it has none
    probs: dict[Any, float]  # calibrated, by class
    raw_confidence: float
    confidence: float
    degree: int
    neighbours: list[Neighbour]  # the heaviest edges first
    influences: list[Influence]  # the strongest first
    support: dict[Any, float]  # labelled influence by class; sums to one, or to zero where no labelled node is near
    reach: float  # share of labelled influence in all influence on the node, in [0, 1]
    adoption: PseudoLabel | None
    soft: SoftLabel | None
    path: list[dict[str, Any]]  # round, label and calibrated confidence of every round's model
    model: Heaviest | None  # whose adoption, soft and path these are; label and probs are the mean of all. None = one
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """All but the text, for JSON."""
        out = asdict(self)
        del out["text"]
        for owner, name in ((out, "probs"), (out, "support"), (out["soft"], "probs")):
            if owner is not None:
                owner[name] = {str(label): share for label, share in owner[name].items()}
        return out


def explain(
    snapshot: Snapshot,
    node: Any,
    names: Any,
    classes: Sequence[Any],
    top: Any = 5,
    selector: object = None,
    model: Heaviest | None = None,
) -> Explanation:
    """Why a node, given by its name or number, has its label; at most `top` neighbours and influences are listed.

    `model` is the one with the most weight where several are averaged. The `selector` of the classifier says what a
    score means; None = banzhaf.
    """
    node = _node_of(node, names)
    if not 0 <= node < snapshot.nodes:
        raise InvalidInput(f"nodes are numbered 0 … {snapshot.nodes - 1}, got {node}")
    if isinstance(top, bool) or not isinstance(top, Integral) or top < 0:
        raise InvalidInput(f"top, the number of neighbours and influences to name, must be 0 or more, got {top!r}")
    top = min(int(top), snapshot.nodes)
    strongest, support, reach = influences(snapshot, [node], top)[0]
    heaviest, degree = neighbours(snapshot, [node], top)[0]
    adopted, soft, probs = adoption(snapshot, node), soft_label(snapshot, node), snapshot.calibrated[node].softmax(-1)
    known = max(int(snapshot.given[node]), int(snapshot.held[node]))
    path = zip(snapshot.round_labels[:, node].tolist(), snapshot.round_confidence[:, node].tolist(), strict=True)

    def named(part: Any) -> Any:
        return replace(part, node=str(names[part.node]), label=classes[part.label])

    def by_class(shares: Sequence[float]) -> dict[Any, float]:
        return dict(zip(classes, shares, strict=True))

    explanation = Explanation(
        node=str(names[node]),
        origin=origins(snapshot, torch.tensor([node]))[0],
        label=classes[int(probs.argmax())],
        known=classes[known] if known >= 0 else None,
        probs=by_class(probs.tolist()),
        raw_confidence=float(snapshot.raw[node].softmax(-1).max()),
        confidence=float(probs.max()),
        degree=degree,
        neighbours=[named(neighbour) for neighbour in heaviest],
        influences=[named(influence) for influence in strongest],
        support=by_class(support),
        reach=reach,
        adoption=None if adopted is None else replace(adopted, label=classes[adopted.label]),
        soft=None if soft is None else replace(soft, probs=by_class(soft.probs)),
        path=[
            {"round": round, "label": classes[label], "confidence": confidence}
            for round, (label, confidence) in enumerate(path)
        ],
        model=model,
        text="",
    )
    return replace(explanation, text=_as_text(explanation, "banzhaf" if selector is None else selector))


def _node_of(node: Any, names: Any) -> int:
    """The number of a node, given by its name, or by its number where names are not numbers."""
    if not isinstance(node, str) and (isinstance(node, bool) or not isinstance(node, Integral)):
        raise InvalidInput(f"a node must be given by its name or its number, got {node!r}")
    if not isinstance(node, str) and not all(name.removeprefix("-").isdecimal() for name in names[:3]):
        return int(node)
    if isinstance(names, np.ndarray) and len(matches := np.flatnonzero(names == str(node))):
        return int(matches[0])
    from bangs.graphs.store import node_index  # imports the readers of tables, which takes a second

    return node_index(str(node), names)


def _as_text(facts: Explanation, selector: object) -> str:
    return "\n\n".join(
        [
            _prediction_text(facts),
            _probabilities_text(facts),
            _neighbours_text(facts),
            _influences_text(facts),
            _rounds_text(facts, selector),
        ]
    )


def _prediction_text(facts: Explanation) -> str:
    if facts.known is None:
        return f"{facts.node}: {facts.label}, probability {percent(facts.confidence)}."
    how = "held back for validation" if facts.origin == "held" else "given"
    return (
        f"{facts.node}: label {facts.known} was {how}; the model predicts {facts.label}, {percent(facts.confidence)}."
    )


def _probabilities_text(facts: Explanation) -> str:
    before, after = percent(facts.raw_confidence), percent(facts.confidence)
    change = "" if before == after else f"; before calibration the highest was {before}"
    return f"Probabilities: {_top_classes(facts.probs)}{change}."


def _rounds_text(facts: Explanation, selector: object) -> str:
    """What happened to the node in the rounds of one model."""
    parts = []
    if facts.model is not None:
        share = percent(facts.model.weight, 0)
        parts.append(f"One of the {facts.model.models} models, {facts.model.name} ({share} of the weight):")
    if facts.adoption is not None:
        meaning = _SCORE_MEANING.get(selector, "") if isinstance(selector, str) else ""
        parts.append(f"{_adoption_text(facts.adoption)} {meaning}".rstrip())
    if facts.soft is not None:
        parts.append(
            f"Its soft label in round {facts.soft.round} was {_top_classes(facts.soft.probs)}. "
            f"The weight of this soft label was {facts.soft.weight:.2g} times the mean weight of a given label."
        )
    parts.append(_path_text(facts))
    return "\n".join(parts) if facts.model is None else "\n  ".join(parts)


def _adoption_text(facts: PseudoLabel) -> str:
    error = "" if facts.stderr is None else f" ± {facts.stderr:.2g}"
    later = "" if facts.used else ", after the round that was chosen, so the model did not learn from it"
    return (
        f"Adopted in round {facts.round} as '{facts.label}'{later}: value {facts.score:.4g}{error}, "
        f"number {facts.rank:,} of {facts.among:,} candidates. "
        f"The teacher's confidence was {percent(facts.raw_confidence)}, {percent(facts.confidence)} after calibration."
    )


def _top_classes(probs: Mapping[Any, float]) -> str:
    """The four most likely classes."""
    ranked = sorted(probs, key=lambda label: -probs[label])[:4]
    return ", ".join(f"{label} {percent(probs[label])}" for label in ranked)


def _neighbours_text(facts: Explanation) -> str:
    if not facts.neighbours:
        return "It has no neighbours: its own features decide."
    lines = [f"Neighbours, {len(facts.neighbours)} of {facts.degree}:"]
    for neighbour in facts.neighbours:
        origin = _ORIGIN_TEXT.get(neighbour.origin, neighbour.origin)
        lines.append(f"  {neighbour.node}  {neighbour.label} ({origin}), edge weight {neighbour.weight:.3g}")
    return "\n".join(lines)


def _influences_text(facts: Explanation) -> str:
    if not facts.influences:
        when = "is within reach" if facts.adoption is None else "was within reach when it was adopted"
        return f"No labelled node {when}: its own features decide."
    lines = [
        "Closest labelled nodes in the graph and their shares, by personalised PageRank on the edges; "
        "the models may use other information:"
    ]
    for source in facts.influences:
        origin = "given" if source.adopted_round == 0 else f"adopted in round {source.adopted_round}"
        lines.append(f"  {source.node}  {percent(source.share, 0)}  {source.label} ({origin})")
    ranked = sorted(facts.support, key=lambda label: -facts.support[label])
    shown = [(label, facts.support[label]) for label in ranked if facts.support[label] >= 0.005]
    shares = ", ".join(f"{label} {percent(share, 0)}" for label, share in shown)
    lines.append(f"By class: {shares}. All labelled nodes together have {percent(facts.reach, 0)} of its PageRank.")
    if ranked[0] != facts.label:
        lines.append(
            f"By these shares it would be '{ranked[0]}', but the model predicts '{facts.label}': "
            "it uses other information too."
        )
    return "\n".join(lines)


def _path_text(facts: Explanation) -> str:
    """The predictions over the rounds; consecutive rounds with one label are one phrase."""
    phrases = []
    for label, group in groupby(facts.path, key=lambda step: step["label"]):
        steps = list(group)
        (first, start), (last, end) = ((step["round"], step["confidence"]) for step in (steps[0], steps[-1]))
        phrases.append(
            f"'{label}' in round {first} ({percent(start, 0)})"
            if first == last
            else f"'{label}' from round {first} ({percent(start, 0)}) to {last} ({percent(end, 0)})"
        )
    return "Predictions over the rounds: " + ", then ".join(phrases) + "."
