"""Make a random graph of any size from a seed, and write it to a store."""

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from bangs.core.rng import Streams
from bangs.errors import InvalidInput, UnknownName
from bangs.graphs.store.edge_sort import EdgeSorter
from bangs.graphs.store.manifest import MAX_NODES, Manifest
from bangs.graphs.store.writer import Writer
from bangs.utils.setting_checks import check_number

PREFIX = "synthetic:"
_CHUNK = 2**21  # edges or rows drawn at once


@dataclass(frozen=True)
class Synthetic:
    """Communities with hubs: most edges stay within a class, and features point to the class through noise.

    `edges` counts both directions; a few fewer come out, since repeats and loops are dropped. A pair's first node is
    drawn uniformly; its second, with probability `homophily`, from the class of the first, else from all classes,
    its rank r among the nodes it is drawn from with density ∝ r^-½, which makes hubs. Features are `signal` times
    the direction of the class plus normal noise. `train` and `val` nodes are drawn at random, the others are test
    nodes.
    """

    nodes: int = 100_000
    edges: int = 1_000_000
    features: int = 64
    classes: int = 16
    train: int = 0  # 0 = a thousandth of the nodes, at least 20 a class
    val: int = 0  # 0 = as many as train
    homophily: float = 0.8
    signal: float = 1.0

    def __post_init__(self) -> None:
        if self.nodes > MAX_NODES:
            raise InvalidInput(f"synthetic nodes must be at most {MAX_NODES:,}, got {self.nodes:.3g}")
        if not 2 <= self.classes <= self.nodes:
            raise InvalidInput(
                f"synthetic nodes must be at least as many as classes, of which there must be two, "
                f"got nodes={self.nodes} and classes={self.classes}"
            )
        if self.features < 1 or self.edges < 0:
            raise InvalidInput(f"synthetic needs a feature and no negative edges, got {self.features}, {self.edges}")
        if self.edges > self.nodes * (self.nodes - 1) // 4:
            raise InvalidInput(f"{self.edges:,} edges are too many for {self.nodes:,} nodes; ask for fewer")
        check_number("synthetic homophily", self.homophily, within="[0, 1]")
        if self.given < 1 or self.given + self.held >= self.nodes:
            raise InvalidInput(f"synthetic train + val must leave nodes for the test, got {self.given} + {self.held}")

    @classmethod
    def parse(cls, text: str) -> "Synthetic":
        """The graph of a text such as `synthetic:nodes=1e6,edges=1e7`."""
        kinds = {field.name: field.type for field in fields(cls)}
        settings: dict[str, int | float] = {}
        for part in filter(None, text.removeprefix(PREFIX).split(",")):
            name, _, value = part.partition("=")
            if name not in kinds:
                raise UnknownName("setting of a synthetic graph", name, kinds)
            try:
                number = float(value)
                settings[name] = number if kinds[name] is float else int(number)
            except (ValueError, OverflowError):
                raise InvalidInput(f"{name} of a synthetic graph must be a number, got '{value}'") from None
        return cls(**settings)  # type: ignore[arg-type]

    @property
    def given(self) -> int:
        """The number of training nodes."""
        return self.train or min(max(self.nodes // 1000, 20 * self.classes), self.nodes // 4)

    @property
    def held(self) -> int:
        """The number of validation nodes."""
        return self.val or self.given

    def write(self, writer: Writer, seed: int, dtype: str) -> Manifest:
        """Write the store; memory grows with the nodes only, by a few numbers each."""
        rng = Streams((seed,)).at("synthetic store")
        label = _random(rng.at("labels")).integers(0, self.classes, self.nodes).astype(np.int32)
        writer.append("labels", "int32", label)
        self._split(writer, rng)
        self._features(writer, rng, label, dtype)
        edges = self._edges(writer, rng, label)
        return writer.finish(
            nodes=self.nodes,
            edges=edges,
            features=self.features,
            classes=tuple(str(number) for number in range(self.classes)),
            notes=(f"made from seed {seed}: {self!r}",),
        )

    def _split(self, writer: Writer, rng: Streams) -> None:
        chosen = _random(rng.at("split")).permutation(self.nodes)[: self.given + self.held]
        split = np.full(self.nodes, 3, np.int8)
        split[chosen[: self.given]], split[chosen[self.given :]] = 1, 2
        writer.append("split", "int8", split)

    def _features(self, writer: Writer, rng: Streams, label: npt.NDArray[np.int32], dtype: str) -> None:
        direction = _random(rng.at("directions")).standard_normal((self.classes, self.features), np.float32)
        direction *= self.signal / np.linalg.norm(direction, axis=1, keepdims=True)
        step = max(_CHUNK // self.features, 1)
        for number, start in enumerate(range(0, self.nodes, step)):
            labels = label[start : start + step]
            noise = _random(rng.at("features", number)).standard_normal((len(labels), self.features), np.float32)
            writer.append("features", dtype, noise + direction[labels])

    def _edges(self, writer: Writer, rng: Streams, label: npt.NDArray[np.int32]) -> int:
        order = np.argsort(label, kind="stable").astype(np.int32)
        bounds = np.searchsorted(label[order], np.arange(self.classes + 1))
        hub = _random(rng.at("hubs")).permutation(self.nodes).astype(np.int32)
        sorter = EdgeSorter(writer, "in", self.nodes)
        pairs = self.edges // 2
        for number, start in enumerate(range(0, pairs, _CHUNK)):
            random = _random(rng.at("edges", number))
            count = min(_CHUNK, pairs - start)
            first = random.integers(0, self.nodes, count)
            rank = random.random(count) ** 2
            first_label = label[first]
            low, high = bounds[first_label], bounds[first_label + 1]
            same_class = order[(low + rank * (high - low)).astype(np.int64)]
            any_class = hub[(rank * self.nodes).astype(np.int64)]
            second = np.where(random.random(count) < self.homophily, same_class, any_class)
            not_loop = first != second
            first, second = first[not_loop], second[not_loop]
            sorter.add(np.concatenate([first, second]), np.concatenate([second, first]))
        return sorter.write()


def _random(rng: Streams) -> np.random.Generator:
    return np.random.default_rng(rng.numbers()[0])
