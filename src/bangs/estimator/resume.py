"""Keeping: every round of a fit in its run folder, and the place to go on from."""

import time
from collections.abc import Callable

from torch_geometric.data import Data

from bangs.core.types import Task
from bangs.errors import InvalidInput
from bangs.graphs.fingerprint import fingerprint
from bangs.graphs.store import StoredGraph
from bangs.runs import Checkpoint, RunFolder
from bangs.runs.recorder import Recorder
from bangs.runs.snapshot import Snapshot
from bangs.runs.state import pack, tell_rejected, unpack
from bangs.selftraining.loop import State
from bangs.training.trainer import Learner
from bangs.utils.files import digest

RECORD = "record."


class Keeper:
    """Keeps the state of every round and what a recorder remembers of them all, in one checkpoint.

    Give it to `SelfTrainingClassifier.fit`; a fit whose folder holds rounds goes on after the last of them, and ends
    as it would have undisturbed:

        with RunFolder.create_or_resume("out", {"my": "settings"}, resume=True) as folder:
            model.fit(data, keeper=Keeper(folder))
    """

    def __init__(self, folder: RunFolder):
        self.folder = folder
        self._latest = folder.latest()
        self._task = ""
        self._before = 0.0
        self._began = time.perf_counter()

    @property
    def round(self) -> int | None:
        """The last round that was kept when the folder was opened; None = the fit begins."""
        return None if self._latest is None else self._latest.round

    @property
    def seconds(self) -> float:
        """Of work so far, earlier attempts included."""
        return self._before + time.perf_counter() - self._began

    def resume(self, task: Task, recorder: Recorder) -> Callable[[Learner], State] | None:
        """How to make the last state that was kept, which the recorder then knows too; None = begin."""
        self._task = _identity(task)
        latest, self._latest = self._latest, None
        if latest is None:
            return None
        if latest.facts.get("task") != self._task:
            raise InvalidInput(
                f"the graph or its labels are not those the fit in '{self.folder.path}' began with; "
                "put the former data back, add --overwrite to begin again, or name another folder"
            )
        record = {name.removeprefix(RECORD): value for name, value in latest.tensors.items() if name.startswith(RECORD)}
        try:
            recorder.recall(record, latest.facts["record"], task)
            Snapshot.from_plain(*recorder.snapshot().to_plain())  # whether its parts fit each other
            self._before = float(latest.facts["seconds"])
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise InvalidInput(
                f"the checkpoint of round {latest.round} in '{self.folder.path}' is not one of a fit: {error}; "
                "remove it to go on from the one before, or add --overwrite to begin again"
            ) from error
        state = {name: value for name, value in latest.tensors.items() if not name.startswith(RECORD)}
        return lambda learner: unpack(Checkpoint(latest.round, state, latest.facts), learner)

    def keep(self, state: State, recorder: Recorder) -> None:
        """Write the round down; when this returns, no crash can take it away."""
        tensors, facts = pack(state)
        record, told = recorder.to_plain()
        tensors |= {f"{RECORD}{name}": value for name, value in record.items()}
        facts |= {"record": told, "task": self._task, "seconds": self.seconds}
        self.folder.event("round", index=state.index, validation=state.validation.tolist())
        tell_rejected(self.folder, state)
        self.folder.save(state.index, tensors, facts)


def _identity(task: Task) -> str:
    """The fingerprint of all that a fit learns from."""
    graph = task.graph
    labels = Data(given=task.given.target, held=task.validation)
    if isinstance(graph, StoredGraph):  # its digest stands for all that is stored
        return digest([graph.identity, fingerprint(labels)])
    seen = Data(x=graph.x, edge_index=graph.edge_index, **labels)
    if graph.get("edge_weight") is not None:
        seen.edge_weight = graph.edge_weight
    return fingerprint(seen)
