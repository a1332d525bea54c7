"""RunData: all facts of a run, read from its folder."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from bangs.errors import InvalidInput
from bangs.estimator import model_file
from bangs.runs import read_run
from bangs.runs.snapshot import Snapshot
from bangs.utils.files import parse, read_regular_file
from bangs.utils.text import plain_name

EXAM = "exam.safetensors"
SNAPSHOT = "snapshot.safetensors"
HISTORY = "history.jsonl"
MAX_HISTORY_BYTES = 1 << 30


@dataclass(frozen=True, eq=False)
class RunData:
    """The facts of a run; an experiment has rows of all seeds and a snapshot of the first seed."""

    kind: Literal["fit", "run"]
    name: str
    rows: list[dict[str, Any]]  # of `history`
    result: dict[str, Any]
    config: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    snapshot: Snapshot | None = None
    truth: Tensor | None = None  # long [N], -1 = unknown; only compared with predictions
    names: Sequence[str] = ()  # of the nodes
    classes: list[str] = field(default_factory=list)


def gather(folder: str | Path, result: dict[str, Any] | None = None, store: Path | None = None) -> RunData:
    """Read the folder of `bangs fit`, `run` or `demo`; `result` replaces a result.json that is not written yet."""
    folder = Path(folder)
    if not folder.is_dir():
        hint = "name one that `bangs fit`, `bangs run --out` or `bangs demo` wrote"
        raise InvalidInput(f"'{folder}' is not a folder; {hint}")
    record = read_run(folder)
    result = record.result if result is None else result
    if result is None:
        raise InvalidInput(
            f"'{folder}' holds no result.json: the run is not finished; continue it with --resume, or name another"
        )
    rows = _rows(folder)
    result, config, environment = _without_folders(result), _without_folders(record.config), record.environment
    truth = read_truth(folder)
    if (folder / model_file.FILE).exists():
        saved = model_file.read_saved_run(folder, store)
        names, classes = saved.names, [str(name) for name in saved.classes]
        title = str(config.get("graph", {}).get("name", folder.name))
        run_data = RunData("fit", title, rows, result, config, environment, saved.snapshot, truth, names, classes)
    else:
        snapshot = None
        if (folder / SNAPSHOT).exists():
            tensors, facts = model_file.load(folder / SNAPSHOT)
            with model_file.explain_errors(folder / SNAPSHOT):
                snapshot = Snapshot.from_plain(tensors, facts)
        count = len(rows[0]["class_counts"][0])
        numbers = [] if snapshot is None else [str(node) for node in range(snapshot.nodes)]
        classes = [f"class {label}" for label in range(count)]
        title = f"{result.get('method', 'a method')} on {result.get('dataset', 'a graph')}"
        run_data = RunData("run", title, rows, result, config, environment, snapshot, truth, numbers, classes)
    if run_data.snapshot is not None and truth is not None and len(truth) != run_data.snapshot.nodes:
        raise InvalidInput(f"'{folder / EXAM}' belongs to another graph than the run; make both again")
    return run_data


def _without_folders(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts with the path of the dataset cut to its last part, as a page may be shown to others."""
    return {**facts, "dataset": plain_name(facts["dataset"])} if isinstance(facts.get("dataset"), str) else facts


def _rows(folder: Path) -> list[dict[str, Any]]:
    path = folder / HISTORY
    try:
        lines = read_regular_file(path, MAX_HISTORY_BYTES).splitlines()
    except FileNotFoundError as error:
        raise InvalidInput(f"'{folder}' holds no {HISTORY}; run it again with --out") from error
    rows = [parse(line, f"'{path}', line {number}") for number, line in enumerate(lines, 1)]
    wanted = {"round", "validation", "class_counts", "adopted", "labelled", "seconds"}
    if not rows or not all(isinstance(row, dict) and wanted <= row.keys() for row in rows):
        raise InvalidInput(f"'{path}' must hold one row a round, as bangs writes them")
    return rows


def read_truth(folder: Path) -> Tensor | None:
    if not (folder / EXAM).exists():
        return None
    tensors, _ = model_file.load(folder / EXAM)
    if "truth" not in tensors or tensors["truth"].dim() != 1 or tensors["truth"].is_floating_point():
        raise InvalidInput(f"'{folder / EXAM}' must hold one whole number per node")
    return tensors["truth"]
