"""Blind runs: the predictions of every round are kept, and no test label is opened until `unblind`."""

from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from bangs.errors import InvalidInput
from bangs.experiments.experiment import Experiment, exam_of, summary
from bangs.graphs.datasets import by_name
from bangs.runs import RunFolder, read_run
from bangs.runs.folder import round_file
from bangs.selftraining.loop import State
from bangs.utils.files import explained, read_plain, write_atomic

FOLDER = "blind"  # of the predictions, in the run folder
LARGEST = 1 << 32  # bytes of one round's predictions


class BlindRounds:
    """An observer that keeps the predicted labels and the pseudo-labels of every round: [R, N] each, -1 = none."""

    def __init__(self, folder: RunFolder):
        self.path = folder.path / FOLDER
        with explained(self.path):
            self.path.mkdir(exist_ok=True)

    def __call__(self, state: State, row: dict[str, Any]) -> None:
        adopted = torch.where(state.labels.adopted, state.labels.target, -1)
        kept = {"predicted": state.prediction.label, "adopted": adopted}
        body = save({name: value.to(torch.int16).cpu().contiguous() for name, value in kept.items()})
        write_atomic(round_file(self.path, state.index), body)


def runs_in(folder: Path) -> list[Path]:
    """The folder itself if it holds a run; of a suite's folder, those of its runs that are finished and still blind."""
    runs = folder / "runs"
    if (folder / "config.json").exists() or not runs.is_dir():
        return [folder]
    records = ((path, read_run(path)) for path in sorted(runs.iterdir()) if (path / "config.json").exists())
    return [path for path, record in records if (record.result or {}).get("blind")]


def unblind(path: Path, data_folder: Path | None = None) -> dict[str, Any] | None:
    """Open the exam of a finished blind run and write its result with test accuracies; None if that was done before.

    The moment is written into the folder's events.
    """
    record = read_run(path)
    if record.result is None:
        raise InvalidInput(f"the run in '{path}' is not finished; go on with it (--resume), then unblind it")
    if not record.result.get("blind"):
        if any(event["kind"] == "unblinded" for event in record.events):
            return None
        raise InvalidInput(f"the run in '{path}' is not blind; its test labels were open from the start")
    experiment = _experiment(record.config)
    exam = exam_of(experiment, by_name.load(experiment.dataset, data_folder))
    rows = []
    for row in record.result["rounds"]:
        predicted, adopted = _read(path, row["round"], exam.truth.shape)
        rows.append({**row, **exam.mark_labels(predicted, adopted)})
    result = summary(experiment, rows, record.result["seconds"]["total"])
    with RunFolder.create_or_resume(path, record.config, resume=True) as folder:
        folder.event("unblinded", at=datetime.now(UTC).isoformat(timespec="seconds"))
        folder.finish(result)
    return result


def _experiment(config: dict[str, Any]) -> Experiment:
    """The experiment of a run's configuration."""
    known = {own.name for own in fields(Experiment)}
    lists = {name: tuple(config[name]) for name in ("seeds", "fanout") if config.get(name) is not None}
    return Experiment(**{**{name: value for name, value in config.items() if name in known}, **lists})


def _read(path: Path, round: int, shape: torch.Size) -> tuple[torch.Tensor, torch.Tensor]:
    file = round_file(path / FOLDER, round)
    try:
        found = load(read_plain(file, LARGEST))
    except (FileNotFoundError, SafetensorError) as error:
        raise InvalidInput(f"'{file}' is missing or damaged, so round {round} cannot be marked: run again") from error
    kept = found.get("predicted"), found.get("adopted")
    if any(one is None or one.shape != shape or one.dtype != torch.int16 for one in kept):
        raise InvalidInput(f"'{file}' does not hold the predictions of this run's {shape[0]} seeds: run again")
    return found["predicted"].long(), found["adopted"].long()
