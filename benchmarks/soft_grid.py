"""Soft labels on the grid of few labels: in how many cells each recipe is better than both hard rivals.

    python benchmarks/soft_grid.py [--json]

Reads `results/table-beyond.jsonl` (GCN) and trains nothing. A cell is a graph with a number of labels a class. Each
recipe is compared with confidence and with BANGS (teacher first) in every cell, at the round that validation chose;
Holm's correction is over all comparisons of one row. The last row compares weights: `bangs-soft` with `soft`.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bangs.experiments.results import results_in
from bangs.experiments.tables.significance import LEVEL, holm, paired
from measuring import options, show

ROWS = Path(__file__).parents[1] / "results" / "table-beyond.jsonl"
HARD = ("confidence", "bangs first")
Cells = dict[str, dict[str, dict[int, float]]]  # cell → system → seed → accuracy in percent


def cells(rows: Path = ROWS) -> Cells:
    """The scores of the GCN by cell and system."""
    found: Cells = defaultdict(dict)
    for result in results_in(rows):
        config = result.config
        if config["model"] == "gcn" and not result.error:
            system = f"bangs {config['teacher']}" if config["method"] == "bangs" else config["method"]
            found[f"{config['dataset']} {config['per_class']}"][system] = dict(result.scores("validation"))
    return found


def compared(found: Cells, ours: str, rivals: Sequence[str]) -> dict[str, Any]:
    """In how many cells `ours` is better than every rival after the correction, and its smallest and mean lead."""
    tests = [
        paired(cell, ours, rival, list(own[ours].values()), [own[rival][seed] for seed in own[ours]])
        for cell, own in found.items()
        if {ours, *rivals} <= set(own)
        for rival in rivals
    ]
    shown = [one for one, p in zip(tests, holm([one.p for one in tests]), strict=True) if p < LEVEL]
    better = [one.place for one in shown if one.difference > 0]
    return {
        "ours": ours,
        "rivals": " and ".join(rivals),
        "cells": len({one.place for one in tests}),
        "better": sum(better.count(cell) == len(rivals) for cell in set(better)),
        "worse": sum(one.difference < 0 for one in shown),
        "mean": sum(one.difference for one in tests) / len(tests),
        "smallest": min(one.difference for one in tests),
        "largest": max(one.difference for one in tests),
    }


def main() -> None:
    asked = options(__doc__, repeats=None).parse_args()
    found = cells()
    rows = [compared(found, ours, HARD) for ours in ("soft", "soft-aligned", "bangs-soft")]
    show([*rows, compared(found, "bangs-soft", ("soft",))], asked.json)


if __name__ == "__main__":
    main()
