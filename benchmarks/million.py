"""A whole BANGS run on a graph of a million nodes and ten million edges: seconds and memory.

    python benchmarks/million.py [--nodes 1000000] [--degree 20] [--rounds 3] [--epochs 5] [--threads 2] [--json]

The graph is synthetic, its edges are counted once and stored in both directions; 5 % of the nodes are labelled, 15 %
held for validation. The first model and every student train for so many epochs, and in every round the default
estimator values K candidates. One row a round; `peak_bytes` is the whole process, what is loaded included.
"""

import resource
import sys
import time
from typing import Any

import torch

from bangs.experiments.experiment import Experiment
from bangs.graphs.datasets import synthetic
from bangs.selftraining.loop import State
from measuring import options, peak_bytes, resident, show

BOUND = 24 * 2**30  # bytes


def main() -> int:
    parser = options(__doc__, repeats=None)
    parser.set_defaults(threads=2)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--degree", type=float, default=20.0, help="neighbours of a node, in the mean")
    parser.add_argument("--classes", type=int, default=7)
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--candidates", type=int, default=500)
    parser.add_argument("--k", type=int, default=100)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    begin = time.perf_counter()
    data = synthetic.citation(args.nodes, args.classes, args.features, mean_degree=args.degree)
    made, loaded = time.perf_counter() - begin, resident()
    experiment = Experiment(
        method="bangs",
        seeds=(0,),
        rounds=args.rounds,
        k=args.k,
        candidates=args.candidates,
        changes={"epochs": args.epochs},
    )
    rows: list[dict[str, Any]] = []
    before = time.perf_counter()

    def record(state: State, row: dict[str, Any]) -> None:
        nonlocal before
        seconds, before = time.perf_counter() - before, time.perf_counter()
        stages = {f"{stage}_seconds": value for stage, value in row["seconds"].items()}
        facts = {"test": row["test"][0], "labelled": row["labelled"][0]}
        rows.append({"round": state.index, "seconds": seconds, **stages, "peak_bytes": peak_bytes(), **facts})
        print(rows[-1], file=sys.stderr)

    experiment.run(device="cpu", data=data, observers=[record])
    facts = {
        "graph": f"{args.nodes:,} nodes, {data.edge_index.shape[1] // 2:,} edges, {args.classes} classes",
        "run": f"K = {args.candidates}, k = {args.k}, {args.rounds} rounds, {args.epochs} epochs a model",
        "seconds": sum(row["seconds"] for row in rows),
        "cpu_seconds": resource.getrusage(resource.RUSAGE_SELF).ru_utime,
        "seconds_to_make_the_graph": made,
        "loaded_bytes": loaded,
        "peak_bytes": max(row["peak_bytes"] for row in rows),
        "bound_bytes": BOUND,
    }
    show(rows, args.json, **facts)
    return 0 if facts["peak_bytes"] < BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
