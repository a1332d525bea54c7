"""Two checkouts, the same results: every method on the embedded graph and one fit, compared number by number.

    python benchmarks/same_results.py ../before . [--device cpu] [--models] [--teacher first] [--jobs 1]

Prints one line a command, with the first differences, and exits with 1 where a number differs. On a CPU results of
runs must be equal to the bit. Where the default teacher of the two checkouts differs, `--teacher` names one for both.
The fit has the defaults of the first version, named where they have changed since; its probabilities, written with six
digits, may differ in the last one, since the mean over folds is computed in logarithms now, also for one fold.
"""

import argparse
import csv
import json
import math
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

MODELS = ("gcn", "graphsage", "gat", "gin", "appnp", "sgc", "gcnii", "grand")
# since session 8 GRAND drops features before the hops; its published form must still give what it gave before
PUBLISHED_GRAND = """\
try:
    from bangs.nn.models import GRAND, MODELS
except ImportError:  # before the folder nn
    from bangs.learners.models import GRAND, MODELS
form = {"spread": "features"} if hasattr(GRAND, "spread") else {}
MODELS["published-grand"] = lambda: GRAND(**form)
"""
FORMER_FIT = ["--model", "gcn", "--method", "hard", "--calibrator", "ets", "--validation", "0.25"]
FORMER_FIT += ["--scale", "standard", "--class-weight", "none"]
# error_after: the labels that chose a temperature no longer judge it
UNEQUAL = {"error_after", "seconds", "environment", "out", "commit", "folder", "path", "version", "created"}


def json_output(checkout: Path, command: list[str]) -> Any:
    """What a command of that checkout prints with --json, without times and places."""
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(checkout / "src"), os.environ.get("PYTHONPATH")))),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run([sys.executable, "-m", "bangs", *command], capture_output=True, text=True, env=env)
    if done.returncode:
        return {"failed": done.stderr.strip()[-300:]}
    return _without(json.loads(done.stdout))


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(item) for key, item in value.items() if key not in UNEQUAL}
    return [_without(item) for item in value] if isinstance(value, list) else value


def differences(before: Any, after: Any, path: str = "") -> list[str]:
    """Where two results differ; a key that only the later one has is no difference, but a failure always is one."""
    if path == "" and isinstance(before, dict) and "failed" in before:
        return [f"failed: {before['failed']}"]
    if isinstance(before, dict) and isinstance(after, dict):
        return [line for key in before for line in differences(before[key], after.get(key), f"{path}.{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [line for index, (one, two) in pairs for line in differences(one, two, f"{path}[{index}]")]
    if isinstance(before, Rounded) and isinstance(after, Rounded):
        return [] if math.isclose(before, after, rel_tol=2e-5) else [f"{path.lstrip('.')}: {before} -> {after}"]
    return [] if before == after else [f"{path.lstrip('.')}: {str(before)[:200]} -> {str(after)[:200]}"]


class Rounded(float):
    """A number that was written with six digits."""


def _numbers(row: dict[str, str]) -> dict[str, Any]:
    """A row of predictions.csv with its confidence and probabilities as numbers."""
    return {key: Rounded(cell) if key == "confidence" or key.startswith("p_") else cell for key, cell in row.items()}


def methods(checkout: Path) -> list[str]:
    """The names that `bangs list methods` knows there."""
    listed = json_output(checkout, ["list", "methods", "--json"])
    return sorted(listed["methods"] if isinstance(listed, dict) and "methods" in listed else listed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--models", action="store_true", help="also one run of every model")
    parser.add_argument("--teacher", help="the teacher of every run, given to both")
    parser.add_argument("--jobs", type=int, default=1, help="commands at once")
    args = parser.parse_args()
    common = ["--dataset", "synthetic", "--seeds", "2", "--rounds", "3", "--device", args.device, "--json"]
    common += [] if args.teacher is None else ["--teacher", args.teacher]
    commands = [["run", "--method", name, *common] for name in methods(args.before)]
    if args.models:
        commands += [["run", "--method", "bangs", "--model", name, *common] for name in MODELS]
    different = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        if args.models:
            code = Path(folder) / "published_grand.py"
            code.write_text(PUBLISHED_GRAND)
            commands.append(["run", "--method", "bangs", "--model", "published-grand", "--code", str(code), *common])
        before, after = (pool.map(partial(json_output, checkout), commands) for checkout in (args.before, args.after))
        for command, *results in zip(commands, before, after, strict=True):
            different += _print(differences(*results), command)
    fits = []
    for checkout in (args.before, args.after):
        with tempfile.TemporaryDirectory() as folder:
            settings = FORMER_FIT if (checkout / "src/bangs/estimator/class_weights.py").exists() else []
            command = ["fit", "examples/own-graph", "--out", f"{folder}/fit", "--json", *settings]
            result = json_output(checkout, command)
            with open(Path(folder) / "fit/predictions.csv", encoding="utf-8", newline="") as file:
                fits.append({"result": result, "rows": [_numbers(row) for row in csv.DictReader(file)]})
    different += _print(differences(*fits), ["fit", "examples/own-graph"])
    sys.exit(1 if different else 0)


def _print(lines: list[str], command: list[str]) -> bool:
    print("DIFFERENT" if lines else "same     ", " ".join(command), flush=True)
    for line in lines[:5]:
        print("         ", line, flush=True)
    return bool(lines)


if __name__ == "__main__":
    main()
