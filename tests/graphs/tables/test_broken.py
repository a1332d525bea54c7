"""Problems in tables are reported with file, row and remedy, all at once."""

import codecs
import gzip
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from bangs.errors import BangsError
from bangs.graphs import tables
from tests.graphs.tables.sample_tables import EDGES, NODES, folder

Prepare = Callable[[Path], object]


@dataclass(frozen=True)
class Broken:
    """A broken folder, and the problem that must be reported."""

    kind: str
    problem: str  # the file, the row if there is one, and a part of the message
    remedy: str  # a part of it
    prepare: Prepare
    options: dict[str, object] = field(default_factory=dict)


def nodes(text: str | bytes | None, **others: bytes) -> Prepare:
    return lambda path: folder(path, nodes=text, **others)


def edges(text: str | bytes | None) -> Prepare:
    return lambda path: folder(path, edges=text)


def frame(**columns: object) -> Prepare:
    def prepare(path: Path) -> None:
        folder(path, nodes=None)
        pd.DataFrame(columns).to_parquet(path / "nodes.parquet")

    return prepare


def npy(array: object, pickled: bool = False) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array), allow_pickle=pickled)
    return stream.getvalue()


def npz(**arrays: object) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def csc() -> bytes:
    stream = io.BytesIO()
    sp.save_npz(stream, sp.csc_matrix(np.eye(6)))
    return stream.getvalue()


def masked(train: list[bool]) -> bytes:
    none = np.zeros(3, bool)
    arrays = {"edge_index": np.array([[0], [1]]), "y": np.array([0, 1, -1]), "train_mask": np.array(train)}
    return npz(**arrays, val_mask=none, test_mask=none)


CSR = {"x_data": [1.0, 2.0], "x_indices": [0, 1], "x_indptr": [0, 1, 1, 2, 2, 2, 2], "x_shape": [6, 2]}


SPLIT = "id,x,label,split\na,1,u,train\nb,2,u,train\nc,3,v,train\nd,4,v,train\ne,5,,{}\nf,6,,\n"
NUMBERED = "id,x,label\n1,5,u\n2,6,u\n03,7,v\nB,8,v\n"

