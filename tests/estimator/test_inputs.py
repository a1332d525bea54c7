"""What arrives from a notebook: unknown labels stay unknown, indices are checked, and nothing of it is kept."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.estimator.inputs import as_graph, as_labels, as_task

EDGES = np.array([[0, 1, 2, 3, 0, 2], [1, 0, 3, 2, 2, 0]])


def labels(y: Any) -> tuple[list[int], list[Any]]:
    numbers, classes = as_labels(y, len(y))
    return numbers.tolist(), classes.tolist()


@pytest.mark.parametrize(
    "y", [["a", float("nan"), "b", None], ("a", np.nan, "b", ""), ["a", -1, "b", pd.NA]], ids=["list", "tuple", "NA"]
)
def test_what_is_no_word_among_words_is_unknown(y: Any) -> None:
    assert labels(y) == ([0, -1, 1, -1], ["a", "b"])


@pytest.mark.parametrize("values", [[0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0], ["a", "b", "b", "a"]])
@pytest.mark.parametrize("column", [False, True])
def test_a_masked_label_is_unknown(values: list[Any], column: bool) -> None:
    y = np.ma.MaskedArray(values, mask=[False, False, True, False])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, of a column
        numbers, _ = as_labels(y[:, None] if column else y, 4)
    assert numbers.tolist() == [0, 1, -1, 0]


@pytest.mark.parametrize(
    "given",
    [
        {"X": np.ma.MaskedArray(np.eye(4), mask=np.eye(4) > 2)},
        {"edge_index": np.ma.MaskedArray(EDGES, mask=EDGES > 9), "edge_weight": np.ma.MaskedArray(np.ones(6))},
    ],
)
def test_masked_arrays_without_a_masked_entry_are_arrays(given: dict[str, Any]) -> None:
    graph = as_graph(**{"X": np.eye(4), "edge_index": EDGES, **given})
    assert torch.equal(graph.x, torch.eye(4))
    assert graph.edge_index.tolist() == EDGES.tolist()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X", np.ma.MaskedArray(np.eye(4), mask=np.eye(4) > 0)),
        ("edge_index", np.ma.MaskedArray(EDGES, mask=EDGES == 3)),
        ("edge_weight", np.ma.MaskedArray(np.ones(6), mask=np.arange(6) < 2)),
    ],
)
def test_a_masked_entry_of_anything_else_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=rf"{name} has \d masked entries.*{name}\.filled"):
        as_graph(**{"X": np.eye(4), "edge_index": EDGES, name: value})


@pytest.mark.parametrize("kind", ["Int64", object, "UInt64"])
def test_whole_labels_above_2_to_the_53_stay_apart(kind: Any) -> None:
    large = 2**53
    y = pd.Series([large, large + 1, None, large], dtype=kind)
    assert labels(y) == ([0, 1, -1, 0], [large, large + 1])
    with pytest.raises(InvalidInput, match="64-bit"):
        labels([2**70, 1, 2, 3])


@pytest.mark.parametrize("form", ["array", "tensor", "data", "csr", "frame", "sparse tensor"])
def test_a_fit_keeps_none_of_the_callers_memory(form: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 4)).astype(np.float32)
    y, weight = np.arange(20) % 2, np.ones(40, np.float32)
    index = np.stack([np.arange(20), (np.arange(20) + 1) % 20])
    index = np.ascontiguousarray(np.concatenate([index, index[::-1]], axis=1))
    dense, links, heavy, y_ = (torch.from_numpy(own) for own in (x, index, weight, y))
    csr = sp.csr_array(x)
    given: dict[str, Any] = {
        "array": {"X": x, "edge_index": index, "y": y, "edge_weight": weight},
        "tensor": {"X": dense, "edge_index": links, "y": y_, "edge_weight": heavy},
        "data": {"X": Data(x=dense, edge_index=links, y=y_, edge_weight=heavy)},
        "csr": {"X": csr, "edge_index": index, "y": y},
        "frame": {"X": pd.DataFrame(x), "edge_index": index, "y": y},
        "sparse tensor": {"X": dense.to_sparse_csr(), "edge_index": links, "y": y_},
    }[form]
    model = SelfTrainingClassifier(method="hard", validation=0.25, rounds=1, epochs=5, k=2, device="cpu").fit(**given)
    before = model.explain(3), model.predict_proba(), model.labels_
    for array in (x, index, y, weight, csr.data, csr.indices):
        array[...] = 0
    if form == "sparse tensor":
        given["X"].values().zero_()
    if form == "frame":
        given["X"].iloc[:, :] = 0.0
    after = model.explain(3), model.predict_proba(), model.labels_
    assert before[0] == after[0]
    assert all(np.array_equal(one, other) for one, other in zip(before[1:], after[1:], strict=True))


WRONG: dict[str, dict[str, list[int]]] = {
    "column too large": {"indices": [0, 1, 2, 1_000_000]},
    "column below 0": {"indices": [0, 1, 2, -7]},
    "pointers that fall": {"indptr": [0, 900_000, 2, 3, 4]},
    "pointers that fall to 0": {"indptr": [0, 900_000, 900_000, 900_000, 0]},
    "pointers too far": {"indptr": [0, 1, 2, 3, 9_000_000]},
    "too few values": {"data": [1]},
}


@pytest.mark.parametrize(
    ("form", "wrong"),
    [(form, wrong) for form in ("csr", "csc", "coo") for wrong in WRONG if form != "coo" or wrong.startswith("col")],
)
def test_sparse_matrices_that_point_outside_are_refused_before_they_are_followed(form: str, wrong: str) -> None:
    matrix: Any = sp.eye_array(4, dtype=np.float32, format=form)
    for name, value in WRONG[wrong].items():  # behind scipy's back
        if form == "coo":
            matrix.coords = (matrix.coords[0], np.array(value, np.int32))
        else:
            setattr(matrix, name, np.array(value, dtype=getattr(matrix, name).dtype))
    with pytest.raises(InvalidInput, match=r"^(the (row|column) (pointers|numbers) of )?X must"):
        as_graph(matrix, EDGES)
    with pytest.raises(InvalidInput, match=r"^(the (row|column) (pointers|numbers) of )?the adjacency must"):
        as_graph(np.eye(4), matrix)


def test_sparse_tensors_that_point_outside_are_refused() -> None:
    rows, cols, values = torch.tensor([0, 1, 2, 3, 4]), torch.tensor([0, 1, 2, 9_000_000]), torch.ones(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = torch.sparse_csr_tensor(rows, cols, values, size=(4, 4), check_invariants=False)
    coo = torch.sparse_coo_tensor(torch.stack([cols, cols]), values, (4, 4), check_invariants=False)
    for x in (wrong, coo):
        with pytest.raises(InvalidInput, match=r"(column|row) numbers of X must be 0 … 3, got 0 … 9000000"):
            as_graph(x, EDGES)
        with pytest.raises(InvalidInput, match="numbers of X must be 0 … 3"):
            as_graph(Data(x=x, edge_index=torch.from_numpy(EDGES)))


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64", "int16", "int32"])
def test_edges_may_be_whole_numbers_of_any_kind(kind: str) -> None:
    array, tensor = EDGES.astype(kind), torch.from_numpy(EDGES).to(getattr(torch, kind))
    for graph in (as_graph(np.eye(4), array), as_graph(np.eye(4), tensor), as_graph(Data(torch.eye(4), tensor))):
        assert graph.edge_index.dtype == torch.int64
        assert graph.edge_index.tolist() == EDGES.tolist()
    beyond = np.array([[0], [2**64 - 1]], dtype=np.uint64)
    with pytest.raises(InvalidInput, match="nodes are numbered 0 … 3"):
        as_graph(np.eye(4), beyond)


def test_weights_may_carry_a_gradient() -> None:
    weight = torch.ones(6, requires_grad=True)
    graph = as_graph(np.eye(4), EDGES, weight)
    assert not graph.edge_weight.requires_grad
    given = Data(torch.eye(4, requires_grad=True), torch.from_numpy(EDGES), edge_weight=weight)
    assert not as_graph(given).x.requires_grad


def test_very_many_classes_are_warned_of() -> None:
    x, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 100
    with pytest.warns(UserWarning, match="there are 100 classes for 200 labels, which is unusual"):
        as_task(x, np.array([[0], [1]]), y, None, 0, 0.25)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_task(x, np.array([[0], [1]]), y % 40, None, 0, 0.25)
