"""Stores made from tables equal the same tables read into memory."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bangs.errors import InvalidInput
from bangs.graphs import tables
from bangs.graphs.store import Store, convert_from, read_user_graph
from bangs.graphs.tables import BadTables
from bangs.graphs.tables.id_index import IdIndex, id_keys
from bangs.graphs.tables.read_options import ReadOptions
from tests import EXAMPLES
from tests.graphs.tables.sample_tables import NODES, edges_of, folder

EXAMPLE = EXAMPLES / "own-graph"


def test_parquet_and_an_array_beside_the_table(tmp_path):
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    split = ["train", "train", "val", "test"]
    pq.write_table(
        pa.table({"id": [10, 11, 12, 13], "y": ["a", "b", "a", None], "split": split}), tmp_path / "nodes.parquet"
    )
    pq.write_table(pa.table({"u": [10, 11, 12], "v": [11, 12, 12]}), tmp_path / "edges.parquet")
    np.save(tmp_path / "features.npy", np.arange(8.0).reshape(4, 2))
    manifest = convert_from(str(tmp_path), tmp_path / "store")
    data = Store.open(tmp_path / "store").whole()
    assert edges_of(data).keys() == {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert data.y.tolist() == [0, 1, 0, -1]
    assert data.x.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert data.train_mask.tolist() == [True, True, False, False]
    assert any("1 edge from a node to itself" in note for note in manifest.notes)


def test_a_conversion_notes_what_became_of_columns_and_reports_wrong_numbers(tmp_path):
    nodes = "id;height;colour;label\na;1,5;red;\nb;2,5;red;\nc;;blue;\nd;3,5;blue;\n"
    edges = "source;target;weight\na;b;0,5\nc;d;2\n"
    tables = folder(tmp_path, nodes, edges)
    manifest = convert_from(str(tables), tmp_path / "store", options=ReadOptions(fill="mean"))
    assert manifest.notes[2:] == (
        "nodes.csv: 0 labels of 4 nodes",
        "nodes.csv: column 'height' is written with decimal commas; read so, 1,234 as 1.234",
        "nodes.csv: 1 numeric column 'height'",
        "nodes.csv: 1 categorical column 'colour'",
        "edges.csv is separated by semicolons; read so",
        "edges.csv: source from 'source', target from 'target', weight from 'weight'",
        "edges.csv: column 'weight' is written with decimal commas; read so, 1,234 as 1.234",
        "nodes.csv: 1 blank of column 'height' filled with its mean",
        "edges.csv: 2 rows read, 2 undirected edges stored",
    )
    wrong = folder(tmp_path, nodes.replace("2,5", "much"), edges)
    with pytest.raises(
        BadTables, match="'much', which is not a number\n  → correct it, or take the column as categories"
    ):
        convert_from(str(wrong), tmp_path / "other", options=ReadOptions(fill="mean"))


def test_tables_can_be_converted_with_the_encoding_of_other_tables(tmp_path):
    convert_from(str(EXAMPLE), tmp_path / "first")
    encoding = tables.Encoding.from_dict(Store.open(tmp_path / "first").manifest.encoding)
    grown = EXAMPLE.parent / "own-graph-grown"
    convert_from(str(grown), tmp_path / "grown", options=ReadOptions(encoding=encoding))
    stored, plain = read_user_graph(tmp_path / "grown", encoding=encoding), tables.read(grown, encoding=encoding)
    torch.testing.assert_close(stored.data.x, plain.data.x, atol=1e-5, rtol=1e-5)
    assert torch.equal(stored.data.y, plain.data.y)
    convert_from(str(grown), tmp_path / "alone")
    with pytest.raises(InvalidInput, match=r"in another way.*--like"):
        read_user_graph(tmp_path / "alone", encoding=encoding)


@pytest.mark.parametrize("weighted", [True, False])
def test_edges_and_blanks_follow_the_encoding_of_other_tables(tmp_path, weighted):
    heavy, plain = "source,target,weight\na,b,2\nb,a,1\nc,d,3\n", "source,target\na,b\nc,d\n"
    (first := tmp_path / "first").mkdir()
    encoding = tables.read(folder(first, edges=heavy if weighted else plain), directed=True, fill="mean").columns
    (second := tmp_path / "again").mkdir()
    folder(second, NODES.replace("3.0,green", ",green"), heavy)
    convert_from(str(second), tmp_path / "store", options=ReadOptions(encoding=encoding))
    stored, read = read_user_graph(tmp_path / "store", encoding=encoding), tables.read(second, encoding=encoding)
    assert edges_of(stored.data) == edges_of(read.data)
    assert ("edge_weight" in stored.data) == weighted
    torch.testing.assert_close(stored.data.x, read.data.x)
    if weighted:
        with pytest.raises(BadTables, match="fitted with edge weights, but no column of 'source', 'target'"):
            convert_from(str(folder(second, edges=plain)), tmp_path / "other", options=ReadOptions(encoding=encoding))


@pytest.mark.parametrize(
    ("fitted", "message"),
    [
        ({"directed": True}, r"are undirected, the model was fitted with directed ones; .* --like"),
        ({"weighted": False}, r"have weights, the model was fitted with no weights; .* --like"),
    ],
)
def test_a_store_whose_edges_were_converted_in_another_way_is_refused(tmp_path, fitted, message):
    source = str(folder(tmp_path, edges="source,target,weight\na,b,2\nc,d,3\n"))
    convert_from(source, tmp_path / "store")
    encoding = tables.read(Path(source)).columns
    assert read_user_graph(tmp_path / "store", encoding=encoding).data.edge_weight is not None
    with pytest.raises(InvalidInput, match=message):
        read_user_graph(tmp_path / "store", encoding=replace(encoding, **fitted))


def test_the_weights_of_edges_can_be_left_out(tmp_path):
    tables = str(folder(tmp_path, edges="source,target,weight\na,b,2\nc,d,3\n"))
    assert convert_from(tables, tmp_path / "heavy").weighted
    assert not convert_from(tables, tmp_path / "light", options=ReadOptions(ignore=("weight",))).weighted
    with pytest.raises(BadTables, match="--ignore names column 'wait', which is not there") as caught:
        convert_from(tables, tmp_path / "other", options=ReadOptions(ignore=("wait",)))
    assert "did you mean 'weight'?" in str(caught.value)


def test_ids_are_found_by_their_keys():
    pa = pytest.importorskip("pyarrow")
    names = pa.array(["7", "x7", "007", "é", "18446744073709551616", "0"])
    ids = IdIndex(id_keys(names))
    assert ids(names).tolist() == [0, 1, 2, 3, 4, 5]
    assert ids(pa.array(["07", "1", ""])).tolist() == [-1, -1, -1]
    plain = IdIndex(id_keys(pa.array(["0", "1", "2"])))
    assert plain.consecutive
    assert plain(pa.array(["2", "3", "a", "1"])).tolist() == [2, -1, -1, 1]


def test_a_class_with_one_label_is_named_when_a_store_is_to_be_learned_from(tmp_path):
    tables = folder(tmp_path, NODES.replace("green,\n", "green,emu\n", 1))
    convert_from(str(tables), tmp_path / "store")
    with pytest.raises(
        BadTables, match="label 'emu' is seen once; a node cannot be both learned from and validated on"
    ):
        read_user_graph(tmp_path / "store", two_labels=True)
    assert read_user_graph(tmp_path / "store").classes == ["cat", "dog", "emu"]
