"""Sort any number of edges on disk, and write the CSR arrays of a store.

Every edge has the key target · N + source. A chunk of edges is sorted and cut into ranges of targets, and each piece
is appended to the file of its range. At the end each range is read, sorted, merged and written. The largest range
bounds the memory.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from bangs.graphs.store.writer import Writer
from bangs.utils.files import explain_write_errors

RANGES = 256  # of targets, each with a temporary file

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


class EdgeWriter:
    """Writes the edges of a store, given in any order: in both directions unless `directed`.

    Weights of a repeated edge add up. Of two opposite edges of an undirected graph the larger weight counts, since
    files often list each edge in both directions. If a directed graph has every edge in both directions, the edges are
    stored once.
    """

    def __init__(self, writer: Writer, nodes: int, *, directed: bool, weighted: bool):
        self.writer, self.nodes, self.directed, self.weighted = writer, nodes, directed, weighted
        self._merged = EdgeSorter(writer, "merged", nodes, weighted=True) if weighted and not directed else None
        self._into = EdgeSorter(writer, "in", nodes, weighted=weighted, merge="sum" if directed else "max")
        self._out = EdgeSorter(writer, "out", nodes, weighted=weighted) if directed else None

    def add(self, source: Ints, target: Ints, weight: Floats | None = None) -> None:
        """Add edges, at most a few million at once."""
        if self._merged is not None:
            self._merged.add(target, source, weight)
            return
        self._into.add(target, source, weight)
        (self._out or self._into).add(source, target, weight)

    def write(self) -> tuple[int, bool]:
        """Write the arrays; returns the number of edges, and whether the store needs edges by target and by source."""
        for target, source, weight in () if self._merged is None else self._merged.ranges():
            self._into.add(target, source, weight)
            self._into.add(source, target, weight)
        edges = self._into.write()
        if self._out is None:
            return edges, False
        self._out.write()
        return edges, not self.writer.drop_out_if_same()


class EdgeSorter:
    """Collects edges; `write` makes the CSR arrays `in.…` (by target) or `out.…` (by source) of a store.

    Weights of repeated edges add up (`merge="sum"`), or the largest counts (`merge="max"`).
    """

    def __init__(
        self,
        writer: Writer,
        side: str,
        nodes: int,
        *,
        weighted: bool = False,
        merge: Literal["sum", "max"] = "sum",
    ):
        self.writer, self.side, self.nodes, self.weighted, self.merge = writer, side, nodes, weighted, merge
        self.width = -(-nodes // min(RANGES, nodes))
        self._keys = [writer.scratch(f"{side}.{number}.keys") for number in range(-(-nodes // self.width))]
        self._values = [writer.scratch(f"{side}.{number}.values") for number in range(len(self._keys))]

    def add(self, target: npt.NDArray[Any], source: npt.NDArray[Any], weight: Floats | None = None) -> None:
        """Add edges, at most a few million at once."""
        keys, weight = _sorted(target.astype(np.int64) * self.nodes + source, weight)
        cuts = np.searchsorted(keys, np.arange(len(self._keys) + 1) * (self.width * self.nodes))
        for number, (start, end) in enumerate(pairwise(cuts)):
            if end > start:
                _append(self._keys[number], keys[start:end])
                if weight is not None:
                    _append(self._values[number], weight[start:end])

    def ranges(self) -> Iterator[tuple[Ints, Ints, Floats | None]]:
        """Targets, sources and weights of all edges without repeats, one range of targets at a time."""
        merge = np.add if self.merge == "sum" else np.maximum
        for number, file in enumerate(self._keys):
            weight = _read_and_remove(self._values[number], np.float32) if self.weighted else None
            keys, weight = _sorted(_read_and_remove(file, np.int64), weight)
            is_new = np.ones(len(keys), bool)
            np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
            starts = np.flatnonzero(is_new)
            if weight is not None and len(starts):
                weight = merge.reduceat(weight, starts)
            target, source = np.divmod(keys[starts], self.nodes)
            yield target, source, weight

    def write(self) -> int:
        """Write `pointers` and `nodes`, with weights also `weights` and `sums`; returns the number of edges."""
        self.writer.append(f"{self.side}.pointers", "int64", np.zeros(1, np.int64))
        edges = 0
        for number, (target, source, weight) in enumerate(self.ranges()):
            first = number * self.width
            rows = min(self.width, self.nodes - first)
            counts = np.bincount(target - first, minlength=rows)
            self.writer.append(f"{self.side}.pointers", "int64", edges + np.cumsum(counts))
            self.writer.append(f"{self.side}.nodes", "int32", source)
            if weight is not None:
                self.writer.append(f"{self.side}.weights", "float32", weight)
                sums = np.bincount(target - first, weight, minlength=rows)
                self.writer.append(f"{self.side}.sums", "float32", sums)
            edges += len(target)
        return edges


def _sorted(keys: Ints, weight: Floats | None) -> tuple[Ints, Floats | None]:
    if weight is None:
        keys.sort()
        return keys, None
    order = np.argsort(keys, kind="stable")
    return keys[order], weight[order]


def _append(path: Path, numbers: npt.NDArray[Any]) -> None:
    with explain_write_errors(path), path.open("ab") as file:
        file.write(np.ascontiguousarray(numbers).data.cast("B"))


def _read_and_remove(path: Path, dtype: Any) -> npt.NDArray[Any]:
    """The numbers in a temporary file, which is removed."""
    if not path.exists():
        return np.empty(0, dtype)
    numbers = np.fromfile(path, dtype=dtype)
    path.unlink()
    return numbers
