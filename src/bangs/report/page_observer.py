"""PageObserver: records the first seed of an experiment, so that its page can show the nodes."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bangs.estimator import model_file
from bangs.experiments.experiment import Experiment
from bangs.report.page import write_page
from bangs.report.run_data import EXAM, SNAPSHOT
from bangs.runs.recorder import Recorder
from bangs.selftraining.loop import State


class PageObserver:
    """Records the first run of an experiment; truth long [N] is only compared with its predictions.

    Give it to `Experiment.run` as an observer and call `write` after the result was saved:

        page_observer = PageObserver(experiment, data.y)
        result = experiment.run(data=data, observers=[page_observer])
        save(result, folder)
        page = page_observer.write(folder.path)
    """

    def __init__(self, experiment: Experiment, truth: Tensor | None = None):
        self.recorder = Recorder(experiment.self_trainer().method.calibrate)
        self.truth = truth

    def __call__(self, state: State, row: dict[str, Any]) -> None:
        self.recorder(state)

    def write(self, folder: str | Path) -> Path:
        """Write snapshot, exam and page into the folder; a resumed run, recorded in part, gets a page without nodes."""
        folder = Path(folder)
        if self.recorder.complete:
            tensors, facts = self.recorder.snapshot().to_plain()
            # rows of all runs are in history.jsonl already
            model_file.save(folder / SNAPSHOT, tensors, {**facts, "rows": []})
            if self.truth is not None:
                model_file.save(folder / EXAM, {"truth": self.truth.cpu().to(torch.long)}, {})
        return write_page(folder)
