"""Results: one row per run and seed, read from run folders, written to JSON lines (one line per run) and read back."""

import functools
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bangs.errors import BangsError, InvalidInput
from bangs.experiments.evaluation_protocols import score
from bangs.experiments.experiment import RECIPE_SETTINGS, Experiment
from bangs.runs import Record, config_hash, read_run
from bangs.runs.history_rows import STAGES, seconds_by_stage
from bangs.selftraining.methods import default_rounds
from bangs.utils.files import check_size, open_to_read, parse, read_regular_file
from bangs.utils.text import plain_name

RUN_LIST = "asked.txt"  # the names of all runs, in the folder of a suite
RUN_LIST_START = re.compile(rb"[0-9a-f]{16}\n")
MAX_RUN_LIST_BYTES = 1 << 26
MAX_ROWS_FILE_BYTES = 1 << 28
# an absolute path; it may contain spaces if it is in quotes
_PATH = re.compile(r"(?<=')/[^'\n]*/[^'\n]*(?=')|(?<![\w'/:])/(?:[^\s'\",;:]+/)[^\s'\",;:]*")
_USAGE_HINT = "give the --out folder of `bangs reproduce`, or rows it exported"
ROWS_FILE_START = re.compile(rb'{"run":"[0-9a-f]{16}","config":{')
_DEFAULT_SETTINGS = Experiment().settings()
_SHARED_KEYS = ("run", "config", "environment", "batch", "seconds")  # the same in all rows of a run
_CURVE_DECIMALS = {"validation": 5, "test": 5, "pseudo_accuracy": 4, "labelled": None, "epochs": None}  # None = integer
_TEST_CURVES = ("test", "pseudo_accuracy")  # they need test labels, so a blind run has none


@dataclass(frozen=True)
class Result:
    """The accuracies of an experiment by seed and round, or its error."""

    run: str  # 16 digits of the configuration's hash
    config: Mapping[str, Any]  # without seeds
    environment: Mapping[str, Any]
    rows: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)  # by seed
    seconds: Mapping[str, float] | None = None  # of all seeds together; stages without the first model
    error: str = ""

    @functools.cached_property
    def comparable(self) -> dict[str, Any]:
        """The settings by which a table looks up the result."""
        return _comparable(self.config)

    @property
    def rounds(self) -> int:
        """Rounds of self-training of a run that has rows."""
        return len(next(iter(self.rows.values()))["validation"]) - 1

    @property
    def blind(self) -> bool:
        """Whether no test label was read."""
        return any("test" not in row for row in self.rows.values())

    def scores(self, protocol: str) -> dict[int, float]:
        """Accuracy in per cent by seed; the protocol chooses the nodes and the round."""
        rows = self.rows.items()
        return {seed: 100.0 * score(protocol, row["validation"], row.get("test", ())) for seed, row in rows}


def rows_in(folder: Path) -> list[dict[str, Any]]:
    """The rows of the run in a folder; none if the folder has no configuration."""
    if not (folder / "config.json").exists():
        return []
    try:
        return rows_of(read_run(folder))
    except BangsError as error:
        hint = "move the folder elsewhere, and `bangs reproduce` does the run again"
        raise InvalidInput(f"the run in '{folder}' cannot be read; {hint}: {error}") from error


def rows_of(record: Record) -> list[dict[str, Any]]:
    """The rows of a run: one per seed; one with the error if it failed; none while it is running."""
    try:
        rows = _rows_of(record)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidInput(f"the folder does not hold a run of an experiment: {error!r}") from error
    if not all(map(_is_valid_row, rows)):
        raise InvalidInput("the folder's result is not as bangs writes it")
    return rows


def _rows_of(record: Record) -> list[dict[str, Any]]:
    config = {key: value for key, value in record.config.items() if key != "seeds"}
    if dataset := config.get("dataset", ""):
        config["dataset"] = plain_name(dataset)
    common = {"run": config_hash(record.config)[:16], "config": config, "environment": record.environment}
    if record.result is None:
        failures = [event for event in record.events if event["kind"] in ("failed", "resumed")]
        if not failures or failures[-1]["kind"] != "failed":
            return []
        error = failures[-1]["error"]
        error = error.replace(dataset, Path(dataset).name) if dataset else error
        error = _PATH.sub(lambda match: Path(match[0].rstrip("/")).name, error)  # folders may name a person
        return [{**common, "seeds": record.config["seeds"], "error": error}]
    rounds, seeds = record.result["rounds"], record.config["seeds"]
    stages = {stage: round(value, 3) for stage, value in seconds_by_stage(rounds[1:]).items()}
    first, total = round(sum(rounds[0]["seconds"].values()), 3), record.result["seconds"]["total"]
    return [
        {
            **common,
            "seed": seed,
            "batch": len(seeds),
            **{
                key: [None if row[key][n] is None else round(row[key][n], decimals) for row in rounds]
                for key, decimals in _CURVE_DECIMALS.items()
                if not (record.result.get("blind") and key in _TEST_CURVES)
            },
            "seconds": {"first": first, **stages, "total": total},
        }
        for n, seed in enumerate(seeds)
    ]


def results_in(path: Path) -> list[Result]:
    """The results of a suite's folder, of a file of rows, or of a folder of such files."""
    if not path.exists():
        raise InvalidInput(f"'{path}' does not exist; {_USAGE_HINT}")
    return gather(_rows_in(path))


