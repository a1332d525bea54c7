"""Reading into memory and into a store gives the same problems and the same graph, within limits of size."""

import os
import resource
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from bangs.errors import BangsError, OutOfMemory
from bangs.graphs import tables
from bangs.graphs.store import Store, convert_from, read_user_graph
from bangs.graphs.tables import delimited, parquet, table_reader
from bangs.graphs.tables.diagnostics import Diagnostics, FileDiagnostics
from bangs.graphs.tables.read_options import ReadOptions
from bangs.graphs.tables.table import Limits
from tests.graphs.tables.sample_tables import EDGES, NODES, edges_of, folder
from tests.helpers.killing import in_a_child

WRONG = {
    "ids and ends": (NODES.replace("b,2.5", "a,2.5").replace("\nd,", "\n,"), EDGES.replace("a,b", "A,zoe")),
    "numbers": (NODES.replace("2.5", "much").replace("3.5", "").replace("0.5", "1e40"), EDGES),
    "rows": (NODES + "x,1\n", EDGES + "a,b,c\n,a\n"),
    "split": ("id,x,label,split\na,1,u,train\nb,2,v,often\nc,3,u,val\nd,4,v,\ne,5,,train\nf,6,u,test\n", EDGES),
    "an open quote": (NODES.replace("dog", '"dog', 1), EDGES),
    "no rows": ("id,label\n", EDGES),
    "no header": (NODES, "1,2\n2,3\n"),
    "weights": (NODES, EDGES.replace("\n", ",-1\n").replace("target,-1", "target,weight")),
    "columns": (NODES.replace("colour", "height"), EDGES),
    "bytes": (NODES.encode() + b"\xe9,1,red,cat\n", EDGES),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("block", [64, 2**24])
def test_memory_and_disk_report_the_same_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, block: int
) -> None:
    monkeypatch.setattr(delimited, "BLOCK_BYTES", block)
    nodes, edges = WRONG[wrong]
    folder(tmp_path, nodes, edges)
    with pytest.raises(tables.BadTables) as in_memory:
        tables.read(tmp_path)
    with pytest.raises(tables.BadTables) as on_disk:
        convert_from(str(tmp_path), tmp_path / "store")
    assert str(in_memory.value) == str(on_disk.value)
    assert not (tmp_path / "store").exists()


SPLIT = "id,x,label,split\na,1,u,\nb,2,u,\nc,3,v,\nd,4,v,\ne,5,v,test\nf,6,,\n"


@pytest.mark.parametrize("nodes", [NODES, SPLIT], ids=["plain", "split"])
@pytest.mark.parametrize("array", [None, "features.npy", "features.npz"])
def test_memory_and_disk_read_the_same_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: str, array: str | None
) -> None:
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 64)
    folder(tmp_path, nodes)
    beside = np.arange(12.0).reshape(6, 2)
    if array == "features.npy":
        np.save(tmp_path / array, beside)
    elif array is not None:
        np.savez(tmp_path / array, x=beside)
    convert_from(str(tmp_path), tmp_path / "store")
    stored, read = read_user_graph(tmp_path / "store"), tables.read(tmp_path)
    assert list(stored.ids) == list(read.ids)
    assert stored.columns == read.columns
    assert stored.data.x.tolist() == read.data.x.tolist()
    assert stored.data.y.tolist() == read.data.y.tolist()
    assert edges_of(stored.data) == edges_of(read.data)
    for name in ("train", "val", "test") if read.split else ():
        assert getattr(stored.split, name).tolist() == getattr(read.split, name).tolist()


def test_an_array_the_model_does_not_know_is_left_out_on_disk_too(tmp_path: Path) -> None:
    encoding = tables.read(folder(tmp_path)).columns
    np.save(tmp_path / "features.npy", np.eye(6))
    manifest = convert_from(str(tmp_path), tmp_path / "store", options=ReadOptions(encoding=encoding))
    assert manifest.features == len(encoding.features)
    assert "nodes.csv: the model was fitted without an array of features; not used" in manifest.notes


def test_a_column_that_turns_from_numbers_to_words_late_keeps_all_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 64)
    rows = [f"n{i},{1 if i < 9 else 'red'},{'uv'[i % 2]}\n" for i in range(30)]
    graph = tables.read(folder(tmp_path, "id,size,label\n" + "".join(rows), "source,target\nn0,n1\n"))
    assert graph.columns.features == ["size=1", "size=red"]


@pytest.mark.parametrize("error", [pa.ArrowMemoryError("malloc of size 16777216 failed"), MemoryError()])
def test_running_out_of_memory_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(table_reader, "read_delimited", fails)
    folder(tmp_path)
    with pytest.raises(OutOfMemory, match=r"needs more memory than is free \(.*\); .*`bangs convert`"):
        tables.read(tmp_path)
    with pytest.raises(OutOfMemory, match=r"thirty bytes for every node"):
        convert_from(str(tmp_path), tmp_path / "store")


def test_a_thread_that_pyarrow_cannot_start_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise pa.ArrowException("Unknown error: Failed to launch worker thread: Resource temporarily unavailable")

    monkeypatch.setattr(parquet.pq, "ParquetFile", fails)
    folder(tmp_path, nodes=None)
    pd.DataFrame({"id": ["a"]}).to_parquet(tmp_path / "nodes.parquet")
    with pytest.raises(OutOfMemory, match="needs more memory than is free"):
        tables.read(tmp_path)


