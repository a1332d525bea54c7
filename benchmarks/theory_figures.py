"""The figures and the measured tables of docs/theory.md.

    python benchmarks/theory_figures.py [--figures docs/figures] [--times]

Draws theory-pagerank.svg and theory-bounds.svg into the folder and prints the tables that `tests/theory/measured.py`
computes; tests hold the page to them. `--times` measures what one utility costs instead: a plain propagation of k
nodes through a sparse graph, the softmax and the entropies, in milliseconds of the processor.
"""

import argparse
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from measuring import in_turns, power, show

sys.path.append(str(Path(__file__).parents[1]))
from tests.theory import measured
from tests.theory.definitions import margin, objective, printed_margin, softmax

STEPS, CLASSES, LINKS = 10, 7, 5
NODES, CHOSEN = (2_000, 8_000, 32_000), (10, 100, 1_000)


def draw(folder: Path) -> None:
    """PageRank against depth; the share of orders that change against the size of the error; κ against classes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    # a fixed salt and no date: the same numbers give the same file
    style: Any = {"svg.hashsalt": "theory", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with mpl.rc_context(style):
        figure = Figure(figsize=(4.6, 3.2), layout="constrained")
        axis = figure.subplots()
        rows = measured.depths(tuple(range(1, 61)))
        axis.plot([row.steps for row in rows], [row.walk for row in rows], label="walk of L steps")
        axis.plot([row.steps for row in rows], [row.restarted for row in rows], label="L steps with restarts")
        axis.set(xlabel="steps L", ylabel="total variation to PageRank", ylim=(0, None))
        axis.legend(frameon=False)
        figure.savefig(folder / "theory-pagerank.svg", metadata={"Date": None})

        figure = Figure(figsize=(8.6, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        for (players, k), colour in zip(((6, 4), (5, 5)), ("C0", "C1"), strict=True):
            sizes = np.linspace(0.5, 2.5, 81)
            name = f"{players} players, k = {k}"
            left.plot(sizes, measured.flipped(players, k, sizes), color=colour, label=name)
            left.axvline(printed_margin(players, k) / margin(players, k), color=colour, ls=":", lw=1)
        left.set(xlabel="error / corrected margin (dotted: printed margin)", ylabel="games whose order changes")
        left.legend(frameon=False)
        classes = range(2, 21)
        right.plot(classes, [measured.constant(c).value for c in classes], "o-", ms=3, label="largest change of H / δ")
        right.axhline(0.5, color="grey", ls=":", lw=1, label="printed: ½")
        right.set(xlabel="classes", xticks=range(2, 21, 3), ylim=(0, None))
        right.legend(frameon=False)
        figure.savefig(folder / "theory-bounds.svg", metadata={"Date": None})


def utility(nodes: int, chosen: int) -> dict[str, Any]:
    """The two halves of one utility as the paper has it: lines 11 and 12 of the algorithm."""
    rng = np.random.default_rng(0)
    ends = rng.integers(nodes, size=(2, nodes * LINKS))
    step = sparse.csr_matrix((np.full(nodes * LINKS, 1 / LINKS), ends), shape=(nodes, nodes))
    logits = np.zeros((nodes, CLASSES))
    logits[:chosen] = rng.standard_normal((chosen, CLASSES))

    def propagate() -> np.ndarray:
        state = logits
        for _ in range(STEPS):
            state = 0.85 * (step @ state) + 0.15 * logits
        return state

    estimate = propagate()
    return {"propagate": propagate, "entropies": lambda: objective(softmax(estimate))}


def times(repeats: int) -> list[dict[str, Any]]:
    """Milliseconds at every number of nodes and of chosen nodes, and the powers with which they grow."""
    rows = []
    for nodes, chosen in product(NODES, CHOSEN):
        found = in_turns(utility(nodes, chosen), repeats, least=0.05)
        cost = {f"{name}_ms": 1e3 * taken.cpu_seconds for name, taken in found.items()}
        rows.append({"nodes": nodes, "k": chosen, **cost})
    return rows


def powers(rows: list[dict[str, Any]]) -> dict[str, str]:
    """With which power of the nodes and of k the two halves grow, the other at its middle size."""
    middle = {"nodes": NODES[1], "k": CHOSEN[1]}
    out = {}
    for size, other in (("nodes", "k"), ("k", "nodes")):
        some = [row for row in rows if row[other] == middle[other]]
        for act in ("propagate", "entropies"):
            out[f"{act} in {size}"] = f"{power([r[size] for r in some], [r[f'{act}_ms'] for r in some]):.2f}"
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=Path, default=Path("docs/figures"), metavar="FOLDER")
    parser.add_argument("--times", action="store_true", help="measure what one utility costs")
    asked = parser.parse_args()
    if asked.times:
        rows = times(repeats=5)
        show(rows, as_json=False, **powers(rows))
        return 0
    draw(asked.figures)
    for table in measured.TABLES:
        print(f"{table.__name__}:", *(row.line() for row in table()), sep="\n", end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
