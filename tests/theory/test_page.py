"""docs/theory.md: every test file has its row, and every table of docs/results/theory.md is what is computed today."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.theory import measured

DOCS = Path(__file__).parents[2] / "docs"
PAGE, TABLES = ((DOCS / name).read_text() for name in ("theory.md", "results/theory.md"))
ABOUT_THE_PROJECT = {"test_page.py", "test_bangs.py"}


def test_every_statement_names_a_test_and_every_test_a_statement() -> None:
    summary = PAGE.split("## Summary")[1].split("\n## ")[0]
    rows = [line for line in summary.splitlines() if line.startswith("|")][2:]
    named = [re.findall(r"\[(test_\w+\.py)\]\(\.\./tests/theory/\1\)", row) for row in rows]
    assert all(len(files) == 1 for files in named)
    present = {path.name for path in Path(__file__).parent.glob("test_*.py")}
    assert {files[0] for files in named} == present - ABOUT_THE_PROJECT


@pytest.mark.parametrize("table", measured.TABLES, ids=lambda table: table.__name__)
def test_a_table_of_the_page_is_what_is_computed(table: Callable[[], Sequence[Any]]) -> None:
    lines = "\n".join(row.line() for row in table())
    assert f"|\n{lines}\n" in TABLES
