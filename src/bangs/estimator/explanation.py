"""Explanation: why a node has its label, with the names of nodes and classes, and as text."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.estimator.explanation_facts import (
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

_SCORE_MEANING = {
    "banzhaf": "The value says how much its label adds to what the model would know of the other nodes, "
    "on average over the sets of nodes that the round could have adopted.",
    "confidence": "The value is the teacher's confidence.",
    "agreement": "The value is the teacher's confidence, where a clustering of the nodes agrees with its label.",
    "random": "The value is a random number.",
}
_ORIGIN_TEXT = {"held": "held for validation", "soft": "soft label"}  # the others are written as they are


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
    models: int  # label and probs are the mean of so many; adoption, soft and path are of the one with the most weight
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


def count_models(weights: Mapping[str, Tensor]) -> int:
    """The number of models that a fit averages, from the weights `number.name` of its members.

    A weight is [R, …] over the folds, or [1, …] where they share it.
    """
    runs: dict[str, int] = {}
    for name, weight in weights.items():
        member = name.split(".")[0]
        runs[member] = max(runs.get(member, 0), len(weight))
    return sum(runs.values())


def explain(
    snapshot: Snapshot,
    node: Any,
    names: Any,
    classes: Sequence[Any],
    top: Any = 5,
    selector: object = None,
    models: int = 1,
) -> Explanation:
    """Why a node, given by its name or number, has its label; at most `top` neighbours and influences are listed.

    The prediction is the mean of `models` models. The `selector` of the classifier says what a score means; None =
    banzhaf.
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
        models=models,
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
    parts = [f"{facts.node} is '{facts.label}', {facts.confidence:.1%} sure ({_origin_text(facts)})."]
    if facts.adoption is not None:
        meaning = _SCORE_MEANING.get(selector, "") if isinstance(selector, str) else ""
        parts.append(f"{_adoption_text(facts.adoption)} {meaning}".rstrip())
    if facts.soft is not None:
        parts.append(_soft_label_text(facts.soft))
    shares = _top_classes(facts.probs)
    parts.append(f"Probabilities: {shares}; before calibration it was {facts.raw_confidence:.1%} sure.")
    parts += [_neighbours_text(facts), _influences_text(facts), _path_text(facts)]
    if facts.models > 1:
        parts[-1] += (
            " Rounds and pseudo-labels are those of the model with the most weight. The label and the probabilities "
            f"above are the mean of {facts.models:,} models, one of each kind and fold, so they can differ."
        )
    return "\n\n".join(parts)


def _origin_text(facts: Explanation) -> str:
    model = "model with the most weight" if facts.models > 1 else "model"
    return {
        "given": f"its label '{facts.known}' was given",
        "held": f"its label '{facts.known}' was held back for validation",
        "adopted": f"a pseudo-label of round {facts.adoption.round if facts.adoption else '?'}",
        "soft": f"a soft label of round {facts.soft.round if facts.soft else '?'}",
        "predicted": f"predicted; the {model} did not learn from it",
    }[facts.origin]


def _adoption_text(facts: PseudoLabel) -> str:
    error = "" if facts.stderr is None else f" ± {facts.stderr:.2g}"
    later = "" if facts.used else ", after the round that was chosen, so the model did not learn from it"
    return (
        f"Adopted in round {facts.round} as '{facts.label}'{later}: value {facts.score:.4g}{error}, "
        f"number {facts.rank:,} of {facts.among:,} candidates. "
        f"The teacher was {facts.raw_confidence:.1%} sure, {facts.confidence:.1%} after calibration."
    )


def _soft_label_text(facts: SoftLabel) -> str:
    return (
        f"Soft label: before round {facts.round} the model gave it {_top_classes(facts.probs)}. "
        f"The model of round {facts.round} learned from these probabilities; "
        f"their weight was {facts.weight:.2g} times the mean weight of a given label. "
        "Soft labels are made anew in every round, for all nodes without a label."
    )


def _top_classes(probs: Mapping[Any, float]) -> str:
    """The four most likely classes."""
    return ", ".join(f"{label} {probs[label]:.1%}" for label in sorted(probs, key=lambda label: -probs[label])[:4])


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
    lines = ["Labelled nodes with the most influence on it, and their share of all labelled influence:"]
    for source in facts.influences:
        origin = "given" if source.adopted_round == 0 else f"adopted in round {source.adopted_round}"
        lines.append(f"  {source.node}  {source.share:.0%}  {source.label} ({origin})")
    ranked = sorted(facts.support, key=lambda label: -facts.support[label])
    shares = ", ".join(f"{label} {facts.support[label]:.0%}" for label in ranked if facts.support[label] >= 0.005)
    lines.append(f"By class: {shares}. Labelled nodes have {facts.reach:.0%} of the influence of all nodes on it.")
    if ranked[0] != facts.label:
        lines.append(
            f"Most labelled influence is for '{ranked[0]}', but the model predicts '{facts.label}': "
            "its own features and the unlabelled nodes around it outweigh the labelled ones."
        )
    return "\n".join(lines)


def _path_text(facts: Explanation) -> str:
    """The predictions over the rounds; consecutive rounds with one label are one phrase."""
    phrases = []
    for label, group in groupby(facts.path, key=lambda step: step["label"]):
        steps = list(group)
        (first, start), (last, end) = ((step["round"], step["confidence"]) for step in (steps[0], steps[-1]))
        phrases.append(
            f"'{label}' in round {first} ({start:.0%})"
            if first == last
            else f"'{label}' from round {first} ({start:.0%}) to {last} ({end:.0%})"
        )
    return "Predictions over the rounds: " + ", then ".join(phrases) + "."
