"""How long the default fit takes with ten labels a class, how much memory, and whether a GPU says the same.

    python benchmarks/few_labels_time.py --nodes 3000 20000 100000 --json
    python benchmarks/few_labels_time.py --nodes 20000 --limit 10 --json
    python benchmarks/few_labels_time.py --nodes 20000 --device cuda --same --json

Embedded citation graphs of 7 classes, 1,433 words and 5 edges a node. `seconds` is what a person waits, `cpu_seconds`
the work of all cores (on a busy machine the first says little), `gib` the peak of memory of the process, which fits
one graph. `--limit` is the time limit of the fit. `--same` fits the linear models on the CPU too and tells the largest
difference between probabilities, and the share of equal labels.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np
import torch

from bangs import SelfTrainingClassifier
from bangs.graphs.datasets.synthetic import citation
from few_labels import drawn
from measuring import peak_bytes


def measured(nodes: int, device: str, limit: float | None) -> dict[str, Any]:
    """One fit in this process."""
    graph = citation(nodes, mean_degree=10.0 if nodes > 50_000 else 5.0)
    truth = graph.y
    graph.y = drawn(truth, 10, 0)
    free = (graph.y < 0).numpy()
    if device == "cuda":
        torch.zeros(1, device="cuda")  # the driver's start is no part of a fit
    began, busy = time.perf_counter(), time.process_time()
    model = SelfTrainingClassifier(device=device, time_limit=limit, random_state=0).fit(graph)
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    return {
        "nodes": nodes,
        "edges": graph.edge_index.shape[1] // 2,
        "device": device,
        "limit": limit,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(busy, 2),
        "threads": model.threads_,
        "gib": round(peak_bytes() / 2**30, 2),
        "accuracy": round(100 * float((model.predict() == truth.numpy())[free].mean()), 2),
        "tried": len(model.leaderboard_),
    }


def same(nodes: int, device: str) -> dict[str, Any]:
    """The linear models on two devices."""
    graph = citation(nodes, mean_degree=5.0)
    graph.y = drawn(graph.y, 10, 0)
    probs = []
    for name in ("cpu", device):
        model = SelfTrainingClassifier(model=_linear(), method="soft", device=name, random_state=0).fit(graph)
        probs.append(model.predict_proba())
    one, other = probs
    return {
        "nodes": nodes,
        "same_as_cpu": True,
        "largest_difference": float(np.abs(one - other).max()),
        "equal_labels": float((one.argmax(1) == other.argmax(1)).mean()),
    }


def _told(row: dict[str, Any]) -> dict[str, Any]:
    """The row, said at once, so that a run that is stopped has told what it knew."""
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def _linear() -> Any:
    from bangs.estimator.linear import PropagatedLinear

    return PropagatedLinear()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", nargs="+", type=int, default=[3_000, 20_000, 100_000])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--limit", type=float)
    parser.add_argument("--same", action="store_true")
    parser.add_argument("--json", action="store_true", help="one JSON object to stdout")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    if len(args.nodes) > 1:  # a process each, since memory that was once used is never given back
        words = ["--device", args.device, *(["--same"] if args.same else [])]
        words += [] if args.limit is None else ["--limit", str(args.limit)]
        lines = []
        for nodes in args.nodes:
            call = [sys.executable, __file__, *words, "--nodes", str(nodes), "--json"]
            lines += json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)["rows"]
    else:
        lines = [_told(measured(args.nodes[0], args.device, args.limit))]
        if args.same:
            lines.append(_told(same(args.nodes[0], args.device)))
    result = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "torch": torch.__version__, "rows": lines}
    print(json.dumps(result) if args.json else "\n".join(map(str, lines)))


if __name__ == "__main__":
    main()
