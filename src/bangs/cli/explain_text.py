"""The reasons for a label, in a person's words and under a person's names."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bangs.estimator.explain import Influence, Neighbour, Reasons

_MEANING = {
    "banzhaf": "The value says how much its label adds to what the model would know of the other nodes, "
    "in the mean over the ways the round could have been filled.",
    "confidence": "The value is the teacher's confidence.",
    "agreement": "The value is the teacher's confidence, where a clustering of the nodes agrees with its label.",
    "random": "The value is a random number.",
}


def in_words(reasons: Reasons, names: Sequence[str], classes: list[str], selector: object = "") -> str:
    """The reasons as a person would tell them; `selector` is the classifier's, which says what a value means."""
    name, label = names[reasons.node], classes[reasons.label]
    parts = [f"{name} is '{label}', {reasons.confidence:.1%} sure ({_origin(reasons, classes)})."]
    if reasons.adoption is not None:
        meaning = _MEANING.get(selector, "") if isinstance(selector, str) else ""
        parts.append(f"{_adopted(reasons, classes)} {meaning}".rstrip())
    ranked = sorted(range(len(classes)), key=lambda c: -reasons.probs[c])[:4]
    parts.append("Probabilities: " + ", ".join(f"{classes[c]} {reasons.probs[c]:.1%}" for c in ranked) + _raw(reasons))
    parts.append(_neighbours(reasons, names, classes))
    parts.append(_influences(reasons, names, classes))
    parts.append(_path(reasons, classes))
    return "\n\n".join(parts)


def _origin(reasons: Reasons, classes: list[str]) -> str:
    known = "" if reasons.known is None else f"'{classes[reasons.known]}'"
    return {
        "given": f"its label {known} was given",
        "held": f"its label {known} was held back for validation",
        "adopted": f"a pseudo-label of round {reasons.adoption.round if reasons.adoption else '?'}",
        "predicted": "predicted; the model did not learn from it",
    }[reasons.origin]


def _adopted(reasons: Reasons, classes: list[str]) -> str:
    facts = reasons.adoption
    if facts is None:
        return ""
    error = "" if facts.stderr is None else f" ± {facts.stderr:.2g}"
    later = "" if facts.used else ", after the round that was chosen, so the model did not learn from it"
    return (
        f"Adopted in round {facts.round} as '{classes[facts.label]}'{later}: value {facts.score:.4g}{error}, "
        f"number {facts.place:,} of {facts.among:,} candidates. "
        f"The teacher was {facts.raw_confidence:.1%} sure, {facts.confidence:.1%} after calibration."
    )


def _raw(reasons: Reasons) -> str:
    return f"; before calibration it was {reasons.raw_confidence:.1%} sure."


def _neighbours(reasons: Reasons, names: Sequence[str], classes: list[str]) -> str:
    if not reasons.neighbours:
        return "No other node sends to it: its own features decide."
    lines = [f"Neighbours, {len(reasons.neighbours)} of {reasons.degree}:"]
    for one in reasons.neighbours:
        how = {"given": "given", "held": "held for validation", "adopted": "adopted", "predicted": "predicted"}
        lines.append(f"  {names[one.node]}  {classes[one.label]} ({how[one.origin]}), edge weight {one.weight:.3g}")
    return "\n".join(lines)


def _influences(reasons: Reasons, names: Sequence[str], classes: list[str]) -> str:
    if not reasons.influences:
        when = "is within reach" if reasons.adoption is None else "was within reach when it was adopted"
        return f"No labelled node {when}."
    lines = ["Labelled nodes that speak to it loudest, with their share of all labelled influence:"]
    for one in reasons.influences:
        since = "given" if one.adopted_round == 0 else f"adopted in round {one.adopted_round}"
        lines.append(f"  {names[one.node]}  {one.share:.0%}  {classes[one.label]} ({since})")
    ranked = sorted(range(len(classes)), key=lambda c: -reasons.support[c])
    spoken = ", ".join(f"{classes[c]} {reasons.support[c]:.0%}" for c in ranked if reasons.support[c] >= 0.005)
    lines.append(f"By class: {spoken}. Labelled nodes make {reasons.reach:.0%} of what reaches it over the edges.")
    if ranked[0] != reasons.label:
        lines.append(
            f"Their largest share speaks for '{classes[ranked[0]]}': "
            "its own features and the unlabelled nodes around it decided."
        )
    return "\n".join(lines)


def _path(reasons: Reasons, classes: list[str]) -> str:
    """The rounds in stretches of one label each."""
    stretches: list[tuple[int, int, int, float, float]] = []
    for round, label, sure in reasons.path:
        if stretches and stretches[-1][2] == label:
            first, _, _, begin, _ = stretches[-1]
            stretches[-1] = (first, round, label, begin, sure)
        else:
            stretches.append((round, round, label, sure, sure))
    told = [
        f"'{classes[label]}' in round {first} ({begin:.0%})"
        if first == last
        else f"'{classes[label]}' from round {first} ({begin:.0%}) to {last} ({end:.0%})"
        for first, last, label, begin, end in stretches
    ]
    return "Over the rounds the models said " + ", then ".join(told) + "."


def named(reasons: Reasons, names: Sequence[str], classes: list[str]) -> dict[str, Any]:
    """The reasons with the person's own names in place of numbers."""

    def other(one: Influence | Neighbour) -> dict[str, Any]:
        return {**asdict(one), "node": names[one.node], "label": classes[one.label]}

    adoption = reasons.adoption
    return {
        **asdict(reasons),
        "node": names[reasons.node],
        "label": classes[reasons.label],
        "known": None if reasons.known is None else classes[reasons.known],
        "probs": dict(zip(classes, reasons.probs, strict=True)),
        "support": dict(zip(classes, reasons.support, strict=True)),
        "neighbours": [other(one) for one in reasons.neighbours],
        "influences": [other(one) for one in reasons.influences],
        "adoption": None if adoption is None else {**asdict(adoption), "label": classes[adoption.label]},
        "path": [{"round": round, "label": classes[label], "confidence": sure} for round, label, sure in reasons.path],
    }
