"""CSV tables of predictions and pseudo-labels, safe for spreadsheets."""

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from torch import Tensor

from bangs.estimator.explanation_facts import influences, origins, relative_weights
from bangs.runs.snapshot import Snapshot
from bangs.utils.csv_safe import CHUNK_ROWS, csv_pieces, to_csv

NO_INFLUENCES = "no labelled node within reach: its own features decide"


def predictions(snapshot: Snapshot, names: Sequence[str], classes: Sequence[str]) -> Iterator[str]:
    """One row per node, in pieces: known label, predicted label and confidence, and the source of its label.

    `source` is given, held (for validation), adopted, soft or predicted: adopted has a pseudo-label of `round`, soft
    the soft label that the chosen model learned from in `round`.
    """
    header = ["id", "known", "predicted", "confidence", "source", "round", *(f"p_{name}" for name in classes)]

    def rows() -> Iterator[list[Any]]:
        node_names = iter(names)  # in order: names of a store are read in blocks
        for start in range(0, snapshot.nodes, CHUNK_ROWS):
            block = slice(start, start + CHUNK_ROWS)
            known = snapshot.given[block].maximum(snapshot.held[block]).tolist()
            rounds, probs = snapshot.adopted_round[block].tolist(), snapshot.calibrated[block].softmax(-1).tolist()
            columns = zip(islice(node_names, CHUNK_ROWS), known, origins(snapshot, block), rounds, probs, strict=True)
            for name, label, source, round, row in columns:
                known_name, adopted_round = classes[label] if label >= 0 else "", round if round > 0 else ""
                yield [name, known_name, *_best(row, classes), source, adopted_round, *map(_number, row)]

    return csv_pieces(header, rows())


def pseudo_labels(
    snapshot: Snapshot, names: Sequence[str], classes: Sequence[str], top: int = 3
) -> str | Iterator[str]:
    """One row per adopted node, ordered by round and value; for soft labels see `_soft_labels`.

    `used` says whether the chosen model learned from it; `influences` names the labelled nodes with the most influence,
    each with its label and its share of all labelled influence, or says that none is within reach.
    """
    if snapshot.belief is not None:
        return _soft_labels(snapshot, names, classes, snapshot.belief)
    header = ["id", "round", "label", "confidence_before", "confidence", "value", "stderr", "used", "influences"]
    taken = snapshot.scored_nodes.where(snapshot.scored_nodes.taken)
    columns = [
        [names[node] for node in taken.node.tolist()],
        taken.round.tolist(),
        [classes[label] for label in taken.label.tolist()],
        *([_number(value) for value in column.tolist()] for column in (taken.raw_confidence, taken.confidence)),
        *([_number(value, 8) for value in column.tolist()] for column in (taken.score, taken.stderr)),
        ["yes" if used else "no" for used in (snapshot.adopted_round[taken.node] == taken.round).tolist()],
        [
            "; ".join(f"{names[one.node]} ({classes[one.label]}, {one.share:.0%})" for one in strongest)
            or NO_INFLUENCES
            for strongest, _, _ in influences(snapshot, taken.node.tolist(), top)
        ],
    ]
    return to_csv(header, zip(*columns, strict=True))


def _soft_labels(snapshot: Snapshot, names: Sequence[str], classes: Sequence[str], belief: Tensor) -> Iterator[str]:
    """One row per soft label of the chosen round, in pieces: its most likely class, its weight, its probabilities.

    `weight` is that in the loss, as a multiple of the weight of a given label; `q_X` the probability of class X.
    """
    header = ["id", "round", "label", "probability", "weight", *(f"q_{name}" for name in classes)]
    weight, nodes = relative_weights(snapshot), (snapshot.adopted_round > 0).nonzero().flatten()
    rounds = snapshot.adopted_round
    return csv_pieces(
        header,
        (
            [names[node], round, *_best(node_probs, classes), _number(node_weight), *map(_number, node_probs)]
            for block in nodes.split(CHUNK_ROWS)
            for node, round, node_weight, node_probs in zip(
                block.tolist(), rounds[block].tolist(), weight[block].tolist(), belief[block].tolist(), strict=True
            )
        ),
    )


def new_predictions(
    names: Sequence[str], known: Sequence[str], probs: Any, classes: Sequence[str], new: Sequence[bool]
) -> Iterator[str]:
    """One row per node of another graph, in pieces; `new` says that the fitted graph had no node of this name."""
    header = ["id", "known", "predicted", "confidence", "new", *(f"p_{name}" for name in classes)]
    # row by row, as a list of all Python floats would take eight times the memory
    columns = zip(names, known, (node_probs.tolist() for node_probs in probs), new, strict=True)
    return csv_pieces(
        header,
        (
            [name, label, *_best(node_probs, classes), "yes" if is_new else "no", *map(_number, node_probs)]
            for name, label, node_probs, is_new in columns
        ),
    )


def _best(row: list[float], classes: Sequence[str]) -> tuple[str, str]:
    """The most likely class of a row of probabilities, and its probability."""
    return classes[row.index(max(row))], _number(max(row))


def _number(value: float, digits: int = 6) -> str:
    """A number for a cell; NaN is blank."""
    return "" if math.isnan(value) else f"{value:.{digits}g}"
