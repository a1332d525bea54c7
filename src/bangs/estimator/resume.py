"""Keeping: every round of a fit in its run folder, and the place to go on from."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from bangs.core.types import Task
from bangs.errors import InvalidInput
from bangs.estimator.candidates import Candidate
from bangs.estimator.members import FoldRecorder, Member
from bangs.graphs.fingerprint import fingerprint
from bangs.graphs.store import StoredGraph
from bangs.runs import Checkpoint, RunFolder
from bangs.runs.state import pack, tell_rejected, unpack
from bangs.selftraining.loop import State
from bangs.training.trainer import Learner
from bangs.utils.files import digest

RECORD = "record."
MEMBER = "member."


class Keeper:
    """Keeps the state of every round, what a recorder remembers of them all, and the candidates that are finished.

    Give it to `SelfTrainingClassifier.fit`; a fit whose folder holds rounds goes on after the last of them, and ends
    as it would have undisturbed:

        with RunFolder.create_or_resume("out", {"my": "settings"}, resume=True) as folder:
            model.fit(data, keeper=Keeper(folder))
    """

    def __init__(self, folder: RunFolder):
        self.folder = folder
        self._latest = folder.latest()
        self._saved = -1 if self._latest is None else self._latest.round
        self._members: dict[str, tuple[dict[str, Tensor], dict[str, Any]]] = {}  # finished, by candidate
        self._task = ""
        self._before = 0.0
        self._began = time.perf_counter()

    @property
    def round(self) -> int | None:
        """The last round that was kept when the folder was opened; None = the fit begins."""
        return None if self._latest is None else int(self._latest.facts.get("index", 0))

    @property
    def seconds(self) -> float:
        """Of work so far, earlier attempts included."""
        return self._before + time.perf_counter() - self._began

    def begin(self, task: Task) -> None:
        """Check that what was kept is of this task; call it before the others."""
        self._task = _identity(task)
        latest = self._latest
        if latest is None:
            return
        if latest.facts.get("task") != self._task:
            raise InvalidInput(
                f"the graph or its labels are not those the fit in '{self.folder.path}' began with; "
                "put the former data back, add --overwrite to begin again, or name another folder"
            )
        try:
            self._before = float(latest.facts["seconds"])
            for number, (name, facts) in enumerate(latest.facts["members"]):
                self._members[name] = _below(latest.tensors, f"{MEMBER}{number}."), facts
        except (LookupError, TypeError, ValueError) as error:
            raise self._odd(error) from error

    def finished(self, candidate: Candidate) -> tuple[Member, str] | None:
        """The member that a candidate became before, and how it ended."""
        if candidate.name not in self._members:
            return None
        tensors, facts = self._members[candidate.name]
        try:
            return Member.from_plain(tensors, facts, candidate.trainer.model), str(facts["standing"])
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise self._odd(error) from error

    def resume(self, candidate: Candidate, task: Task, recorder: FoldRecorder) -> Callable[[Learner], State] | None:
        """How to make the last state that was kept, which the recorder then knows too; None = begin."""
        latest = self._latest
        if latest is None or latest.facts.get("candidate") != candidate.name:
            return None
        self._latest = None
        try:
            recorder.recall(_below(latest.tensors, RECORD), latest.facts["record"], task)
            index = int(latest.facts["index"])
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise self._odd(error) from error
        state = {name: t for name, t in latest.tensors.items() if not name.startswith((RECORD, MEMBER))}
        return lambda learner: unpack(Checkpoint(index, state, latest.facts), learner)

    def keep(self, candidate: Candidate, state: State, recorder: FoldRecorder) -> None:
        """Write the round down; when this returns, no crash can take it away."""
        tensors, facts = pack(state)
        record, told = recorder.to_plain()
        tensors |= {f"{RECORD}{name}": value for name, value in record.items()}
        self.folder.event("round", index=state.index, candidate=candidate.name, validation=state.validation.tolist())
        tell_rejected(self.folder, state)
        self._save(tensors, facts | {"record": told, "candidate": candidate.name, "index": state.index})

    def done(self, candidate: Candidate, member: Member, standing: str) -> None:
        """Write a finished candidate down."""
        tensors, facts = member.to_plain()
        self._members[candidate.name] = tensors, {**facts, "standing": standing}
        self.folder.event("candidate", name=candidate.name, standing=standing)
        self._save({}, {"index": member.chosen})

    def _save(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        whole = dict(tensors)
        for number, (own, _) in enumerate(self._members.values()):
            whole |= {f"{MEMBER}{number}.{name}": value for name, value in own.items()}
        members = [[name, told] for name, (_, told) in self._members.items()]
        self._saved += 1
        told = {"task": self._task, "seconds": self.seconds, "members": members}
        self.folder.save(self._saved, whole, {**facts, **told})

    def _odd(self, error: Exception) -> InvalidInput:
        return InvalidInput(
            f"the newest checkpoint in '{self.folder.path}' is not one of a fit: {error}; "
            "remove it to go on from the one before, or add --overwrite to begin again"
        )


def _below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


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
