"""Reading: seconds and memory it takes to read a large folder of tables.

    python benchmarks/reading.py [--nodes 200000] [--edges 2000000] [--columns 50] [--json]

The tables are made in a temporary folder and read in a process of its own, so that the peak memory is that of
reading alone; the bounds are those of the project: 30 seconds and 4 GiB.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SECONDS, GIBIBYTES = 30.0, 4.0


def make(folder: Path, nodes: int, edges: int, columns: int, seed: int) -> int:
    """Writes both tables as CSV; the bytes written. One column in ten holds words, one node in twenty a label."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv as pacsv

    random = np.random.default_rng(seed)
    ids = np.array([f"node-{number:07d}" for number in range(nodes)])
    table: dict[str, Any] = {"id": ids}
    for place in range(columns):
        if place % 10 == 9:
            table[f"word_{place}"] = np.array([f"kind {i}" for i in range(12)])[random.integers(0, 12, nodes)]
        else:
            table[f"number_{place}"] = random.normal(size=nodes).round(6)
    known = random.random(nodes) < 0.05
    table["label"] = np.where(known, np.array([f"class {i}" for i in range(8)])[random.integers(0, 8, nodes)], "")
    pacsv.write_csv(pa.table(table), folder / "nodes.csv")
    ends = random.integers(0, nodes, (2, edges))
    pairs = {"source": ids[ends[0]], "target": ids[ends[1]], "weight": random.random(edges).round(4)}
    pacsv.write_csv(pa.table(pairs), folder / "edges.csv")
    return sum(path.stat().st_size for path in folder.iterdir())


def measure(folder: Path) -> dict[str, float]:
    """Seconds and peak resident memory of reading the folder, in this process."""
    from bangs.graphs import custom

    before = _peak()
    start = time.perf_counter()
    graph = custom.read(folder)
    seconds = time.perf_counter() - start
    return {
        "seconds": round(seconds, 2),
        "peak_gib": round(_peak(), 3),
        "gib_after_imports": round(before, 3),
        "nodes": len(graph.ids),
        "directed_edges": graph.data.edge_index.shape[1],
        "features": graph.data.x.shape[1],
    }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read is not None:
        print(json.dumps(measure(arguments.read)))
        return 0
    with tempfile.TemporaryDirectory() as name:
        size = make(Path(name), arguments.nodes, arguments.edges, arguments.columns, arguments.seed)
        command = [sys.executable, __file__, "--read", name]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result = {"csv_bytes": size, **json.loads(done.stdout)}
    result["within_bounds"] = result["seconds"] < SECONDS and result["peak_gib"] < GIBIBYTES
    if arguments.json:
        print(json.dumps(result))
    else:
        print(
            f"{result['nodes']:,} nodes, {arguments.edges:,} edges, {arguments.columns} columns, "
            f"{size / 2**20:,.0f} MiB of CSV: {result['seconds']:.1f} s (bound {SECONDS:.0f}), "
            f"peak {result['peak_gib']:.2f} GiB (bound {GIBIBYTES:.0f}), "
            f"{result['gib_after_imports']:.2f} of it after imports"
        )
    return 0 if result["within_bounds"] else 1


if __name__ == "__main__":
    sys.exit(main())
