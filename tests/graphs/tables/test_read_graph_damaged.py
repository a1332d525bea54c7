"""A damaged table gives a graph or a clear error, never another exception."""

import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bangs.core.graph_checks import check_graph
from bangs.errors import BangsError
from bangs.graphs import tables
from tests.graphs.tables.sample_tables import EDGES, NODES

TABLES = {
    "nodes.csv": NODES.replace("label", "label,split").replace("cat", "cat,").replace("dog", "dog,").encode(),
    "edges.csv": EDGES.replace("\n", ",1.5\n").replace("target,1.5", "target,weight").encode(),
}
TABLES["nodes.csv"] = TABLES["nodes.csv"].replace(b"green,\n", b"green,,\n")

HOSTILE_CELLS = [
    "",
    " ",
    "nan",
    "inf",
    "-1",
    "1e999",
    "007",
    '"',
    "'",
    ";",
    "\t",
    "\x00",
    "\ufeff",
    "é",
    "=1+1",
    "<b>",
    "a" * 300,
    "∞",
    "𝟙",
    "-",
    "train",
]

Damage = Callable[[bytes], bytes]


def sound(path: Path, **options: object) -> bool:
    """Whether the path was read as a sound graph; False if it was refused in a sentence."""
    try:
        graph = tables.read(path, **options)  # type: ignore[arg-type]
    except BangsError:
        return False
    assert check_graph(graph.data) == len(graph.ids)
    assert graph.data.y.max() < len(graph.classes)
    assert graph.data.x.shape[1] == len(graph.columns.features)
    assert tables.Encoding.from_dict(json.loads(json.dumps(graph.columns.to_dict()))) == graph.columns
    return True


def write(path: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (path / name).write_bytes(content)
    return path


@st.composite
def byte_damages(draw: st.DrawFn) -> Damage:
    """One damage_bytes to a file's bytes: flipped, cut out, doubled, put in or cut off."""
    kind = draw(st.sampled_from(["flip", "cut", "double", "insert", "truncate"]))
    where, length = draw(st.floats(0, 1)), draw(st.integers(1, 12))
    new = draw(st.binary(min_size=1, max_size=4))

    def damage_bytes(content: bytes) -> bytes:
        start = int(where * len(content))
        end = start + length
        if kind == "flip":
            return content[:start] + bytes(byte ^ new[0] for byte in content[start:end]) + content[end:]
        if kind == "cut":
            return content[:start] + content[end:]
        if kind == "double":
            return content[:end] + content[start:]
        return content[:start] + new + content[start:] if kind == "insert" else content[:start]

    return damage_bytes


@st.composite
def edits(draw: st.DrawFn) -> Damage:
    """One clumsy edit of a table's cells: a column dropped, a row doubled or moved, a value replaced."""
    kind = draw(st.sampled_from(["drop", "double", "swap", "replace", "rename", "widen"]))
    row, column = draw(st.integers(0, 9)), draw(st.integers(0, 4))
    cell = draw(st.sampled_from(HOSTILE_CELLS) | st.text(max_size=8))

    def edit(content: bytes) -> bytes:
        rows = [line.split(",") for line in content.decode("utf-8", "replace").split("\n")]
        line = rows[row % len(rows)]
        if kind == "drop":
            rows = [cells[:column] + cells[column + 1 :] for cells in rows]
        elif kind == "double":
            rows.insert(row % len(rows), list(line))
        elif kind == "swap":
            rows[0], rows[row % len(rows)] = rows[row % len(rows)], rows[0]
        elif kind == "rename":
            rows[0][column % len(rows[0])] = cell
        elif kind == "widen":
            line.append(cell)
        else:
            line[column % len(line)] = cell
        return "\n".join(",".join(cells) for cells in rows).encode("utf-8", "replace")

    return edit


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    damages=st.lists(st.tuples(st.sampled_from(sorted(TABLES)), byte_damages() | edits()), min_size=1, max_size=4),
    suffix=st.sampled_from([".csv", ".tsv"]),
    directed=st.booleans(),
    fill=st.sampled_from([None, "mean"]),
)
def test_damaged_tables_are_read_or_refused_with_a_clear_error(
    damages: list[tuple[str, Damage]], suffix: str, directed: bool, fill: str | None
) -> None:
    files = dict(TABLES)
    for name, damage in damages:
        files[name] = damage(files[name])
    with tempfile.TemporaryDirectory() as name:
        path = write(Path(name), {Path(file).stem + suffix: content for file, content in files.items()})
        sound(path, directed=directed, fill=fill)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damages=st.lists(st.tuples(st.sampled_from(sorted(TABLES)), byte_damages() | edits()), min_size=1, max_size=3))
def test_damaged_tables_are_read_or_refused_by_a_fitted_model(damages: list[tuple[str, Damage]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        encoding = tables.read(write(Path(name), TABLES)).columns
        files = dict(TABLES)
        for file, damage in damages:
            files[file] = damage(files[file])
        sound(write(Path(name), files), encoding=encoding)


def archives() -> dict[str, bytes]:
    """The same graph in formats that are not text."""
    parquet, features, graph = io.BytesIO(), io.BytesIO(), io.BytesIO()
    pd.read_csv(io.BytesIO(TABLES["nodes.csv"])).to_parquet(parquet)
    parts = {"x_data": [1.0, 2.0], "x_indices": [0, 1], "x_indptr": [0, 1, 2, 2, 2, 2, 2], "x_shape": [6, 2]}
    np.savez(features, **parts)  # type: ignore[arg-type]
    np.savez_compressed(graph, edge_index=np.array([[0, 1], [1, 2]]), y=np.array([0, 0, 1, 1]), x=np.eye(4))
    return {"nodes.parquet": parquet.getvalue(), "features.npz": features.getvalue(), "graph.npz": graph.getvalue()}


ARCHIVES = archives()


@pytest.mark.parametrize("file", sorted(ARCHIVES))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damages=st.lists(byte_damages(), min_size=1, max_size=3))
def test_damaged_archives_are_read_or_refused_with_a_clear_error(file: str, damages: list[Damage]) -> None:
    content = ARCHIVES[file]
    for damage in damages:
        content = damage(content)
    files = {"edges.csv": TABLES["edges.csv"], file: content}
    if file == "features.npz":
        files["nodes.csv"] = TABLES["nodes.csv"]
    with tempfile.TemporaryDirectory() as name:
        path = write(Path(name), files)
        sound(path / file if file == "graph.npz" else path)


def test_undamaged_files_are_read(tmp_path: Path) -> None:
    assert sound(write(tmp_path, TABLES))
    for file, content in ARCHIVES.items():
        subfolder = tmp_path / file.replace(".", "-")
        subfolder.mkdir()
        write(subfolder, {"edges.csv": TABLES["edges.csv"], file: content})
        if file == "features.npz":
            write(subfolder, {"nodes.csv": TABLES["nodes.csv"]})
        assert sound(subfolder / file if file == "graph.npz" else subfolder)