@pytest.mark.parametrize("mebibytes", [4, 12, 20, 28, 36])
def test_a_process_with_little_memory_gets_a_clear_error_or_the_graph(tmp_path: Path, mebibytes: int) -> None:
    rows = "".join(f"n{i},{i / 7},{'uv'[i % 2]}\n" for i in range(200_000))
    edges = "".join(f"n{i},n{7 * i % 200_000}\n" for i in range(200_000))
    folder(tmp_path, f"id,x,label\n{rows}", f"source,target\n{edges}")

    def reads() -> int:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + mebibytes * 2**20, resource.RLIM_INFINITY))
        try:
            tables.read(tmp_path)
        except BangsError as error:
            return 0 if "needs more memory than is free" in str(error) else 3
        except BaseException:
            return 4
        return 1

    _, status = os.waitpid(in_a_child(reads), 0)
    assert os.waitstatus_to_exitcode(status) in ((0,) if mebibytes == 4 else (0, 1))


def test_text_is_held_only_while_memory_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_reader, "available_memory", lambda: 100)
    with pytest.raises(OutOfMemory, match=r"reading .* needs more memory"):
        tables.read(folder(tmp_path))
    assert convert_from(str(tmp_path), tmp_path / "store").nodes == 6  # which holds none


def test_a_parquet_file_may_hold_no_more_text_than_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path, nodes=None)
    pd.DataFrame({"id": range(1000), "label": ["u" * 999, "v" * 999] * 500}).to_parquet(tmp_path / "nodes.parquet")
    assert (tmp_path / "nodes.parquet").stat().st_size < 20_000
    with pytest.raises(tables.BadTables, match=r"or too much of it|its text takes more than 90,000 bytes"):
        tables.read(tmp_path, limits=tables.Limits(bytes=90_000))
    monkeypatch.setattr(parquet, "BATCH_ROWS", 50)
    with pytest.raises(tables.BadTables, match="its text takes more than 90,000 bytes"):
        tables.read(tmp_path, limits=tables.Limits(bytes=90_000))


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_table_is_a_regular_file(tmp_path: Path, kind: str) -> None:
    folder(tmp_path, nodes=None)
    os.mkfifo(tmp_path / "nodes.csv") if kind == "pipe" else (tmp_path / "nodes.csv").mkdir()
    with pytest.raises(tables.BadTables, match=r"nodes.csv\n  it is not a regular file"):
        tables.read(tmp_path)


@pytest.mark.parametrize("where", ["header", "row"])
def test_a_long_cell_is_not_called_a_blank_row(tmp_path: Path, where: str) -> None:
    cell = "x" * 5_000_000
    nodes = NODES.replace("colour", cell) if where == "header" else NODES.replace("red", cell, 1)
    if where == "header":
        with pytest.raises(tables.BadTables, match="the first row has a cell of more than 131,072 letters"):
            tables.read(folder(tmp_path, nodes))
    else:
        assert len(tables.read(folder(tmp_path, nodes)).ids) == 6


def test_large_whole_numbers_that_differ_are_no_constant(tmp_path: Path) -> None:
    nodes = "id,big,last,same,label\n" + "".join(
        f"n{i},{10**15 + i % 2},{0.1 + i % 2 * 1e-16!r},{1e15},{'uv'[i % 2]}\n" for i in range(8)
    )
    graph = tables.read(folder(tmp_path, nodes, "source,target\nn0,n1\n"))
    assert graph.columns.features == ["big"]
    assert sorted(set(graph.data.x[:, 0].tolist())) == [-1, 1]
    assert "nodes.csv: column 'same' has one value throughout; left out" in graph.notes
    nearly = [note for note in graph.notes if "'last'" in note]
    assert nearly == [
        "nodes.csv: column 'last' differs in its last digits only, from 0.1 to 0.1000000000000001; left out"
    ]


@pytest.mark.parametrize("form", ["tables", "store"])
def test_very_many_classes_are_named_before_anything_is_learned(tmp_path: Path, form: str) -> None:
    nodes = "id,x,label\n" + "".join(f"n{i},{i},c{i % 100}\n" for i in range(200))
    folder(tmp_path, nodes, "source,target\nn0,n1\n")
    if form == "store":
        notes = list(convert_from(str(tmp_path), tmp_path / "store").notes)
        assert Store.open(tmp_path / "store").num_classes == 100
    else:
        notes = tables.read(tmp_path).notes
    assert any("there are 100 classes for 200 labels, which is unusual" in note for note in notes)


@pytest.mark.parametrize("file", ["graph.npz", "features.npz", "features.npy"])
def test_arrays_too_large_for_memory_are_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    folder(tmp_path)
    arrays = {"edge_index": np.array([[0], [1]]), "y": np.array([0, 0, 1, 1, 1, 1]), "x": np.eye(6)}
    np.save(tmp_path / file, np.eye(6)) if file.endswith("npy") else np.savez(tmp_path / file, **arrays)
    monkeypatch.setattr("bangs.graphs.safe_numpy_files.available_memory", lambda: 100)
    with pytest.raises(OutOfMemory, match="of memory are free"):
        tables.read(tmp_path / file if file == "graph.npz" else tmp_path)


def test_reading_ends_once_arrow_has_dropped_the_handler(tmp_path, monkeypatch):
    """A program that ended while Arrow's thread still held Python objects was aborted: exit code 134 instead of 2."""
    held, open_csv = [], delimited.pacsv.open_csv

    def slowly(path, parse_options, **options):
        held.append(parse_options.invalid_row_handler)
        threading.Timer(0.2, held.clear).start()
        return open_csv(path, parse_options=parse_options, **options)

    monkeypatch.setattr(delimited.pacsv, "open_csv", slowly)
    (tmp_path / "nodes.csv").write_text(NODES)
    problems = FileDiagnostics("nodes.csv", Diagnostics("here"))
    assert list(delimited.read_delimited(tmp_path / "nodes.csv", problems, Limits()))
    assert not held