BROKEN = [
    Broken("no-folder", "nowhere: does not exist", "give a folder", lambda p: p / "nowhere"),
    Broken(
        "no-folder", "nodes.csv: neither a folder nor an .npz file", "give a folder", lambda p: folder(p) / "nodes.csv"
    ),
    Broken(
        "comment",
        "edges.csv, row 1: it begins with a comment, '# made by hand'",
        "delete such rows",
        edges("# made by hand\n" + EDGES),
    ),
    Broken(
        "no-table",
        "edges.csv: it holds 'edges.csv.gz', 'nodes.csv'",
        "unpack 'edges.csv.gz'",
        lambda p: (folder(p) / "edges.csv").rename(p / "edges.csv.gz") and None,
    ),
    Broken(
        "no-table",
        "edges.csv: it holds 'edges.xlsx', 'nodes.csv'",
        "save the sheet of 'edges.xlsx' as 'CSV UTF-8' under the name edges.csv",
        lambda p: (folder(p) / "edges.csv").rename(p / "edges.xlsx") and None,
    ),
    Broken("no-table", "edges.csv: no edges.csv, edges.tsv or", "put the edges", edges(None)),
    Broken(
        "no-table",
        "nodes.csv: it holds 'Node.csv', 'edges.csv'",
        "rename 'Node.csv'",
        lambda p: (folder(p) / "nodes.csv").rename(p / "Node.csv") and None,
    ),
    Broken(
        "two-tables", "nodes: both nodes.csv and nodes.tsv", "remove or rename one", nodes(NODES, nodes__tsv=b"id\n")
    ),
    Broken("empty", "nodes.csv: the file is empty", "column names in the first row", nodes("")),
    Broken("empty", "edges.csv: the file is empty", "first row", edges("\ufeff \n\n ")),
    Broken("no-rows", "nodes.csv: a header and no rows", "needs nodes", nodes("id,label\n")),
    Broken("no-rows", "edges.csv: no rows", "needs edges", edges("source,target")),
    Broken("no-header", "nodes.csv: the first row is blank", "name", nodes("\n" + NODES)),
    Broken("no-header", "edges.csv: its first row, '1', '2', holds numbers", "source,target", edges("1,2\n2,3\n")),
    Broken("no-header", "edges.csv: its first row, 'a', 'f', names nodes", "source,target", edges("a,f\nb,c\n")),
    Broken(
        "too-wide",
        "nodes.csv: it has 4 columns, 3 are allowed",
        "features.npz",
        nodes(NODES),
        {"limits": tables.Limits(columns=3)},
    ),
    Broken(
        "too-wide",
        "nodes.csv: its 2 columns become 4 features of 6 nodes, more than 20 numbers",
        "--ignore",
        nodes(NODES),
        {"limits": tables.Limits(cells=20)},
    ),
    Broken(
        "too-large",
        "nodes.csv: bytes, 80 are allowed",
        "take a part",
        nodes(NODES),
        {"limits": tables.Limits(bytes=80)},
    ),
    Broken(
        "too-large",
        "nodes.csv: it has 6 rows, 5 are allowed",
        "take a part",
        nodes(NODES),
        {"limits": tables.Limits(nodes=5)},
    ),
    Broken("not-text", "nodes.csv: Excel workbook", "CSV UTF-8", nodes(b"PK\x03\x04abc")),
    Broken("not-text", "nodes.csv: gzip", "unpack", nodes(gzip.compress(NODES.encode()))),
    Broken("not-text", "nodes.csv: Parquet", ".parquet", nodes(b"PAR1\x15\x04")),
    Broken("not-text", "edges.csv: binary data", "UTF-8", edges(b"source,target\na\0,b\n")),
    Broken("not-utf8", "nodes.csv: UTF-16", "UTF-8", nodes(codecs.BOM_UTF16_LE + NODES.encode("utf-16-le"))),
    Broken(
        "not-utf8",
        "nodes.csv, row 4: not UTF-8 text (byte 0xe9); it may be Latin-1",
        "iconv",
        nodes(NODES.replace("c,0.5,red", "c,0.5,doré").encode("latin-1")),
    ),
    Broken(
        "not-utf8",
        "edges.csv, row 300,002: not UTF-8 text",
        "iconv",
        edges(b"source,target\n" + b"a,b\n" * 300_000 + b"a,\xe9\n"),
    ),
    Broken(
        "not-utf8",
        "edges.csv, row 300,002: not UTF-8 text",
        "iconv",
        edges(b"source,target\n" + b"a,b\n" * 300_000 + b"a,b,\xe9\n"),
    ),
    Broken(
        "duplicate-column",
        "nodes.csv: names 'height' twice, in columns 2 and 3",
        "its own name",
        nodes(NODES.replace("colour", "height")),
    ),
    Broken(
        "ragged-row",
        "nodes.csv, row 4: it has 2 values, the header has 4: 'c,0.5'",
        "a comma in it needs quotes",
        nodes(NODES.replace("c,0.5,red,dog", "c,0.5")),
    ),
    Broken(
        "ragged-row",
        "edges.csv, row 5: it has 3 values, the header has 2: 'a,b,c'",
        "one value per column",
        edges("source,target\na,b\n\nc,d\na,b,c\n"),
    ),
    Broken(
        "open-quote",
        "nodes.csv, row 5: never closed",
        "close it",
        nodes(NODES.replace("d,3.5,blue,dog", 'd,3.5,blue,"dog')),
    ),
    Broken(
        "unknown-node",
        "edges.csv, row 4: target 'zoe' is not a node of nodes.csv",
        "add the node to nodes.csv, or delete the edge",
        edges(EDGES.replace("a,c", "a,zoe")),
    ),
    Broken("unknown-node", "edges.csv, row 2: 'A' is not", "capital letters", edges(EDGES.upper())),
    Broken(
        "unknown-node",
        "edges.csv, row 2: source 'n-1' is not a node",
        "punctuation or spaces",
        lambda p: folder(p, "id,x,label\nn1,1,u\nn 2,2,v\n", "source,target\nn-1,n2\n"),
    ),
    Broken(
        "unknown-node",
        "edges.csv, row 2: source '01' is not a node",
        "leading zeros",
        lambda p: folder(p, NUMBERED, "source,target\n01,2\n2,B\n"),
    ),
    Broken(
        "unknown-node",
        "edges.csv, row 2: is not a node",
        "how accented letters are stored (Unicode NFC or NFD)",
        lambda p: folder(p, NODES.replace("\na,", "\nZo\u00eb,"), EDGES.replace("a,", "Zoe\u0308,")),
    ),
    Broken(
        "unknown-node",
        "edges.csv, row 2: source 'a' is not a node of nodes.csv",
        "ids were looked for in column 'name'; these are in another column, so use --id 'short name'",
        lambda p: folder(p, NODES.replace("id,height", "short name,name")),
    ),
    Broken(
        "unknown-node",
        "edges.csv, row 2: source 'v' is not a node of nodes.csv",
        "ids were looked for in column 'id'; --id names another",
        edges("source,target\nv,w\nw,x\n"),
    ),
    Broken("blank-end", "edges.csv, row 3: the target is blank", "two nodes", edges("source,target\na,b\nc,\n")),
    *(
        Broken(
            "bad-weight",
            f"edges.csv, row 3: the weight is '{weight}', not a number",
            "correct it",
            edges(f"source,target,weight\na,b,1\nc,d,{weight}\n"),
        )
        for weight in ("heavy", "-1", "", "nan", "inf")
    ),
    Broken("blank-id", "nodes.csv, row 4: the id (column 'id') is blank", "an id", nodes(NODES.replace("c,", ",", 1))),
    Broken(
        "duplicate-id",
        "nodes.csv, row 5: id 'c' is already in row 4",
        "an id of its own",
        nodes(NODES.replace("d,3.5", "c,3.5")),
    ),
    Broken("no-id-column", "nodes.csv: no column looks like an id", "--id COLUMN", nodes("size,label\n1,u\n1,v\n")),
    Broken(
        "no-label-column",
        "nodes.csv: (label, class, y …); the table has 'id', 'height', 'colour', 'species'",
        "--label COLUMN",
        nodes(NODES.replace("label", "species")),
    ),
    Broken(
        "no-labels",
        "nodes.csv: no node has a label",
        "label some nodes",
        nodes(NODES.replace("cat", "").replace("dog", "")),
    ),
    Broken("one-class", "nodes.csv: every label is 'cat'", "two classes", nodes(NODES.replace("dog", "cat"))),
    Broken(
        "label-once",
        "nodes.csv, row 6: label 'emu' is seen once",
        "name the validation nodes in a column 'split'",
        nodes(NODES.replace("green,\nf", "green,emu\nf")),
        {"two_labels": True},
    ),
    Broken(
        "no-such-column",
        "nodes.csv: --label names column 'lable', which is not there",
        "did you mean 'label'",
        nodes(NODES),
        {"label": "lable"},
    ),
    Broken(
        "no-such-column",
        "nodes.csv: --categorical names column 'color', which is not there",
        "did you mean 'colour'?",
        nodes(NODES),
        {"categorical": ["color"]},
    ),
    Broken(
        "no-such-column",
        "nodes.csv: --ignore names column 'weight', which is not there",
        "did you mean 'height'?",
        nodes(NODES),
        {"ignore": ["weight"]},
    ),
    Broken(
        "no-such-column",
        "edges.csv: --target names column 'sink'",
        "name one of these",
        nodes(NODES),
        {"target": "sink"},
    ),
    Broken(
        "column-twice",
        "nodes.csv: 'id' cannot be the label and something else",
        "its own column",
        nodes(NODES),
        {"id": "id", "label": "id"},
    ),
    Broken(
        "no-end-column",
        "edges.csv: no column looks like the source or the target",
        "--source COLUMN",
        edges("pair\na-b\n"),
    ),
    Broken(
        "not-a-number",
        "nodes.csv, row 3: column 'height' holds 'tall', which is not a number",
        "--categorical",
        nodes(NODES.replace("2.5", "tall")),
    ),
    *(
        Broken(
            "missing-number",
            f"nodes.csv, row 3: column 'height' holds '{cell}', where a number should be",
            "--fill mean",
            nodes(NODES.replace("2.5", cell)),
        )
        for cell in ("", "NaN", "NA", "null", "?")
    ),
    *(
        Broken(
            "not-finite",
            f"nodes.csv, row 3: column 'height' holds '{cell}', which is infinite or beyond",
            "--ignore",
            nodes(NODES.replace("2.5", cell)),
        )
        for cell in ("inf", "-Infinity", "1e400", "-2e30")
    ),
    Broken(
        "split-word", "nodes.csv, row 6: the split says 'maybe'", "train, val or test", nodes(SPLIT.format("maybe"))
    ),
    Broken(
        "split-without-label",
        "nodes.csv, row 6: says 'val', but there is no label",
        "label the node",
        nodes(SPLIT.format("val")),
    ),
    Broken(
        "no-training",
        "nodes.csv: leaves no node for training",
        "write train",
        nodes(SPLIT.format("").replace("train", "test")),
    ),
    Broken("only-loops", "edges.csv: to itself", "between nodes", edges("source,target\na,a\nb,b\n")),
    Broken(
        "unreadable",
        "nodes.parquet: not a readable Parquet file",
        "write it again",
        nodes(None, nodes__parquet=b"PAR1 and nothing else"),
    ),
    Broken(
        "column-type",
        "nodes.parquet: column 'vector' holds list<",
        "features.npy",
        frame(id=list("abcdef"), label=["u", "u", "v", "v", None, None], vector=[[1.0, 2.0]] * 6),
    ),
    Broken(
        "array-rows",
        "features.npy: it has 5 rows, the node table has 6",
        "in the order",
        nodes(NODES, features__npy=npy(np.ones((5, 2)))),
    ),
    Broken(
        "bad-array", "features.npy: shape [N, F], got [6]", "numpy.save", nodes(NODES, features__npy=npy(np.ones(6)))
    ),
    Broken(
        "bad-array",
        "features.npy: objects and text are not read",
        "numpy.save",
        nodes(NODES, features__npy=npy([[print]] * 6, pickled=True)),
    ),
    Broken(
        "array-not-finite",
        "features.npy: row 1, counted from 0, holds NaN",
        "fill or drop",
        nodes(NODES, features__npy=npy([[1.0], [np.nan], [1.0], [1.0], [1.0], [1.0]])),
    ),
    Broken("bad-array", "features.npz: not a valid .npz", "numpy", nodes(NODES, features__npz=b"PK?")),
    Broken(
        "bad-array", "features.npz: holds no array 'x'", "numpy.savez", nodes(NODES, features__npz=npz(z=np.eye(6)))
    ),
    Broken("bad-array", "features.npz: not in CSR form", "scipy", nodes(NODES, features__npz=csc())),
    Broken(
        "bad-array",
        "features.npz: the column numbers of the sparse matrix must be 0 … 1",
        "scipy",
        nodes(NODES, features__npz=npz(**{**CSR, "x_indices": [0, 9]})),
    ),
    Broken(
        "bad-array",
        "graph.npz: graph.npz has no array 'y'",
        "numpy.savez",
        lambda p: folder(p, graph__npz=npz(edge_index=np.array([[0], [1]]))) / "graph.npz",
    ),
    Broken(
        "unreadable",
        "edges.csv: a row is longer than 16 MiB",
        "quotation mark that is not closed",
        edges(b"source,target\na,b\na," + b"b" * 2**25 + b"\n"),
    ),
    Broken(
        "two-tables",
        "features: both features.npz and features.npy",
        "remove or rename one",
        nodes(NODES, features__npy=npy(np.eye(6)), features__npz=npz(x=np.eye(6))),
    ),
    Broken(
        "array-not-finite",
        "features.npz: row 2, counted from 0, holds NaN",
        "fill or drop",
        nodes(NODES, features__npz=npz(**{**CSR, "x_data": [1.0, np.nan]})),
    ),
    Broken(
        "bad-array",
        "features.npz: must be two whole numbers",
        "scipy",
        nodes(NODES, features__npz=npz(**{**CSR, "x_shape": [6.0, 2.0]})),
    ),
    Broken(
        "bad-array",
        "features.npz: shape [N, F], got [6, 0]",
        "scipy",
        nodes(NODES, features__npz=npz(**{**CSR, "x_shape": [6, 0]})),
    ),
    Broken(
        "too-large",
        "nodes.parquet: it holds 6 rows and 2 columns",
        "at most 1 columns",
        frame(id=list("abcdef"), label=list("uuvvuv")),
        {"limits": tables.Limits(columns=1)},
    ),
    Broken(
        "one-class",
        "graph.npz: every label is 0",
        "two classes",
        lambda p: folder(p, graph__npz=npz(edge_index=np.array([[0], [1]]), y=np.array([0, 0]))) / "graph.npz",
    ),
    Broken(
        "split-without-label",
        "graph.npz: node 2 is in train_mask or val_mask",
        "take it out of the mask",
        lambda p: folder(p, graph__npz=masked(train=[True, True, True])) / "graph.npz",
    ),
    Broken(
        "no-training",
        "graph.npz: train_mask holds no node",
        "some labelled ones",
        lambda p: folder(p, graph__npz=masked(train=[False, False, False])) / "graph.npz",
    ),
    Broken(
        "label-once",
        "graph.npz: label '1' is seen once",
        "name the validation nodes in masks",
        lambda p: folder(p, graph__npz=npz(edge_index=np.array([[0], [1]]), y=np.array([0, 0, 1]))) / "graph.npz",
        {"two_labels": True},
    ),
]


