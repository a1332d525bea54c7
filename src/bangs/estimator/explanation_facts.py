"""The facts that explain the labels of nodes: influences, neighbours and pseudo-labels; nodes and classes by number."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

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
class Heaviest:
    """The model with the most weight of those whose weighted mean is the prediction."""

    name: str
    weight: float  # in (0, 1]
    models: int  # that have weight, itself included


def heaviest(leaderboard: Sequence[Mapping[str, Any]]) -> Heaviest | None:
    """The model with the most weight, from the rows of all models, the heaviest first; None where one has it all."""
    models = sum(line["weight"] > 0 for line in leaderboard)
    if models < 2:
        return None
    first = leaderboard[0]
    name = " · ".join(part for part in (first["model"], first["method"], first["features"]) if part)
    return Heaviest(name, float(first["weight"]), models)


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
    (label, first_round), never = _hard_labels(snapshot), len(snapshot.round_labels)
    learned = (snapshot.given if snapshot.belief is not None else snapshot.adopted_round) >= 0
    out: list[tuple[list[Influence], list[float], float]] = []
    rows = _influence_rows(snapshot, nodes, propagate, label >= 0)
    for node, (others, influence, all_influence) in zip(nodes, rows, strict=True):
        adopted = int(first_round[node])
        counts = first_round[others] < adopted if 0 < adopted < never else learned[others]
        counts &= influence > 0
        sources, amount = others[counts], influence[counts]
        total = float(amount.sum())
        if total <= 0:
            out.append(([], [0.0] * snapshot.classes, 0.0))
            continue
        best = amount.topk(min(top, len(amount)))
        strongest = [
            Influence(other, int(label[other]), int(first_round[other]), value / total)
            for other, value in zip(sources[best.indices].tolist(), best.values.tolist(), strict=True)
        ]
        support = torch.zeros(snapshot.classes).scatter_add(0, label[sources], amount) / total
        out.append((strongest, support.tolist(), total / max(all_influence, 1e-12)))
    return out


def neighbours(snapshot: Snapshot, nodes: Sequence[int], top: int = 5) -> list[tuple[list[Neighbour], int]]:
    """For every node its heaviest neighbours, and how many it has.

    A neighbour is another node with an edge to it. Several edges count as one with their total weight; edges of weight
    zero do not count.
    """
    counts, sources, weights = (tensor.numpy() for tensor in snapshot.links.rows(torch.as_tensor(list(nodes))))
    ends = counts.cumsum()
    target = snapshot.target if snapshot.belief is None else snapshot.given  # not soft labels
    out = []
    for node, begin, end in zip(nodes, ends - counts, ends, strict=True):
        others, inverse = np.unique(sources[begin:end], return_inverse=True)
        total = np.bincount(inverse, weights[begin:end], len(others))
        linked = (total > 0) & (others != node)
        others, total = others[linked], total[linked]
        heaviest = np.argsort(-total, kind="stable")[:top]
        near, weight = torch.from_numpy(others[heaviest]), total[heaviest].tolist()
        label = torch.where(snapshot.held[near] >= 0, snapshot.held[near], snapshot.raw[near].argmax(-1))
        label = torch.where(target[near] >= 0, target[near], label)
        columns = (near.tolist(), weight, origins(snapshot, near), label.tolist())
        out.append(([Neighbour(*values) for values in zip(*columns, strict=True)], len(others)))
    return out


def adoption(snapshot: Snapshot, node: int) -> PseudoLabel | None:
    """How the node was adopted, the last time if it was more than once; None if it never was."""
    log = snapshot.scored_nodes
    rows = (log.taken & (log.node == node)).nonzero().flatten().tolist()
    if not rows:
        return None
    names = ("round", "label", "raw_confidence", "confidence", "score", "stderr", "place", "among")
    line = {name: getattr(log, name)[rows[-1]].item() for name in names}
    rank, stderr = line.pop("place"), line.pop("stderr")
    used = int(snapshot.adopted_round[node]) == line["round"]
    return PseudoLabel(**line, rank=rank, stderr=None if math.isnan(stderr) else stderr, used=used)


def soft_label(snapshot: Snapshot, node: int) -> SoftLabel | None:
    """The soft label from which the chosen model learned; None where the node has none."""
    round = int(snapshot.adopted_round[node])
    if snapshot.belief is None or round < 1:
        return None
    return SoftLabel(round, snapshot.belief[node].tolist(), float(relative_weights(snapshot)[node]))


def relative_weights(snapshot: Snapshot) -> Tensor:
    """The weight of every label in the loss of the chosen model, relative to a given label it learned: float [N]."""
    if snapshot.weight is None:
        return (snapshot.target >= 0).float()
    learned = (snapshot.given >= 0) & (snapshot.weight > 0)  # given labels held out from this fold have weight 0
    return snapshot.weight * (learned.sum() / snapshot.weight[learned].sum().clamp_min(1e-12))


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


def _hard_labels(snapshot: Snapshot) -> tuple[Tensor, Tensor]:
    """The given label, else the hard pseudo-label of any round, else -1: long [N]; and its first round: long [N].

    Round 0 = given, past the last round = never.
    """
    given, never = snapshot.given >= 0, len(snapshot.round_labels)
    taken = snapshot.scored_nodes.where(snapshot.scored_nodes.taken)
    first_round = torch.where(given, 0, never).scatter_reduce(0, taken.node, taken.round, "amin")
    if snapshot.belief is not None:
        return snapshot.given, first_round
    label = torch.full_like(snapshot.given, -1)
    label[taken.node] = taken.label
    label = torch.where(snapshot.adopted_round > 0, snapshot.target, label)
    return torch.where(given, snapshot.given, label), first_round
