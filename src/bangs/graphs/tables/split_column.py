"""Read the split of the nodes into training, validation and test from a column of words."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bangs.graphs.tables.diagnostics import FileDiagnostics, counted
from bangs.graphs.tables.labels import Classes
from bangs.graphs.tables.table import Table, index_in, is_any_of

Parts = npt.NDArray[np.int8]

PARTS = {
    "": ("", "none", "unlabelled", "unlabeled", "unknown", "na", "nan", "null", "rest"),
    "train": ("train", "training", "tr"),
    "val": ("val", "valid", "validation", "dev"),
    "test": ("test", "testing", "te", "exam"),
}
_PART_OF = {word: number for number, words in enumerate(PARTS.values()) for word in words}  # 0 = none, 1 = train, …


@dataclass
class SplitColumn:
    """The split column: a call gives the part of every node: 0 = none, 1 = train, 2 = val, 3 = test."""

    name: str
    diagnostics: FileDiagnostics
    says_train: bool = False  # some row does
    trained: int = 0  # rows that say train
    outside: int = 0  # labelled rows without a part

    def add(self, table: Table) -> None:
        """Look for the word train in a piece of the table, before any piece is read by a call."""
        cells = pc.utf8_lower(table.columns[self.name])
        self.says_train = self.says_train or bool(is_any_of(cells, PARTS["train"]).any())

    def __call__(self, table: Table, labels: Classes) -> Parts:
        """The parts of a piece: int8 [n]. If no row says train, labelled rows without a part become train."""
        position = index_in(pc.utf8_lower(table.columns[self.name]), pa.array(list(_PART_OF), pa.string()))
        part = np.where(position < 0, -1, np.array(list(_PART_OF.values()), np.int8)[position]).astype(np.int8)
        remedy = "write train, val or test, or leave it blank; --split names another column"
        table.report("split-word", self.name, part < 0, "the split says {}".format, remedy)
        unlabelled = ((part == 1) | (part == 2)) & (labels < 0)
        message, remedy = "the split says {}, but there is no label", "label the node, or leave its split blank"
        table.report("split-without-label", self.name, unlabelled, message.format, remedy)
        outside = (part == 0) & (labels >= 0)
        self.outside += int(outside.sum())
        if not self.says_train:
            part = np.where(outside, np.int8(1), part)
        self.trained += int((part == 1).sum())
        return np.maximum(part, 0)

    def finish(self) -> None:
        """Note what became of labelled rows without a part; report a split without training nodes."""
        rows = counted(self.outside, "labelled row")
        if self.outside and self.says_train:
            self.diagnostics.note(f"{rows} without a split not used for learning")
        elif self.outside:
            self.diagnostics.note(f"no row says train; the {rows} without a split do")
        if not self.trained:
            remedy = "write train for some of them"
            self.diagnostics.add("no-training", "the split leaves no node for training", remedy)
