"""Test nodes of a class that no training node has count as wrong, in every figure and on the page."""

from pathlib import Path

import pytest

from bangs.report.page import page_of
from bangs.runs import read_run
from tests.cli.invoke import bangs


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fit on 48 nodes: 24 test nodes, of which 12 have a class `c` that no other node has."""
    folder = tmp_path_factory.mktemp("classes")
    lines = ["id,x1,x2,label,split"]
    for node in range(48):
        label, part = "ab"[node % 2], ("train", "val")[node // 2 % 2] if node < 24 else "test"
        cell = "c" if part == "test" and node >= 36 else label
        lines.append(f"n{node},{node % 2},{1 - node % 2},{cell},{part}")
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n")
    edges = [f"n{node},n{(node + 2) % 48}" for node in range(48)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    result = bangs(
        "fit",
        folder,
        "--out",
        folder / "out",
        "--method",
        "hard",
        "--validation",
        0.25,
        "--rounds",
        1,
        "--epochs",
        60,
        "--quiet",
    )
    assert result.code == 0, result.err
    assert "on 24 nodes" in result.out
    return folder / "out"


def test_they_are_counted_and_wrong(fitted: Path) -> None:
    result = read_run(fitted).result
    assert result is not None
    assert result["classes"] == ["a", "b"]
    assert result["test"]["nodes"] == 24
    assert result["test"]["accuracy"] == result["test"]["raw"] == 0.5


def test_the_page_says_that_they_have_no_row(fitted: Path) -> None:
    assert "12 of a class the model has not learned are left out" in page_of(fitted)
