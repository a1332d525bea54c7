"""Selection: seconds and memory of valuing a round's candidates, beside the paper's pseudo-code.

    python benchmarks/selection.py [--repeats 5] [--threads 1] [--json]

Cora (K = 200, k = 100): the default estimator and the fastest against the plain one, which propagates once for each of
500 coalitions (`plain_selection.py`). Then sizes like LastFM Asia's and Flickr's (K = 500, k = 400), where the plain
time is that of 5 coalitions times 100. All take turns, so that a busy machine slows all alike; the processor's own time
stands beside the clock's, which others' work lengthens. Times are medians, and count everything from the game's making
on, propagation included; memory is the peak above what is there before.
Without BANGS_DATA the embedded synthetic graph takes Cora's place.
"""

import argparse
import ctypes
import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bangs.valuation.banzhaf import DEFAULT, ESTIMATORS
from plain_selection import PlainSelection
from rounds import Occasion, Reference, agreement, flickr_size, has_data, lastfm_size, rank_correlation, trained

FASTEST = "meanfield"
METHODS = ("plain", "msr", DEFAULT, FASTEST)
COALITIONS = 500  # of the plain one and of msr, as in the paper
TURN = 0.1  # seconds; what is faster is called again and again for so long


def case(name: str, occasion: Occasion, players: int, k: int, scale: int, halves: int, repeats: int) -> list[Any]:
    """One row per method; the plain one takes 1 in `scale` of its coalitions."""

    def value(method: str, seed: int) -> Tensor:
        if method == "plain":
            plain = PlainSelection(samples=COALITIONS // scale)
            return plain(occasion.graph, occasion.logits, occasion.known, occasion.players(players), k, seed).double()
        generator = torch.Generator().manual_seed(seed)
        return ESTIMATORS[method](None)(occasion.game(players), k, [generator]).mean[0]

    peaks = {}
    for method in METHODS:
        before = _settle()
        value(method, 0)
        peaks[method] = _peak() - before
    seconds: dict[str, list[float]] = {method: [] for method in METHODS}
    busy: dict[str, list[float]] = {method: [] for method in METHODS}
    found: dict[str, list[Tensor]] = {method: [] for method in METHODS}
    for seed in range(1, repeats + 1):
        for method in METHODS:
            times = float(scale if method == "plain" else 1)
            start, start_busy, calls = time.perf_counter(), time.process_time(), 0
            while calls == 0 or time.perf_counter() - start < TURN:
                values = value(method, seed)
                calls += 1
            busy[method].append((time.process_time() - start_busy) * times / calls)
            seconds[method].append((time.perf_counter() - start) * times / calls)
            found[method].append(values)
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
            "seconds": statistics.median(seconds[method]),
            "ratio": statistics.median(seconds["plain"]) / statistics.median(seconds[method]),
            "cpu_seconds": statistics.median(busy[method]),
            "cpu_ratio": statistics.median(busy["plain"]) / statistics.median(busy[method]),
            "peak_bytes": peaks[method],
            "split_half": reference.split_half,
        }
        if method != "plain" or scale == 1:
            row["spearman"] = statistics.mean(rank_correlation(values, reference.values) for values in found[method])
            row["top_k"] = statistics.mean(agreement(values, reference.values, k) for values in found[method])
        rows.append(row)
    return rows


CASES: dict[str, Callable[[int], list[Any]]] = {
    "cora": lambda n: case("cora", trained("cora" if has_data() else "synthetic"), 200, 100, 1, 100, n),
    "lastfm": lambda n: case("lastfm", lastfm_size(), 500, 400, 100, 40, n),
    "flickr": lambda n: case("flickr", flickr_size(), 500, 400, 100, 20, n),
}


def _settle() -> int:
    """Gives free memory back and forgets earlier peaks, where the system can; the resident memory now, in bytes."""
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as refs:
            refs.write("5")
    except (OSError, AttributeError):
        pass
    return _peak()


def _peak() -> int:
    """The largest resident memory of this process, since the last reset where there was one: bytes."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    note = None if has_data() else "BANGS_DATA is not set: synthetic graphs take the place of Cora and LastFM Asia"
    if note:
        print(note, file=sys.stderr)
    rows = []
    for name in arguments.cases:
        print(f"{name} …", file=sys.stderr)
        rows.extend(CASES[name](arguments.repeats))
    if arguments.json:
        report = {"default": DEFAULT, "fastest": FASTEST, "threads": arguments.threads, "note": note, "rows": rows}
        print(json.dumps(report))
        return 0
    print(
        "| graph | nodes | C | K | k | estimator | ms | ratio | CPU ms | ratio | peak MiB | rank correlation | top k |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        quality = f"{row['spearman']:.4f} | {100 * row['top_k']:.1f} %" if "spearman" in row else " | "
        print(
            f"| {row['graph']} | {row['nodes']} | {row['classes']} | {row['K']} | {row['k']} "
            f"| {row['estimator']} | {1000 * row['seconds']:.1f} | {row['ratio']:.1f} × "
            f"| {1000 * row['cpu_seconds']:.1f} | {row['cpu_ratio']:.1f} × "
            f"| {row['peak_bytes'] / 2**20:.0f} | {quality} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
