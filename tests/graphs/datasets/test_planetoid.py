"""Planetoid's pickles are read, and their code is never run."""

import os
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from bangs.errors import DataUnavailable, InvalidInput
from bangs.graphs.datasets import loading, planetoid
from bangs.graphs.datasets.planetoid import read_planetoid


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two training, three validation and one more node, then test nodes 8 and 6; node 7 has links alone."""
    monkeypatch.setattr(planetoid, "VALIDATION", 3)
    known = sp.csr_matrix(np.array([[1, 1], [0, 2], [1, 0], [0, 1], [3, 1], [1, 0]], np.float32))
    tested = sp.csr_matrix(np.array([[0, 1], [1, 3]], np.float32))
    labels = np.eye(2, dtype=np.int32)
    links = defaultdict(list, {0: [1, 1, 0], 1: [0], 6: [8], 7: [2], 8: [6]})
    parts: dict[str, Any] = {
        "x": known[:2],
        "y": labels[[0, 1]],
        "allx": known,
        "ally": labels[[0, 1, 0, 1, 0, 1]],
        "tx": tested,
        "ty": labels[[1, 0]],
        "graph": links,
    }
    for part, content in parts.items():
        put(tmp_path, part, content)
    (tmp_path / "ind.small.test.index").write_text("8\n6\n")
    return tmp_path


def put(folder: Path, part: str, content: object) -> None:
    (folder / f"ind.small.{part}").write_bytes(pickle.dumps(content, protocol=4))


def test_rows_labels_and_links_belong_to_their_nodes(small: Path) -> None:
    data = read_planetoid(small, "small")
    assert data.x.layout == torch.sparse_csr
    expected = [[0.5, 0.5], [0, 1], [1, 0], [0, 1], [0.75, 0.25], [1, 0], [0.25, 0.75], [0, 0], [0, 1]]
    assert data.x.to_dense().tolist() == expected
    assert data.y.tolist() == [0, 1, 0, 1, 0, 1, 0, -1, 1]
    assert data.edge_index.tolist() == [[0, 1, 2, 6, 7, 8], [1, 0, 7, 8, 2, 6]]
    assert data.num_classes == 2
    assert data.train_mask.nonzero().flatten().tolist() == [0, 1]
    assert data.val_mask.nonzero().flatten().tolist() == [2, 3, 4]
    assert data.test_mask.nonzero().flatten().tolist() == [6, 8]


class Harmful:
    def __init__(self, *call: object) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call[0], self.call[1:]


@pytest.mark.parametrize("part", ["x", "allx", "ally", "ty", "graph"])
def test_a_pickle_that_asks_for_code_is_refused_and_nothing_runs(small: Path, part: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    put(small, part, Harmful(os.mkdir, str(trace)))
    with pytest.raises(InvalidInput, match=r"it uses (posix|nt)\.mkdir, which is not allowed"):
        read_planetoid(small, "small")
    assert not trace.exists()


@pytest.mark.parametrize(
    "call", [(eval, "1"), (getattr, "x", "y"), (np.load, "x"), (np.memmap, "x"), (sp.load_npz, "x")]
)
def test_no_other_function_of_python_numpy_or_scipy_is_admitted(small: Path, call: tuple[object, ...]) -> None:
    put(small, "graph", Harmful(*call))
    with pytest.raises(InvalidInput, match="which is not allowed"):
        read_planetoid(small, "small")


def test_a_shape_larger_than_its_bytes_is_refused(small: Path) -> None:
    # numpy's own pickle, its shape (2, 2) replaced by one of 10¹² rows
    raw = (small / "ind.small.y").read_bytes()
    honest = pickle.dumps((2, 2), protocol=4)[11:-2]
    lying = pickle.dumps((10**12, 2), protocol=4)[11:-2]
    assert raw.count(honest) == 1
    (small / "ind.small.ty").write_bytes(pickle_without_frame(raw, honest, lying))
    with pytest.raises(InvalidInput, match=r"ind.small.ty must hold an array: cannot reshape"):
        read_planetoid(small, "small")


def pickle_without_frame(raw: bytes, old: bytes, new: bytes) -> bytes:
    # PROTO 4, then FRAME with an eight-byte length that the exchange makes wrong
    assert raw[2:3] == b"\x95"
    return raw[:2] + raw[11:].replace(old, new)


@pytest.mark.parametrize(
    ("part", "content", "sentence"),
    [
        ("x", [1, 2], "must hold a sparse matrix"),
        ("allx", np.ones((6, 2)), "must hold a sparse matrix"),
        ("allx", sp.csr_matrix(np.full((6, 2), np.nan)), "must hold finite numbers"),
        ("allx", sp.csr_matrix(np.ones((3, 2))), "must hold one-hot labels"),
        ("tx", sp.csr_matrix(np.ones((2, 3))), "must have the same number of columns"),
        ("ally", {}, "must hold an array"),
        ("ally", np.ones(6), r"must hold one-hot labels \[6, C\]"),
        ("ty", np.array([[b"a", b"b"]] * 2), "not a plain number"),
        ("graph", [1], "must hold a list of neighbours for every node"),
        ("graph", {0: ["a"]}, "must hold a list of neighbours for every node"),
        ("graph", {0: [9]}, "the nodes that .* links must be 0 … 8, got 0 … 9"),
        ("graph", {0: [2**70]}, "must hold a list of neighbours for every node"),
    ],
)
def test_every_error_has_its_message(small: Path, part: str, content: object, sentence: str) -> None:
    put(small, part, content)
    with pytest.raises(InvalidInput, match=sentence):
        read_planetoid(small, "small")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("8\n", "must name each of the 2 test nodes once, got 1"),
        ("8\n8\n", "must name each of the 2 test nodes once"),
        ("8\nseven\n", "must hold one node number per line"),
        (f"8\n{10**12}\n", "must number test nodes from 6 on with few gaps"),
        (f"8\n{10**30}\n", "must hold one node number per line"),
        ("8\n5\n", "must number test nodes from 6 on"),
    ],
)
def test_test_nodes_are_checked(small: Path, text: str, sentence: str) -> None:
    (small / "ind.small.test.index").write_text(text)
    with pytest.raises(InvalidInput, match=sentence):
        read_planetoid(small, "small")


def test_too_few_rows_for_validation_are_refused(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planetoid, "VALIDATION", 5)
    with pytest.raises(InvalidInput, match="must hold the 2 rows of x and 5 for validation"):
        read_planetoid(small, "small")


@pytest.mark.parametrize("part", ["x", "test.index"])
def test_a_missing_file_is_named(small: Path, part: str) -> None:
    (small / f"ind.small.{part}").unlink()
    with pytest.raises(DataUnavailable, match=f"ind.small.{part} cannot be read"):
        read_planetoid(small, "small")


def test_a_pickle_cut_short_is_refused(small: Path) -> None:
    raw = (small / "ind.small.graph").read_bytes()
    for length in range(0, len(raw) - 1, 7):
        (small / "ind.small.graph").write_bytes(raw[:length])
        with pytest.raises(InvalidInput, match="graph"):
            read_planetoid(small, "small")


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("BANGS_DATA"), reason="BANGS_DATA names no folder with the real graphs")
@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "classes"),
    [("cora", 2708, 10556, 1433, 7), ("citeseer", 3327, 9104, 3703, 6), ("pubmed", 19717, 88648, 500, 3)],
)
def test_the_real_graphs_are_what_is_known_of_them(
    name: str, nodes: int, edges: int, features: int, classes: int
) -> None:
    data = loading.load(name)
    assert data.x.shape == (nodes, features)
    assert data.edge_index.shape[1] == edges
    assert data.num_classes == loading.DATASETS[name].classes == classes
    assert torch.bincount(data.y[data.train_mask]).tolist() == [20] * classes
    assert [int(data[mask].sum()) for mask in ("val_mask", "test_mask")] == [500, 1000]
    total = data.x.to_dense().sum(1)
    assert int((total == 0).sum()) == int((data.y < 0).sum()) == (15 if name == "citeseer" else 0)
    torch.testing.assert_close(total[total > 0], torch.ones(int((total > 0).sum())))
    assert not (data.train_mask | data.val_mask | data.test_mask)[data.y < 0].any()
