"""Reasons: why a node should be labelled next, in numbers and as text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from bangs.graphs.neighbours import NeighbourLists
from bangs.suggestion.batches import Taken
from bangs.suggestion.posterior import NOISE
from bangs.suggestion.strategy_input import StrategyInput

SIMILAR = 0.5  # squared correlation from which two nodes are similar
CONFIDENT = 0.9  # confidence from which only one class is named
CLEAR_MARGIN = 0.3  # between the two likeliest classes, from which the model is not called unsure


@dataclass(frozen=True)
class Facts:
    """The facts about a suggested node; classes by number."""

    ranked: list[tuple[int, float]]  # the classes and their probabilities, the likeliest first
    like: int  # similar nodes without a label
    removes: float  # share by which its label would lower the variance where predictions may be wrong
    near: bool  # whether a labelled node is similar
    degree: int  # edges into it
    labelled: int  # edges into it from nodes with a label
    disagreement: float | None
    contested: bool  # whether the models of the folds differ more on it than on nine of ten nodes


def facts(inputs: StrategyInput, taken: Sequence[Taken]) -> Iterator[Facts]:
    """The facts about every node of a batch, each given the nodes before it."""
    links = NeighbourLists.of(inputs.graph)
    disagreement = inputs.disagreement
    threshold = float("inf") if disagreement is None else _ninth_decile(disagreement[inputs.pool])
    posterior, variance = inputs.posterior, inputs.variance
    z, labelled = inputs.points, inputs.points[inputs.known]
    for node in (item.node for item in taken):
        point = z[node]
        covariance = z @ (posterior.covariance.float() @ point)
        similar = covariance.square() > SIMILAR * variance * variance[node]
        similar[node] = False
        total = float((posterior.covariance * inputs.risk_gram).sum())
        removed = float(posterior.gain(point[None], inputs.risk_gram)[0])
        _, sources, _ = links.rows(torch.tensor([node]))
        ranked = inputs.probs[node].sort(descending=True)
        norms = labelled.norm(dim=1) * point.norm()
        yield Facts(
            ranked=list(zip(ranked.indices.tolist(), ranked.values.tolist(), strict=True)),
            like=int((similar & ~inputs.known).sum()),
            removes=min(max(removed / total, 0.0), 1.0) if total > 0 else 0.0,
            near=bool((labelled @ point > SIMILAR**0.5 * norms).any()),
            degree=len(sources),
            labelled=int(inputs.known[sources].sum()),
            disagreement=None if disagreement is None else float(disagreement[node]),
            contested=disagreement is not None and float(disagreement[node]) > threshold,
        )
        posterior = posterior.updated(point[None])
        variance = (variance - covariance.square() / (variance[node] + NOISE)).clamp_min(0)  # after one more label


def as_text(fact: Facts, classes: Sequence[str], strategy: str) -> str:
    """The reason as one to three sentences."""
    parts = [_prediction_text(fact, classes)]
    if fact.contested:
        parts.append("The models of the folds disagree about it.")
    if strategy == "random":
        return " ".join([*parts, "It was drawn at random."])
    if fact.like:
        similar = f"{fact.like:,} unlabelled nodes are like it" if fact.like > 1 else "One unlabelled node is like it"
        parts.append(similar + ("." if fact.near else "; no labelled node is."))
    elif not fact.near:
        parts.append("No labelled node is like it.")
    if fact.removes >= 0.0005:
        parts.append(f"Its label would lower the uncertainty about all nodes by about {fact.removes:.1%}.")
    if fact.degree:
        neighbours = f"{fact.degree:,} neighbour{'s' if fact.degree > 1 else ''}"
        parts.append(f"It has {neighbours}, {fact.labelled or 'none'} of them labelled.")
    return " ".join(parts)


def _prediction_text(fact: Facts, classes: Sequence[str]) -> str:
    (best, prob), *others = fact.ranked
    if not others:
        return f"The model knows one class only, '{classes[best]}'."
    second, second_prob = others[0]
    if prob >= CONFIDENT:
        return f"The model says '{classes[best]}' ({prob:.0%})."
    if prob - second_prob >= CLEAR_MARGIN:
        return f"The model says '{classes[best]}' ({prob:.0%}), then '{classes[second]}' ({second_prob:.0%})."
    return f"The model is unsure: '{classes[best]}' ({prob:.0%}) or '{classes[second]}' ({second_prob:.0%})."


def _ninth_decile(values: torch.Tensor) -> float:
    """The value that nine of ten are below."""
    return float(values.kthvalue(max(1, round(0.9 * len(values)))).values) if len(values) else float("inf")
