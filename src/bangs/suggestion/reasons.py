"""Reasons: a node to label next with the facts about it, and why it should be labelled."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from bangs.graphs.neighbours import NeighbourLists
from bangs.suggestion.batches import Taken
from bangs.suggestion.posterior import NOISE
from bangs.suggestion.strategy_input import StrategyInput
from bangs.utils.text import percent

SIMILAR = 0.5  # squared correlation from which two nodes are similar
CONFIDENT = 0.9  # confidence from which only one class is named
CLEAR_MARGIN = 0.3  # between the two likeliest classes, from which the model is not called unsure


@dataclass(frozen=True)
class Suggestion:
    """A node to label, and why."""

    rank: int  # 1 = the first to label
    node: str
    row: int  # its number in the graph
    score: float  # of the strategy, when it was taken
    label: Any  # the likeliest class
    confidence: float
    second: Any  # the second likeliest class; None where there is one class
    second_confidence: float
    degree: int
    like: int  # similar nodes without a label
    removes: float  # share by which its label would lower the variance where predictions may be wrong, in [0, 1]
    disagreement: float | None  # between the models of the folds, in nats
    reason: str


def with_reasons(
    inputs: StrategyInput, taken: Sequence[Taken], names: Any, classes: Sequence[Any], strategy: str
) -> Iterator[Suggestion]:
    """The nodes of a batch with their facts and a reason, each given the nodes before it."""
    links = NeighbourLists.of(inputs.graph)
    disagreement = inputs.disagreement
    ninth_decile = float("inf") if disagreement is None else _ninth_decile(disagreement[inputs.pool])
    posterior, variance = inputs.posterior, inputs.variance
    z, labelled = inputs.points, inputs.points[inputs.known]
    for rank, item in enumerate(taken, 1):
        node, point = item.node, z[item.node]
        covariance = z @ (posterior.covariance.float() @ point)
        similar = covariance.square() > SIMILAR * variance * variance[node]
        similar[node] = False
        total = float((posterior.covariance * inputs.risk_gram).sum())
        removed = float(posterior.gain(point[None], inputs.risk_gram)[0])
        _, sources, _ = links.rows(torch.tensor([node]))
        ranked = inputs.probs[node].sort(descending=True)
        labels, shares = ranked.indices[:2].tolist(), ranked.values[:2].tolist()
        norms = labelled.norm(dim=1) * point.norm()
        facts = Suggestion(
            rank=rank,
            node=str(names[node]),
            row=node,
            score=item.score,
            label=classes[labels[0]],
            confidence=shares[0],
            second=classes[labels[1]] if len(labels) > 1 else None,
            second_confidence=shares[1] if len(labels) > 1 else 0.0,
            degree=len(sources),
            like=int((similar & ~inputs.known).sum()),
            removes=min(max(removed / total, 0.0), 1.0) if total > 0 else 0.0,
            disagreement=None if disagreement is None else float(disagreement[node]),
            reason="",
        )
        near = bool((labelled @ point > SIMILAR**0.5 * norms).any())
        contested = disagreement is not None and float(disagreement[node]) > ninth_decile
        known_neighbours = int(inputs.known[sources].sum())
        yield replace(facts, reason=_reason(facts, strategy, near, contested, known_neighbours))
        posterior = posterior.updated(point[None])
        variance = (variance - covariance.square() / (variance[node] + NOISE)).clamp_min(0)  # after one more label


def _reason(fact: Suggestion, strategy: str, near: bool, contested: bool, known_neighbours: int) -> str:
    """The reason as one to three sentences; `near`: whether a labelled node is similar."""
    parts = [_prediction_text(fact)]
    if contested:
        parts.append("The models of the folds disagree about it.")
    if strategy == "random":
        return " ".join([*parts, "It was drawn at random."])
    if fact.like:
        similar = f"{fact.like:,} unlabelled nodes are like it" if fact.like > 1 else "One unlabelled node is like it"
        parts.append(similar + ("." if near else "; no labelled node is."))
    elif not near:
        parts.append("No labelled node is like it.")
    if fact.degree:
        neighbours = f"{fact.degree:,} neighbour{'s' if fact.degree > 1 else ''}"
        parts.append(f"It has {neighbours}, {known_neighbours or 'none'} of them labelled.")
    return " ".join(parts)


def _prediction_text(fact: Suggestion) -> str:
    if fact.second is None:
        return f"The model knows one class only, '{fact.label}'."
    first = f"'{fact.label}' ({percent(fact.confidence, 0)})"
    second = f"'{fact.second}' ({percent(fact.second_confidence, 0)})"
    if fact.confidence >= CONFIDENT:
        return f"The model says {first}."
    if fact.confidence - fact.second_confidence >= CLEAR_MARGIN:
        return f"The model says {first}, then {second}."
    return f"The model is unsure: {first} or {second}."


def _ninth_decile(values: torch.Tensor) -> float:
    """The value that nine of ten are below."""
    return float(values.kthvalue(max(1, round(0.9 * len(values)))).values) if len(values) else float("inf")
