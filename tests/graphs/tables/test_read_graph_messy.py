"""Messy tables are read correctly with a note, or refused with the option that decides."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from bangs.errors import InvalidInput
from bangs.graphs import tables
from bangs.graphs.store import convert_from, read_user_graph
from bangs.graphs.tables.dates import FORMATS, read_dates
from bangs.graphs.tables.fitted_encoding import Date
from bangs.graphs.tables.read_options import ReadOptions
from tests.graphs.tables.messy_folders import FOLDERS, write
from tests.graphs.tables.sample_tables import EDGES, NODES, edges_of, folder


def labelled(*labels: str) -> str:
    """A node table with these labels."""
    return "id,x,label\n" + "".join(f"{'abcdefgh'[i]},{i},{label}\n" for i, label in enumerate(labels))


PLACEHOLDERS = ["unknown", "Unlabeled", "TBD", "missing", "to do", "TODO", "not labelled", "unassigned"]


@pytest.mark.parametrize("placeholder", PLACEHOLDERS)
def test_a_placeholder_label_is_refused_until_an_option_decides(tmp_path: Path, placeholder: str) -> None:
    folder(tmp_path, labelled("u", "u", "v", "v", placeholder, placeholder, "NA"))
    with pytest.raises(tables.BadTables, match=rf"label '{placeholder}' in 2 rows looks like a word") as caught:
        tables.read(tmp_path)
    unknown, keep = f"--unknown '{placeholder}' --unknown 'NA'", f"--keep '{placeholder}'"
    assert f"if this means no label, add {unknown}; if this is a class, add {keep}" in str(caught.value)
    unknown = tables.read(tmp_path, unknown=[placeholder, "NA"])
    assert unknown.classes == ["u", "v"]
    assert unknown.data.y.tolist() == [0, 0, 1, 1, -1, -1, -1]
    keeping = tables.read(tmp_path, keep=[placeholder])
    assert sorted(keeping.classes) == sorted(["u", "v", placeholder])
    assert keeping.data.y.tolist()[6] == -1


def test_n_a_means_unknown_unless_the_option_unknown_names_other_labels(tmp_path: Path) -> None:
    folder(tmp_path, labelled("u", "u", "v", "v", "n/a", "n/a", "?"))
    assert tables.read(tmp_path).classes == ["u", "v"]
    with pytest.raises(tables.BadTables, match="label 'n/a' in 2 rows looks like"):
        tables.read(tmp_path, unknown=["?"])
    assert tables.read(tmp_path, keep=["n/a"]).classes == ["n/a", "u", "v"]


def test_a_misspelled_label_to_keep_is_reported(tmp_path: Path) -> None:
    folder(tmp_path, labelled("u", "u", "v", "v", "unknown", "unknown"))
    with pytest.raises(tables.BadTables, match="--keep names label 'unknwon', which no node has") as stop:
        tables.read(tmp_path, keep=["unknwon"])
    assert "did you mean 'unknown'?" in str(stop.value)


def test_placeholder_labels_are_stored_in_the_encoding(tmp_path: Path) -> None:
    first = tables.read(folder(tmp_path, labelled("u", "u", "v", "v", "TBD", "TBD")), unknown=["TBD"])
    second = tables.read(folder(tmp_path, labelled("u", "TBD", "v", "v", "TBD", "")), encoding=first.columns)
    assert second.data.y.tolist() == [0, -1, 1, 1, -1, -1]


def test_spellings_of_a_class_are_refused_until_an_option_decides(tmp_path: Path) -> None:
    folder(tmp_path, labelled("Cat", "cat", "cat", "dog", "dog", "DOG"))
    with pytest.raises(tables.BadTables) as caught:
        tables.read(tmp_path)
    assert [problem.message for problem in caught.value.diagnostics if problem.kind == "label-case"] == [
        "labels 'cat', 'Cat' differ in capital letters only",
        "labels 'dog', 'DOG' differ in capital letters only",
    ]
    assert "add --labels-ignore-case" in str(caught.value)
    merged = tables.read(tmp_path, labels_ignore_case=True)
    assert merged.classes == ["cat", "dog"]
    assert merged.data.y.tolist() == [0, 0, 0, 1, 1, 1]
    assert "nodes.csv: labels 'cat', 'Cat' are one class, 'cat'" in merged.notes
    second = tables.read(folder(tmp_path, labelled("CAT", "Dog", "", "", "", "")), encoding=merged.columns)
    assert second.data.y.tolist()[:2] == [0, 1]
    folder(tmp_path, labelled("Cat", "Cat", "cat", "cat", "dog", "dog"))
    assert tables.read(tmp_path, keep=["Cat", "cat"]).classes == ["Cat", "cat", "dog"]


FLOATS = (
    "id,x,label\n1000,1,u\n1001,2,u\n1002,3,v\n1003,4,v\n",
    "source,target\n1000.0,1001\n1001,1002.0\n1002,1003\n",
)


@pytest.mark.parametrize("zeros_in_nodes", [False, True], ids=["edges", "nodes"])
def test_ids_with_a_trailing_zero_are_found_where_that_is_unambiguous(tmp_path: Path, zeros_in_nodes: bool) -> None:
    nodes, edges = FLOATS
    if zeros_in_nodes:
        nodes, edges = nodes.replace("\n1000,", "\n1000.0,").replace("\n1002,", "\n1002.0,"), edges.replace(".0", "")
    graph = tables.read(folder(tmp_path, nodes, edges))
    assert edges_of(graph.data).keys() == {(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)}
    assert any("differ in a trailing '.0', as '1000" in note for note in graph.notes)
    convert_from(str(tmp_path), tmp_path / "store")
    assert edges_of(read_user_graph(tmp_path / "store").data) == edges_of(graph.data)


def test_an_ambiguous_trailing_zero_is_not_guessed(tmp_path: Path) -> None:
    nodes = "id,x,label\n1000,1,u\n1000.0,2,u\n1002,3,v\n1003,4,v\n"
    graph = tables.read(folder(tmp_path, nodes, "source,target\n1000.0,1002\n1000,1003\n"))
    assert edges_of(graph.data).keys() == {(1, 2), (2, 1), (0, 3), (3, 0)}
    with pytest.raises(tables.BadTables, match=r"source '1000\.00' is not a node"):
        tables.read(folder(tmp_path, nodes, "source,target\n1000.00,1002\n1000,1003\n"))


def test_a_hint_about_spelling_stays_when_some_ids_are_truly_missing(tmp_path: Path) -> None:
    with pytest.raises(tables.BadTables, match=r"2 of 3 differ from ids of nodes.csv in capital letters only"):
        tables.read(folder(tmp_path, edges="source,target\nA,b\nB,c\na,zoe\n"))


STRAYS = "source,target\na,b\na,zoe\nc,d\nyan,zoe\n"


@pytest.mark.parametrize("form", ["memory", "disk"])
def test_edges_to_unknown_nodes_are_refused_dropped_or_added(tmp_path: Path, form: str) -> None:
    folder(tmp_path, edges=STRAYS)
    np.save(tmp_path / "features.npy", np.ones((6, 2)))

    def read(choice: str) -> tables.UserGraph:
        if form == "memory":
            return tables.read(tmp_path, unknown_edges=choice)
        convert_from(str(tmp_path), tmp_path / choice, options=ReadOptions(unknown_edges=choice))
        return read_user_graph(tmp_path / choice)

    with pytest.raises(tables.BadTables, match="--unknown-edges drop or add does so for all"):
        read("refuse")
    dropped = read("drop")
    assert edges_of(dropped.data).keys() == {(0, 1), (1, 0), (2, 3), (3, 2)}
    assert "edges.csv: 2 edges to unknown nodes dropped: 'yan', 'zoe'" in dropped.notes
    added = read("add")
    assert list(added.ids) == ["a", "b", "c", "d", "e", "f", "yan", "zoe"]
    assert {(0, 7), (6, 7)} <= edges_of(added.data).keys()
    assert added.data.y.tolist()[6:] == [-1, -1]
    assert added.data.x[:6].tolist() == dropped.data.x.tolist()
    assert not added.data.x[6:].any()
    assert "edges.csv: 2 nodes added that nodes.csv has not: 'yan', 'zoe'" in added.notes


def test_where_every_edge_is_dropped_there_is_no_graph(tmp_path: Path) -> None:
    with pytest.raises(tables.BadTables, match="every edge has an unknown end"):
        tables.read(folder(tmp_path, edges="source,target\nx,y\n"), unknown_edges="drop")


def test_another_word_for_unknown_edges_is_refused() -> None:
    with pytest.raises(InvalidInput, match="--unknown-edges must be one of refuse, drop, add, got 'ignore'"):
        ReadOptions(unknown_edges="ignore")


DATES = ["2019-01-15", "2020-07-01", "2021-02-28", "2022-12-31", "2020-02-29", "2019-06-30"]


def dated(path: Path, dates: list[str], form: str = "csv") -> Path:
    folder(path, nodes=None)
    nodes = pd.DataFrame({"id": list("abcdef"), "seen": dates, "label": ["u", "u", "v", "v", "", ""]})
    if form == "csv":
        nodes.to_csv(path / "nodes.csv", index=False)
    else:
        nodes.assign(seen=pd.to_datetime(nodes["seen"])).to_parquet(path / "nodes.parquet")
    return path


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_dates_become_days_and_the_time_of_the_year(tmp_path: Path, form: str) -> None:
    graph = tables.read(dated(tmp_path, DATES, form))
    assert graph.columns.features == ["seen", "seen (sin of year)", "seen (cos of year)"]
    days = (pd.to_datetime(pd.Series(DATES)) - pd.Timestamp(0)).dt.days.to_numpy()
    x = graph.data.x.numpy()
    assert x[:, 0] == pytest.approx((days - days.mean()) / days.std(), abs=1e-5)
    passed = pd.to_datetime(pd.Series(DATES)).dt.day_of_year.to_numpy() - 1
    assert x[:, 1] == pytest.approx(np.sin(2 * np.pi * passed / 365.25), abs=1e-5)
    expected = "'seen' holds dates (year-month-day), which become days since 1970, sine"
    assert any(expected in note for note in graph.notes)
    assert tables.Encoding.from_dict(graph.columns.to_dict()) == graph.columns


@pytest.mark.parametrize(
    ("form", "dates"),
    [
        ("day.month.year", ["15.01.2019", "1.7.2020", "28.02.2021", "31.12.2022", "29.02.2020", "30.06.2019"]),
        ("day/month/year", ["15/01/2019", "01/07/2020", "28/02/2021", "31/12/2022", "29/02/2020", "30/06/2019"]),
        ("month/day/year", ["01/15/2019", "07/01/2020", "02/28/2021", "12/31/2022", "02/29/2020", "06/30/2019"]),
        ("year-month-day", [f"{date}T00:00:00Z" for date in DATES]),
        ("year-month-day", [date.replace("-", "/") for date in DATES]),
    ],
)
def test_the_same_days_in_any_format_are_the_same_features(tmp_path: Path, form: str, dates: list[str]) -> None:
    plain = tables.read(dated(tmp_path, DATES))
    graph = tables.read(dated(tmp_path, dates))
    assert graph.data.x.tolist() == plain.data.x.tolist()
    (column,) = graph.columns.columns
    assert isinstance(column, Date)
    assert column.form == form


def test_dates_with_ambiguous_days_and_months_become_categories_with_a_note(tmp_path: Path) -> None:
    graph = tables.read(dated(tmp_path, ["01/02/2020", "03/04/2020", "05/06/2020"] * 2))
    assert len(graph.columns.features) == 3
    assert any("where day and month cannot be told apart" in note for note in graph.notes)


def test_dates_within_a_year_are_days_alone_and_one_date_is_left_out(tmp_path: Path) -> None:
    within = [f"2020-0{i + 1}-01" for i in range(6)]
    assert tables.read(dated(tmp_path, within)).columns.features == ["seen"]
    constant = tables.read(dated(tmp_path, ["2020-01-01"] * 6))
    assert constant.columns.left_out == ("seen",)


def test_a_cell_that_is_no_date_is_reported_and_a_blank_one_can_be_filled(tmp_path: Path) -> None:
    with pytest.raises(tables.BadTables) as caught:
        tables.read(dated(tmp_path, [*DATES[:4], "soon", ""]))
    assert [problem.message for problem in caught.value.diagnostics] == [
        "column 'seen' holds 'soon', which is not a date",
        "column 'seen' holds '', where a date should be",
    ]
    filled = tables.read(dated(tmp_path, [*DATES[:5], ""]), fill="mean")
    assert filled.data.x[5].tolist() == [0, 0, 0]
    categorical = tables.read(dated(tmp_path, [*DATES[:4], "soon", ""]), categorical=["seen"])
    assert len(categorical.columns.features) == 5


def test_impossible_dates_are_not_read() -> None:
    for form in FORMATS:
        assert np.isnan(read_dates(pa.array(["2023-02-29", "2020-13-01", "1.1.20", "x", ""]), form)).all()


def test_a_table_of_a_fitted_model_is_read_by_the_format_it_was_fitted_with(tmp_path: Path) -> None:
    fitted = tables.read(dated(tmp_path, DATES)).columns
    reversed_dates = tables.read(dated(tmp_path, DATES[::-1]), encoding=fitted)
    assert reversed_dates.data.x.tolist() == tables.read(dated(tmp_path, DATES)).data.x.tolist()[::-1]
    with pytest.raises(tables.BadTables, match=r"'15.01.2019', which is not a date"):
        tables.read(dated(tmp_path, ["15.01.2019", *DATES[1:]]), encoding=fitted)


def test_the_notes_of_the_sample_tables(tmp_path: Path) -> None:
    assert tables.read(folder(tmp_path, NODES, EDGES)).notes == [
        "nodes.csv: id from 'id', label from 'label'",
        "nodes.csv: 4 labels of 6 nodes in 'cat', 'dog'",
        "nodes.csv: 1 numeric column 'height'",
        "nodes.csv: 1 categorical column 'colour'",
        "edges.csv: source from 'source', target from 'target'",
        "edges.csv: 5 rows make 5 undirected edges",
    ]


def test_a_blank_among_counts_is_filled_with_their_mean_though_they_are_not_centred(tmp_path: Path) -> None:
    nodes = "id,count,label\na,0,u\nb,3,u\nc,6,v\nd,,v\n"
    graph = tables.read(folder(tmp_path, nodes, "source,target\na,b\nc,zoe\n"), fill="mean", unknown_edges="add")
    assert graph.data.x.flatten().tolist() == [0, 3, 6, 3, 3]
    assert tables.Encoding.from_dict(graph.columns.to_dict()) == graph.columns
    second = tables.read(tmp_path, encoding=graph.columns, unknown_edges="add")
    assert second.data.x.tolist() == graph.data.x.tolist()


def test_a_column_is_offered_only_where_its_name_is_near(tmp_path: Path) -> None:
    folder(tmp_path)
    with pytest.raises(tables.BadTables, match=r"--ignore names column 'nosuch'[^→]*→ name one of these"):
        tables.read(tmp_path, ignore=["nosuch"])
    with pytest.raises(tables.BadTables, match=r"did you mean 'height'\?"):
        tables.read(tmp_path, ignore=["hieght"])


# the note or the error of each folder as it comes; where it is an error, the options that read it
MESSY: dict[str, tuple[str, dict[str, object]]] = {
    "Excel's semicolons": ("column 'height' is written with decimal commas; read so", {}),
    "float ids": ("30 ends of edges found by ids that differ in a trailing '.0'", {}),
    "placeholder labels": ("label 'unknown' in 36 rows looks like a word for", {"unknown": ["unknown"]}),
    "dates": ("column 'joined' holds dates (day.month.year), which become days since 1970", {}),
    "one-directional edges": ("60 rows make 60 undirected edges", {}),
    "junk columns": ("column 'note' has a different word in every cell, which makes no categories; left out", {}),
    "two spellings of a class": ("labels 'cat', 'Cat' differ in capital letters only", {"labels_ignore_case": True}),
    "edges to unknown ids": ("--unknown-edges drop or add does so for all", {"unknown_edges": "add"}),
    "weights with gaps": ("--ignore COLUMN gives all edges the same weight", {"ignore": ["weight"]}),
    "duplicated nodes": ("id '1004' is already in row 6", {}),
    "a Parquet with categories": ("1 categorical column 'town'", {}),
    "a frame with an index": ("id from 'column 1', label from 'label'", {}),
}
STOPS = {
    *("placeholder labels", "two spellings of a class", "edges to unknown ids", "weights with gaps"),
    "duplicated nodes",
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_messy_folder_is_read_correctly_or_refused_with_a_remedy(tmp_path: Path, name: str) -> None:
    message, options = MESSY[name]
    write(name, tmp_path)
    if name in STOPS:
        with pytest.raises(tables.BadTables) as stop:
            tables.read(tmp_path)
        assert message in str(stop.value)
    else:
        assert any(message in note for note in tables.read(tmp_path).notes)
    if name == "duplicated nodes":  # a person must say which row is meant
        return
    graph = tables.read(tmp_path, **options)
    assert graph.classes == ["cat", "dog"]
    assert int((graph.data.y >= 0).sum()) == 24
    assert graph.columns.features[:2] == ["height", "width"]
    assert graph.data.num_edges == 120  # 60 edges, both ways