@pytest.mark.parametrize("broken", BROKEN, ids=[broken.problem for broken in BROKEN])
def test_a_problem_is_reported_with_file_row_and_remedy(tmp_path: Path, broken: Broken) -> None:
    prepared = broken.prepare(tmp_path)
    with pytest.raises(tables.BadTables) as caught:
        tables.read(prepared if isinstance(prepared, Path) else tmp_path, **broken.options)  # type: ignore[arg-type]
    location, _, message = broken.problem.partition(": ")
    file = location.partition(", row ")[0]
    first = next(problem for problem in caught.value.diagnostics if (problem.kind, problem.file) == (broken.kind, file))
    assert str(first).startswith(f"{location}: ")
    assert message in first.message
    assert broken.remedy in first.remedy
    assert first.message in str(caught.value)
    assert first.remedy in str(caught.value)
    assert isinstance(caught.value, BangsError)


def test_there_are_at_least_twenty_five_kinds() -> None:
    assert len({broken.kind for broken in BROKEN}) >= 25


FITTED: list[tuple[str, str, str, str]] = [
    ("colour", NODES.replace("colour", "hue"), EDGES, "fitted with column 'colour', which is not here"),
    ("class", NODES.replace("cat", "emu"), EDGES, "unknown label 'emu'; the model knows 'cat', 'dog'"),
    ("number", NODES.replace("2.5", "tall"), EDGES, "column 'height' holds 'tall', which is not a number"),
    ("far", NODES.replace("2.5", "9e29"), EDGES, "column 'height' holds '9e29', far beyond"),
    ("blank", NODES.replace("2.5", ""), EDGES, "column 'height' holds '', where a number should be"),
    ("old node", "\n".join([*NODES.split("\n")[:4], "new,1,red,"]), EDGES, "must hold those of the fitted graph too"),
]


