"""Labels: the class number of every node, from a column of words."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bangs.graphs.tables.column_kinds import MOST_WORDS, ValueCounts
from bangs.graphs.tables.diagnostics import FileDiagnostics, counted, listed, quoted
from bangs.graphs.tables.numbers import is_missing, numbers
from bangs.graphs.tables.read_options import ReadOptions
from bangs.graphs.tables.table import Table, places_in

Classes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MANY = 50  # classes, from which on few labels in each are unusual
# words for "no label", without spaces and signs
PLACEHOLDERS = {
    *("unknown", "unlabeled", "unlabelled", "notlabeled", "notlabelled", "nolabel", "unassigned", "undefined"),
    *("tbd", "tba", "tobedetermined", "todo", "missing", "na", "notavailable", "pending"),
}


@dataclass
class LabelColumn:
    """The labels: `add` counts the words, `decide` makes classes of them, a call gives class numbers.

    Names are kept as they were written, sorted as numbers if all of them are. Blanks, words such as NA, and −1 among
    numbers mean "no label", or the words that the options name.
    """

    name: str
    diagnostics: FileDiagnostics
    options: ReadOptions
    counts: ValueCounts = field(default_factory=ValueCounts)
    names: list[str] = field(default_factory=list)
    _number: Classes = field(default_factory=lambda: np.empty(0, np.int64))  # of every word, −1 unknown, −2 no class

    def add(self, table: Table) -> None:
        """One more piece of the table."""
        self.counts.add(table.columns[self.name])

    def decide(self, *, learning: bool) -> None:
        """Find the classes; where a model is to learn from them, too few are reported."""
        if self.counts.too_many:
            self.diagnostics.add(
                "too-many-classes",
                f"the labels are more than {MOST_WORDS:,} different words",
                "name another column with --label COLUMN",
            )
            return
        words, count = list(self.counts.words), np.array(list(self.counts.words.values()), np.int64)
        fitted = self.options.encoding
        self._check_given(words)
        blank = self._is_unknown(words)
        present = [word for word, none in zip(words, blank, strict=True) if not none]
        if fitted is None:
            self._report_placeholders(present, [word for word in words if word and word not in present])
            present = self._merged(present)
        self.names = _sorted(present) if fitted is None else list(fitted.classes)
        number = {self._spelling(name): place for place, name in enumerate(self.names)}
        self._number = np.array(
            [-1 if none else number.get(self._spelling(word), -2) for word, none in zip(words, blank, strict=True)],
            np.int64,
        )
        self._note_unknown(words, count, blank)
        labelled, nodes = int(count[self._number >= 0].sum()), int(count.sum())
        if fitted is None and learning and len(self.names) < 2:
            self._report_too_few()
        elif fitted is None:
            among = f" in {listed(self.names)}" if self.names else ""
            self.diagnostics.note(f"{counted(labelled, 'label')} of {nodes:,} nodes{among}")
            for own in _alike(self.names):
                self.diagnostics.note(f"{listed(own)} are taken as different classes; write them alike if they are one")
            if many := many_classes(len(self.names), labelled):
                self.diagnostics.note(many)

    def __call__(self, table: Table) -> Classes:
        """The class numbers of a piece, −1 = unknown: long [n]; labels that the model does not know are reported."""
        if not len(self._number):
            return np.full(len(table), -1)
        number = self._number[places_in(table.columns[self.name], pa.array(list(self.counts.words), pa.string()))]
        table.report(
            self.diagnostics,
            "unknown-class",
            self.name,
            number == -2,
            lambda label: f"unknown label {label}; the model knows {listed(self.names)}",
            "correct it or leave it blank; a new class needs a new fit",
        )
        return np.maximum(number, -1)

    def _spelling(self, word: str) -> str:
        return word.casefold() if self.options.labels_ignore_case else word

    def _is_unknown(self, words: Sequence[str]) -> list[bool]:
        if self.options.unknown is not None:
            return [word == "" or word in self.options.unknown for word in words]
        column = pa.array(words, pa.string())
        found, blank = numbers(column), is_missing(column)
        none = blank if found.wrong.any() else blank | (found.values == -1)
        return [bool(own) and word not in self.options.keep for word, own in zip(words, none, strict=True)]

    def _check_given(self, words: Sequence[str]) -> None:
        """Report words of --unknown and --keep that no node has: a slip would leave a class, or lose one."""
        present = [word for word in words if word]
        for option in ("unknown", "keep"):
            for word in getattr(self.options, option) or ():
                if word not in present and self.options.encoding is None:
                    near = get_close_matches(word, present, n=1, cutoff=0.5)
                    self.diagnostics.add(
                        "no-such-label",
                        f"--{option} names label {quoted(word)}, which no node has; the labels are {listed(present)}",
                        f"did you mean {quoted(near[0])}?" if near else "name one of these, or leave the option out",
                    )

    def _report_placeholders(self, present: Sequence[str], none: Sequence[str]) -> None:
        """Report classes whose names are words for "no label", unless --keep names them."""
        found = [word for word in placeholders(present) if word not in self.options.keep]
        if found:
            rows = counted(sum(self.counts.words[word] for word in found), "row")
            unknown = " ".join(f"--unknown {word!r}" for word in [*found, *none])
            keep = " ".join(f"--keep {word!r}" for word in found)
            self.diagnostics.add(
                "placeholder-label",
                f'label {listed(found)} in {rows} looks like a word for "no label"',
                f"if it means that, add {unknown}; if it is a class, add {keep}",
            )

    def _merged(self, present: Sequence[str]) -> list[str]:
        """The classes without other spellings of the same class; these are reported unless options decide."""
        ranked = sorted(present, key=lambda word: (-self.counts.words[word], word))
        several = case_variants(ranked)
        if self.options.labels_ignore_case:
            for own in several:
                self.diagnostics.note(f"labels {listed(own)} are one class, {quoted(own[0])}")
            others = {word for own in several for word in own[1:]}
            return [word for word in ranked if word not in others]
        undecided = [own for own in several if not set(own) <= set(self.options.keep)]
        if undecided:
            self.diagnostics.add_many(
                "label-case",
                [(None, f"labels {listed(own)} differ in capital letters only") for own in undecided],
                "if they are one class, add --labels-ignore-case; if not, add "
                + " ".join(f"--keep {word!r}" for own in undecided for word in own),
            )
        return list(present)

    def _note_unknown(self, words: Sequence[str], count: Classes, blank: Sequence[bool]) -> None:
        spelled = [place for place, word in enumerate(words) if blank[place] and word]
        if spelled:
            mean = "label {} means" if len(spelled) == 1 else "labels {} mean"
            names = listed([words[place] for place in spelled])
            self.diagnostics.note(f"{mean.format(names)} unknown in {counted(int(count[spelled].sum()), 'row')}")

    def _report_too_few(self) -> None:
        if self.names:
            what, remedy = f"every label is {quoted(self.names[0])}", "a classifier needs nodes of at least two classes"
            self.diagnostics.add("one-class", what, remedy)
        else:
            remedy = "label some nodes of every class, say five each; leave the others blank"
            self.diagnostics.add("no-labels", "no node has a label", remedy)


def many_classes(classes: int, labelled: int) -> str | None:
    """A warning where so many classes have so few labels that they may be names or numbers; else None."""
    if classes <= MANY or labelled >= 5 * classes:
        return None
    return (
        f"there are {classes:,} classes for {labelled:,} labels, which is unusual: time and memory grow with the "
        "classes. Are these labels ids or measurements? Name another column, or group them"
    )


def placeholders(words: Sequence[str]) -> list[str]:
    """Those of the words that look like words for "no label"."""
    return [word for word in words if _letters(word) in PLACEHOLDERS]


def case_variants(words: Sequence[str]) -> list[list[str]]:
    """Groups of words that differ in capital letters only, each in the order of the words."""
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault(word.casefold(), []).append(word)
    return [own for own in groups.values() if len(own) > 1]


def check_enough(
    y: Classes, train: Mask, names: Sequence[str], rows: Classes | None, diagnostics: FileDiagnostics
) -> None:
    """Report classes with one label, where part of the training nodes must be held for validation."""
    nodes = np.flatnonzero(train & (y >= 0))
    counts = np.bincount(y[nodes], minlength=len(names))
    once = nodes[counts[y[nodes]] == 1]
    if not len(once):
        return
    tables = "a column 'split'"
    where = tables if rows is not None else f"masks train_mask and val_mask, of tables in {tables}"
    remedy = (
        f"give this label to a second node, give the node another label, leave it blank, or name the validation nodes "
        f"in {where}"
    )
    diagnostics.add_many(
        "label-once",
        [
            (
                None if rows is None else int(rows[node]),
                f"label {quoted(names[y[node]])} is seen once; a node cannot be both learned from and validated on",
            )
            for node in once
        ],
        remedy,
    )


def _letters(word: str) -> str:
    return "".join(letter for letter in word.casefold() if letter.isalnum())


def _alike(names: Sequence[str]) -> list[list[str]]:
    """Classes that may be one: their names differ in spaces only, or are the same number."""
    groups: dict[str | float, list[str]] = {}
    found = numbers(pa.array(names, pa.string()))
    for name, wrong, value in zip(names, found.wrong | found.missing, found.values.tolist(), strict=True):
        groups.setdefault("".join(name.split()) if wrong else value, []).append(name)
    return [own for own in groups.values() if len(own) > 1]


def _sorted(names: Sequence[str]) -> list[str]:
    found = numbers(pa.array(names, pa.string()))
    if len(names) and not (found.wrong | found.missing).any():
        return [name for _, name in sorted(zip(found.values.tolist(), names, strict=True))]
    return sorted(names)
