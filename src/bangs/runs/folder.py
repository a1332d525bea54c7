"""RunFolder: the configuration, events, checkpoints and result of one run."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from bangs.errors import BangsError, InvalidInput
from bangs.runs.checkpoint_file import MAX_BYTES, Checkpoint, Damaged, decode, encode
from bangs.runs.checksummed_json import differences, read_checksummed, write_checksummed
from bangs.runs.environment import environment
from bangs.runs.events import Log, read_events
from bangs.runs.lock import Lock, acquire, is_lock
from bangs.utils.files import (
    digest,
    explain_write_errors,
    is_temporary,
    json_value,
    read_regular_file,
    remove_temporaries,
    sync_folder,
    write_atomic,
)

_RUN_FILES = {"lock", "config.json", "environment.json", "events.jsonl", "checkpoints", "result.json", "blind"}
# files that the commands write into the folder, by the kind of the run
_RESULT_FILES = {
    "fit": (
        *("model.safetensors", "exam.safetensors", "predictions.csv", "pseudo_labels.csv", "history.jsonl"),
        *("MODEL_CARD.md", "report.html", "tables.json"),
    ),
    "run": ("snapshot.safetensors", "exam.safetensors", "history.jsonl", "report.html"),
    "unknown": ("model.safetensors", "snapshot.safetensors", "exam.safetensors"),  # names that only bangs uses
}
_ROUND_FILE = re.compile(r"round-([0-9]{6}|[1-9][0-9]{6,8})\.safetensors")  # names of `round_file`
_IGNORED_FILES = {".DS_Store"}


@dataclass(frozen=True)
class Record:
    """The content of a run folder, read without locking it."""

    config: dict[str, Any]
    environment: dict[str, Any]
    events: list[dict[str, Any]]
    result: dict[str, Any] | None  # None = not finished


def config_hash(config: Mapping[str, Any]) -> str:
    """The sha256 of a configuration's canonical JSON: keys sorted, no spaces, floats by `repr`."""
    return digest(json_value(dict(config), "config"))


def read_run(path: str | Path) -> Record:
    """Read a run folder, even while it is in use; takes no lock and changes nothing."""
    folder = Path(path)
    config = read_checksummed(folder / "config.json")
    if config is None:
        raise InvalidInput(
            f"'{folder}' is not a run folder: it has no config.json; name one that a bangs command wrote"
        )
    return Record(
        config,
        read_checksummed(folder / "environment.json") or {},
        read_events(folder / "events.jsonl"),
        read_checksummed(folder / "result.json"),
    )