@pytest.mark.parametrize(("nodes", "edges", "message"), [case[1:] for case in FITTED], ids=[case[0] for case in FITTED])
def test_a_graph_that_does_not_fit_the_model_is_refused(tmp_path: Path, nodes: str, edges: str, message: str) -> None:
    encoding = tables.read(folder(tmp_path)).columns
    with pytest.raises(tables.BadTables, match=message):
        tables.read(folder(tmp_path, nodes, edges), encoding=encoding)


def test_a_model_with_weights_refuses_edges_without(tmp_path: Path) -> None:
    weighted = "source,target,weight\na,b,2\nc,d,1\n"
    encoding = tables.read(folder(tmp_path, edges=weighted)).columns
    with pytest.raises(tables.BadTables, match="fitted with edge weights, but no column of 'source', 'target'"):
        tables.read(folder(tmp_path), encoding=encoding)


def test_a_model_without_weights_does_not_use_them(tmp_path: Path) -> None:
    encoding = tables.read(folder(tmp_path)).columns
    graph = tables.read(folder(tmp_path, edges="source,target,weight\na,b,2\nc,d,1\n"), encoding=encoding)
    assert graph.data.get("edge_weight") is None
    assert any("fitted without edge weights; 'weight' not used" in note for note in graph.notes)


