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
