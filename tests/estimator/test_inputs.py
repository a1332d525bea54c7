"""What arrives from a notebook: unknown labels stay unknown, indices are checked, and nothing of it is kept."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data

from bangs.core.graph_checks import check_graph
from bangs.errors import InvalidInput
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.estimator.edge_inputs import named_nodes
from bangs.estimator.inputs import as_graph, encoded, features, prepare
from bangs.estimator.label_inputs import as_labels, check_class_names, labelled
from bangs.estimator.node_rows import NodeRows
from bangs.graphs.tables import BadTables, read

library = pytest.importorskip

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


@pytest.mark.parametrize("y", [np.array([1e19, 2e19, 3.0, 3.0]), [1e300, -1e300, 3.0, 3.0]])
def test_whole_labels_too_large_for_64_bits_are_refused(y: Any) -> None:
    with pytest.raises(InvalidInput, match="64-bit"):
        labels(y)


@pytest.mark.parametrize("dtype", ["datetime64[D]", "timedelta64[s]"])
def test_times_are_no_labels(dtype: str) -> None:
    with pytest.raises(InvalidInput, match=f"all words or all numbers, got {dtype[:8]}"):
        labels(np.array([1, 2, 1, "NaT"], dtype=dtype))


@pytest.mark.parametrize("word", [" ", "\t", "NA ", " none", "-1.0", " -1", "NaT", "<NA>"])
def test_a_blank_a_word_for_no_label_with_spaces_and_minus_1_as_text_are_refused_unless_kept(word: str) -> None:
    classes = np.array(["cat", "dog", word])
    with pytest.raises(InvalidInput, match='looks like a word for "no label"'):
        check_class_names(classes, ())
    check_class_names(classes, [word])


@pytest.mark.parametrize("form", ["array", "tensor", "data", "csr", "frame", "sparse tensor"])
def test_a_fit_keeps_none_of_the_callers_memory(form: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 4)).astype(np.float32)
    y, weight = np.arange(20) % 2, np.ones(40, np.float32)
    index = np.stack([np.arange(20), (np.arange(20) + 1) % 20])
    index = np.ascontiguousarray(np.concatenate([index, index[::-1]], axis=1))
    dense, edges, weights, labels = (torch.from_numpy(array) for array in (x, index, weight, y))
    csr = sp.csr_array(x)
    given: dict[str, Any] = {
        "array": {"X": x, "edge_index": index, "y": y, "edge_weight": weight},
        "tensor": {"X": dense, "edge_index": edges, "y": labels, "edge_weight": weights},
        "data": {"X": Data(x=dense, edge_index=edges, y=labels, edge_weight=weights)},
        "csr": {"X": csr, "edge_index": index, "y": y},
        "frame": {"X": pd.DataFrame(x), "edge_index": index, "y": y},
        "sparse tensor": {"X": dense.to_sparse_csr(), "edge_index": edges, "y": labels},
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
    x, y = np.ones((200, 2)), np.arange(200) % 100
    with pytest.warns(UserWarning, match="there are 100 classes for 200 labels, which is unusual"):
        labelled(x, y, 200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labelled(x, y % 40, 200)


ONE_WAY = np.stack([np.arange(30), (np.arange(30) + 1) % 30])


def fitted(index: Any, weight: Any = None, **settings: Any) -> SelfTrainingClassifier:
    x = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    model = SelfTrainingClassifier(rounds=1, epochs=5, k=2, device="cpu", **settings)
    return model.fit(x, np.arange(30) // 15, edge_index=index, edge_weight=weight)


def test_an_edge_goes_both_ways_however_it_is_listed() -> None:
    both = np.concatenate([ONE_WAY, ONE_WAY[::-1]], axis=1)
    both = both[:, np.lexsort(both[::-1])]
    one, two, directed = fitted(ONE_WAY), fitted(both), fitted(ONE_WAY, directed=True)
    assert np.array_equal(one.predict_proba(), two.predict_proba())
    assert not np.array_equal(one.predict_proba(), directed.predict_proba())
    x = np.random.default_rng(1).normal(size=(30, 4)).astype(np.float32)
    assert np.array_equal(one.predict_proba(x, ONE_WAY), two.predict_proba(x, both))
    assert not np.array_equal(directed.predict_proba(x, ONE_WAY), directed.predict_proba(x, both))


def test_edges_that_go_both_ways_stay_in_their_order_and_keep_their_repeats() -> None:
    index = torch.tensor([[2, 1, 0, 2, 1, 3], [1, 2, 2, 0, 2, 3]])
    assert as_graph(np.eye(4), index).edge_index.tolist() == index.tolist()
    assert as_graph(np.eye(4), index[:, :3], directed=True).edge_index.tolist() == index[:, :3].tolist()


def test_of_two_opposite_weights_the_larger_counts_as_in_tables() -> None:
    graph = as_graph(np.eye(3), np.array([[0, 1, 1, 1], [1, 0, 2, 2]]), np.array([1.0, 3.0, 2.0, 0.5]))
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graph.edge_weight.tolist() == [3.0, 3.0, 2.5, 2.5]


def frame(rows: int = 24) -> pd.DataFrame:
    number = np.arange(rows)
    return pd.DataFrame(
        {
            "age": number * 1.5,
            "town": [["Rome", "Oslo", None][i % 3] for i in number],
            "joined": pd.to_datetime("2019-01-01") + pd.to_timedelta(number * 50, unit="D"),
            "note": [f"person {i}" for i in number],
        },
        index=[f"n{i}" for i in number],
    )


def frame_edges(rows: int = 24) -> pd.DataFrame:
    return pd.DataFrame({"a": [f"n{i}" for i in range(rows)], "b": [f"n{(i + 1) % rows}" for i in range(rows)]})


def test_a_frame_with_words_dates_and_gaps_is_fitted_predicted_saved_and_loaded(tmp_path: Path) -> None:
    X, y = frame(), pd.Series(["u", "v"] * 12, index=frame().index)
    with pytest.warns(UserWarning, match="column 'note' has a different word in every cell"):
        model = SelfTrainingClassifier(rounds=1, epochs=5, k=2, device="cpu").fit(X, y, edge_index=frame_edges())
    assert model.columns_.features == ["age", "town=Oslo", "town=Rome", *_dates("joined")]
    assert list(model.feature_names_in_) == list(X.columns)
    assert list(model.node_names_) == list(X.index)
    probs = model.predict_proba(X, frame_edges())
    np.testing.assert_allclose(probs, model.predict_proba(), atol=1e-6)
    model.save(tmp_path / "model.safetensors")
    loaded = SelfTrainingClassifier.load(tmp_path / "model.safetensors")
    assert loaded.columns_ == model.columns_
    np.testing.assert_array_equal(loaded.predict_proba(X, frame_edges()), probs)
    with pytest.raises(InvalidInput, match="feature names should match"):
        loaded.predict_proba(X[["town", "age", "joined", "note"]], frame_edges())


def _dates(name: str) -> list[str]:
    return [name, f"{name} (sin of year)", f"{name} (cos of year)"]


def test_a_polars_frame_is_a_frame() -> None:
    polars = pytest.importorskip("polars")
    X = frame().drop(columns="note")
    numbers, encoding = encoded(X.reset_index(drop=True))
    inputs = prepare(polars.from_pandas(X), edge_index=np.zeros((2, 0), int))
    assert inputs.columns == encoding
    np.testing.assert_array_equal(inputs.graph.x.numpy(), numbers.to_numpy(np.float32))
    labels = polars.Series(["u", "v", None] * 8)
    assert as_labels(labels, 24)[0].tolist() == [0, 1, -1] * 8


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ([1.0, 2.0, None, 4.0], r"column 'c' holds '', where a number should be\n.*fill=\"mean\""),
        ([1.0, 2.0, "x", 4.0], r"column 'c' holds 'x', which is not a number\n.*astype\('category'\)"),
        ([[1, 2], [2], [3], [4]], r"column 'c' holds list, which is neither number, word nor date\n.*X\.drop"),
    ],
)
def test_errors_about_a_frame_use_the_terms_of_a_frame(column: list[Any], sentence: str) -> None:
    with pytest.raises(BadTables, match=sentence):
        encoded(pd.DataFrame({"town": ["Rome", "Oslo"] * 2, "c": column}))


def test_words_that_the_fit_did_not_have_are_warned_of() -> None:
    X = pd.DataFrame({"town": ["Rome", "Oslo"] * 2})
    _, encoding = encoded(X)
    with pytest.warns(UserWarning, match="column 'town' holds 'Bern', unknown to the model"):
        numbers, _ = encoded(pd.DataFrame({"town": ["Rome", "Bern"]}), encoding)
    assert numbers.to_numpy().tolist() == [[0, 1], [0, 0]]


def test_a_column_of_categories_is_taken_as_categories() -> None:
    X = pd.DataFrame({"town": ["Rome", "Oslo"] * 2, "code": pd.Categorical([1, 2, 1, 2])})
    numbers, _ = encoded(X)
    assert list(numbers.columns) == ["town=Oslo", "town=Rome", "code=1", "code=2"]


def numbers_alone(rows: int = 24) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "income": rng.normal(40_000, 9_000, rows).round(2),
            "age": rng.integers(18, 90, rows),
            "children": rng.integers(0, 5, rows),
            "score": rng.normal(size=rows).astype(np.float32),
            "same": np.full(rows, 3.5),
        },
        index=[f"n{i}" for i in range(rows)],
    )


@pytest.mark.parametrize("kind", ["pandas", "polars", "sparse"])
def test_a_frame_of_numbers_alone_is_read_as_the_same_table_on_the_command_line(kind: str, tmp_path: Path) -> None:
    X = numbers_alone()
    X.assign(id=X.index, label=["u", "v"] * 12).to_csv(tmp_path / "nodes.csv", index=False)
    frame_edges().rename(columns={"a": "source", "b": "target"}).to_csv(tmp_path / "edges.csv", index=False)
    table = read(tmp_path)
    given: Any = {"pandas": X, "sparse": X.astype({"children": pd.SparseDtype(int, 0)})}.get(kind)
    edges: Any = frame_edges()
    if kind == "polars":
        polars = pytest.importorskip("polars")
        given, edges = polars.from_pandas(X), np.stack([np.arange(24), (np.arange(24) + 1) % 24])
    with pytest.warns(UserWarning, match="column 'same' has one value throughout; left out"):
        inputs = prepare(given, None, edges)
    assert inputs.columns is not None
    assert inputs.columns.columns == table.columns.columns
    np.testing.assert_array_equal(inputs.graph.x.numpy(), table.data.x.numpy())
    assert not np.allclose(inputs.graph.x[:, 0], X["income"])


def test_other_rows_are_scaled_as_those_of_the_fit_were() -> None:
    X = numbers_alone().drop(columns="same").reset_index(drop=True)
    edges = np.stack([np.arange(24), (np.arange(24) + 1) % 24])
    model = SelfTrainingClassifier(rounds=0, epochs=5, device="cpu", validation=0.25)
    model.fit(X, ["u", "v"] * 12, edge_index=edges)
    rows, row_edges = X[:9], edges[:, :8]
    expected = model.predict_proba(rows, row_edges)
    data = Data(x=torch.tensor(rows.to_numpy(np.float32)), edge_index=torch.tensor(row_edges))
    for arguments in (
        (rows.to_numpy(), row_edges),
        (sp.csr_array(rows.to_numpy()), row_edges),
        (data,),
        (NodeRows(rows.to_numpy(), row_edges),),
    ):
        np.testing.assert_allclose(model.predict_proba(*arguments), expected, atol=1e-4)
    with pytest.raises(InvalidInput, match="X has 3 features, but the model was fitted on a frame and is expecting 4"):
        model.predict(rows.to_numpy()[:, :3], row_edges)


def test_an_array_has_no_words_for_a_model_that_knows_some() -> None:
    X, edges = pd.DataFrame({"town": ["Rome", "Oslo"] * 12}), np.stack([np.arange(24), (np.arange(24) + 1) % 24])
    model = SelfTrainingClassifier(rounds=0, epochs=5, device="cpu").fit(X, ["u", "v"] * 12, edge_index=edges)
    with pytest.raises(InvalidInput, match="column 'town' holds words or dates; give a frame"):
        model.predict(np.eye(24)[:, :2], edges)


def test_what_scikit_learn_has_scaled_is_not_changed_by_more_than_rounding() -> None:
    X = StandardScaler().set_output(transform="pandas").fit_transform(numbers_alone().drop(columns="same"))
    numbers, _ = encoded(X)
    np.testing.assert_allclose(numbers.to_numpy(), X.to_numpy(), atol=1e-6)


def test_an_array_stays_as_it_is() -> None:
    X = numbers_alone().to_numpy()
    assert encoded(X) == (X, None)


def test_a_frame_of_which_no_column_can_be_a_feature_is_a_graph_without_features() -> None:
    X, edges = pd.DataFrame({"one": np.ones(24)}), np.stack([np.arange(24), (np.arange(24) + 1) % 24])
    model = SelfTrainingClassifier(rounds=0, epochs=5, device="cpu")
    with pytest.warns(UserWarning, match="no column can be a feature, so features are made from the edges"):
        model.fit(X, ["u", "v"] * 12, edge_index=edges)
    bare = SelfTrainingClassifier(rounds=0, epochs=5, device="cpu").fit(None, ["u", "v"] * 12, edge_index=edges)
    np.testing.assert_array_equal(model.predict_proba(), bare.predict_proba())
    np.testing.assert_allclose(model.predict_proba(X, edges), bare.predict_proba(edge_index=edges))


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (
            pd.DataFrame([["a", 1, 2], ["b", 2, 3]], columns=["a", "b", "b"]),
            "the header names 'b' twice, in columns 2 and 3",
        ),
        (pd.DataFrame({"z": np.arange(4) + 1j}), "column 'z' holds complex128, which is neither number"),
        (pd.DataFrame({"z": [1.0, np.inf, 2.0]}), "column 'z' holds 'inf', which is infinite"),
    ],
)
def test_what_no_frame_can_hold_gives_a_clear_error(X: pd.DataFrame, sentence: str) -> None:
    with pytest.raises(BadTables, match=sentence):
        encoded(X)


def test_columns_may_be_called_by_numbers_and_pairs() -> None:
    assert list(encoded(pd.DataFrame({0: ["a", "b"] * 3, 1: range(6)}))[0].columns) == ["0=a", "0=b", "1"]
    assert list(encoded(pd.DataFrame({("a", "b"): range(6)}))[0].columns) == ["('a', 'b')"]


def test_many_columns_without_use_give_few_warnings() -> None:
    X = pd.DataFrame(np.ones((6, 40))).assign(good=range(6))
    with pytest.warns(UserWarning, match="left out|more notes") as caught:
        encoded(X)
    assert len(caught) == 5
    assert "36 more notes" in str(caught[-1].message)


def test_a_frame_of_words_is_no_matrix_of_features() -> None:
    with pytest.raises(InvalidInput, match="X must hold numbers, one row of features per node: could not convert"):
        features(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}))


FRAME = pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 3], "weight": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize(
    "frame",
    [
        FRAME,
        FRAME[["weight", "source", "target"]],
        FRAME[["target", "weight", "source"]],
        FRAME.rename(columns={"source": "from", "target": "to", "weight": "strength"}),
        FRAME.rename(columns={"source": "author", "target": "cited author"})[["weight", "author", "cited author"]],
        FRAME.set_axis(["v", "w", "weight"], axis=1)[["weight", "v", "w"]],
        FRAME.set_axis(["person", "friend", "w"], axis=1),
        FRAME.set_axis(["u", "v", "w"], axis=1),
        pd.DataFrame(FRAME.to_numpy()),
    ],
    ids=[
        *("in order", "weight first", "mixed", "other names", "ends without a known name", "v and w", "only w"),
        *("u, v and w", "numbered"),
    ],
)
def test_columns_of_a_frame_of_edges_are_found_by_their_names(frame: pd.DataFrame) -> None:
    graph = as_graph(np.eye(4), frame, directed=True)
    assert graph.edge_index.tolist() == [[0, 1, 2], [1, 2, 3]]
    assert graph.edge_weight.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "frame",
    [
        FRAME.assign(year=2020),
        FRAME.rename(columns={"weight": "year"}),
        FRAME[["source", "weight"]],
        FRAME[["source"]],
        FRAME.set_axis(["source", "target", "target"], axis=1),
        FRAME.set_axis(["v", "w", "value"], axis=1),
        FRAME.set_axis(["w", "u", "value"], axis=1),
    ],
    ids=[
        *("four columns", "a third that is no weight", "no target", "one column", "two of one name"),
        *("v and w beside a third", "w and u beside a third"),
    ],
)
def test_a_frame_of_edges_with_other_columns_is_refused(frame: pd.DataFrame) -> None:
    with pytest.raises(InvalidInput, match="a frame of edges has the columns source and target, and perhaps weight"):
        as_graph(np.eye(4), frame)


def test_ids_are_not_taken_for_row_numbers_of_a_graph_of_billions() -> None:
    ids = np.array([[10, 10**9], [11, 12]])
    for y in (None, {10: 0, 11: 1}):
        with pytest.raises(
            InvalidInput, match="4 different numbers and the largest is 1,000,000,000, so they are names"
        ):
            named_nodes(ids, y)
        assert sorted(named_nodes(pd.DataFrame(ids.T), y)) == [10, 11, 12, 10**9]
    assert len(named_nodes([[0, 9_999], [1, 2]])) == 10_000


def test_edges_that_count_from_1_get_an_error_that_says_so() -> None:
    with pytest.raises(InvalidInput, match="nodes are numbered 0 … 3; if the edges count from 1, give edge_index - 1"):
        as_graph(np.eye(4), EDGES + 1)
    with pytest.raises(InvalidInput, match="if scikit-learn cut the rows"):
        as_graph(np.eye(3), EDGES)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_missing_end_of_an_edge_is_called_missing(missing: Any) -> None:
    frame = pd.DataFrame({"source": ["a", missing], "target": ["b", "a"]}, dtype=object)
    with pytest.raises(InvalidInput, match="row 1 of the edges names no node in column 'source'"):
        as_graph(pd.DataFrame(np.eye(2), index=["a", "b"]), frame)


def test_two_nodes_of_one_name_in_a_graph_are_named() -> None:
    graph = library("igraph").Graph(n=3, edges=[(0, 1), (1, 2)])
    graph.vs["name"] = ["a", "b", "a"]
    with pytest.raises(InvalidInput, match="two nodes of the graph have the name 'a'"):
        as_graph(np.eye(3), graph)


def test_ends_of_a_frame_without_features_are_found_by_their_names() -> None:
    frame = pd.DataFrame({"weight": [1.0, 2.0], "source": ["a", "b"], "target": ["b", "c"]})
    assert list(named_nodes(frame)) == ["a", "b", "c"]


def test_numbers_of_nodes_that_are_no_row_numbers_and_out_of_order_are_warned_of() -> None:
    networkx = library("networkx")
    graph = networkx.Graph([(3, 1), (1, 7)])
    with pytest.warns(UserWarning, match="in the order of the graph's nodes, 3 first"):
        assert as_graph(np.eye(3), graph).edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    sorted_graph = networkx.Graph([(1, 3), (3, 7)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_graph(np.eye(3), sorted_graph)
        as_graph(np.eye(3), networkx.Graph([(2, 0), (0, 1)]))


@pytest.mark.parametrize("kind", [str, float])
def test_numbers_of_nodes_that_are_text_or_floats_and_out_of_order_are_warned_of(kind: Any) -> None:
    networkx = library("networkx")
    graph = networkx.Graph([(kind(2), kind(0)), (kind(0), kind(1))])  # as `networkx.read_edgelist` reads 2 0, 0 1
    with pytest.warns(UserWarning, match=f"numbers as text.*in the order of the graph's nodes, {kind(2)} first"):
        assert as_graph(np.eye(3), graph).edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_graph(np.eye(3), networkx.Graph([(kind(0), kind(1)), (kind(1), kind(2))]))
        as_graph(pd.DataFrame(np.eye(3), index=["0", "1", "2"]), graph)
        as_graph(np.eye(3), networkx.Graph([("b", "a"), ("a", "c")]))


@pytest.mark.parametrize(("classes", "labels_each", "refused"), [(10, 1, False), (11, 1, True), (20, 2, False)])
def test_many_numbers_with_decimals_are_no_classes(classes: int, labels_each: int, refused: bool) -> None:
    y = np.repeat(np.arange(classes) + 0.5, labels_each)
    if refused:
        with pytest.raises(InvalidInput, match="Unknown label type: continuous"):
            labels(y)
    else:
        assert len(labels(y)[1]) == classes


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
def test_a_number_too_large_for_float32_is_refused_by_its_name(value: float) -> None:
    x = np.eye(4)
    x[2, 2] = value
    with pytest.raises(InvalidInput, match="NaN, infinity or a number above 3e38 in row 2"):
        check_graph(as_graph(x, EDGES))


@pytest.mark.parametrize("kind", [dict, pd.Series])
def test_labels_of_named_nodes_of_a_graph_are_matched_by_these_names(kind: Any) -> None:
    networkx = library("networkx")
    graph = networkx.Graph([(1, 2), (2, 3), (3, 4)])
    by_name = kind({4: "d", 3: "c", 1: "a", 2: "b"})
    inputs = prepare(np.eye(4), by_name, graph)
    target, classes, _ = labelled(inputs.source, inputs.y, 4)
    assert classes[target.numpy()].tolist() == ["a", "b", "c", "d"]
    inputs = prepare(np.eye(4), kind({2: "b", 1: "a"}), graph)
    assert labelled(inputs.source, inputs.y, 4)[0].tolist() == [0, 1, -1, -1]


def test_a_series_whose_index_does_not_name_the_nodes_of_the_graph_keeps_its_order() -> None:
    graph = library("networkx").Graph([(1, 2), (2, 3), (3, 4)])
    for index in (range(4), [7, 8, 3, 1]):
        inputs = prepare(np.eye(4), pd.Series(["a", "b", "c", "d"], index=index), graph)
        assert labelled(inputs.source, inputs.y, 4)[0].tolist() == [0, 1, 2, 3]


def test_a_dict_that_names_no_node_of_the_graph_is_refused() -> None:
    graph = library("networkx").Graph([(1, 2), (2, 3), (3, 4)])
    inputs = prepare(np.eye(4), {0: "a", 1: "b"}, graph)
    with pytest.raises(InvalidInput, match="y has a label for 0, which is not the name of a node"):
        labelled(inputs.source, inputs.y, 4)


def test_a_dict_or_series_is_matched_by_given_names() -> None:
    inputs = prepare(np.eye(4), {"d": 1, "a": 0}, EDGES, names=["a", "b", "c", "d"])
    assert labelled(inputs.source, inputs.y, 4)[0].tolist() == [0, -1, -1, 1]


@pytest.mark.parametrize("names", [["a", "b", "c", "d"], np.array(["a", "b", "c", "d"]), pd.Series(list("abcd"))])
def test_names_may_be_a_list_an_array_or_a_series(names: Any) -> None:
    assert prepare(None, [0, 1, -1, -1], EDGES, names=names).names.tolist() == ["a", "b", "c", "d"]


def test_names_are_text_and_one_for_each_node() -> None:
    assert prepare(np.eye(4), edge_index=EDGES, names=range(1, 5)).names.tolist() == ["1", "2", "3", "4"]
    with pytest.raises(InvalidInput, match=r"names must hold one name per node \[4\], got 3"):
        prepare(np.eye(4), edge_index=EDGES, names=["a", "b", "c"])
