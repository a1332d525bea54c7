"""Labels: what a person knows of some nodes, as class numbers and masks."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.tables.diagnostics import Diagnostics, counted, listed, quoted
from bangs.graphs.tables.numbers import is_missing, numbers
from bangs.graphs.tables.table import among, equals, places_in

Classes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

PARTS = {
    "train": ("train", "training", "tr"),
    "val": ("val", "valid", "validation", "dev"),
    "test": ("test", "testing", "te", "exam"),
    "": ("", "none", "unlabelled", "unlabeled", "unknown", "na", "nan", "null", "rest"),
}


def read_labels(
    words: Any,
    rows: Classes,
    file: str,
    classes: Sequence[str] | None,
    unknown: Sequence[str] | None,
    diagnostics: Diagnostics,
    notes: list[str],
) -> tuple[Classes, list[str]]:
    """The class number of every node, −1 where it is unknown: long [N]; and the classes' names.

    Names are kept as they were written, sorted as numbers if all of them are. `unknown` lists the words that mean
    "no label"; without it these are blanks, the usual words for them, and −1 among integers.
    """
    blank = among(words, ["", *unknown]) if unknown is not None else _unknown(words)
    _tell_unknown(words, blank, file, notes)
    present = pc.unique(words.filter(pa.array(~blank)))
    names = _sorted(present.to_pylist()) if classes is None else list(classes)
    y = places_in(words, pa.array(names, pa.string()))
    y = np.where(blank, -1, y)
    stray = np.flatnonzero((y < 0) & ~blank)
    if len(stray):
        diagnostics.add_rows(
            "unknown-class",
            file,
            rows[stray],
            lambda i: f"label {quoted(words[int(stray[i])].as_py())} is none of the model's classes {listed(names)}",
            "correct it or leave it blank; a new class needs a new fit",
        )
    if classes is None:
        if not len(names):
            diagnostics.add(
                "no-labels",
                file,
                "no node has a label",
                "label some nodes of every class, say five each; blanks are for the unknown",
            )
        elif len(names) == 1:
            diagnostics.add(
                "one-class",
                file,
                f"every label is {quoted(names[0])}",
                "a classifier needs nodes of at least two classes",
            )
        else:
            notes.append(f"{file}: {counted(int((y >= 0).sum()), 'label')} of {len(y):,} nodes in {listed(names)}")
            notes += [
                f"{file}: {listed(own)} are taken as different classes; write them alike if they are one"
                for own in _alike(names)
            ]
    return y, names


def check_unknown(words: Any, unknown: Sequence[str] | None, file: str, diagnostics: Diagnostics) -> None:
    """Complains of words that are said to mean "no label" and that no node has; such a slip would leave a class."""
    for word in unknown or ():
        if not equals(words, word).any():
            present = pc.unique(words.filter(pa.array(~equals(words, "")))).to_pylist()
            near = get_close_matches(word, present, n=1, cutoff=0.5)
            diagnostics.add(
                "no-such-label",
                file,
                f"--unknown names label {quoted(word)}, which no node has; the labels are {listed(present)}",
                f"did you mean {quoted(near[0])}?" if near else "name one of these, or leave the option out",
            )


def read_split(
    words: Any, rows: Classes, file: str, y: Classes, diagnostics: Diagnostics, notes: list[str]
) -> list[Mask]:
    """The masks train, val and test [N] that a column of words describes."""
    lower = pc.utf8_lower(words)
    train, val, test, neither = (among(lower, PARTS[part]) for part in ("train", "val", "test", ""))
    odd = np.flatnonzero(~(train | val | test | neither))
    if len(odd):
        diagnostics.add_rows(
            "split-word",
            file,
            rows[odd],
            lambda i: f"the split says {quoted(words[int(odd[i])].as_py())}",
            "write train, val or test, or leave it blank; --split names another column",
        )
    left = neither & (y >= 0)
    if not train.any() and left.any():
        train = left
        notes.append(f"{file}: no row says train; the {counted(int(left.sum()), 'labelled row')} without a split do")
    elif left.any():
        notes.append(f"{file}: {counted(int(left.sum()), 'labelled row')} without a split not used for learning")
    unlabelled = np.flatnonzero((train | val) & (y < 0))
    if len(unlabelled):
        diagnostics.add_rows(
            "split-without-label",
            file,
            rows[unlabelled],
            lambda i: f"the split says {quoted(words[int(unlabelled[i])].as_py())}, but there is no label",
            "label the node, or leave its split blank",
        )
    if not train.any():
        diagnostics.add("no-training", file, "the split leaves no node for training", "write train for some of them")
    return [train, val, test]


def check_enough(
    y: Classes, train: Mask, names: Sequence[str], rows: Classes | None, file: str, diagnostics: Diagnostics
) -> None:
    """Complains of classes seen once, where part of the training nodes must be held for validation."""
    nodes = np.flatnonzero(train & (y >= 0))
    counts = np.bincount(y[nodes], minlength=len(names))
    once = nodes[counts[y[nodes]] == 1]
    told: list[tuple[int | None, str]] = [
        (
            None if rows is None else int(rows[node]),
            f"label {quoted(names[y[node]])} is seen once; a node cannot be both learned from and validated on",
        )
        for node in once
    ]
    if told:
        tables = "a column 'split'"
        where = tables if rows is not None else f"masks train_mask and val_mask, of tables in {tables}"
        remedy = (
            f"label a second node so, give it another label, leave it blank, or name the validation nodes in {where}"
        )
        diagnostics.add_many("label-once", file, told, remedy)


def _unknown(words: Any) -> Mask:
    """Where a label is blank, a usual word for it, or −1 among numbers, which is scikit-learn's: bool [N]."""
    found, blank = numbers(words), is_missing(words)
    return blank if found.wrong.any() else blank | (found.values == -1)


def _tell_unknown(words: Any, blank: Mask, file: str, notes: list[str]) -> None:
    spelled = blank & ~equals(words, "")
    if spelled.any():
        names = pc.unique(words.filter(pa.array(spelled))).to_pylist()
        mean = f"label {listed(names)} means" if len(names) == 1 else f"labels {listed(names)} mean"
        notes.append(f"{file}: {mean} unknown in {counted(int(spelled.sum()), 'row')}")


def _alike(names: Sequence[str]) -> list[list[str]]:
    """Classes that may be one: their names differ in capitals or spaces only, or are the same number."""
    groups: dict[str | float, list[str]] = {}
    found = numbers(pa.array(names, pa.string()))
    for name, wrong, value in zip(names, found.wrong | found.missing, found.values.tolist(), strict=True):
        groups.setdefault("".join(name.casefold().split()) if wrong else value, []).append(name)
    return [own for own in groups.values() if len(own) > 1]


def _sorted(names: Sequence[str]) -> list[str]:
    found = numbers(pa.array(names, pa.string()))
    if len(names) and not (found.wrong | found.missing).any():
        return [name for _, name in sorted(zip(found.values.tolist(), names, strict=True))]
    return sorted(names)
