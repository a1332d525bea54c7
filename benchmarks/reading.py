"""Reading: seconds and memory it takes to read a large folder of tables.

    python benchmarks/reading.py [--nodes 200000] [--edges 2000000] [--columns 50] [--json]

The tables are made in a temporary folder and read in a process of its own, so that the peak memory is that of
reading alone: `loaded_bytes` are there after imports, `peak_bytes` come on top. The bounds are those of the project:
30 seconds and 4 GiB in all; beyond them the exit code is 1.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import torch

from bangs.graphs import tables
from measuring import options, peak_bytes, resident, show

SECONDS, BYTES = 30.0, 4 * 2**30


def main() -> int:
    parser = options(__doc__, repeats=1)
    parser.set_defaults(threads=2)
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    pa.set_cpu_count(args.threads)
    if args.read is not None:
        print(json.dumps(measure(args.read)))
        return 0
    with tempfile.TemporaryDirectory() as name:
        size = make(Path(name), args.nodes, args.edges, args.columns, args.seed)
        command = [sys.executable, __file__, "--read", name, "--threads", str(args.threads)]
        outputs = [subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout for _ in range(args.repeats)]
    turns = [json.loads(one) for one in outputs]
    row = {"edges": args.edges, "columns": args.columns, "csv_bytes": size}
    row |= {key: statistics.median(turn[key] for turn in turns) for key in turns[0]}
    fits = row["seconds"] < SECONDS and row["loaded_bytes"] + row["peak_bytes"] < BYTES
    show([row], args.json, bounds=f"{SECONDS:.0f} s and {BYTES >> 30} GiB in all, {'kept' if fits else 'broken'}")
    return 0 if fits else 1


def make(folder: Path, nodes: int, edges: int, columns: int, seed: int) -> int:
    """Writes both tables as CSV; the bytes written. One column in ten holds words, one node in twenty a label."""
    random = np.random.default_rng(seed)
    ids = np.array([f"node-{number:07d}" for number in range(nodes)])
    table: dict[str, Any] = {"id": ids}
    for column in range(columns):
        if column % 10 == 9:
            table[f"word_{column}"] = np.array([f"kind {i}" for i in range(12)])[random.integers(0, 12, nodes)]
        else:
            table[f"number_{column}"] = random.normal(size=nodes).round(6)
    known = random.random(nodes) < 0.05
    table["label"] = np.where(known, np.array([f"class {i}" for i in range(8)])[random.integers(0, 8, nodes)], "")
    pacsv.write_csv(pa.table(table), folder / "nodes.csv")
    ends = random.integers(0, nodes, (2, edges))
    pairs = {"source": ids[ends[0]], "target": ids[ends[1]], "weight": random.random(edges).round(4)}
    pacsv.write_csv(pa.table(pairs), folder / "edges.csv")
    return sum(path.stat().st_size for path in folder.iterdir())


def measure(folder: Path) -> dict[str, float]:
    """What reading the folder takes, in this process."""
    before = resident()
    begin, busy = time.perf_counter(), time.process_time()
    graph = tables.read(folder)
    return {
        "nodes": len(graph.ids),
        "directed_edges": graph.data.edge_index.shape[1],
        "features": graph.data.x.shape[1],
        "seconds": time.perf_counter() - begin,
        "cpu_seconds": time.process_time() - busy,
        "peak_bytes": peak_bytes() - before,
        "loaded_bytes": before,
    }


if __name__ == "__main__":
    sys.exit(main())
