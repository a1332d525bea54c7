"""history.jsonl: the rows of a run in its folder, beside its checkpoints."""

from contextlib import closing
from typing import Any

from bangs.core.types import Task
from bangs.errors import InvalidInput
from bangs.experiments.blind_rounds import write_round
from bangs.runs import RunFolder
from bangs.runs.resume import Restore, SavedRounds
from bangs.selftraining.loop import State
from bangs.utils.files import (
    AppendOnlyFile,
    canonical,
    digest,
    explain_write_errors,
    parse,
    read_regular_file,
    write_atomic,
)

NAME = "history.jsonl"
MAX_BYTES = 1 << 32  # bytes


class History:
    """Saves every round of a run: its row in history.jsonl, then its state in a checkpoint.

    A checkpoint has the digests of all rows before it. A run continues only if the rows match them; otherwise it
    starts again. Checkpoints are at least `pause` seconds apart. A `blind` run also saves its predictions.
    """

    def __init__(self, folder: RunFolder, pause: float = 0.0, blind: bool = False):
        self.rounds, self.blind = SavedRounds(folder, pause), blind
        self.path = folder.path / NAME
        self.rows: list[dict[str, Any]] = []  # of the rounds up to the checkpoint
        self._digests: list[str] = []

    def resume(self, task: Task, exam_digest: str) -> Restore | None:
        """A function that restores the last checkpoint, or None; cuts history.jsonl to the rounds before it."""
        self.rounds.begin(task, exam_digest)
        restore = None
        if self.rounds.latest is not None:
            try:
                self._digests = self.rounds.part("rows")[1]
                self.rows = self._read()
                restore = self.rounds.state()
            except (LookupError, TypeError, ValueError) as error:
                folder, round = self.rounds.folder, self.rounds.latest.round
                folder.event("damaged checkpoint", round=round, reason=str(error)[:500])
                folder.forget()
                self.rows, self._digests, self.rounds.earlier = [], [], 0.0
        write_atomic(self.path, "".join(canonical(row) + "\n" for row in self.rows))
        return restore

    def keep(self, state: State, row: dict[str, Any]) -> None:
        """Write a round; when this returns, its row is on the disk, and its state if `pause` has passed."""
        if self.blind:  # before the checkpoint: a run that continues after it does not repeat this round
            write_round(self.path.parent, state)
        with explain_write_errors(self.path), closing(AppendOnlyFile(self.path, self.path.stat().st_size)) as file:
            file.append(f"{canonical(row)}\n".encode())
        self._digests.append(digest(row))
        self.rounds.note(state)
        self.rounds.save(state.index, state, {"rows": ({}, self._digests)})

    def _read(self) -> list[dict[str, Any]]:
        """The rows before the checkpoint; raises if one is missing or changed."""
        try:
            lines = read_regular_file(self.path, MAX_BYTES).splitlines()[: len(self._digests)]
        except FileNotFoundError as error:
            raise InvalidInput(f"{NAME} is missing") from error
        rows = [parse(line, f"a row of {NAME}") for line in lines]
        if [digest(row) for row in rows] != self._digests:
            raise InvalidInput(f"the rows of {NAME} are not as they were written")
        return rows