def gather(rows: Iterable[Mapping[str, Any]]) -> list[Result]:
    """Group rows by run, in the order of first appearance."""
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        runs.setdefault(row["run"], []).append(row)
    results = []
    for name, run_rows in runs.items():
        scored = [row for row in run_rows if "error" not in row]
        first = scored[0] if scored else run_rows[-1]
        by_seed = {row["seed"]: row for row in scored}  # a run exported twice counts once
        seconds, error = first.get("seconds"), first.get("error", "")
        results.append(Result(name, first["config"], first["environment"], by_seed, seconds, error))
    return results


def matching(results: Iterable[Result], settings: Mapping[str, Any]) -> Result | None:
    """The result with these settings, for any seeds: the one with the most seeds; of equals, the last.

    If the same settings have different parts, for example after a user changed a method, the last parts count.
    """
    wanted = _comparable(settings)
    matches = [result for result in results if result.comparable == wanted]
    same_parts = [result for result in matches if result.config.get("parts") == matches[-1].config.get("parts")]
    return max(reversed(same_parts), key=lambda result: len(result.rows), default=None)


def machines(results: Iterable[Result]) -> list[list[str]]:
    """Rows of device, versions, commit and the number of result rows made with them."""
    count = Counter[tuple[str, ...]]()
    for result in results:
        if result.rows:
            env = result.environment
            commit = str(env.get("commit") or "unknown")
            short = commit[:10] + ("-dirty" if commit.endswith("-dirty") else "")
            key = (str(env.get("device")), f"torch {env.get('torch')}", f"Python {env.get('python')}", short)
            count[key] += len(result.rows)
    return [[*key, str(number)] for key, number in sorted(count.items())]


def requested(out: Path) -> list[str]:
    """The names of all runs that were requested in a folder, in their order."""
    try:
        return read_regular_file(out / RUN_LIST, MAX_RUN_LIST_BYTES).decode(errors="replace").split()
    except FileNotFoundError:
        return []


def _rows_in(path: Path) -> Iterator[dict[str, Any]]:
    if path.is_file():
        yield from rows_in_file(path)
        return
    if (path / "config.json").is_file():
        raise InvalidInput(f"'{path}' is the folder of one run, which `bangs report` shows; {_USAGE_HINT}")
    files = sorted(path.glob("*.jsonl"))
    runs = path / "runs"
    if not files and not runs.is_dir():
        raise InvalidInput(f"'{path}' holds neither runs nor rows (.jsonl); {_USAGE_HINT}")
    for file in files:
        yield from rows_in_file(file)
    if runs.is_dir():
        position = {name: number for number, name in enumerate(requested(path))}
        for folder in sorted(runs.iterdir(), key=lambda folder: (position.get(folder.name, -1), folder.name)):
            yield from rows_in(folder)


def rows_in_file(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file that `json_lines` wrote."""
    with open_to_read(path, follow=True) as stream:
        check_size(stream, path, MAX_ROWS_FILE_BYTES)
        for number, line in enumerate(stream, 1):
            shared = parse(line, f"{path}, line {number}")
            rows: Any = shared.pop("rows", None) if isinstance(shared, dict) else None
            are_rows = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
            rows = [{**shared, **row} for row in rows] if are_rows else []
            if not rows or not all(map(_is_valid_row, rows)):
                raise InvalidInput(f"{path}, line {number} holds no rows of a run; write it again with --export")
            yield from rows


def _is_valid_row(row: Mapping[str, Any]) -> bool:
    """Whether a row has the keys and types that `rows_of` writes."""
    kinds = {"run": str, "config": dict, "environment": dict}
    if not all(isinstance(row.get(key), kind) for key, kind in kinds.items()):
        return False
    if not re.fullmatch(r"[0-9a-f]{16}", row["run"]):
        return False
    if "error" in row:
        return isinstance(row["error"], str)
    left_out = () if "test" in row or "pseudo_accuracy" in row else _TEST_CURVES
    curves: dict[str, Any] = {key: row.get(key) for key in _CURVE_DECIMALS if key not in left_out}
    seconds = row.get("seconds")
    return (
        type(row.get("seed")) is int
        and isinstance(seconds, dict)
        and all(_is_number(seconds.get(stage)) for stage in ("first", *STAGES, "total"))
        and all(isinstance(curve, list) and curve for curve in curves.values())
        and len(set(map(len, curves.values()))) == 1
        and all(
            _is_number(value) or (value is None and key == "pseudo_accuracy") for key in curves for value in row[key]
        )
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as JSON lines, one per run: shared keys once, the others in the list "rows"."""
    runs = itertools.groupby(rows, lambda row: {key: row[key] for key in _SHARED_KEYS if key in row})
    lines = [
        {**shared, "rows": [{key: value for key, value in row.items() if key not in _SHARED_KEYS} for row in run_rows]}
        for shared, run_rows in runs
    ]
    return "".join(json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n" for line in lines)


def _comparable(config: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with defaults for those that did not exist yet when the run was made."""
    ignored = ("seeds", "parts", *(() if config.get("recipe", "budget") == "budget" else RECIPE_SETTINGS))
    filled = {**_DEFAULT_SETTINGS, "rounds": None, **config}
    filled["rounds"] = default_rounds(filled["method"]) if filled["rounds"] is None else filled["rounds"]
    filled["dataset"] = plain_name(filled["dataset"])
    return {key: value for key, value in filled.items() if key not in ignored}
