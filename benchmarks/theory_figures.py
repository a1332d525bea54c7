"""The figures of docs/theory.md, and the page of its measured tables.

    python benchmarks/theory_figures.py [--figures docs/figures] [--page docs/results/theory.md] [--times]

Draws theory-pagerank.svg and theory-bounds.svg into the folder and writes the page of the tables that
`tests/theory/measured.py` computes; a test compares them. `--times` measures what one utility costs instead: a plain
propagation of k nodes through a sparse graph, the softmax and the entropies, in milliseconds of the processor.
"""

import argparse
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from measuring import in_turns, page, power, show

sys.path.append(str(Path(__file__).parents[1]))
from tests.theory import measured
from tests.theory.definitions import margin, objective, printed_margin, softmax

STEPS, CLASSES, LINKS = 10, 7, 5
ABOUT = """
The page [Theory](../theory.md) has the statements. The command computes everything here anew, from the definitions in
`tests/theory` and not with this library; `pytest tests/theory` compares. Three tables share the same *60 games*: 60
random graphs of 60 nodes, 3 classes, 10 candidates, k = 4, with the rows of Ĥ as defined or divided by the PageRank
mass that reached them.
"""
HEADS = {
    "influences": (
        "Thm 3.1: influence and the random walk",
        "Total variation between influence and walk on one graph of 20 nodes with hubs. *Expected* is a mean over 400 "
        "random inputs. With two layers all that is left there is sampling.",
        "network | layers | mean over nodes | largest",
    ),
    "depths": (
        "PageRank, depth and restarts",
        "Total variation to PageRank, α = 0.15, one graph of 60 nodes with hubs.",
        "steps | walk | with restarts",
    ),
    "silence": (
        "Top-k stability in games of information",
        "Over the 60 games: pairs with τ > 0, games with τ > 0 for all pairs across the border of the best k, and the "
        "median margin of these games as a share of ‖U − mean U‖.",
        "labelled | rows of Ĥ | pairs with τ > 0 | games with τ > 0 | margin",
    ),
    "margins": (
        "Thm 3.2 at the sizes of the paper",
        "The printed margin over the corrected one, and the error per coalition (root mean square) that the theorem "
        "allows.",
        "K | k | printed / corrected | error per coalition",
    ),
    "regrets": (
        "The best k by value and the best set of k",
        "Over the 60 games, 4 of 10 candidates. The regret is 0 for the best set and 1 for a random one. In brackets: "
        "the share of games in which the best set is found.",
        "labelled | rows of Ĥ | top k by value | top k by single utility | greedy",
    ),
    "larger": (
        "The same in larger games",
        "25 of 60 candidates, 600 nodes, 25 labelled, four graphs. The regret is 0 for the greedy set and 1 for a "
        "random one.",
        "rows of Ĥ | top k by value | top k by single utility",
    ),
    "biases": (
        "MSR with sets of size k in its second mean",
        "Rank correlation with the values, over the 60 games.",
        "labelled | rows of Ĥ | mean | least",
    ),
    "constants": (
        "Lemma B.2: the constant κ_C",
        "Cora has 7 classes, CiteSeer 6, LastFM 18.",
        "classes | κ_C | reached at p = | δ/2 holds",
    ),
    "premises": (
        "The premise: forecasts and students",
        "20 graphs of 150 nodes, 3 classes, 12 labels, one hop and one linear layer as in Appendix B.5, each of the "
        "163 coalitions of at most 4 of 8 candidates. The students' loss has one minimum, so there is no noise of "
        "training. Shown are rank correlations with the students' utility (± 95 % interval over graphs), the share of "
        "the 4 best by value that Û finds (chance is ½), the share of nodes given the student's class, and the graphs "
        "where Thm 3.2 covers the error of Û.",
        "candidates | Û | \\|S\\| alone | Û, sets of 4 | 4 best found | class by Û | class by teacher | Thm 3.2 speaks",
    ),
}
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


def written() -> str:
    """The page of all tables."""
    parts = [ABOUT.strip()]
    for rows in measured.TABLES:
        title, about, head = HEADS[rows.__name__]
        lines = [f"| {head} |", "|---" * len(head.replace("\\|", "").split("|")) + "|", *(row.line() for row in rows())]
        parts += [f"## {title}", about, "\n".join(lines)]
    command = "python benchmarks/theory_figures.py --page docs/results/theory.md"
    return page("Theory: measured tables", command, *parts)


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
        times = in_turns(utility(nodes, chosen), repeats, least=0.05)
        cost = {f"{name}_ms": 1e3 * taken.cpu_seconds for name, taken in times.items()}
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
    parser.add_argument("--page", type=Path, help="write the page of the tables, and draw nothing")
    parser.add_argument("--times", action="store_true", help="measure what one utility costs")
    args = parser.parse_args()
    if args.times:
        rows = times(repeats=5)
        show(rows, as_json=False, **powers(rows))
        return 0
    if args.page is not None:
        args.page.write_text(written())
        return 0
    draw(args.figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
