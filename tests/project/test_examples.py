"""The example folders are made by their script, and graph models are useful on them."""

import csv
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from sklearn.linear_model import LogisticRegression

from bangs.core.types import Task
from bangs.graphs import tables
from bangs.graphs.sparse import adjacency
from bangs.graphs.splits import validation_split
from tests import EXAMPLES


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_own_graph", EXAMPLES / "make_own_graph.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def truth(maker: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("library")
    maker.make(folder, seed=7, truth=folder / "truth.csv")
    with (folder / "truth.csv").open() as stream:
        return {row["id"]: row["label"] for row in csv.DictReader(stream)}


def test_the_script_makes_the_committed_folders(maker: ModuleType, tmp_path: Path) -> None:
    maker.make(tmp_path, seed=7)
    for file in tmp_path.rglob("*.csv"):
        assert file.read_bytes() == (EXAMPLES / file.relative_to(tmp_path)).read_bytes()
    assert len(list(tmp_path.rglob("*.csv"))) == 4


def test_the_example_is_read_without_options() -> None:
    graph = tables.read(EXAMPLES / "own-graph")
    assert graph.data.num_nodes == 300
    assert graph.data.edge_index.shape == (2, 1800)
    assert graph.classes == ["cookery", "crime", "history", "science fiction"]
    assert int((graph.data.y >= 0).sum()) == 30
    assert graph.ids[0].startswith("R-0")
    task = Task.of(graph.data, validation_split(graph.data.y, graph.split, seeds=[0, 1]), len(graph.classes))
    assert (task.given.known | task.held).sum(dim=1).tolist() == [30, 30]


def test_the_grown_example_holds_the_old_one(truth: dict[str, str]) -> None:
    graph = tables.read(EXAMPLES / "own-graph")
    grown = tables.read(EXAMPLES / "own-graph-grown", encoding=graph.columns)
    assert list(grown.ids[:300]) == list(graph.ids)
    assert np.array_equal(grown.data.x[:300], graph.data.x)
    assert np.array_equal(grown.data.y[:300], graph.data.y)
    assert (grown.data.y[300:] == -1).all()
    assert len(grown.ids) == 340
    assert set(truth) == set(grown.ids)


def test_neighbours_help_to_predict_a_readers_shelf(truth: dict[str, str]) -> None:
    graph = tables.read(EXAMPLES / "own-graph")
    grown = tables.read(EXAMPLES / "own-graph-grown", encoding=graph.columns)
    known = graph.data.y.numpy() >= 0
    right = np.array([graph.classes.index(truth[name]) for name in grown.ids])
    unknown = grown.data.y.numpy() < 0

    def accuracy(smooth: Callable[[tables.UserGraph], np.ndarray]) -> float:
        model = LogisticRegression(max_iter=500).fit(smooth(graph)[known], graph.data.y.numpy()[known])
        return float((model.predict(smooth(grown)) == right)[unknown].mean())

    alone = accuracy(lambda g: g.data.x.numpy())
    together = accuracy(lambda g: adjacency(g.data) @ (adjacency(g.data) @ g.data.x.numpy()))
    assert 0.3 < alone < 0.7
    assert together > alone + 0.2


@pytest.mark.slow
def test_a_million_rows_are_fine(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    ids = np.array([f"n{i}" for i in range(50_000)])
    label = np.where(random.random(50_000) < 0.1, random.integers(0, 3, 50_000).astype(str), "")
    pacsv.write_csv(pa.table({"id": ids, "x": random.random(50_000), "label": label}), tmp_path / "nodes.csv")
    ends = ids[random.integers(0, 50_000, (2, 1_000_000))]
    pacsv.write_csv(pa.table({"source": ends[0], "target": ends[1]}), tmp_path / "edges.csv")
    graph = tables.read(tmp_path)
    assert graph.data.num_nodes == 50_000
    assert graph.data.edge_index.shape[1] > 1_990_000