class RunFolder:
    """The folder of one run, locked by this process until the `with` block ends.

    `resumed` says whether the folder had this run before. Nothing read from the folder is used as a path.
    """

    def __init__(self, path: Path, config: dict[str, Any], lock: Lock):
        self.path = path
        self.config = config
        self.hash = digest(config)
        self.resumed = False
        self._checkpoints = path / "checkpoints"
        self._lock = lock
        self._log: Log | None = None
        self._newest_round: int | None = None  # the newest round whose checkpoint is known to be intact

    @classmethod
    def create_or_resume(
        cls,
        path: str | Path,
        config: Mapping[str, Any],
        *,
        resume: bool,
        overwrite: bool | Literal["same"] = False,
        device: torch.device | str = "cpu",
        patience: float = 0.0,
    ) -> "RunFolder":
        """Lock the folder at `path` for a run with this (complete) configuration.

        If the folder has a run, `resume` continues it (the configuration must be the same) and `overwrite` discards it
        (with "same" only if it has this configuration); otherwise it is refused. If there is no run yet, both start
        one. A folder with other files is always refused. If another process has locked the folder, wait at most
        `patience` seconds.
        """
        if resume and overwrite:
            raise InvalidInput("a run is either resumed or overwritten; give one of --resume and --overwrite")
        if "\0" in str(path):
            raise InvalidInput(f"a folder's name must not hold a zero byte, got {str(path)!a}")
        folder, plain_config = Path(path), json_value(dict(config), "config")
        with explain_write_errors(folder):
            if folder.exists() and not folder.is_dir():
                raise InvalidInput(f"'{folder}' must be a folder, but it is a file; choose another")
            folder.mkdir(parents=True, exist_ok=True)
            _check_is_ours(folder)
            run = cls(folder, plain_config, acquire(folder, patience))
            try:
                run._open(resume, overwrite, environment(device))
            except BaseException:
                run.close()
                raise
        return run

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Unlock the folder; the run can be resumed."""
        if self._log is not None:
            self._log.close()
        self._lock.release()

    def event(self, kind: str, **facts: Any) -> None:
        """Append one line with number and time to events.jsonl; nan and infinities are written as text."""
        self._writable_log().append(kind, facts)

    def events(self) -> list[dict[str, Any]]:
        """All complete events, oldest first."""
        return read_events(self.path / "events.jsonl")

    def save(self, round: int, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Write a checkpoint of the state after a round; when this returns, it survives a crash.

        Tensors are read back on the CPU with the same bits, facts as given, but tuples as lists. The last two intact
        checkpoints stay, older ones are removed.
        """
        self._writable_log()
        if self._newest_round is None:
            self.latest()
        if not 0 <= round < 10**9 or (self._newest_round is not None and round <= self._newest_round):
            raise InvalidInput(f"a saved round must follow the newest one ({self._newest_round}), got {round}")
        body = encode(Checkpoint(round, dict(tensors), dict(facts)), self.hash)
        write_atomic(round_file(self._checkpoints, round), body)
        previous, self._newest_round = self._newest_round, round
        with explain_write_errors(self._checkpoints):
            for other, path in _round_files(self._checkpoints).items():
                if other not in (round, previous):
                    path.unlink()

    def latest(self) -> Checkpoint | None:
        """The newest intact checkpoint, or None; a damaged one is skipped and logged as an event."""
        self._writable_log()
        for round, path in _round_files(self._checkpoints).items():
            try:
                checkpoint = decode(read_regular_file(path, MAX_BYTES), self.hash)
                if checkpoint.round != round:
                    raise Damaged(f"it holds round {checkpoint.round}")
            except (Damaged, InvalidInput, FileNotFoundError) as error:
                self.event("damaged checkpoint", round=round, reason=str(error).replace(str(path), path.name))
                continue
            self._newest_round = round
            return checkpoint
        return None

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write result.json; nan and infinities are written as text."""
        self._writable_log()
        write_checksummed(self.path / "result.json", json_value(dict(result), "result"))
        self.event("finished")

    def forget(self) -> None:
        """Remove all checkpoints: the run is finished, or must begin again."""
        self._writable_log()
        with explain_write_errors(self._checkpoints):
            for path in _round_files(self._checkpoints).values():
                path.unlink()
        self._newest_round = None

    @property
    def finished(self) -> bool:
        return self.result is not None

    @property
    def result(self) -> dict[str, Any] | None:
        """The result that `finish` wrote; None if the run is not finished or the file is damaged."""
        return _read_or_none(self.path / "result.json")

    def _open(self, resume: bool, overwrite: bool | Literal["same"], current: dict[str, Any]) -> None:
        checkpoints = self._checkpoints
        if os.path.lexists(checkpoints) and (checkpoints.is_symlink() or not checkpoints.is_dir()):
            raise InvalidInput(f"'{checkpoints}' must be a folder, not a link or a file; remove it")
        if overwrite == "same":
            stored = _read_or_none(self.path / "config.json")
            overwrite = stored is not None and digest(stored) == self.hash
        config = None
        if overwrite:
            _remove_results(self.path)
        elif (config := read_checksummed(self.path / "config.json")) is None:
            leftovers = any((self.path / name).exists() for name in ("events.jsonl", "result.json"))
            if leftovers or (checkpoints.is_dir() and _round_files(checkpoints)):
                raise InvalidInput(
                    f"'{self.path}' holds a run without its config.json; put the file back, "
                    "add --overwrite to discard the run, or choose another folder"
                )
        elif not resume:
            state, hint = ("a finished run", "add") if self.finished else ("a run", "add --resume to continue it,")
            raise InvalidInput(
                f"'{self.path}' already holds {state}; {hint} --overwrite to delete it, or choose another folder"
            )
        elif lines := differences(config, self.config):
            raise InvalidInput(
                "\n  ".join([f"'{self.path}' holds a run of another configuration:", *lines])
                + "\nuse the folder's settings, add --overwrite to delete its run, or choose another folder"
            )
        self.resumed = config is not None
        checkpoints.mkdir(exist_ok=True)
        remove_temporaries(self.path)
        remove_temporaries(checkpoints)
        if not self.resumed:
            write_checksummed(self.path / "environment.json", current)
            write_checksummed(self.path / "config.json", self.config)
            (self.path / "events.jsonl").unlink(missing_ok=True)
        self._log = Log(self.path / "events.jsonl")
        if self.resumed:
            earlier = _read_or_none(self.path / "environment.json") or {}
            changed = {key: [earlier.get(key), current[key]] for key in current if earlier.get(key) != current[key]}
            self.event("resumed", changed=changed)
        else:
            self.event("started", config=self.hash)
        if self._log.cut:
            self.event("cut events", bytes=self._log.cut)
        if self._lock.stale:
            self.event("stale lock", holder=self._lock.stale)

    def _writable_log(self) -> Log:
        """The event log; raises unless this process still holds the lock of the folder."""
        if self._log is None or not self._lock.held():
            raise BangsError(
                f"'{self.path}' is not held any more: it was closed, removed or replaced, or this is a forked process; "
                "open it again with --resume"
            )
        return self._log


def round_file(folder: Path, round: int) -> Path:
    """The file of a round's tensors."""
    return folder / f"round-{round:06d}.safetensors"


