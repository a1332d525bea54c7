"""Sorting: edges in any order and number, as rows of links, with memory bounded by a setting.

Every edge is the number target · N + source. A chunk of them is sorted and cut along ranges of targets, and each piece
is appended to the file of its range; at the end one range after the other is read, sorted, freed of repeats and
written. All files are written and read from front to back.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from bangs.graphs.store.writer import Writer
from bangs.utils.files import explained

RANGES = 256

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


class EdgeChunk:
    """The links of a store from edges in any order: both ways unless `directed`.

    Weights of a repeated edge add up; of two opposite edges of an undirected graph the larger counts, since files often
    list each edge both ways. Where a directed graph turns out to have every edge both ways, one side is kept.
    """

    def __init__(self, writer: Writer, nodes: int, *, directed: bool, weighted: bool):
        self.writer, self.nodes, self.directed, self.weighted = writer, nodes, directed, weighted
        self._draft = EdgeSorter(writer, "draft", nodes, weighted=True) if weighted and not directed else None
        self._into = EdgeSorter(writer, "in", nodes, weighted=weighted, merge="sum" if directed else "max")
        self._out = EdgeSorter(writer, "out", nodes, weighted=weighted) if directed else None

    def add(self, source: Ints, target: Ints, weight: Floats | None = None) -> None:
        """More edges, at most a few million at once."""
        if self._draft is not None:
            self._draft.add(target, source, weight)
            return
        self._into.add(target, source, weight)
        (self._out or self._into).add(source, target, weight)

    def write(self) -> tuple[int, bool]:
        """The number of entries, and whether two sides were needed."""
        for target, source, weight in () if self._draft is None else self._draft.ranges():
            self._into.add(target, source, weight)
            self._into.add(source, target, weight)
        edges = self._into.write()
        if self._out is None:
            return edges, False
        self._out.write()
        return edges, not self.writer.drop_if_same("in", "out")


class EdgeSorter:
    """Gathers edges; `write` turns them into the arrays of one side of a store.

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
        self._keys = [_Pile(writer.scratch(f"{side}.{place}.keys")) for place in range(-(-nodes // self.width))]
        self._values = [_Pile(writer.scratch(f"{side}.{place}.values")) for place in range(len(self._keys))]

    def add(self, target: npt.NDArray[Any], source: npt.NDArray[Any], weight: Floats | None = None) -> None:
        """More edges, at most a few million at once."""
        keys, weight = _sorted(target.astype(np.int64) * self.nodes + source, weight)
        cuts = np.searchsorted(keys, np.arange(len(self._keys) + 1) * (self.width * self.nodes))
        for place, (start, end) in enumerate(pairwise(cuts)):
            if end > start:
                self._keys[place].append(keys[start:end])
                if weight is not None:
                    self._values[place].append(weight[start:end])

    def ranges(self) -> Iterator[tuple[Ints, Ints, Floats | None]]:
        """Targets, sources and weights of all edges without repeats, a range of targets after the other."""
        merge = np.add if self.merge == "sum" else np.maximum
        for place, pile in enumerate(self._keys):
            weight = self._values[place].take(np.float32) if self.weighted else None
            keys, weight = _sorted(pile.take(np.int64), weight)
            fresh = np.ones(len(keys), bool)
            np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
            places = np.flatnonzero(fresh)
            if weight is not None and len(places):
                weight = merge.reduceat(weight, places)
            target, source = np.divmod(keys[places], self.nodes)
            yield target, source, weight

    def write(self) -> int:
        """The arrays `pointers`, `nodes` and perhaps `weights` and `sums` of this side; the number of edges."""
        pointers = self.writer.strip(f"{self.side}.pointers", "int64")
        nodes = self.writer.strip(f"{self.side}.nodes", "int32")
        weights = self.writer.strip(f"{self.side}.weights", "float32") if self.weighted else None
        sums = self.writer.strip(f"{self.side}.sums", "float32") if self.weighted else None
        pointers.append(np.zeros(1, np.int64))
        edges = 0
        for place, (target, source, weight) in enumerate(self.ranges()):
            first = place * self.width
            rows = min(self.width, self.nodes - first)
            pointers.append(edges + np.cumsum(np.bincount(target - first, minlength=rows)))
            nodes.append(source)
            if weights is not None and sums is not None and weight is not None:
                weights.append(weight)
                sums.append(np.bincount(target - first, weight, minlength=rows))
            edges += len(target)
        return edges


def _sorted(keys: Ints, weight: Floats | None) -> tuple[Ints, Floats | None]:
    if weight is None:
        keys.sort()
        return keys, None
    order = np.argsort(keys, kind="stable")
    return keys[order], weight[order]


class _Pile:
    """A file that numbers are appended to, read once and removed."""

    def __init__(self, path: Path):
        self.path = path

    def append(self, numbers: npt.NDArray[Any]) -> None:
        with explained(self.path), self.path.open("ab") as file:
            file.write(np.ascontiguousarray(numbers).data.cast("B"))

    def take(self, dtype: Any) -> npt.NDArray[Any]:
        if not self.path.exists():
            return np.empty(0, dtype)
        numbers = np.fromfile(self.path, dtype=dtype)
        self.path.unlink()
        return numbers
