"""Explanation: the reasons for a label, with the names of nodes and classes, and as text."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from typing import Any

from torch import Tensor

from bangs.estimator.explanation_facts import PseudoLabel, Reasons, SoftLabel

_SCORE_MEANING = {
    "banzhaf": "The value says how much its label adds to what the model would know of the other nodes, "
    "on average over the sets of nodes that the round could have adopted.",
    "confidence": "The value is the teacher's confidence.",
    "agreement": "The value is the teacher's confidence, where a clustering of the nodes agrees with its label.",
    "random": "The value is a random number.",
}
_ORIGIN_TEXT = {"held": "held for validation", "soft": "soft label"}  # the others are written as they are


@dataclass(frozen=True)
class Explanation(Reasons):
    """Why a node has its label, with the names of nodes and classes; `print` shows it as text."""

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


def explanation(
    reasons: Reasons, names: Sequence[str], classes: Sequence[Any], selector: object = "", models: int = 1
) -> Explanation:
    """The reasons with names; the prediction is the mean of `models` models.

    The `selector` of the classifier says what a score means; None = banzhaf.
    """
    selector = "banzhaf" if selector is None else selector

    def named(part: Any) -> Any:
        return replace(part, node=str(names[part.node]), label=classes[part.label])

    def by_class(shares: Any) -> dict[Any, float]:
        return dict(zip(classes, shares, strict=True))

    adoption, soft = reasons.adoption, reasons.soft
    changed = {
        "node": str(names[reasons.node]),
        "label": classes[reasons.label],
        "known": None if reasons.known is None else classes[reasons.known],
        "probs": by_class(reasons.probs),
        "support": by_class(reasons.support),
        "neighbours": [named(neighbour) for neighbour in reasons.neighbours],
        "influences": [named(influence) for influence in reasons.influences],
        "adoption": None if adoption is None else replace(adoption, label=classes[adoption.label]),
        "soft": None if soft is None else replace(soft, probs=by_class(soft.probs)),
        "path": [
            {"round": round, "label": classes[label], "confidence": confidence}
            for round, label, confidence in reasons.path
        ],
        "models": models,
        "text": as_text(reasons, names, [str(name) for name in classes], selector, models),
    }
    return Explanation(**{**vars(reasons), **changed})


def as_text(
    reasons: Reasons, names: Sequence[str], classes: Sequence[str], selector: object = "", models: int = 1
) -> str:
    """The reasons as text."""
    name, label = names[reasons.node], classes[reasons.label]
    parts = [f"{name} is '{label}', {reasons.confidence:.1%} sure ({_origin_text(reasons, classes, models)})."]
    if reasons.adoption is not None:
        meaning = _SCORE_MEANING.get(selector, "") if isinstance(selector, str) else ""
        parts.append(f"{_adoption_text(reasons.adoption, classes)} {meaning}".rstrip())
    if reasons.soft is not None:
        parts.append(_soft_label_text(reasons.soft, classes))
    shares = _top_classes(reasons.probs, classes)
    parts.append(f"Probabilities: {shares}; before calibration it was {reasons.raw_confidence:.1%} sure.")
    parts += [
        _neighbours_text(reasons, names, classes),
        _influences_text(reasons, names, classes),
        _path_text(reasons, classes),
    ]
    if models > 1:
        parts[-1] += (
            " Rounds and pseudo-labels are those of the model with the most weight. The label and the probabilities "
            f"above are the mean of {models:,} models, one of each kind and fold, so they can differ."
        )
    return "\n\n".join(parts)


def _origin_text(reasons: Reasons, classes: Sequence[str], models: int) -> str:
    model = "model with the most weight" if models > 1 else "model"
    known = "" if reasons.known is None else f"'{classes[reasons.known]}'"
    return {
        "given": f"its label {known} was given",
        "held": f"its label {known} was held back for validation",
        "adopted": f"a pseudo-label of round {reasons.adoption.round if reasons.adoption else '?'}",
        "soft": f"a soft label of round {reasons.soft.round if reasons.soft else '?'}",
        "predicted": f"predicted; the {model} did not learn from it",
    }[reasons.origin]


def _adoption_text(facts: PseudoLabel, classes: Sequence[str]) -> str:
    error = "" if facts.stderr is None else f" ± {facts.stderr:.2g}"
    later = "" if facts.used else ", after the round that was chosen, so the model did not learn from it"
    return (
        f"Adopted in round {facts.round} as '{classes[facts.label]}'{later}: value {facts.score:.4g}{error}, "
        f"number {facts.rank:,} of {facts.among:,} candidates. "
        f"The teacher was {facts.raw_confidence:.1%} sure, {facts.confidence:.1%} after calibration."
    )


def _soft_label_text(facts: SoftLabel, classes: Sequence[str]) -> str:
    return (
        f"Soft label: before round {facts.round} the model gave it {_top_classes(facts.probs, classes)}. "
        f"The model of round {facts.round} learned from these probabilities; "
        f"their weight was {facts.weight:.2g} times the mean weight of a given label. "
        "Soft labels are made anew in every round, for all nodes without a label."
    )


def _top_classes(probs: Sequence[float], classes: Sequence[str]) -> str:
    """The four most likely classes."""
    ranked = sorted(range(len(classes)), key=lambda c: -probs[c])[:4]
    return ", ".join(f"{classes[c]} {probs[c]:.1%}" for c in ranked)


def _neighbours_text(reasons: Reasons, names: Sequence[str], classes: Sequence[str]) -> str:
    if not reasons.neighbours:
        return "It has no neighbours: its own features decide."
    lines = [f"Neighbours, {len(reasons.neighbours)} of {reasons.degree}:"]
    for neighbour in reasons.neighbours:
        origin = _ORIGIN_TEXT.get(neighbour.origin, neighbour.origin)
        lines.append(
            f"  {names[neighbour.node]}  {classes[neighbour.label]} ({origin}), edge weight {neighbour.weight:.3g}"
        )
    return "\n".join(lines)


def _influences_text(reasons: Reasons, names: Sequence[str], classes: Sequence[str]) -> str:
    if not reasons.influences:
        when = "is within reach" if reasons.adoption is None else "was within reach when it was adopted"
        return f"No labelled node {when}: its own features decide."
    lines = ["Labelled nodes with the most influence on it, and their share of all labelled influence:"]
    for source in reasons.influences:
        origin = "given" if source.adopted_round == 0 else f"adopted in round {source.adopted_round}"
        lines.append(f"  {names[source.node]}  {source.share:.0%}  {classes[source.label]} ({origin})")
    ranked = sorted(range(len(classes)), key=lambda c: -reasons.support[c])
    shares = ", ".join(f"{classes[c]} {reasons.support[c]:.0%}" for c in ranked if reasons.support[c] >= 0.005)
    lines.append(f"By class: {shares}. Labelled nodes have {reasons.reach:.0%} of the influence of all nodes on it.")
    best = ranked[0]
    if best != reasons.label:
        lines.append(
            f"Most labelled influence is for '{classes[best]}', but the model predicts '{classes[reasons.label]}': "
            "its own features and the unlabelled nodes around it outweigh the labelled ones."
        )
    return "\n".join(lines)


def _path_text(reasons: Reasons, classes: Sequence[str]) -> str:
    """The predictions over the rounds; consecutive rounds with one label are one phrase."""
    phrases = []
    for label, group in groupby(reasons.path, key=lambda step: step[1]):
        steps = list(group)
        (first, _, start), (last, _, end) = steps[0], steps[-1]
        phrases.append(
            f"'{classes[label]}' in round {first} ({start:.0%})"
            if first == last
            else f"'{classes[label]}' from round {first} ({start:.0%}) to {last} ({end:.0%})"
        )
    return "Predictions over the rounds: " + ", then ".join(phrases) + "."
