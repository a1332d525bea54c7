"""Explain: why a node has the label it has, in numbers that can be checked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.propagation import PPR
from bangs.graphs.store import place_of
from bangs.graphs.walks import NearWalks
from bangs.runs.snapshot import Snapshot

Origin = Literal["given", "held", "adopted", "predicted"]

EVERYONE = slice(None)
TOGETHER = 64  # nodes whose influences are found at once
LARGE = 200_000  # links beyond which only near walks are followed


@dataclass(frozen=True)
class Influence:
    """A labelled node and how much of what labelled nodes say to another one comes from it."""

    node: int
    label: int
    adopted_round: int  # 0 = given, t = adopted in round t
    share: float  # of all labelled influence on the other node, in [0, 1]


@dataclass(frozen=True)
class Neighbour:
    """A node that sends to another one over edges."""

    node: int
    weight: float  # of all its edges to the other one
    origin: Origin
    label: int  # known, else predicted


@dataclass(frozen=True)
class PseudoLabel:
    """How a node got its pseudo-label, and in which round."""

    round: int
    label: int
    raw_confidence: float
    confidence: float
    score: float
    stderr: float | None
    place: int  # by score: 1 = the best of the round
    among: int  # nodes that were scored in the round
    used: bool  # whether the chosen model learned from it


@dataclass(frozen=True)
class Reasons:
    """All there is to say about the label of one node."""

    node: int
    origin: Origin
    label: int  # what the chosen model says
    known: int | None  # the label that came with the data
    probs: list[float]  # calibrated, per class
    raw_confidence: float
    confidence: float
    degree: int
    neighbours: list[Neighbour]  # the heaviest edges first
    influences: list[Influence]  # the strongest first
    support: list[float]  # labelled influence per class; sums to one, or to zero where no labelled node is in reach
    reach: float  # labelled influence among all influence on the node, in [0, 1]
    adoption: PseudoLabel | None
    path: list[tuple[int, int, float]]  # (round, label, calibrated confidence) of every round's student


def origins(snapshot: Snapshot, nodes: Tensor | slice = EVERYONE) -> list[Origin]:
    """Where the labels of nodes come from; pseudo-labels that the chosen model did not see are predictions."""
    out: list[Origin] = []
    for adopted_round, held in zip(snapshot.adopted_round[nodes].tolist(), snapshot.held[nodes].tolist(), strict=True):
        out.append(
            "given" if adopted_round == 0 else "held" if held >= 0 else "adopted" if adopted_round > 0 else "predicted"
        )
    return out


def influences(
    snapshot: Snapshot, nodes: Sequence[int], top: int = 5, propagate: PPR | NearWalks | None = None
) -> list[tuple[list[Influence], list[float], float]]:
    """For every node its strongest labelled influences, the labelled influence per class [C], and its reach.

    The influence of i on j is P[j, i] of personalised PageRank, the weight with which the logits of i enter the
    estimated logits Ĥ_j = Σ_i P[j, i] x_i of a student; on a large graph it is what near walks make of that. Counted
    are nodes with a given label and those adopted before j was, or all that the chosen model learned from if j was not
    adopted.
    """
    if propagate is None:
        near = not isinstance(snapshot.graph, Data) or snapshot.graph.edge_index.shape[1] > LARGE
        propagate = NearWalks() if near else PPR()
    since, label = _adopted_in(snapshot), _label_of(snapshot)
    heard = _heard(snapshot, nodes, propagate)
    return [
        _strongest(snapshot, node, others, mass, since, label, top)
        for node, (others, mass) in zip(nodes, heard, strict=True)
    ]


def neighbours(snapshot: Snapshot, nodes: Sequence[int], top: int = 5) -> list[tuple[list[Neighbour], int]]:
    """For every node its heaviest neighbours, and how many it has.

    A neighbour is another node that sends to it; several edges from it count as one of their total weight, and edges
    that weigh nothing as none.
    """
    counts, sources, weights = (part.numpy() for part in snapshot.links.rows(torch.as_tensor(list(nodes))))
    ends = counts.cumsum()
    found = []
    for node, begin, end in zip(nodes, ends - counts, ends, strict=True):
        others, place = np.unique(sources[begin:end], return_inverse=True)
        total = np.bincount(place, weights[begin:end], len(others))
        there = (total > 0) & (others != node)
        others, total = others[there], total[there]
        order = np.argsort(-total, kind="stable")[:top]
        found.append((_described(snapshot, others[order], total[order]), len(others)))
    return found


def node_of(node: Any, names: Any) -> int:
    """The number of a node that is asked for by its name, or by its number where nodes are not called by numbers."""
    if isinstance(node, str):
        return place_of(node, names)
    if isinstance(node, bool) or not isinstance(node, Integral):
        raise InvalidInput(f"a node is asked for by its name or its number, got {node!r}")
    numbered = all(name.removeprefix("-").isdecimal() for name in names[:3])
    return place_of(str(node), names) if numbered else int(node)


def reasons(snapshot: Snapshot, node: int, top: Any = 5) -> Reasons:
    """Why the node has the label it has; at most `top` neighbours and influences are named."""
    if not 0 <= node < snapshot.nodes:
        raise InvalidInput(f"nodes are numbered 0 … {snapshot.nodes - 1}, got {node}")
    if isinstance(top, bool) or not isinstance(top, Integral) or top < 0:
        raise InvalidInput(f"top, the number of neighbours and influences to name, must be 0 or more, got {top!r}")
    top = min(int(top), snapshot.nodes)
    strongest, support, reach = influences(snapshot, [node], top)[0]
    probs = snapshot.calibrated[node].softmax(-1)
    given, held = int(snapshot.given[node]), int(snapshot.held[node])
    known = max(given, held)
    heaviest, degree = neighbours(snapshot, [node], top)[0]
    return Reasons(
        node=node,
        origin=origins(snapshot, torch.tensor([node]))[0],
        label=int(probs.argmax()),
        known=known if known >= 0 else None,
        probs=probs.tolist(),
        raw_confidence=float(snapshot.raw[node].softmax(-1).max()),
        confidence=float(probs.max()),
        degree=degree,
        neighbours=heaviest,
        influences=strongest,
        support=support,
        reach=reach,
        adoption=adoption(snapshot, node),
        path=[
            (round, int(label), float(sure))
            for round, (label, sure) in enumerate(
                zip(snapshot.said[:, node].tolist(), snapshot.sure[:, node].tolist(), strict=True)
            )
        ],
    )


def adoption(snapshot: Snapshot, node: int) -> PseudoLabel | None:
    """How the node was adopted, the last time if it was more than once; None if it never was."""
    candidate_log = snapshot.candidate_log
    lines = (candidate_log.taken & (candidate_log.node == node)).nonzero().flatten().tolist()
    if not lines:
        return None
    line = lines[-1]
    stderr = float(candidate_log.stderr[line])
    return PseudoLabel(
        round=int(candidate_log.round[line]),
        label=int(candidate_log.label[line]),
        raw_confidence=float(candidate_log.raw_confidence[line]),
        confidence=float(candidate_log.confidence[line]),
        score=float(candidate_log.score[line]),
        stderr=None if stderr != stderr else stderr,
        place=int(candidate_log.place[line]),
        among=int(candidate_log.among[line]),
        used=bool(snapshot.adopted_round[node] == candidate_log.round[line]),
    )


def _adopted_in(snapshot: Snapshot) -> Tensor:
    """The round after which every node's label counted: long [N]; 0 = given, past the last round = never."""
    never = snapshot.said.shape[0]
    since = torch.where(snapshot.given >= 0, 0, never)
    candidate_log = snapshot.candidate_log.where(snapshot.candidate_log.taken)
    return since.scatter_reduce(0, candidate_log.node, candidate_log.round, "amin")


