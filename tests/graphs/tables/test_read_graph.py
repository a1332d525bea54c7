"""Valid tables become the graph they describe."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch

from bangs.core.graph_checks import check_graph
from bangs.errors import InvalidInput
from bangs.graphs import tables
from bangs.graphs.splits import validation_split
from bangs.graphs.store import convert_from
from bangs.graphs.tables.column_statistics import ColumnStatistics
from bangs.graphs.tables.diagnostics import Diagnostics
from bangs.graphs.tables.fitted_encoding import Categorical
from bangs.graphs.tables.read_options import ReadOptions
from bangs.graphs.tables.table import Table
from tests.graphs.tables.sample_tables import EDGES, NODES, folder


def read(path: Path, *, nodes: str = NODES, edges: str = EDGES, **options: object) -> tables.UserGraph:
    return tables.read(folder(path, nodes, edges), **options)  # type: ignore[arg-type]


def edges_of(graph: tables.UserGraph) -> set[tuple[str, str]]:
    source, target = graph.data.edge_index.tolist()
    return {(graph.ids[s], graph.ids[t]) for s, t in zip(source, target, strict=True)}


def said(graph: tables.UserGraph, *parts: str) -> bool:
    return any(all(part in note for part in parts) for note in graph.notes)


def test_two_small_tables_become_the_graph_they_describe(tmp_path: Path) -> None:
    graph = read(tmp_path)
    assert list(graph.ids) == ["a", "b", "c", "d", "e", "f"]
    assert graph.classes == ["cat", "dog"]
    assert graph.data.y.tolist() == [0, 0, 1, 1, -1, -1]
    one_way = {("a", "b"), ("c", "d"), ("a", "c"), ("b", "e"), ("d", "f")}
    assert edges_of(graph) == one_way | {(t, s) for s, t in one_way}
    assert graph.columns.features == ["height", "colour=blue", "colour=green", "colour=red"]
    height = np.array([1.5, 2.5, 0.5, 3.5, 3.0, 1.0])
    assert graph.data.x[:, 0].numpy() == pytest.approx((height - height.mean()) / height.std())
    assert graph.data.x[:, 1:].tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 0]]
    assert graph.data.x.dtype == torch.float32
    assert graph.split is None
    assert check_graph(graph.data) == 6


def test_a_directed_graph_keeps_its_directions(tmp_path: Path) -> None:
    graph = read(tmp_path, directed=True)
    assert edges_of(graph) == {("a", "b"), ("c", "d"), ("a", "c"), ("b", "e"), ("d", "f")}
    assert said(graph, "5 rows make 5 directed edges")


def test_ids_stay_as_they_were_written(tmp_path: Path) -> None:
    nodes = "id,x,label\n007,1,u\n7,2,u\n 1.50 ,3,v\n=A1+1,4,v\n<b>,5,\n"
    graph = read(tmp_path, nodes=nodes, edges="source,target\n007,7\n7,1.50\n=A1+1,<b>\n1.50,=A1+1\n")
    assert list(graph.ids) == ["007", "7", "1.50", "=A1+1", "<b>"]
    assert ("007", "7") in edges_of(graph)


def test_whole_number_labels_are_kept_and_sorted_as_numbers(tmp_path: Path) -> None:
    graph = read(tmp_path, nodes="id,x,label\na,1,10\nb,2,10\nc,3,9\nd,4,9\ne,5,-1\nf,6,\n")
    assert graph.classes == ["9", "10"]
    assert graph.data.y.tolist() == [1, 1, 0, 0, -1, -1]
    assert said(graph, "label '-1' means unknown in 1 row")


def test_placeholders_such_as_na_are_no_class_unless_unknown_is_given(tmp_path: Path) -> None:
    nodes = "id,x,label\na,1,cat\nb,2,cat\nc,3,none\nd,4,none\ne,5,?\nf,6,NA\n"
    with pytest.raises(tables.BadTables, match="every label is 'cat'"):
        read(tmp_path, nodes=nodes)
    graph = read(tmp_path, nodes=nodes, unknown=["?", "NA"])
    assert graph.classes == ["cat", "none"]
    assert graph.data.y.tolist() == [0, 0, 1, 1, -1, -1]
    assert said(graph, "labels '?', 'NA' mean unknown in 2 rows")


def test_a_misspelled_unknown_label_is_reported(tmp_path: Path) -> None:
    nodes = "id,x,label\na,1,cat\nb,2,cat\nc,3,dog\nd,4,dog\ne,5,later\nf,6,later\n"
    with pytest.raises(tables.BadTables, match="--unknown names label 'latter', which no node has") as caught:
        read(tmp_path, nodes=nodes, unknown=["latter"])
    assert "did you mean 'later'?" in str(caught.value)
    with pytest.raises(tables.BadTables, match="--unknown names label 'latter'"):
        convert_from(str(tmp_path), tmp_path / "store", options=ReadOptions(unknown=["latter"]))


@pytest.mark.parametrize("identity", ["node", "Node ID", "node-id", "NODE_ID", "name"])
@pytest.mark.parametrize(("source", "target"), [("src", "dst"), ("From", "To"), ("u", "v")])
def test_guessed_column_names_are_noted(tmp_path: Path, identity: str, source: str, target: str) -> None:
    nodes = NODES.replace("id,", f"{identity},", 1).replace("label", "Class")
    graph = read(tmp_path, nodes=nodes, edges=EDGES.replace("source,target", f"{source},{target}"))
    assert said(graph, f"id from '{identity}'", "label from 'Class'")
    assert said(graph, f"source from '{source}'", f"target from '{target}'")
    assert graph.columns.role("id") == identity


def test_column_names_can_be_given(tmp_path: Path) -> None:
    nodes = "person,label,team\na,x,p\nb,y,p\nc,x,q\nd,y,q\n"
    graph = read(
        tmp_path,
        nodes=nodes,
        edges="when,who,whom\n1,a,b\n2,c,d\n",
        id="person",
        label="team",
        source="who",
        target="whom",
    )
    assert graph.classes == ["p", "q"]
    assert graph.columns.features == ["label=x", "label=y"]
    assert edges_of(graph) == {("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")}


def test_without_a_name_to_guess_the_first_columns_serve(tmp_path: Path) -> None:
    nodes = NODES.replace("id,", "animal,", 1)
    graph = read(tmp_path, nodes=nodes, edges=EDGES.replace("source,target", "eats,eaten by"))
    assert said(graph, "the first one, 'animal', differs in every row")
    assert said(graph, "source from 'eats', target from 'eaten by'")


def test_weights_come_with_the_edges(tmp_path: Path) -> None:
    graph = read(tmp_path, edges="source,target,weight\na,b,2\nb,a,3\nc,d,1\nc,d,1.5\na,a,9\nd,e,0.25\n")
    weight = dict(zip(map(tuple, graph.data.edge_index.T.tolist()), graph.data.edge_weight.tolist(), strict=True))
    assert weight == {(0, 1): 3.0, (1, 0): 3.0, (2, 3): 2.5, (3, 2): 2.5, (3, 4): 0.25, (4, 3): 0.25}
    assert said(graph, "1 edge from a node to itself dropped")
    assert said(graph, "1 repeated edge merged, their weights added")
    assert said(graph, "6 rows make 3 undirected edges")
    assert said(graph, "1 edge with another weight in the other direction; the larger counts")
    assert said(graph, "1 node has no edge")
    single = read(tmp_path, edges="source,target,weight\na,b,2\n")
    assert said(single, "1 row makes 1 undirected edge")
    assert not said(single, "another weight")


def test_weights_far_from_one_are_noted(tmp_path: Path) -> None:
    for unit, expected in ((1.0, False), (2e6, True), (1e-6, True)):
        graph = read(tmp_path, edges=f"source,target,weight\na,b,{unit}\nb,c,{3 * unit}\nc,d,{2 * unit}\n")
        assert said(graph, f"median weight is {2 * unit:.3g}, while a node counts itself with weight 1") is expected


def test_edges_of_weight_zero_are_noted_and_leave_the_median_alone(tmp_path: Path) -> None:
    graph = read(tmp_path, edges="source,target,weight\na,b,0\nb,c,0\nc,d,1\n")
    assert said(graph, "edges of weight 0 do not count")
    assert not said(graph, "median weight")
    assert not said(read(tmp_path, edges="source,target,weight\na,b,1\n"), "weight 0")


def test_repeats_of_an_edge_without_weights_are_one_edge(tmp_path: Path) -> None:
    graph = read(tmp_path, edges="source,target\na,b\na,b\nb,a\nc,d\n")
    assert graph.data.get("edge_weight") is None
    assert graph.data.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]


@pytest.mark.parametrize(("delimiter", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_another_delimiter_is_recognised_and_noted(tmp_path: Path, delimiter: str, name: str) -> None:
    graph = read(tmp_path, nodes=NODES.replace(",", delimiter), edges=EDGES.replace(",", delimiter))
    assert said(graph, "nodes.csv", f"separated by {name}")
    assert edges_of(graph) == edges_of(read(tmp_path))


def test_decimal_commas_are_read_where_commas_do_not_separate(tmp_path: Path) -> None:
    graph = read(tmp_path, nodes=NODES.replace(",", ";").replace(".", ","))
    assert torch.equal(graph.data.x, read(tmp_path).data.x)
    assert said(graph, "column 'height' is written with decimal commas")


def test_weights_may_have_decimal_commas_too(tmp_path: Path) -> None:
    graph = read(tmp_path, edges="source;target;weight\na;b;0,5\nc;d;2\n")
    assert graph.data.edge_weight.tolist() == [0.5, 0.5, 2.0, 2.0]
    assert said(graph, "edges.csv: column 'weight' is written with decimal commas")


def test_a_word_among_decimal_commas_is_reported_and_the_column_stays_numeric(tmp_path: Path) -> None:
    nodes = NODES.replace(",", ";").replace(".", ",").replace("2,5", "much")
    with pytest.raises(tables.BadTables) as caught:
        read(tmp_path, nodes=nodes)
    assert [str(problem.message) for problem in caught.value.diagnostics] == [
        "column 'height' holds 'much', which is not a number"
    ]


def test_a_few_decimal_commas_among_words_stay_words(tmp_path: Path) -> None:
    nodes = "id;x;size;label\na;1;small;p\nb;2;small;q\nc;3;large;p\nd;4;3,5;q\n"
    graph = read(tmp_path, nodes=nodes, edges="source;target\na;b\nc;d\n")
    assert graph.columns.features == ["x", "size=3,5", "size=large", "size=small"]
    assert not said(graph, "decimal commas")


def test_a_byte_order_mark_windows_line_ends_quotes_and_blank_lines_do_no_harm(tmp_path: Path) -> None:
    plain = read(tmp_path)
    nodes = (
        "\ufeff" + NODES.replace("red", '"red"').replace("\n", "\r\n").replace("e,3.0", "\r\n \r\ne,3.0") + "\r\n\r\n"
    )
    graph = read(tmp_path, nodes=nodes)
    assert torch.equal(graph.data.x, plain.data.x)
    assert list(graph.ids) == list(plain.ids)
    assert said(graph, "nodes.csv begins with a byte-order mark")


def test_a_quoted_cell_may_hold_commas_and_line_ends(tmp_path: Path) -> None:
    graph = read(tmp_path, nodes=NODES.replace("red", '"dark\nred, ""nearly"" brown"'))
    assert 'colour=dark\nred, "nearly" brown' in graph.columns.features


@pytest.mark.parametrize("suffix", [".tsv", ".parquet"])
def test_every_format_gives_the_same_graph(tmp_path: Path, suffix: str) -> None:
    plain = read(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    for stem in ("nodes", "edges"):
        table = pd.read_csv(tmp_path / f"{stem}.csv")
        if suffix == ".tsv":
            table.to_csv(other / f"{stem}.tsv", sep="\t", index=False)
        else:
            table.to_parquet(other / f"{stem}.parquet")
    graph = tables.read(other)
    assert torch.equal(graph.data.x, plain.data.x)
    assert torch.equal(graph.data.edge_index, plain.data.edge_index)
    assert torch.equal(graph.data.y, plain.data.y)
    assert graph.columns.columns == plain.columns.columns


def test_typed_parquet_columns_keep_their_meaning(tmp_path: Path) -> None:
    nodes = pd.DataFrame(
        {
            "id": [1, 2, 3, 4],
            "tall": [True, False, True, False],
            "seen": pd.to_datetime(["2024-01-01", "2024-01-01", "2024-02-01", "2024-02-01"]),
            "kind": pd.Categorical(["x", "y", "x", "y"]),
            "label": [1.0, 0.0, 1.0, 0.0],
        }
    )
    nodes.loc[3, "label"] = None
    nodes.to_parquet(tmp_path / "nodes.parquet")
    pd.DataFrame({"source": [1.0, 2.0], "target": [2.0, 3.0]}).to_parquet(tmp_path / "edges.parquet")
    with pytest.raises(tables.BadTables, match="label '0' is seen once"):
        tables.read(tmp_path, two_labels=True)
    nodes.assign(label=[1.0, 0.0, 1.0, 0.0]).to_parquet(tmp_path / "nodes.parquet")
    graph = tables.read(tmp_path)
    assert graph.classes == ["0", "1"]
    assert list(graph.ids) == ["1", "2", "3", "4"]
    assert graph.columns.features == ["tall=false", "tall=true", "seen", "kind=x", "kind=y"]


def test_digits_with_leading_zeros_are_categories(tmp_path: Path) -> None:
    graph = read(tmp_path, nodes="id,post,label\na,01,u\nb,01,u\nc,02,v\nd,02,v\ne,10,\nf,10,\n")
    assert graph.columns.features == ["post=01", "post=02", "post=10"]
    assert said(graph, "'post'", "taken as categories")


def test_digits_are_categories_with_the_option_categorical(tmp_path: Path) -> None:
    graph = read(tmp_path, nodes=NODES.replace("1.0", "3.5"), categorical=["height"])
    assert graph.columns.features[:2] == ["height=0.5", "height=1.5"]


def test_rare_categories_become_one_and_names_are_left_out(tmp_path: Path) -> None:
    rows = [f"n{i},town {i % 60 if i < 180 else 0},{i}x,m{i % 150},{'uv'[i % 2]}" for i in range(200)]
    graph = read(tmp_path, nodes="id,town,name,mail,label\n" + "\n".join(rows) + "\n", edges="source,target\nn0,n1\n")
    (town,) = graph.columns.columns
    assert isinstance(town, Categorical)
    assert len(town.levels) == 50
    assert town.other
    assert graph.data.x.sum(dim=1).tolist() == [1.0] * 200
    assert said(graph, "'town' has 60 categories; the 50 most frequent are kept")
    assert said(graph, "'mail' has 150 different words in 200 cells")
    assert said(graph, "'name' has a different word in every cell, which makes no categories; left out")


def test_a_small_column_of_names_is_left_out_too(tmp_path: Path) -> None:
    nodes = "id,who,label\n" + "".join(f"n{i},person {i},{'uv'[i % 2]}\n" for i in range(12))
    graph = read(tmp_path, nodes=nodes, edges="source,target\nn0,n1\nn1,n2\n")
    assert graph.columns.left_out == ("who",)
    diagnostics = Diagnostics("here").of("nodes.csv")
    counted = ColumnStatistics("who", diagnostics, categorical=False)
    counted.add(Table(diagnostics, {"who": pa.chunked_array([[f"person {i}" for i in range(12)]])}, np.arange(12)))
    assert counted.encoding() is None  # piece by piece as in one
    assert "a different word in every cell" in diagnostics.all_files.notes[0]


def test_numbers_with_signs_become_categories_with_a_note(tmp_path: Path) -> None:
    rows = [f"n{i};1,{i:03d},000;{5 * i} %;${i}.5;v{i % 2};{'uv'[i % 2]}\n" for i in range(12)]
    nodes = "id;people;share;price;version;label\n" + "".join(rows)
    graph = read(tmp_path, nodes=nodes, edges="source,target\nn0,n1\nn1,n2\n")
    columns = [note.split("'")[1] for note in graph.notes if "numbers with signs as in 1,234 or 45 % or $3" in note]
    assert columns == ["people", "share", "price"]


def test_a_second_column_called_like_a_label_is_named(tmp_path: Path) -> None:
    nodes = NODES.replace("colour", "Class")
    graph = read(tmp_path, nodes=nodes)
    assert said(graph, "'Class' has the name of a label and is taken as a feature", "--ignore Class")
    assert not said(read(tmp_path, nodes=nodes, ignore=["Class"]), "has the name of a label")
    assert not said(read(tmp_path, nodes=nodes, encoding=graph.columns), "has the name of a label")


def test_a_class_of_one_label_that_may_be_misspelled_is_named(tmp_path: Path) -> None:
    names = ["cookery", "cokery", "cookery", "history", "history", "class 1", "class 2", "class 2"]
    nodes = "id,x,label\n" + "".join(f"n{i},{i},{name}\n" for i, name in enumerate(names))
    graph = read(tmp_path, nodes=nodes, edges="source,target\nn0,n1\nn1,n2\n")
    assert [note for note in graph.notes if "spelled" in note] == [
        "nodes.csv: class 'cokery' has one label and is spelled like 'cookery'; correct the table if it is a mistake"
    ]


def test_classes_that_may_be_one_are_named(tmp_path: Path) -> None:
    names = ["yes", "no", "new york", "newyork", "1", "1.0", "2"] * 2
    nodes = "id,x,label\n" + "".join(f"n{i},{i},{name}\n" for i, name in enumerate(names))
    graph = read(tmp_path, nodes=nodes, edges="source,target\nn0,n1\nn1,n2\n")
    assert [note for note in graph.notes if "different classes" in note] == [
        "nodes.csv: '1', '1.0' are taken as different classes; write them alike if they are one",
        "nodes.csv: 'new york', 'newyork' are taken as different classes; write them alike if they are one",
    ]


def test_blank_and_constant_columns_are_left_out_with_a_note(tmp_path: Path) -> None:
    nodes = "id,height,same,none,word,label\n" + "".join(
        f"{name},{i},5,,w,{label}\n" for i, (name, label) in enumerate(zip("abcdef", "uuvv__", strict=True))
    ).replace("_", "")
    graph = read(tmp_path, nodes=nodes)
    assert graph.columns.features == ["height"]
    assert graph.columns.left_out == ("same", "none", "word")
    assert said(graph, "'same' has one value throughout")
    assert said(graph, "'none' is blank throughout")


def test_a_missing_number_is_filled_with_the_mean_by_the_option_fill(tmp_path: Path) -> None:
    graph = read(tmp_path, nodes=NODES.replace("3.0,green", "NA,green"), fill="mean")
    assert float(graph.data.x[4, 0]) == 0.0
    assert said(graph, "1 blank of column 'height' filled with its mean")
    second = read(tmp_path, nodes=NODES.replace("3.0,green", ",green"), encoding=graph.columns)
    assert float(second.data.x[4, 0]) == 0.0


def test_a_blank_category_is_no_category(tmp_path: Path) -> None:
    graph = read(tmp_path, nodes=NODES.replace("3.0,green", "3.0,"))
    assert graph.data.x[4, 1:].tolist() == [0, 0, 0]
    assert said(graph, "1 blank of column 'colour'")


def test_ignored_columns_are_no_features(tmp_path: Path) -> None:
    assert read(tmp_path, ignore=["colour"]).columns.features == ["height"]


def test_an_ignored_column_is_not_guessed_to_be_the_label_or_the_id(tmp_path: Path) -> None:
    nodes = "name,key,label,class\nAnn,a,tall,u\nBen,b,small,u\nCis,c,tall,v\nDov,d,small,v\nEve,e,tall,\nFay,f,,\n"
    graph = read(tmp_path, nodes=nodes, ignore=["name", "label"])
    assert (list(graph.ids), graph.classes) == (list("abcdef"), ["u", "v"])
    with pytest.raises(tables.BadTables, match="column 'label' cannot be the label and something else"):
        read(tmp_path, nodes=nodes, id="key", label="label", ignore=["label"])


def test_edge_weights_can_be_ignored_unless_the_option_weight_names_them(tmp_path: Path) -> None:
    edges = "source,target,w,weight\na,b,2,7\nc,d,3,7\n"
    graph = read(tmp_path, edges=edges, ignore=["weight", "w"])
    assert graph.data.get("edge_weight") is None
    assert not graph.columns.weighted
    assert said(graph, "edges.csv: source from 'source', target from 'target'; 'w', 'weight' not used")
    assert read(tmp_path, edges=edges, ignore=["weight"]).data.edge_weight.tolist() == [2, 2, 3, 3]
    assert read(tmp_path, edges=edges, ignore=["weight"], weight="weight").data.edge_weight.tolist() == [7, 7, 7, 7]
    weighted = read(tmp_path, edges=edges).columns
    with pytest.raises(tables.BadTables, match="fitted with edge weights, but no column"):
        read(tmp_path, edges=edges, ignore=["w", "weight"], encoding=weighted)


def test_the_ends_of_edges_stay_where_a_node_column_of_their_name_is_left_out(tmp_path: Path) -> None:
    graph = read(tmp_path, nodes=NODES.replace("colour", "target"), ignore=["target"])
    assert graph.columns.features == ["height"]
    assert graph.data.num_edges == 10


def test_a_parquet_column_of_any_type_can_be_ignored_and_then_stays_so(tmp_path: Path) -> None:
    folder(tmp_path)
    frame = pd.read_csv(tmp_path / "nodes.csv", dtype=str, keep_default_na=False)
    (tmp_path / "nodes.csv").unlink()
    frame.assign(list=[[1.0, 2.0]] * 6, span=pd.interval_range(0, 6)).to_parquet(tmp_path / "nodes.parquet")
    graph = tables.read(tmp_path, ignore=["list", "span", "colour"])
    assert graph.columns.features == ["height"]
    assert list(tables.read(tmp_path, encoding=graph.columns).ids) == list("abcdef")
    convert_from(str(tmp_path), tmp_path / "store", options=ReadOptions(ignore=("list", "span", "colour")))
    with pytest.raises(tables.BadTables, match=r"column 'span' holds .*neither number nor text"):
        tables.read(tmp_path, ignore=["list"])
    with pytest.raises(tables.BadTables, match="--ignore names column 'size', which is not there"):
        tables.read(tmp_path, ignore=["list", "size"])


def test_a_column_may_be_called_column_something(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,column height,label\na,1.5,u\nb,2.5,u\nc,3.5,v\nd,5.5,v\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\nc,d\n")
    assert tables.read(tmp_path).columns.features == ["column height"]


def test_pandas_nameless_index_is_left_out(tmp_path: Path) -> None:
    folder(tmp_path)
    pd.read_csv(tmp_path / "nodes.csv").to_csv(tmp_path / "nodes.csv")
    graph = tables.read(tmp_path)
    assert graph.columns.features[0] == "height"
    assert list(graph.ids) == list("abcdef")


def test_a_split_column_becomes_masks(tmp_path: Path) -> None:
    nodes = "id,x,label,split\na,1,u,train\nb,2,u,VAL\nc,3,v,Training\nd,4,v,valid\ne,5,v,test\nf,6,,\n"
    split = read(tmp_path, nodes=nodes).split
    assert split is not None
    assert split.train.tolist() == [[True, False, True, False, False, False]]
    assert split.val.tolist() == [[False, True, False, True, False, False]]
    assert split.test.tolist() == [[False, False, False, False, True, False]]


def test_where_only_test_rows_are_marked_the_other_labels_train(tmp_path: Path) -> None:
    nodes = "id,x,label,split\na,1,u,\nb,2,u,\nc,3,v,\nd,4,v,\ne,5,v,test\nf,6,,\n"
    graph = read(tmp_path, nodes=nodes)
    assert graph.split is not None
    assert graph.split.train.tolist() == [[True, True, True, True, False, False]]
    assert said(graph, "no row says train")


def test_a_class_without_a_training_row_is_named(tmp_path: Path) -> None:
    nodes = "id,x,label,split\na,1,u,train\nb,2,u,val\nc,3,v,train\nd,4,v,val\ne,5,w,val\nf,6,,\n"
    graph = read(tmp_path, nodes=nodes)
    assert [note for note in graph.notes if "cannot be learned" in note] == [
        "nodes.csv: no row with label 'w' says train, so it cannot be learned"
    ]


def test_labelled_rows_outside_the_split_are_not_learned_from(tmp_path: Path) -> None:
    nodes = "id,x,label,split\na,1,u,train\nb,2,u,train\nc,3,v,train\nd,4,v,train\ne,5,v,\nf,6,,\n"
    graph = read(tmp_path, nodes=nodes)
    assert graph.split is not None
    assert not graph.split.train[0, 4]
    assert said(graph, "1 labelled row without a split not used")


@pytest.mark.parametrize("form", ["npy", "npz", "csr", "parts"])
def test_features_may_be_in_an_array_beside_the_table(tmp_path: Path, form: str) -> None:
    folder(tmp_path, nodes="id,height,label\na,1,u\nb,2,u\nc,3,v\nd,4,v\ne,5,\nf,6,\n")
    beside = np.arange(18, dtype=np.float64).reshape(6, 3) % 5
    csr = sp.csr_array(beside)
    if form == "npy":
        np.save(tmp_path / "features.npy", beside)
    elif form == "npz":
        np.savez(tmp_path / "features.npz", x=beside)
    elif form == "csr":
        sp.save_npz(tmp_path / "features.npz", sp.csr_matrix(beside))
    else:
        parts = {"x_data": csr.data, "x_indices": csr.indices, "x_indptr": csr.indptr, "x_shape": csr.shape}
        np.savez(tmp_path / "features.npz", **parts)  # type: ignore[arg-type]
    graph = tables.read(tmp_path)
    x = graph.data.x.to_dense()
    assert x.shape == (6, 4)
    assert x[:, 1:].tolist() == beside.tolist()
    assert (graph.data.x.layout == torch.sparse_csr) == (form in ("csr", "parts"))
    assert graph.columns.features == ["height", "array 0", "array 1", "array 2"]
    assert check_graph(graph.data) == 6


def test_one_npz_file_is_a_graph(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    np.savez(
        path,
        edge_index=np.array([[0, 1, 2], [1, 2, 3]]),
        y=np.array([0, 0, 2, 2]),
        x=np.eye(4),
        train_mask=np.array([1, 0, 1, 0], bool),
        val_mask=np.array([0, 1, 0, 1], bool),
        test_mask=np.zeros(4, bool),
    )
    graph = tables.read(path)
    assert graph.classes == ["0", "2"]
    assert graph.data.y.tolist() == [0, 0, 1, 1]
    assert list(graph.ids) == ["0", "1", "2", "3"]
    assert "graph.npz: 4 features a node" in graph.notes
    assert graph.data.edge_index.shape == (2, 6)
    assert tables.read(path, directed=True).data.edge_index.tolist() == [[0, 1, 2], [1, 2, 3]]
    assert graph.split is not None
    assert graph.split.val.tolist() == [[False, True, False, True]]
    second = tables.read(path, encoding=graph.columns)
    assert second.data.y.tolist() == [0, 0, 1, 1]


def test_an_npz_file_may_hold_weights_which_a_model_then_needs(tmp_path: Path) -> None:
    arrays = {"edge_index": np.array([[0, 1, 2], [1, 0, 3]]), "y": np.array([0, 0, 1, 1]), "x": np.eye(4)}
    np.savez(tmp_path / "plain.npz", **arrays)
    np.savez(tmp_path / "heavy.npz", **arrays, edge_weight=np.array([2.0, 3.0, 0.5]))
    plain, weighted = tables.read(tmp_path / "plain.npz"), tables.read(tmp_path / "heavy.npz")
    assert weighted.data.edge_weight.tolist() == [3.0, 3.0, 0.5, 0.5]
    assert tables.read(tmp_path / "heavy.npz", directed=True).data.edge_weight.tolist() == [2.0, 3.0, 0.5]
    with pytest.raises(tables.BadTables, match="fitted with edge weights, and there is no array 'edge_weight'"):
        tables.read(tmp_path / "plain.npz", encoding=weighted.columns)
    unweighted = tables.read(tmp_path / "heavy.npz", encoding=plain.columns)
    assert unweighted.data.get("edge_weight") is None
    assert said(unweighted, "fitted without edge weights; 'edge_weight' not used")


def test_an_encoding_survives_json(tmp_path: Path) -> None:
    for nodes in (NODES, "id,label\na,u\nb,u\nc,v\nd,v\ne,\nf,\n"):
        encoding = read(tmp_path, nodes=nodes).columns
        assert tables.Encoding.from_dict(json.loads(json.dumps(encoding.to_dict()))) == encoding


@pytest.mark.parametrize("plain", [{}, {"columns": 3}, {"columns": [{"kind": "odd"}]}])
def test_a_damaged_encoding_is_refused(plain: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="not an encoding as bangs writes it"):
        tables.Encoding.from_dict(plain)


def test_another_graph_is_read_with_the_first_ones_scale_levels_and_classes(tmp_path: Path) -> None:
    first = read(tmp_path)
    nodes = "extra,id,colour,height,label\n1,z,red,2,dog\n2,y,mauve,100,\n"
    graph = read(tmp_path, nodes=nodes, edges="source,target\ny,z\n", encoding=first.columns)
    assert graph.columns == first.columns
    assert graph.classes == ["cat", "dog"]
    assert graph.data.y.tolist() == [1, -1]
    assert graph.data.x[0].tolist() == pytest.approx([0, 0, 0, 1], abs=1e-6)
    assert graph.data.x[1, 1:].tolist() == [0, 0, 0]
    assert said(graph, "'mauve', unknown to the model; no category there for 1 node")
    assert said(graph, "1 column unknown to the model not used: 'extra'")


def test_labels_are_optional_for_a_fitted_encoding_and_never_guessed_from_a_feature(tmp_path: Path) -> None:
    first = read(tmp_path, nodes=NODES.replace("colour", "class"), label="label")
    graph = read(
        tmp_path, nodes="id,height,class\nz,1,red\ny,2,blue\n", edges="source,target\ny,z\n", encoding=first.columns
    )
    assert graph.data.y.tolist() == [-1, -1]
    assert graph.data.x.shape == (2, 4)


def test_given_names_need_not_be_repeated_with_an_encoding(tmp_path: Path) -> None:
    nodes = NODES.replace("id,", "beast,", 1).replace("label", "sort")
    first = read(tmp_path, nodes=nodes, id="beast", label="sort", directed=True)
    graph = read(tmp_path, nodes=nodes, encoding=first.columns)
    assert torch.equal(graph.data.x, first.data.x)
    assert torch.equal(graph.data.edge_index, first.data.edge_index)
    assert torch.equal(graph.data.y, first.data.y)


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    nodes = "id,label\na,u\nb,u\nc,v\nd,v\ne,\nf,\n"
    assert torch.equal(read(tmp_path, nodes=nodes).data.x, read(tmp_path, nodes=nodes).data.x)


@pytest.mark.data
@pytest.mark.skipif(not Path(os.environ.get("BANGS_DATA", "/nowhere"), "actor.npz").exists(), reason="no BANGS_DATA")
def test_a_real_npz_file_comes_with_its_ten_splits() -> None:
    graph = tables.read(Path(os.environ["BANGS_DATA"], "actor.npz"))
    assert graph.data.x.layout == torch.sparse_csr
    assert graph.split is not None
    assert graph.split.train.shape == (10, 7600)
    split = validation_split(graph.data.y, graph.split, seeds=range(3))
    assert torch.equal(split.val, graph.split.val[:3])
