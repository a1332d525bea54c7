"""What all benchmarks share: medians, peak memory, a table and one JSON object."""

import argparse
import json
import platform
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch_geometric.data import Data

from bangs.errors import DataUnavailable
from bangs.graphs import datasets


def options(about: str) -> argparse.ArgumentParser:
    """A parser with --json, --repeats and --threads."""
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--json", action="store_true", help="one JSON object and nothing else")
    parser.add_argument("--repeats", type=int, default=5, help="how often each case is timed; the median counts")
    parser.add_argument("--threads", type=int, default=2)
    return parser


def median_seconds(act: Callable[[], Any], repeats: int) -> float:
    """The median time of an act, after one to warm up."""
    act()
    _settle()
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        act()
        _settle()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def peak_bytes() -> int:
    """The largest resident size of this process so far; of the GPU's allocations where there is one."""
    if torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def graph(name: str) -> tuple[str, Data]:
    """A dataset, or the embedded graph where it is not to be had."""
    try:
        return name, datasets.load(name)
    except DataUnavailable as reason:
        print(f"{reason}\n→ the embedded graph stands in for '{name}'", file=sys.stderr)
        return "synthetic", datasets.load("synthetic")


def show(rows: list[dict[str, Any]], as_json: bool, **facts: Any) -> None:
    """The rows as one JSON object, or as a table."""
    facts = {**facts, **machine()}
    if as_json:
        print(json.dumps({**facts, "rows": rows}))
        return
    for name, fact in facts.items():
        print(f"{name}: {fact}")
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [[_spell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(column), *(len(line[i]) for line in cells)) for i, column in enumerate(columns)]
    for line in [columns, *cells]:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def machine() -> dict[str, str]:
    """Where a figure was measured."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {torch.get_num_threads()} threads"
    return {"device": device, "torch": torch.__version__, "python": platform.python_version()}


def _settle() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _spell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
