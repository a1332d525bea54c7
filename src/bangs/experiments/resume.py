"""Journal: a run's rows and states in its folder, and the place to go on from."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from torch_geometric.data import Data

from bangs.errors import InvalidInput
from bangs.graphs.fingerprint import fingerprint
from bangs.runs import Checkpoint, RunFolder
from bangs.runs.state import pack, tell_rejected, unpack
from bangs.selftraining.loop import State
from bangs.training.trainer import Learner
from bangs.utils.files import (
    canonical,
    digest,
    explained,
    finite,
    open_plain,
    parse,
    plain,
    read_plain,
    write_all,
    write_atomic,
)

LARGEST = 1 << 32  # bytes of history.jsonl


@dataclass(frozen=True)
class Found:
    """What an earlier attempt left."""

    rows: list[dict[str, Any]]  # of the rounds up to the checkpoint
    checkpoint: Checkpoint | None  # None = begin
    seconds: float  # the work of earlier attempts

    @property
    def resume(self) -> Callable[[Learner], State] | None:
        """Makes the state to go on from; None where there is none."""
        latest = self.checkpoint
        return None if latest is None else lambda learner: unpack(latest, learner)


class Journal:
    """Keeps every round of a run: its row in history.jsonl, then its state in a checkpoint.

    A checkpoint carries the digests of the rows before it, so a run goes on only from rows that are what they were;
    where they are not, it begins again. `pause` is the least number of seconds between two checkpoints; 0 keeps
    every round.
    """

    def __init__(self, folder: RunFolder, data: Data, pause: float = 0.0):
        self.folder, self.pause = folder, pause
        self.path = folder.path / "history.jsonl"
        self._data = fingerprint(data)
        self._digests: list[str] = []
        self._saved = -float("inf")
        self._before = 0.0
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Of work so far, earlier attempts included."""
        return self._before + time.perf_counter() - self._began

    def open(self) -> Found:
        """Where to go on from; history.jsonl is cut to the rounds that count."""
        latest = self.folder.latest()
        if latest is not None and not _is_ours(latest.facts):
            self.folder.event("damaged checkpoint", round=latest.round, reason="it is not one of an experiment")
            self.folder.forget()
            latest = None
        if latest is not None and latest.facts["data"] != self._data:
            raise InvalidInput(
                f"the graph is not the one the run in '{self.folder.path}' began with; "
                "put the former data back, remove that folder to begin again, or name another"
            )
        rows = None if latest is None else self._sound_rows(latest)
        if latest is not None and rows is None:
            self.folder.event("damaged history", reason=f"rows of rounds 0 to {latest.round} are not as written")
            self.folder.forget()
        self._digests = [digest(row) for row in rows or []]
        write_atomic(self.path, "".join(canonical(row) + "\n" for row in rows or []))
        if latest is None or rows is None:
            return Found([], None, 0.0)
        self._before = latest.facts["seconds"]
        self._began = time.perf_counter()
        return Found(rows, latest, self._before)

    def keep(self, state: State, row: dict[str, Any]) -> None:
        """Write the round down; when this returns, the row is on the disk, and the state where it was its turn."""
        line = canonical(row)
        with explained(self.path):
            file = open_plain(self.path, os.O_WRONLY | os.O_APPEND)
            try:
                write_all(file, line.encode() + b"\n")
            finally:
                os.close(file)
        self._digests.append(sha256(line.encode()).hexdigest())
        self.folder.event("round", index=state.index, validation=row["validation"], seconds=row["seconds"])
        tell_rejected(self.folder, state)
        if time.perf_counter() - self._saved >= self.pause:
            tensors, facts = pack(state)
            facts |= {"rows": self._digests, "data": self._data, "seconds": self.seconds}
            self.folder.save(state.index, tensors, facts)
            self._saved = time.perf_counter()

    def _sound_rows(self, latest: Checkpoint) -> list[dict[str, Any]] | None:
        """The rows a checkpoint vouches for, or None where one is missing or changed."""
        wanted = latest.facts["rows"]
        try:
            lines = read_plain(self.path, LARGEST).splitlines()[: len(wanted)]
            rows = [parse(line, "a row of history.jsonl") for line in lines]
        except (FileNotFoundError, InvalidInput):
            return None
        return rows if [digest(row) for row in rows] == wanted else None


def _is_ours(facts: dict[str, Any]) -> bool:
    """Whether a checkpoint has the facts that `keep` adds."""
    kinds = {"data": str, "rows": list, "seconds": int | float}
    return all(isinstance(facts.get(name), kind) for name, kind in kinds.items())


def as_row(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts as a history row holds them, before and after a resume alike."""
    row: dict[str, Any] = finite(plain(facts, "row"))
    return row
