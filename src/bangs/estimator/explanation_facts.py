"""Reasons: why a node has its label, in numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.graphs.edges import EdgeList
from bangs.graphs.pagerank import PPR
from bangs.graphs.pagerank_truncated import TruncatedPPR
from bangs.runs.snapshot import Snapshot

Origin = Literal["given", "held", "adopted", "soft", "predicted"]

ALL_NODES = slice(None)
BATCH = 64  # nodes whose influences are computed at once
MAX_EXACT_SIZE = 200_000  # nodes or edges up to which PageRank is exact; beyond, only short walks count


@dataclass(frozen=True)
class Influence:
    """A labelled node, and its share of the influence of all labelled nodes on another node."""

    node: Any  # its number; in an `Explanation` its name
    label: Any  # the number of its class; in an `Explanation` the class
    adopted_round: int  # 0 = given, t = adopted in round t
    share: float  # of all labelled influence on the other node, in [0, 1]


@dataclass(frozen=True)
class Neighbour:
    """A node with an edge to another one."""

    node: Any  # its number; in an `Explanation` its name
    weight: float  # the sum of its edges to the other node
    origin: Origin
    label: Any  # known, else predicted; a number, in an `Explanation` the class


@dataclass(frozen=True)
class PseudoLabel:
    """How a node got its hard pseudo-label, and in which round."""

    round: int
    label: Any  # a number; in an `Explanation` the class
    raw_confidence: float
    confidence: float
    score: float
    stderr: float | None
    rank: int  # by score: 1 = the best of the round
    among: int  # nodes that were scored in the round
    used: bool  # whether the chosen model learned from it


@dataclass(frozen=True)
class SoftLabel:
    """The probabilities that an earlier model gave a node, from which the chosen model learned."""

    round: int
    probs: Any  # list of C probabilities; in an `Explanation` a dict by class
    weight: float  # in the loss, as a multiple of the weight of a given label


@dataclass(frozen=True)
class Reasons:
    """The reasons for the label of one node; nodes and classes by number, in an `Explanation` by name."""

    node: Any
    origin: Origin
    label: Any  # the prediction of the chosen model
    known: Any  # the label that came with the data; None = it has none
    probs: Any  # calibrated: list of C probabilities; in an `Explanation` a dict by class
    raw_confidence: float
    confidence: float
    degree: int
    neighbours: list[Neighbour]  # the heaviest edges first
    influences: list[Influence]  # the strongest first
    support: Any  # labelled influence per class, as `probs`; sums to one, or to zero where no labelled node is near
    reach: float  # share of labelled influence in all influence on the node, in [0, 1]
    adoption: PseudoLabel | None
    soft: SoftLabel | None
    path: list[Any]  # (round, label, calibrated confidence) of every round's model; in an `Explanation` dicts


def origins(snapshot: Snapshot, nodes: Tensor | slice = ALL_NODES) -> list[Origin]:
    """The origins of the labels of nodes; a pseudo-label that the chosen model did not learn is a prediction."""
    pseudo: Origin = "adopted" if snapshot.belief is None else "soft"
    columns = (snapshot.adopted_round[nodes].tolist(), snapshot.held[nodes].tolist())
    return [
        "given" if adopted_round == 0 else "held" if held >= 0 else pseudo if adopted_round > 0 else "predicted"
        for adopted_round, held in zip(*columns, strict=True)
    ]


def influences(
    snapshot: Snapshot, nodes: Sequence[int], top: int = 5, propagate: PPR | TruncatedPPR | None = None
) -> list[tuple[list[Influence], list[float], float]]:
    """For every node its strongest labelled influences, the labelled influence per class [C], and its reach.

    The influence of i on j is P[j, i] of personalised PageRank, the weight with which the logits of i enter the
    estimated logits Ĥ_j = Σ_i P[j, i] x_i of a student; on a large graph only short walks count. Labelled nodes are
    those with a given label and those adopted before j, or all that the chosen model learned from if j was not adopted.
    Soft labels do not count, since every node has one.
    """
    if propagate is None:
        graph = snapshot.graph
        small = isinstance(graph, EdgeList) and max(graph.num_nodes, graph.edge_index.shape[1]) <= MAX_EXACT_SIZE
        propagate = PPR() if small else TruncatedPPR()
    first_round, label = _first_rounds(snapshot), _labels(snapshot)
    rows = _influence_rows(snapshot, nodes, propagate, label >= 0)
    return [_strongest(snapshot, node, *row, first_round, label, top) for node, row in zip(nodes, rows, strict=True)]


def neighbours(snapshot: Snapshot, nodes: Sequence[int], top: int = 5) -> list[tuple[list[Neighbour], int]]:
    """For every node its heaviest neighbours, and how many it has.

    A neighbour is another node with an edge to it. Several edges count as one with their total weight; edges of weight
    zero do not count.
    """
    counts, sources, weights = (tensor.numpy() for tensor in snapshot.links.rows(torch.as_tensor(list(nodes))))
    ends = counts.cumsum()
    out = []
    for node, begin, end in zip(nodes, ends - counts, ends, strict=True):
        others, inverse = np.unique(sources[begin:end], return_inverse=True)
        total = np.bincount(inverse, weights[begin:end], len(others))
        linked = (total > 0) & (others != node)
        others, total = others[linked], total[linked]
        order = np.argsort(-total, kind="stable")[:top]
        out.append((_described(snapshot, others[order], total[order]), len(others)))
    return out


def node_of(node: Any, names: Any) -> int:
    """The number of a node, given by its name, or by its number where names are not numbers."""
    if not isinstance(node, str) and (isinstance(node, bool) or not isinstance(node, Integral)):
        raise InvalidInput(f"a node must be given by its name or its number, got {node!r}")
    if not isinstance(node, str) and not all(name.removeprefix("-").isdecimal() for name in names[:3]):
        return int(node)
    if isinstance(names, np.ndarray) and len(matches := np.flatnonzero(names == str(node))):
        return int(matches[0])
    from bangs.graphs.store import node_index  # imports the readers of tables, which takes a second

    return node_index(str(node), names)


def reasons(snapshot: Snapshot, node: int, top: Any = 5) -> Reasons:
    """Why the node has its label; at most `top` neighbours and influences are listed."""
    if not 0 <= node < snapshot.nodes:
        raise InvalidInput(f"nodes are numbered 0 … {snapshot.nodes - 1}, got {node}")
    if isinstance(top, bool) or not isinstance(top, Integral) or top < 0:
        raise InvalidInput(f"top, the number of neighbours and influences to name, must be 0 or more, got {top!r}")
    top = min(int(top), snapshot.nodes)
    strongest, support, reach = influences(snapshot, [node], top)[0]
    probs = snapshot.calibrated[node].softmax(-1)
    known = max(int(snapshot.given[node]), int(snapshot.held[node]))
    heaviest, degree = neighbours(snapshot, [node], top)[0]
    labels, confidence = (rounds[:, node].tolist() for rounds in (snapshot.round_labels, snapshot.round_confidence))
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
        soft=soft_label(snapshot, node),
        path=list(zip(range(len(labels)), labels, confidence, strict=True)),
    )


def adoption(snapshot: Snapshot, node: int) -> PseudoLabel | None:
    """How the node was adopted, the last time if it was more than once; None if it never was."""
    log = snapshot.scored_nodes
    rows = (log.taken & (log.node == node)).nonzero().flatten().tolist()
    if not rows:
        return None
    row = rows[-1]
    stderr = float(log.stderr[row])
    return PseudoLabel(
        round=int(log.round[row]),
        label=int(log.label[row]),
        raw_confidence=float(log.raw_confidence[row]),
        confidence=float(log.confidence[row]),
        score=float(log.score[row]),
        stderr=None if stderr != stderr else stderr,
        rank=int(log.place[row]),
        among=int(log.among[row]),
        used=bool(snapshot.adopted_round[node] == log.round[row]),
    )


def soft_label(snapshot: Snapshot, node: int) -> SoftLabel | None:
    """The soft label from which the chosen model learned; None where the node has none."""
    round = int(snapshot.adopted_round[node])
    if snapshot.belief is None or round < 1:
        return None
    return SoftLabel(round, snapshot.belief[node].tolist(), float(relative_weights(snapshot)[node]))


def relative_weights(snapshot: Snapshot) -> Tensor:
    """The weight of every label in the loss of the chosen model, relative to a given label: float [N]."""
    if snapshot.weight is None:
        return (snapshot.target >= 0).float()
    given = snapshot.weight[snapshot.given >= 0]
    return snapshot.weight / given.mean().clamp_min(1e-12)


def _first_rounds(snapshot: Snapshot) -> Tensor:
    """The first round in which every node had a label: long [N]; 0 = given, past the last round = never."""
    never = snapshot.round_labels.shape[0]
    taken = snapshot.scored_nodes.where(snapshot.scored_nodes.taken)
    return torch.where(snapshot.given >= 0, 0, never).scatter_reduce(0, taken.node, taken.round, "amin")


def _influence_rows(
    snapshot: Snapshot, nodes: Sequence[int], propagate: PPR | TruncatedPPR, labelled: Tensor
) -> Iterator[tuple[Tensor, Tensor, float]]:
    """For every node its row of P: labelled nodes long [n], their influence float [n], and that of all other nodes.

    `labelled` is bool [N].
    """
    chunks = [torch.as_tensor(list(nodes[start : start + BATCH])) for start in range(0, len(nodes), BATCH)]
    if isinstance(propagate, TruncatedPPR):
        for chunk in chunks:
            rows = propagate.rows(snapshot.links, chunk)
            for node, begin, end in zip(chunk, rows.indptr[:-1], rows.indptr[1:], strict=True):
                others = torch.from_numpy(rows.indices[begin:end]).long()
                influence = torch.from_numpy(rows.data[begin:end])
                known = labelled[others] & (others != node)
                yield others[known], influence[known], float(influence[others != node].sum())
        return
    graph: Any = snapshot.graph
    operator, sources = propagate(graph), labelled.nonzero().flatten()
    for chunk in chunks:
        columns = torch.arange(len(chunk))
        one_hot = torch.zeros(snapshot.nodes, len(chunk))
        one_hot[chunk, columns] = 1
        influence = operator.adjoint(one_hot)
        influence[chunk, columns] = 0  # the influence of a node on itself does not count
        for column, total in zip(influence[sources].T, influence.sum(0), strict=True):
            yield sources, column, float(total)


def _strongest(
    snapshot: Snapshot,
    node: int,
    others: Tensor,
    influence: Tensor,
    all_influence: float,
    first_round: Tensor,
    label: Tensor,
    top: int,
) -> tuple[list[Influence], list[float], float]:
    """The strongest influences on a node, the influence per class [C], and the reach; see `influences`."""
    never, adopted = snapshot.round_labels.shape[0], int(first_round[node])
    if 0 < adopted < never:
        counts = first_round[others] < adopted
    else:
        counts = (snapshot.given if snapshot.belief is not None else snapshot.adopted_round)[others] >= 0
    counts &= influence > 0
    sources, amount = others[counts], influence[counts]
    total = float(amount.sum())
    if total <= 0:
        return [], [0.0] * snapshot.classes, 0.0
    best = amount.topk(min(top, len(amount)))
    strongest = [
        Influence(other, int(label[other]), int(first_round[other]), value / total)
        for other, value in zip(sources[best.indices].tolist(), best.values.tolist(), strict=True)
    ]
    support = torch.zeros(snapshot.classes).scatter_add(0, label[sources], amount) / total
    return strongest, support.tolist(), total / max(all_influence, 1e-12)


def _labels(snapshot: Snapshot) -> Tensor:
    """The given label, else the hard pseudo-label of any round, else -1: long [N]."""
    if snapshot.belief is not None:
        return snapshot.given
    taken = snapshot.scored_nodes.where(snapshot.scored_nodes.taken)
    label = torch.full_like(snapshot.given, -1)
    label[taken.node] = taken.label
    label = torch.where(snapshot.adopted_round > 0, snapshot.target, label)
    return torch.where(snapshot.given >= 0, snapshot.given, label)


def _described(snapshot: Snapshot, nodes: "npt.NDArray[Any]", weights: "npt.NDArray[Any]") -> list[Neighbour]:
    """Neighbours with their known or predicted labels."""
    others = torch.from_numpy(nodes)
    target, held, predicted = snapshot.target[others], snapshot.held[others], snapshot.raw[others].argmax(-1)
    if snapshot.belief is not None:
        target = snapshot.given[others]  # of a node with a soft label, the prediction counts
    label = torch.where(target >= 0, target, torch.where(held >= 0, held, predicted))
    columns = (nodes.tolist(), weights.tolist(), origins(snapshot, others), label.tolist())
    return [Neighbour(*values) for values in zip(*columns, strict=True)]
