"""Selection: seconds and memory of valuing a round's candidates, beside the paper's pseudo-code.

    python benchmarks/selection.py [--repeats 5] [--threads 1] [--json]

Cora (K = 200, k = 100): the default estimator and the fastest against the plain one, which propagates once for each of
500 coalitions (`plain_selection.py`). Then sizes like LastFM Asia's and Flickr's (K = 500, k = 400), where the plain
time is that of 5 coalitions times 100. All take turns, so that a busy machine slows all alike; the processor's own time
stands beside the clock's, which others' work lengthens. Times are medians, and count everything from the game's making
on, propagation included; memory is the peak above what is there before.
Without BANGS_DATA the embedded synthetic graph takes Cora's place.
"""

import statistics
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from bangs.valuation.banzhaf import DEFAULT, ESTIMATORS
from measuring import in_turns, options, peak_of, show
from plain_selection import PlainSelection
from rounds import Occasion, Reference, agreement, flickr_size, lastfm_size, rank_correlation, trained

FASTEST = "meanfield"
METHODS = ("plain", "msr", DEFAULT, FASTEST)
COALITIONS = 500  # of the plain one and of msr, as in the paper
TURN = 0.1  # seconds; what is faster is called again and again for so long, each time with a new seed


def case(name: str, occasion: Occasion, players: int, k: int, scale: int, halves: int, repeats: int) -> list[Any]:
    """One row per method; the plain one takes 1 in `scale` of its coalitions."""

    def value(method: str, seed: int) -> Tensor:
        if method == "plain":
            plain = PlainSelection(samples=COALITIONS // scale)
            return plain(occasion.graph, occasion.logits, occasion.known, occasion.players(players), k, seed).double()
        generator = torch.Generator().manual_seed(seed)
        return ESTIMATORS[method](None)(occasion.game(players), k, [generator]).mean[0]

    values_by_method: dict[str, list[Tensor]] = {method: [] for method in METHODS}

    def act(method: str) -> None:
        values_by_method[method].append(value(method, len(values_by_method[method])))

    acts = {method: partial(act, method) for method in METHODS}
    peaks = {method: peak_of(acts[method]) for method in METHODS}
    times = in_turns(acts, repeats, {"plain": scale}, TURN)
    # where sizes are large, what moves logits by less than a tenth is left to the gradient
    reference = Reference.of(occasion, players, k, halves, tolerance=0.0 if scale == 1 else 0.1)
    rows = []
    for method in METHODS:
        row = {
            "case": name,
            "graph": occasion.name,
            "nodes": len(occasion.known),
            "edges": occasion.graph.edge_index.shape[1],
            "classes": occasion.logits.shape[1],
            "K": players,
            "k": k,
            "estimator": method,
            **times[method].against(times["plain"]),
            "peak_bytes": peaks[method],
            "split_half": reference.split_half,
        }
        if method != "plain" or scale == 1:
            row["spearman"] = statistics.mean(
                rank_correlation(values, reference.values) for values in values_by_method[method]
            )
            row["top_k"] = statistics.mean(
                agreement(values, reference.values, k) for values in values_by_method[method]
            )
        rows.append(row)
    return rows


CASES: dict[str, Callable[[int], list[Any]]] = {
    "cora": lambda n: case("cora", trained("cora"), 200, 100, 1, 100, n),
    "lastfm": lambda n: case("lastfm", lastfm_size(), 500, 400, 100, 40, n),
    "flickr": lambda n: case("flickr", flickr_size(), 500, 400, 100, 20, n),
}


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rows = []
    for name in args.cases:
        print(f"{name} …", file=sys.stderr)
        rows += CASES[name](args.repeats)
    show(rows, args.json, default=DEFAULT, fastest=FASTEST, unit=f"medians of {args.repeats}")


if __name__ == "__main__":
    main()
