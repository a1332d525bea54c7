"""Turn a column of labels into class numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import isnan

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bangs.graphs.tables.column_statistics import MAX_DISTINCT, ValueCounts
from bangs.graphs.tables.diagnostics import FileDiagnostics, counted, listed, quoted
from bangs.graphs.tables.numbers import is_missing, numbers
from bangs.graphs.tables.read_options import ReadOptions
from bangs.graphs.tables.table import Mask, Table, index_in

Classes = npt.NDArray[np.int64]

MANY_CLASSES = 50  # with more classes, a few labels in each are unusual
# spellings of "no label", without spaces and signs
PLACEHOLDERS = {
    *("unknown", "unlabeled", "unlabelled", "notlabeled", "notlabelled", "nolabel", "unassigned", "undefined"),
    *("tbd", "tba", "tobedetermined", "todo", "missing", "na", "notavailable", "pending"),
}


@dataclass
class LabelColumn:
    """The label column: `add` counts the labels, `decide` finds the classes, a call gives class numbers.

    Class names are those of the file, sorted as numbers if all are numbers. "No label" is a blank, a placeholder such
    as NA, or −1 among numbers, unless the options name other labels for it.
    """

    name: str
    diagnostics: FileDiagnostics
    options: ReadOptions
    counts: ValueCounts = field(default_factory=ValueCounts)
    names: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)  # label -> class, −1 = no label, −2 = not a class

    def add(self, table: Table) -> None:
        """Add a piece of the table."""
        self.counts.add(table.columns[self.name])

    def decide(self, *, learning: bool) -> None:
        """Find the classes; for `learning`, fewer than two are reported."""
        if self.counts.too_many:
            self.diagnostics.add(
                "too-many-classes",
                f"the labels are more than {MAX_DISTINCT:,} different words",
                "name another column with --label COLUMN",
            )
            return
        labels, fitted = list(self.counts.counter), self.options.encoding
        self._check_given(labels)
        unknown = self._unknown(labels)
        present = [label for label in labels if label not in unknown]
        unlabelled = [label for label in labels if label and label in unknown]
        if fitted is None:
            self._report_placeholders(present, unlabelled)
            present = self._merged(present)
        self.names = _sorted(present) if fitted is None else list(fitted.classes)
        fold = str.casefold if self.options.labels_ignore_case else str
        classes = {fold(name): number for number, name in enumerate(self.names)}
        self._numbers = {label: -1 if label in unknown else classes.get(fold(label), -2) for label in labels}
        if unlabelled:
            mean = "label {} means" if len(unlabelled) == 1 else "labels {} mean"
            rows = counted(sum(self.counts.counter[label] for label in unlabelled), "row")
            self.diagnostics.note(f"{mean.format(listed(unlabelled))} unknown in {rows}")
        labelled = sum(count for label, count in self.counts.counter.items() if self._numbers[label] >= 0)
        if fitted is None and learning and len(self.names) < 2:
            self._report_too_few()
        elif fitted is None:
            names = f" in {listed(self.names)}" if self.names else ""
            self.diagnostics.note(f"{counted(labelled, 'label')} of {self.counts.counter.total():,} nodes{names}")
            for group in _alike(self.names):
                sentence = f"{listed(group)} are taken as different classes; write them alike if they are one"
                self.diagnostics.note(sentence)
            for rare, other in _misspelled(self.names, self.counts.counter):
                self.diagnostics.note(
                    f"class {rare!r} has one label and is spelled like {other!r}; correct the table if it is a mistake"
                )
            if warning := many_classes(len(self.names), labelled):
                self.diagnostics.note(warning)

    def __call__(self, table: Table) -> Classes:
        """The class numbers of a piece, −1 = no label: long [n]; labels unknown to the model are reported."""
        if not self._numbers:
            return np.full(len(table), -1)
        index = index_in(table.columns[self.name], pa.array(list(self._numbers), pa.string()))
        number = np.array(list(self._numbers.values()), np.int64)[index]
        table.report(
            "unknown-class",
            self.name,
            number == -2,
            lambda label: f"unknown label {label}; the model knows {listed(self.names)}",
            "correct it or leave it blank; a new class needs a new fit",
        )
        return np.maximum(number, -1)

    def _unknown(self, labels: Sequence[str]) -> set[str]:
        """The labels that mean "no label"."""
        if self.options.unknown is not None:
            return {"", *self.options.unknown}
        column = pa.array(labels, pa.string())
        as_numbers, missing = numbers(column), is_missing(column)
        if not as_numbers.wrong.any():
            missing = missing | (as_numbers.values == -1)
        return {labels[int(position)] for position in np.flatnonzero(missing)} - set(self.options.keep)

    def _check_given(self, labels: Sequence[str]) -> None:
        """Report labels of --unknown and --keep that no node has: a typing error would change the classes."""
        present = [label for label in labels if label]
        for option in ("unknown", "keep"):
            for label in getattr(self.options, option) or ():
                if label not in present and self.options.encoding is None:
                    match = get_close_matches(label, present, n=1, cutoff=0.5)
                    self.diagnostics.add(
                        "no-such-label",
                        f"--{option} names label {quoted(label)}, which no node has; the labels are {listed(present)}",
                        f"did you mean {quoted(match[0])}?" if match else "name one of these, or leave the option out",
                    )

    def _report_placeholders(self, present: Sequence[str], unlabelled: Sequence[str]) -> None:
        """Report classes whose names look like "no label", unless --keep names them."""
        suspects = [label for label in placeholders(present) if label not in self.options.keep]
        if suspects:
            rows = counted(sum(self.counts.counter[label] for label in suspects), "row")
            text = "label {} in {} looks like a word" if len(suspects) == 1 else "labels {} in {} look like words"
            unknown = " ".join(f"--unknown {label!r}" for label in [*suspects, *unlabelled])
            keep = " ".join(f"--keep {label!r}" for label in suspects)
            self.diagnostics.add(
                "placeholder-label",
                f'{text.format(listed(suspects), rows)} for "no label"',
                f"if this means no label, add {unknown}; if this is a class, add {keep}",
            )

    def _merged(self, present: Sequence[str]) -> list[str]:
        """The classes, one for each spelling; spellings that differ in case are reported unless the options decide."""
        ranked = sorted(present, key=lambda label: (-self.counts.counter[label], label))
        variants = case_variants(ranked)
        if self.options.labels_ignore_case:
            for group in variants:
                self.diagnostics.note(f"labels {listed(group)} are one class, {quoted(group[0])}")
            merged = {label for group in variants for label in group[1:]}
            return [label for label in ranked if label not in merged]
        undecided = [group for group in variants if not set(group) <= set(self.options.keep)]
        self.diagnostics.add_rows(
            "label-case",
            [None] * len(undecided),
            lambda i: f"labels {listed(undecided[i])} differ in capital letters only",
            "if they are one class, add --labels-ignore-case; if not, add "
            + " ".join(f"--keep {label!r}" for group in undecided for label in group),
        )
        return list(present)

    def _report_too_few(self) -> None:
        if self.names:
            remedy = "a classifier needs nodes of at least two classes"
            self.diagnostics.add("one-class", f"every label is {quoted(self.names[0])}", remedy)
        else:
            remedy = "label some nodes of every class, say five each; leave the others blank"
            self.diagnostics.add("no-labels", "no node has a label", remedy)


def many_classes(classes: int, labelled: int) -> str | None:
    """A warning if there are so many classes with few labels that they may be ids or measurements; else None."""
    if classes <= MANY_CLASSES or labelled >= 5 * classes:
        return None
    return (
        f"there are {classes:,} classes for {labelled:,} labels, which is unusual: time and memory grow with the "
        "classes. Are these labels ids or measurements? Name another column, or group them"
    )


def placeholders(labels: Sequence[str]) -> list[str]:
    """The labels that look like "no label"."""
    return [label for label in labels if "".join(filter(str.isalnum, label.casefold())) in PLACEHOLDERS]


def case_variants(labels: Sequence[str]) -> list[list[str]]:
    """Groups of labels that differ in capital letters only, each in the given order."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        groups.setdefault(label.casefold(), []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def check_two_labels(
    y: Classes, train: Mask, names: Sequence[str], rows: Classes | None, diagnostics: FileDiagnostics
) -> None:
    """Report classes with one label, if some training nodes of every class are needed for validation."""
    nodes = np.flatnonzero(train & (y >= 0))
    counts = np.bincount(y[nodes], minlength=len(names))
    single = nodes[counts[y[nodes]] == 1]
    masks = "" if rows is not None else "masks train_mask and val_mask, of tables in "
    remedy = (
        "give this label to a second node, give the node another label, leave it blank, or name the validation nodes "
        f"in {masks}a column 'split'"
    )
    diagnostics.add_rows(
        "label-once",
        [None] * len(single) if rows is None else rows[single],
        lambda i: (
            f"label {quoted(names[y[single[i]]])} is seen once; a node cannot be both learned from and validated on"
        ),
        remedy,
    )


def _alike(names: Sequence[str]) -> list[list[str]]:
    """Groups of classes that may be the same: names that differ in spaces only, or are the same number."""
    groups: dict[str | float, list[str]] = {}
    values = numbers(pa.array(names, pa.string())).values.tolist()
    for name, value in zip(names, values, strict=True):
        groups.setdefault("".join(name.split()) if isnan(value) else value, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _misspelled(names: Sequence[str], counts: Mapping[str, int]) -> list[tuple[str, str]]:
    """Classes with one label whose name is nearly that of a class with more; names with digits are left out."""
    words = [name for name in names if len(name) >= 5 and not any(map(str.isdigit, name))]
    rare = [name for name in words if counts[name] == 1]
    common = [name for name in words if counts[name] > 1]
    near = {name: get_close_matches(name, common, n=1, cutoff=0.85) for name in rare[:100]}
    return [(name, others[0]) for name, others in near.items() if others]


def _sorted(names: Sequence[str]) -> list[str]:
    values = numbers(pa.array(names, pa.string())).values
    if np.isnan(values).any():
        return sorted(names)
    return [name for _, name in sorted(zip(values.tolist(), names, strict=True))]
