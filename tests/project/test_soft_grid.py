"""benchmarks/soft_grid.py counts the cells in which soft labels are shown to be better."""

import sys
from importlib import import_module

import pytest

from tests import ROOT

sys.path.append(str(ROOT / "benchmarks"))

soft_grid = import_module("soft_grid")


def scores(*lead: float) -> dict[int, float]:
    return {seed: 70.0 + seed % 3 + own for seed, own in enumerate(lead)}


LEVEL = scores(*[0.0] * 8)
CLEAR = scores(*[5.0, 5.1, 4.9, 5.0, 5.2, 4.8, 5.0, 5.1])
CHANCE = scores(*[5.0, -5.0, 4.0, -4.0, 3.0, -3.0, 2.0, -1.5])


def test_a_cell_counts_only_where_every_rival_is_beaten_after_the_correction() -> None:
    found = {
        "both": {"soft": CLEAR, "confidence": LEVEL, "bangs first": LEVEL},
        "one": {"soft": CLEAR, "confidence": LEVEL, "bangs first": CLEAR},
        "none": {"soft": CHANCE, "confidence": LEVEL, "bangs first": LEVEL},
        "behind": {"soft": LEVEL, "confidence": CLEAR, "bangs first": CLEAR},
        "not run": {"soft": CLEAR, "confidence": LEVEL},
    }
    row = soft_grid.compared(found, "soft", ("confidence", "bangs first"))
    assert (row["cells"], row["better"], row["worse"]) == (4, 1, 2)
    assert row["smallest"] == pytest.approx(-5.0125)