def _heard(snapshot: Snapshot, nodes: Sequence[int], propagate: PPR | NearWalks) -> Iterator[tuple[Tensor, Tensor]]:
    """For every node whom it hears, long [n], and how loud, float [n]: the entries of a row of P."""
    chunks = [torch.as_tensor(list(nodes[start : start + TOGETHER])) for start in range(0, len(nodes), TOGETHER)]
    if isinstance(propagate, NearWalks):
        walker = propagate(snapshot.links)
        for chunk in chunks:
            rows = walker.rows(chunk)
            for begin, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
                yield torch.from_numpy(rows.indices[begin:end]).long(), torch.from_numpy(rows.data[begin:end])
        return
    operator, everyone = propagate(snapshot.graph), torch.arange(snapshot.nodes)
    for chunk in chunks:
        picked = torch.zeros(snapshot.nodes, len(chunk))
        picked[chunk, torch.arange(len(chunk))] = 1
        yield from ((everyone, row) for row in operator.adjoint(picked).T)


def _strongest(
    snapshot: Snapshot, node: int, others: Tensor, mass: Tensor, since: Tensor, label: Tensor, top: int
) -> tuple[list[Influence], list[float], float]:
    never = snapshot.said.shape[0]
    own, foreign = int(since[node]), others != node
    labelled = (since[others] < own if 0 < own < never else snapshot.adopted_round[others] >= 0) & foreign & (mass > 0)
    speakers, loud = others[labelled], mass[labelled]
    total = float(loud.sum())
    if total <= 0:
        return [], [0.0] * snapshot.classes, 0.0
    best = loud.topk(min(top, len(loud)))
    strongest = [
        Influence(other, int(label[other]), int(since[other]), value / total)
        for other, value in zip(speakers[best.indices].tolist(), best.values.tolist(), strict=True)
    ]
    support = torch.zeros(snapshot.classes).scatter_add(0, label[speakers], loud) / total
    return strongest, support.tolist(), total / max(float(mass[foreign].sum()), 1e-12)


def _label_of(snapshot: Snapshot) -> Tensor:
    """The given label, else the pseudo-label, else -1: long [N]; also of nodes adopted after the chosen round."""
    taken = snapshot.candidate_log.where(snapshot.candidate_log.taken)
    label = torch.full_like(snapshot.given, -1)
    label[taken.node] = taken.label
    label = torch.where(snapshot.adopted_round > 0, snapshot.target, label)
    return torch.where(snapshot.given >= 0, snapshot.given, label)


def _described(snapshot: Snapshot, nodes: "npt.NDArray[Any]", weights: "npt.NDArray[Any]") -> list[Neighbour]:
    """Neighbours with the labels they have, or are predicted to have."""
    others = torch.from_numpy(nodes)
    target, held, said = snapshot.target[others], snapshot.held[others], snapshot.raw[others].argmax(-1)
    label = torch.where(target >= 0, target, torch.where(held >= 0, held, said))
    columns = (nodes.tolist(), weights.tolist(), origins(snapshot, others), label.tolist())
    return [Neighbour(*one) for one in zip(*columns, strict=True)]
