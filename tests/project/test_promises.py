"""What the documents promise names the tests that hold it, and these exist."""

import re
from functools import cache

import pytest

from tests import ROOT

TESTS, DOCS = ROOT / "tests", ROOT / "docs"


@cache
def known() -> set[str]:
    return {name for path in TESTS.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())}


@pytest.mark.parametrize("page", ["determinism", "security", "run-folders"])
def test_every_test_a_page_names_exists(page: str) -> None:
    named = set(re.findall(r"`(test_\w+)`", (DOCS / f"{page}.md").read_text()))
    assert len(named) > 5
    assert named <= known(), named - known()


@pytest.mark.parametrize("page", ["determinism", "security", "run-folders"])
def test_every_promise_names_a_test(page: str) -> None:
    """Every row of a table with a column `tested by`, and every point under `What is promised`."""
    promises, tested, promised = [], False, False
    for line in (DOCS / f"{page}.md").read_text().splitlines():
        promised = line == "## What is promised" if line.startswith("## ") else promised
        tested = (tested or line.endswith("| tested by |")) and line.startswith("|")
        if (tested and "---" not in line and not line.endswith("| tested by |")) or (promised and line[:2] == "- "):
            promises.append(line)
    assert len(promises) > 10
    assert [line for line in promises if not re.search(r"`test_\w+`|`environment.json` has", line)] == []
