"""Save the rounds of a run in its folder; a run that was stopped continues after the last one.

Experiments use this through `experiments/history_file.py`, fits through `estimator/fit_checkpoints.py`.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from bangs.core.types import Task
from bangs.errors import InvalidInput
from bangs.graphs.fingerprint import fingerprint
from bangs.graphs.store import StoredGraph
from bangs.runs.checkpoint_content import pack, unpack, with_prefix
from bangs.runs.checkpoint_file import Checkpoint
from bangs.runs.folder import RunFolder
from bangs.selftraining.loop import State
from bangs.training.trainer import Learner
from bangs.utils.files import digest

_STATE_PART = "state"

Part = tuple[Mapping[str, Tensor], Any]  # named tensors, and facts that JSON can hold
Restore = Callable[[Learner], State]  # restores a saved state, for a learner of the same task


class SavedRounds:
    """The states of a run in its folder, with everything else it needs to continue.

    A checkpoint consists of named parts of tensors and facts. A checkpoint of another task is refused.
    """

    def __init__(self, folder: RunFolder, pause: float = 0.0):
        self.folder, self.pause = folder, pause  # minimum seconds between two checkpoints
        self.latest = folder.latest()
        self.earlier = 0.0  # seconds of work in earlier attempts
        self._identity = ""
        self._saved = -float("inf")
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds of work so far, with those of earlier attempts."""
        return self.earlier + time.perf_counter() - self._began

    def begin(self, task: Task, hidden: str = "") -> None:
        """Check that the checkpoint is of this task; `hidden` is a digest of labels that the learner does not see."""
        graph, labels = task.graph, {"given": task.given.target, "held": task.validation}
        if isinstance(graph, StoredGraph):  # its identity covers all that is stored
            seen = digest([graph.identity, fingerprint(Data(**labels))])
        else:
            weight = graph.get("edge_weight")
            seen = fingerprint(Data(x=graph.x, edge_index=graph.edge_index, edge_weight=weight, **labels))
        self._identity = digest([seen, hidden])
        if self.latest is None:
            return
        if self.latest.facts.get("identity") != self._identity:
            raise InvalidInput(
                f"the graph, or the labels that may be seen, are not those the run in '{self.folder.path}' began with; "
                "restore the earlier data, remove that folder, or choose another"
            )
        self.earlier = float(self.latest.facts["seconds"])

    def part(self, name: str) -> Part:
        """The saved part of a name; raises LookupError if there is none."""
        if self.latest is None:
            raise LookupError(name)
        return with_prefix(self.latest.tensors, f"{name}."), self.latest.facts["parts"][name]

    def state(self) -> Restore:
        """A function that restores the last saved state."""
        tensors, facts = self.part(_STATE_PART)
        return partial(unpack, Checkpoint(int(facts["index"]), dict(tensors), facts))

    def note(self, state: State, **more: Any) -> None:
        """Log a round as an event."""
        seconds = {stage: round(value, 6) for stage, value in state.seconds.items()}
        self.folder.event("round", index=state.index, validation=state.validation.tolist(), seconds=seconds, **more)
        if state.rejected:
            reason = "the student's loss or logits were not finite; its labels are discarded and the teacher stays"
            self.folder.event("rejected round", index=state.index, runs=list(state.rejected), reason=reason)

    def save(self, number: int, state: State | None, parts: Mapping[str, Part]) -> None:
        """Save a checkpoint if `pause` has passed; when this returns, it survives a crash."""
        if time.perf_counter() - self._saved < self.pause:
            return
        if state is not None:
            tensors, facts = pack(state)
            parts = {_STATE_PART: (tensors, {**facts, "index": state.index}), **parts}
        tensors = {f"{name}.{key}": value for name, (named, _) in parts.items() for key, value in named.items()}
        facts = {"parts": {name: facts for name, (_, facts) in parts.items()}, "identity": self._identity}
        self.folder.save(number, tensors, {**facts, "seconds": self.seconds})
        self._saved = time.perf_counter()