def _round_files(folder: Path) -> dict[int, Path]:
    """The files of rounds in a folder, by round, newest first."""
    matches = filter(None, map(_ROUND_FILE.fullmatch, os.listdir(folder)))
    return dict(sorted(((int(match[1]), folder / match[0]) for match in matches), reverse=True))


def _read_or_none(path: Path) -> dict[str, Any] | None:
    try:
        return read_checksummed(path)
    except InvalidInput:
        return None


def _check_is_ours(folder: Path) -> None:
    """Raise if the folder has files of other programs; nothing has been written into it yet.

    File names are no proof: the folder is ours if it has a valid file with a checksum or a valid event.
    """
    names = {name for name in os.listdir(folder) if not _is_left_by_a_start(folder / name)} - _IGNORED_FILES
    checksummed = ("config.json", "environment.json", "result.json")
    is_run = any(_read_or_none(folder / name) is not None for name in checksummed)
    if names and not is_run and not read_events(folder / "events.jsonl"):
        example = sorted(names - _RUN_FILES or names)[0]
        raise InvalidInput(
            f"'{folder}' is not a run folder and holds other files (such as {example!a}); choose another"
        )


def _is_left_by_a_start(path: Path) -> bool:
    """Whether a run that was killed before it wrote its first file with a checksum may have left this file."""
    if path.name == "checkpoints":
        return path.is_dir() and not path.is_symlink() and not os.listdir(path)
    if path.name == "lock":
        return is_lock(path)
    return is_temporary(path.name) and path.name[1:-21] in _RUN_FILES  # .NAME.<16 hex>.tmp


def _remove_results(folder: Path) -> None:
    """Remove all files of a run except its configuration, so that a crash leaves an unfinished run.

    The new configuration is written afterwards, so that no model stays beside the configuration of another run. Files
    with other names stay.
    """
    checkpoints, config = folder / "checkpoints", _read_or_none(folder / "config.json")
    kind = "unknown" if config is None else "fit" if config.get("command") == "fit" else "run"
    for name in ("result.json", *_RESULT_FILES[kind]):
        (folder / name).unlink(missing_ok=True)
    for rounds_folder in (checkpoints, folder / "blind"):
        if rounds_folder.is_dir() and not rounds_folder.is_symlink():
            for path in _round_files(rounds_folder).values():
                path.unlink()
    sync_folder(folder)