def test_an_array_of_another_width_is_refused(tmp_path: Path) -> None:
    encoding = tables.read(folder(tmp_path, features__npy=npy(np.eye(6)))).columns
    folder(tmp_path, features__npy=npy(np.eye(6)[:, :4]))
    with pytest.raises(tables.BadTables, match="fitted with an array of 6 features, here it has 4"):
        tables.read(tmp_path, encoding=encoding)


def test_a_model_of_tables_refuses_an_npz_file(tmp_path: Path) -> None:
    encoding = tables.read(folder(tmp_path)).columns
    folder(tmp_path, graph__npz=npz(edge_index=np.array([[0], [1]]), y=np.array([0, 1])))
    with pytest.raises(tables.BadTables, match="unknown labels '0', '1'; the model knows 'cat', 'dog'"):
        tables.read(tmp_path / "graph.npz", encoding=encoding)


def test_all_problems_of_both_files_are_reported_at_once(tmp_path: Path) -> None:
    bad_nodes = NODES.replace("2.5", "").replace("d,3.5", "c,3.5").replace("blue", "b\x1b[31mlue")
    bad_edges = "source,target,weight\na,zoe,1\nb,c,-2\n"
    with pytest.raises(tables.BadTables) as caught:
        tables.read(folder(tmp_path, bad_nodes, bad_edges))
    kinds = {problem.kind for problem in caught.value.diagnostics}
    assert kinds == {"duplicate-id", "missing-number", "unknown-node", "bad-weight"}
    assert caught.value.total == 4
    assert "4 problems" in str(caught.value)


