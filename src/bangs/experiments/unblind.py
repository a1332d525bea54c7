"""Unblind: compute the test accuracies of a finished blind run, once."""

from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bangs.errors import InvalidInput
from bangs.experiments.blind_rounds import read_round
from bangs.experiments.experiment import Experiment, exam_of, summary
from bangs.graphs.datasets import loading
from bangs.runs import RunFolder, read_run


def runs_in(folder: Path) -> list[Path]:
    """The folder itself if it holds a run; in the folder of a suite, its finished runs that are still blind."""
    runs = folder / "runs"
    if (folder / "config.json").exists() or not runs.is_dir():
        return [folder]
    records = ((path, read_run(path)) for path in sorted(runs.iterdir()) if (path / "config.json").exists())
    return [path for path, record in records if (record.result or {}).get("blind")]


def unblind(path: Path, data_folder: Path | None = None) -> dict[str, Any] | None:
    """Add test accuracies to the result of a finished blind run; None if that was done before.

    The time is written into the events of the folder.
    """
    record = read_run(path)
    if record.result is None:
        raise InvalidInput(f"the run in '{path}' is not finished; continue it with --resume, then unblind it")
    if not record.result.get("blind"):
        if any(event["kind"] == "unblinded" for event in record.events):
            return None
        raise InvalidInput(f"the run in '{path}' is not blind; only a run made with --blind hides its test labels")
    names = {setting.name for setting in fields(Experiment)}
    settings = {name: value for name, value in record.config.items() if name in names}
    lists = {name: tuple(settings[name]) for name in ("seeds", "fanout") if settings.get(name) is not None}
    experiment = Experiment(**{**settings, **lists})
    exam = exam_of(experiment, loading.load(experiment.dataset, data_folder))
    shape = exam.truth.shape
    rows = [{**row, **exam.mark_labels(*read_round(path, row["round"], shape))} for row in record.result["rounds"]]
    result = summary(experiment, rows, record.result["seconds"]["total"])
    with RunFolder.create_or_resume(path, record.config, resume=True) as folder:
        folder.event("unblinded", at=datetime.now(UTC).isoformat(timespec="seconds"))
        folder.finish(result)
    return result
