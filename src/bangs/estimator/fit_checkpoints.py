"""FitCheckpoints: saves the rounds and the finished candidates of a fit in a run folder, and resumes from them."""

from collections.abc import Iterator
from contextlib import contextmanager

from bangs.core.types import Task
from bangs.errors import InvalidInput
from bangs.estimator.candidates import Candidate
from bangs.estimator.members import FoldRecorder, Member
from bangs.runs import RunFolder
from bangs.runs.resume import Part, Restore, SavedRounds
from bangs.selftraining.loop import State


class FitCheckpoints:
    """Saves the state of every round, the recorder, and the candidates that are finished.

    Give it to `SelfTrainingClassifier.fit`. A fit whose folder holds rounds continues after the last of them, with the
    same result as an uninterrupted fit:

        with RunFolder.create_or_resume("out", {"my": "settings"}, resume=True) as folder:
            model.fit(data, checkpoints=FitCheckpoints(folder))
    """

    def __init__(self, folder: RunFolder):
        self._rounds = SavedRounds(folder)
        self._members: dict[str, Part] = {}  # finished, by candidate
        latest = self._rounds.latest
        self._saved = -1 if latest is None else latest.round
        self._resumable = latest is not None

    @property
    def round(self) -> int | None:
        """The last round that was saved when the folder was opened; None = a new fit."""
        if self._rounds.latest is None:
            return None
        facts = self._rounds.latest.facts.get("parts", {}).get("fit")
        return int(facts.get("index", 0)) if isinstance(facts, dict) else 0

    @property
    def seconds(self) -> float:
        """Seconds of work so far, earlier attempts included."""
        return self._rounds.seconds

    def begin(self, task: Task) -> None:
        """Check that what was saved belongs to this task; call it before the other methods."""
        self._rounds.begin(task)
        if self._rounds.latest is None:
            return
        with self._explain_errors():
            for number, name in enumerate(self._rounds.part("fit")[1]["members"]):
                self._members[str(name)] = self._rounds.part(f"member {number}")

    def finished(self, candidate: Candidate) -> tuple[Member, str] | None:
        """The saved member of a finished candidate, and its standing; None = not finished."""
        if candidate.name not in self._members:
            return None
        tensors, facts = self._members[candidate.name]
        with self._explain_errors():
            return Member.from_plain(tensors, facts, candidate.trainer.model), str(facts["standing"])

    def resume(self, candidate: Candidate, task: Task, recorder: FoldRecorder) -> Restore | None:
        """How to rebuild the last saved state; also restores the recorder. None = start anew."""
        if not self._resumable:
            return None
        with self._explain_errors():
            if self._rounds.part("fit")[1].get("candidate") != candidate.name:
                return None
            self._resumable = False
            recorder.restore(*self._rounds.part("record"), task)
            return self._rounds.state()

    def save_round(self, candidate: Candidate, state: State, recorder: FoldRecorder) -> None:
        """Save the round; once this returns, a crash cannot lose it."""
        self._rounds.note(state, candidate=candidate.name)
        self._save(state, {"record": recorder.to_plain()}, state.index, candidate.name)

    def save_member(self, candidate: Candidate, member: Member, standing: str) -> None:
        """Save a finished candidate."""
        tensors, facts = member.to_plain()
        self._members[candidate.name] = tensors, {**facts, "standing": standing}
        self._rounds.folder.event("candidate", name=candidate.name, standing=standing)
        self._save(None, {}, member.chosen)

    def _save(self, state: State | None, parts: dict[str, Part], index: int, candidate: str | None = None) -> None:
        members = {f"member {number}": part for number, part in enumerate(self._members.values())}
        fit = {"index": index, "candidate": candidate, "members": list(self._members)}
        self._saved += 1
        self._rounds.save(self._saved, state, {**parts, **members, "fit": ({}, fit)})

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Turn errors that invalid facts raise into one sentence about the checkpoint."""
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise InvalidInput(
                f"the newest checkpoint in '{self._rounds.folder.path}' is not one of a fit: {error}; "
                "remove it to continue from the one before, or add --overwrite to begin again"
            ) from error
