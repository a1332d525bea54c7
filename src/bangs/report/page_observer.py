"""PageObserver: records the first seed of an experiment, so that its page can show nodes."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bangs.calibration.calibrators import Calibrator
from bangs.core import part_checks
from bangs.core.types import Task
from bangs.errors import InvalidInput
from bangs.estimator import model_file
from bangs.graphs.edges import EdgeList
from bangs.report.page import write_page
from bangs.report.run_data import EXAM, SNAPSHOT
from bangs.runs.history_rows import row as history_row
from bangs.runs.scored_nodes import ScoredNodes
from bangs.runs.snapshot import Snapshot
from bangs.selftraining.best_round import Merit
from bangs.selftraining.loop import State


class PageObserver:
    """Records the snapshot of the first run; predictions are compared with labels of `truth` [N] that no model learned.

    Give it to `Experiment.run` as an observer and call `write` after the run:

        page_observer = PageObserver(experiment.self_trainer().method.calibrate, data.y)
        experiment.run(data=data, observers=[page_observer], run_folder=folder)
        page = page_observer.write(folder.path)
    """

    def __init__(self, calibrate: Calibrator, truth: Tensor | None = None):
        self.calibrate, self.truth = calibrate, truth
        self.rows: list[dict[str, Any]] = []
        self._task: Task | None = None
        self._rounds: list[tuple[Tensor, Tensor, ScoredNodes]] = []  # labels, confidence and scored nodes
        self._best = Merit(-1.0)
        self._chosen: dict[str, Any] = {}  # what the best round predicted and learned from, as a snapshot names it

    def __call__(self, state: State, row: dict[str, Any] | None = None) -> None:
        self._task = task = state.student.learner.task
        calibrated = part_checks.check_calibrated(self.calibrate(state.prediction, task), state.prediction)
        self.rows.append(history_row(state))
        label, confidence = state.prediction.label[0].cpu(), calibrated.confidence[0].cpu()
        self._rounds.append((label, confidence, ScoredNodes.of(state, 0)))
        merit = Merit(float(state.validation[0]))
        if merit.beats(self._best):
            labels = state.labels
            tensors = {
                "target": labels.target[0],
                "adopted_round": labels.adopted_round[0],
                "raw": state.prediction.logits[0],
                "calibrated": calibrated.logits[0],
                "belief": None if labels.belief is None else labels.belief[0],
                "weight": None if bool((labels.weight[0][labels.known[0]] == 1).all()) else labels.weight[0],
            }
            chosen = {name: value.cpu() for name, value in tensors.items() if value is not None}
            self._best, self._chosen = merit, {"chosen": state.index, **chosen}

    def snapshot(self) -> Snapshot:
        """The snapshot of all rounds so far."""
        task = self._task
        if task is None:
            raise InvalidInput("the observer has seen no round yet; give it to SelfTrainer or Experiment.run")
        weight = task.graph.get("edge_weight")
        labels, confidences, logs = zip(*self._rounds, strict=True)
        return Snapshot(
            graph=EdgeList(task.graph.edge_index.cpu(), task.nodes, None if weight is None else weight.cpu()),
            given=task.given.target[0].cpu(),
            held=task.validation[0].cpu(),
            **self._chosen,
            round_labels=torch.stack(labels),
            round_confidence=torch.stack(confidences),
            scored_nodes=ScoredNodes.joined(logs),
            rows=self.rows,
        )

    def write(self, folder: str | Path) -> Path:
        """Write snapshot, hidden labels and page into the folder; of a resumed run, observed in part, a page alone."""
        folder = Path(folder)
        if self.rows and [row["round"] for row in self.rows] == list(range(len(self.rows))):
            snapshot = self.snapshot()
            tensors, facts = snapshot.to_plain()
            # rows of all runs are in history.jsonl already
            model_file.save(folder / SNAPSHOT, tensors, {**facts, "rows": []})
            if self.truth is not None:
                hidden = torch.where(snapshot.known < 0, self.truth.cpu().long(), -1)
                model_file.save(folder / EXAM, {"truth": hidden}, {})
        return write_page(folder)
