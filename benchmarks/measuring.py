"""What all benchmarks share: acts that take turns, peak memory, a table and one JSON object."""

import argparse
import ctypes
import json
import platform
import resource
import shlex
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from bangs.errors import DataUnavailable
from bangs.graphs.datasets import loading
from bangs.utils.git_version import describe

# the graphs on which defaults are chosen
DEVELOPMENT = (
    "cora",
    "citeseer",
    "pubmed",
    "amazon_computers",
    "coauthor_physics",
    "lastfm_asia_large",
    "citeseer_full",
    "uai2010",
    "flickr_social",
    "actor",
)


@dataclass
class Times:
    """How long an act took, turn by turn; `scale` is how much of the whole act one call stands for."""

    scale: float = 1.0
    clock: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The median by the clock."""
        return statistics.median(self.clock)

    @property
    def cpu_seconds(self) -> float:
        """The median of the processor's own time, which others' work on the machine does not lengthen."""
        return statistics.median(self.processor)

    def against(self, plain: "Times") -> dict[str, float]:
        """Both times, and how often they go into the plain one's."""
        return {
            "seconds": self.seconds,
            "ratio": plain.seconds / self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "cpu_ratio": plain.cpu_seconds / self.cpu_seconds,
        }


def options(about: str, repeats: int | None = 5) -> argparse.ArgumentParser:
    """A parser with --json, --threads and, unless its default is None, --repeats."""
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object and nothing else")
    if repeats is not None:
        how_often = "how often each case is timed; the median counts"
        parser.add_argument("--repeats", type=int, default=repeats, help=how_often)
    parser.add_argument("--threads", type=int, default=1, help="of every act, the plain ones too")
    return parser


def in_turns(
    acts: Mapping[str, Callable[[], Any]],
    repeats: int,
    scales: Mapping[str, float] | None = None,
    least: float = 0.0,
) -> dict[str, Times]:
    """Times of acts that take turns, so that a busy machine slows all alike, after one call each to warm up.

    An act that takes less than `least` seconds is called again and again for so long, and the mean counts.
    """
    times = {name: Times((scales or {}).get(name, 1.0)) for name in acts}
    for act in acts.values():
        act()
    for _ in range(repeats):
        for name, act in acts.items():
            _wait()
            begin, busy, calls = time.perf_counter(), time.process_time(), 0
            while calls == 0 or time.perf_counter() - begin < least:
                act()
                _wait()
                calls += 1
            times[name].clock.append((time.perf_counter() - begin) * times[name].scale / calls)
            times[name].processor.append((time.process_time() - busy) * times[name].scale / calls)
    return times


def peak_of(act: Callable[[], Any]) -> int:
    """The peak memory of an act above what is there before, in bytes; the GPU's where there is one."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        act()
        return int(torch.cuda.max_memory_allocated() - before)
    before = resident()
    act()
    return peak_bytes() - before


def resident() -> int:
    """The memory this process holds, in bytes; free memory is given back and earlier peaks are forgotten.

    Where the system cannot forget (only Linux can), the peak so far stands in.
    """
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as refs:
            refs.write("5")
    except (OSError, AttributeError):
        pass
    return peak_bytes()


def peak_bytes() -> int:
    """The largest memory of this process since `resident` was last asked; of the GPU's where there is one."""
    if torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated())
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def power(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The power of the size that values grow with, by least squares of logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def graph(name: str) -> tuple[str, Data]:
    """A dataset, or the embedded graph where it is not to be had."""
    try:
        return name, loading.load(name)
    except DataUnavailable as reason:
        print(f"{reason}\n→ the embedded graph stands in for '{name}'", file=sys.stderr)
        return "synthetic", loading.load("synthetic")


def show(rows: list[dict[str, Any]], as_json: bool, **facts: Any) -> None:
    """The rows as one JSON object, or as a table."""
    facts = {**facts, **machine()}
    if as_json:
        print(json.dumps({**facts, "rows": rows}))
        return
    for name, fact in facts.items():
        print(f"{name}: {fact}")
    print(table(rows))


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as a Markdown table, in columns that line up."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [[_spell(column, row.get(column)) for column in columns] for row in rows]
    widths = [max(len(column), *(len(line[i]) for line in cells)) for i, column in enumerate(columns)]
    sides = ["<" if any(isinstance(row.get(column), str) for row in rows) else ">" for column in columns]
    rule = ["-" * width if side == "<" else "-" * (width - 1) + ":" for width, side in zip(widths, sides, strict=True)]
    form = "| " + " | ".join(f"{{:{side}{width}}}" for side, width in zip(sides, widths, strict=True)) + " |"
    return "\n".join(form.format(*line) for line in [columns, rule, *cells])


def page(title: str, command: str, *parts: str) -> str:
    """A page of the documentation that holds nothing but what a command wrote."""
    made = f"Made by `{command}`. Do not edit it by hand: the words are in the script."
    return "\n\n".join([f"# {title}", made, *parts]) + "\n"


def machine() -> dict[str, str | None]:
    """What was measured, and where."""
    command = shlex.join(["python", *(word for word in sys.argv if word != "--json")])
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {torch.get_num_threads()} threads"
    versions = {"torch": torch.__version__, "python": platform.python_version()}
    return {"command": command, "commit": describe(), "device": device, **versions}


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _spell(column: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return f"{value['mean']:.4g} ± {value['std']:.4g}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if column.endswith("_bytes"):
        return f"{value / 2**20:,.0f} MiB" if value >= 2**20 else f"{value / 2**10:,.0f} KiB"
    if "seconds" in column:
        return f"{_number(value)} s" if value >= 1 else f"{1000 * value:.4g} ms"
    return _number(value)


def _number(value: float) -> str:
    """Four digits of a fraction, and all of a whole number."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.1f}" if value >= 1000 else f"{value:.4g}"