def test_the_first_twenty_of_a_kind_are_shown_and_the_rest_counted(tmp_path: Path) -> None:
    rows = "".join(f"a,ghost {i}\n" for i in range(1254))
    with pytest.raises(tables.BadTables, match="… and 1,234 more") as caught:
        tables.read(folder(tmp_path, edges="source,target\n" + rows))
    assert len(caught.value.diagnostics) == 20
    assert caught.value.total == 1254
    assert "row 21: target 'ghost 19'" in str(caught.value)
    assert "ghost 20" not in str(caught.value)


def test_a_hostile_value_cannot_speak_to_the_terminal(tmp_path: Path) -> None:
    with pytest.raises(tables.BadTables) as caught:
        tables.read(folder(tmp_path, edges="source,target\na,\x1b]0;owned\x07" + "x" * 500 + "\n"))
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_problem_reads_as_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(tables.BadTables) as caught:
        tables.read(folder(tmp_path, edges=EDGES.replace("a,c", "a,zoe")))
    assert str(caught.value.diagnostics[0]) == (
        "edges.csv, row 4: target 'zoe' is not a node of nodes.csv; add the node to nodes.csv, or delete the edge; "
        "--unknown-edges drop or add does so for all"
    )


def test_a_parquet_file_that_swells_is_not_unpacked(tmp_path: Path) -> None:
    folder(tmp_path, nodes=None)
    rows = 20_000
    swollen = pd.DataFrame(
        {"id": [f"n{i}" for i in range(rows)], "label": ["u", "v"] * (rows // 2), "text": ["x" * 1000] * rows}
    )
    swollen.to_parquet(tmp_path / "nodes.parquet")
    assert (tmp_path / "nodes.parquet").stat().st_size < 500_000
    with pytest.raises(tables.BadTables, match=r"column 'text' holds dictionary.*or too much of it"):
        tables.read(tmp_path, limits=tables.Limits(bytes=10**6))


def test_a_model_without_an_array_does_not_use_one(tmp_path: Path) -> None:
    encoding = tables.read(folder(tmp_path)).columns
    graph = tables.read(folder(tmp_path, features__npy=npy(np.eye(6))), encoding=encoding)
    assert graph.data.x.shape == (6, 4)
    assert any("fitted without an array of features; not used" in note for note in graph.notes)
