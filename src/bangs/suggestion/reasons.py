"""Reasons: why a node is worth a label, in numbers and in words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from bangs.graphs.neighbours import NeighbourLists
from bangs.suggestion.batches import Taken
from bangs.suggestion.posterior import NOISE
from bangs.suggestion.situation import Situation

CLOSE = 0.5  # squared correlation from which two nodes are alike
SURE = 0.9  # confidence from which a prediction is called sure
LEAD = 0.3  # of the likeliest class, from which the model is not called unsure


@dataclass(frozen=True)
class Facts:
    """What speaks for a node; classes by their numbers."""

    ranked: list[tuple[int, float]]  # the classes and their probabilities, the likeliest first
    like: int  # nodes without a label that a label here would tell most about
    removes: float  # share by which its label would lower the variance where predictions may be wrong
    near: bool  # whether a labelled or earlier taken node is alike
    degree: int  # edges into it
    labelled: int  # of which come from nodes with a label
    disagreement: float | None
    contested: bool  # whether the models of the folds differ more on it than on nine of ten nodes


def facts(situation: Situation, taken: Sequence[Taken]) -> Iterator[Facts]:
    """The facts of every node of a batch, each after those taken before it."""
    links = NeighbourLists.of(situation.graph)
    doubt = situation.disagreement
    bound = float("inf") if doubt is None else _upper(doubt[situation.pool])
    before, seen = situation.given, situation.spread
    z, labelled = situation.places, situation.places[situation.known]
    for own in taken:
        place = z[own.node]
        covariance = before.covariance.float()
        both = z @ (covariance @ place)
        close = both.square() > CLOSE * seen * seen[own.node]
        close[own.node] = False
        total = float((before.covariance * situation.risky_mass).sum())
        removed = float(before.gain(place[None], situation.risky_mass)[0])
        _, sources, _ = links.rows(torch.tensor([own.node]))
        best = situation.probs[own.node].sort(descending=True)
        lengths = labelled.norm(dim=1) * place.norm()
        yield Facts(
            ranked=list(zip(best.indices.tolist(), best.values.tolist(), strict=True)),
            like=int((close & ~situation.known).sum()),
            removes=min(max(removed / total, 0.0), 1.0) if total > 0 else 0.0,
            near=bool((labelled @ place > CLOSE**0.5 * lengths).any()),
            degree=len(sources),
            labelled=int(situation.known[sources].sum()),
            disagreement=None if doubt is None else float(doubt[own.node]),
            contested=doubt is not None and float(doubt[own.node]) > bound,
        )
        before = before.beside(place[None])
        seen = (seen - both.square() / (seen[own.node] + NOISE)).clamp_min(0)  # the variance after one label


def in_words(fact: Facts, classes: Sequence[str], strategy: str) -> str:
    """The reason as one to three sentences."""
    parts = [_doubt(fact, classes)]
    if fact.contested:
        parts.append("The models of the folds disagree about it.")
    if strategy == "random":
        return " ".join([*parts, "It was drawn at random."])
    if fact.like:
        alike = f"{fact.like:,} unlabelled nodes are like it" if fact.like > 1 else "One unlabelled node is like it"
        parts.append(alike + ("." if fact.near else "; no labelled node is."))
    elif not fact.near:
        parts.append("No labelled node is like it.")
    if fact.removes >= 0.0005:
        parts.append(f"Its label would lower the uncertainty about all nodes by about {fact.removes:.1%}.")
    if fact.degree:
        linked = f"{fact.degree:,} neighbour{'s' if fact.degree > 1 else ''}"
        parts.append(f"It has {linked}, {fact.labelled or 'none'} of them labelled.")
    return " ".join(parts)


def _doubt(fact: Facts, classes: Sequence[str]) -> str:
    (best, sure), *rest = fact.ranked
    if not rest:
        return f"The model knows one class only, '{classes[best]}'."
    second, next_sure = rest[0]
    if sure >= SURE:
        return f"The model says '{classes[best]}' ({sure:.0%})."
    if sure - next_sure >= LEAD:
        return f"The model says '{classes[best]}' ({sure:.0%}), then '{classes[second]}' ({next_sure:.0%})."
    return f"The model is unsure: '{classes[best]}' ({sure:.0%}) or '{classes[second]}' ({next_sure:.0%})."


def _upper(values: torch.Tensor) -> float:
    """The value that nine of ten are below."""
    return float(values.kthvalue(max(1, round(0.9 * len(values)))).values) if len(values) else float("inf")
