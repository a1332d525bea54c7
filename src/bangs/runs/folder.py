"""RunFolder: the configuration, events, checkpoints and result of one run."""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from bangs.errors import BangsError, InvalidInput
from bangs.runs.checkpoint import MAX_BYTES, Checkpoint, Damaged, decode, encode
from bangs.runs.environment import environment
from bangs.runs.events import Log, read_events
from bangs.runs.lock import Lock, acquire, is_lock
from bangs.runs.sealed_json import differences, seal, unseal
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
# what the commands leave beside it, by the kind of the run; a fit says so in its configuration
_RESULT_FILES = {
    "fit": (
        *("model.safetensors", "exam.safetensors", "predictions.csv", "pseudo_labels.csv", "history.jsonl"),
        *("MODEL_CARD.md", "report.html", "tables.json"),
    ),
    "run": ("snapshot.safetensors", "exam.safetensors", "history.jsonl", "report.html"),
    "unknown": ("model.safetensors", "snapshot.safetensors", "exam.safetensors"),  # no one else's names
}
_ROUND_FILE = re.compile(r"round-([0-9]{6}|[1-9][0-9]{6,8})\.safetensors")  # names of `round_file`
_IGNORED_FILES = {".DS_Store"}  # put into any folder someone looks at


@dataclass(frozen=True)
class Record:
    """The content of a run folder, for a reader that does not lock it."""

    config: dict[str, Any]
    environment: dict[str, Any]
    events: list[dict[str, Any]]
    result: dict[str, Any] | None  # None = not finished


def config_hash(config: Mapping[str, Any]) -> str:
    """The sha256 of a configuration's canonical JSON: keys sorted, no spaces, floats by `repr`."""
    return digest(json_value(dict(config), "config"))


def read_run(path: str | Path) -> Record:
    """The record of a run folder, finished or not, in use or not; takes no lock and changes nothing."""
    folder = Path(path)
    config = unseal(folder / "config.json")
    if config is None:
        raise InvalidInput(f"'{folder}' is no run folder: it holds no config.json")
    return Record(
        config,
        unseal(folder / "environment.json") or {},
        read_events(folder / "events.jsonl"),
        unseal(folder / "result.json"),
    )


class RunFolder:
    """The folder of one run, held by this process until the `with` block ends.

    `resumed` says whether the folder held this run before. Nothing that it reads from the folder is used as a path.
    """

    def __init__(self, path: Path, config: dict[str, Any], lock: Lock):
        self.path = path
        self.config = config
        self.hash = digest(config)
        self.resumed = False
        self._lock = lock
        self._log: Log | None = None
        self._newest_round: int | None = None  # the newest round known to be whole

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
        """Hold the folder at `path` for the run of this (complete) configuration.

        A folder that holds a run is refused unless `resume` (the configuration must be the same) or `overwrite` (the
        run is discarded, with "same" only if it has this configuration) is true. A folder that holds other files is
        always refused. Where there is no run yet, both begin one. A folder that another process holds is waited for,
        `patience` seconds at most.
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
        """Let go of the folder; the run can be resumed."""
        if self._log is not None:
            self._log.close()
        self._lock.release()

    def event(self, kind: str, **facts: Any) -> None:
        """Append one line to events.jsonl, numbered and timed; nan and infinities are written as text."""
        self._writable_log().append(kind, facts)

    def events(self) -> list[dict[str, Any]]:
        """All complete events, oldest first."""
        return read_events(self.path / "events.jsonl")

    def save(self, round: int, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Keep the state at the end of a round; when this returns, no crash can take it away.

        Tensors of any device come back on the CPU, bit by bit, and facts as given, but tuples as lists. The last two
        whole checkpoints stay, older ones go.
        """
        self._writable_log()
        if self._newest_round is None and self._rounds():
            self.latest()
        if not 0 <= round < 10**9 or (self._newest_round is not None and round <= self._newest_round):
            raise InvalidInput(f"a saved round must follow the newest one ({self._newest_round}), got {round}")
        body = encode(Checkpoint(round, dict(tensors), dict(facts)), self.hash)
        write_atomic(self._checkpoint(round), body)
        previous, self._newest_round = self._newest_round, round
        with explain_write_errors(self.path / "checkpoints"):
            for other in self._rounds():
                if other not in (round, previous):
                    os.unlink(self._checkpoint(other))

    def latest(self) -> Checkpoint | None:
        """The newest whole checkpoint, or None; a damaged one is passed over with an event that says so."""
        self._writable_log()
        for round in self._rounds():
            path = self._checkpoint(round)
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
        """Write result.json, in which nan and infinities are written as text."""
        self._writable_log()
        seal(self.path / "result.json", json_value(dict(result), "result"))
        self.event("finished")

    def forget(self) -> None:
        """Remove all checkpoints: the run is finished, or must begin again."""
        self._writable_log()
        with explain_write_errors(self.path / "checkpoints"):
            for round in self._rounds():
                os.unlink(self._checkpoint(round))
        self._newest_round = None

    @property
    def finished(self) -> bool:
        return self.result is not None

    @property
    def result(self) -> dict[str, Any] | None:
        """What `finish` was given; None where the run is not finished or its result is damaged."""
        return _unseal_or_none(self.path / "result.json")

    def _open(self, resume: bool, overwrite: bool | Literal["same"], current: dict[str, Any]) -> None:
        checkpoints = self.path / "checkpoints"
        if os.path.lexists(checkpoints) and not stat.S_ISDIR(os.lstat(checkpoints).st_mode):
            raise InvalidInput(f"'{checkpoints}' must be a folder of its own, not a link or a file; remove it")
        if overwrite == "same":
            stored = _unseal_or_none(self.path / "config.json")
            overwrite = stored is not None and digest(stored) == self.hash
        config = None
        if overwrite:
            _remove_results(self.path)
        elif (config := unseal(self.path / "config.json")) is None:
            self._check_has_config()
        elif not resume:
            state, hint = ("a finished run", "add") if self.finished else ("a run", "add --resume to go on with it,")
            raise InvalidInput(
                f"'{self.path}' already holds {state}; {hint} --overwrite to discard it, or choose another folder"
            )
        elif lines := differences(config, self.config):
            raise InvalidInput(
                "\n  ".join([f"'{self.path}' holds a run of another configuration:", *lines])
                + "\nuse the folder's settings, add --overwrite to discard its run, or choose another folder"
            )
        self.resumed = config is not None
        checkpoints.mkdir(exist_ok=True)
        remove_temporaries(self.path)
        remove_temporaries(checkpoints)
        if not self.resumed:
            seal(self.path / "environment.json", current)
            seal(self.path / "config.json", self.config)
            (self.path / "events.jsonl").unlink(missing_ok=True)
        self._log = Log(self.path / "events.jsonl")
        if self.resumed:
            earlier = _unseal_or_none(self.path / "environment.json") or {}
            changed = {key: [earlier.get(key), current[key]] for key in current if earlier.get(key) != current[key]}
            self.event("resumed", changed=changed)
        else:
            self.event("started", config=self.hash)
        if self._log.cut:
            self.event("cut events", bytes=self._log.cut)
        if self._lock.stale:
            self.event("stale lock", holder=self._lock.stale)

    def _check_has_config(self) -> None:
        leftovers = [name for name in ("events.jsonl", "result.json") if (self.path / name).exists()]
        if leftovers or ((self.path / "checkpoints").is_dir() and self._rounds()):
            raise InvalidInput(
                f"'{self.path}' holds a run without its config.json; put the file back, "
                "add --overwrite to discard the run, or choose another folder"
            )

    def _checkpoint(self, round: int) -> Path:
        return round_file(self.path / "checkpoints", round)

    def _rounds(self) -> list[int]:
        return _rounds(self.path / "checkpoints")

    def _writable_log(self) -> Log:
        """The log, if the folder is still this process's to write in."""
        if self._log is None or not self._lock.held():
            raise BangsError(
                f"'{self.path}' is not held any more: it was closed, removed or replaced, or this is a forked process; "
                "open it again with --resume"
            )
        return self._log


def round_file(folder: Path, round: int) -> Path:
    """The file of a round's tensors."""
    return folder / f"round-{round:06d}.safetensors"


def _rounds(folder: Path) -> list[int]:
    """The rounds that have a file, newest first."""
    names = map(_ROUND_FILE.fullmatch, os.listdir(folder))
    return sorted((int(name[1]) for name in names if name), reverse=True)


def _unseal_or_none(path: Path) -> dict[str, Any] | None:
    try:
        return unseal(path)
    except InvalidInput:
        return None


def _check_is_ours(folder: Path) -> None:
    """Refuse a folder of other people's files before anything is written into it.

    A name is no proof: a folder is ours if a file with our seal or an event of ours is in it.
    """
    names = {name for name in os.listdir(folder) if not _is_left_by_a_start(folder / name)} - _IGNORED_FILES
    sealed = ("config.json", "environment.json", "result.json")
    is_run = any(_unseal_or_none(folder / name) is not None for name in sealed)
    if names and not is_run and not read_events(folder / "events.jsonl"):
        example = sorted(names - _RUN_FILES or names)[0]
        raise InvalidInput(f"'{folder}' is no run folder but holds other files (such as {example!a}); choose another")


def _is_left_by_a_start(path: Path) -> bool:
    """Whether a run that was killed before its first sealed file can have left this."""
    if path.name == "checkpoints":
        return path.is_dir() and not path.is_symlink() and not os.listdir(path)
    if path.name == "lock":
        return is_lock(path)
    return is_temporary(path.name) and path.name[1:-21] in _RUN_FILES  # .NAME.<16 hex>.tmp


def _remove_results(folder: Path) -> None:
    """Remove what a run has left, but for its configuration: a crash leaves a run that is not finished.

    A new configuration is written after this, so that no model is left with the configuration of another run. Files of
    other names stay.
    """
    checkpoints, config = folder / "checkpoints", _unseal_or_none(folder / "config.json")
    kind = "unknown" if config is None else "fit" if config.get("command") == "fit" else "run"
    for name in ("result.json", *_RESULT_FILES[kind]):
        (folder / name).unlink(missing_ok=True)
    for rounds_folder in (checkpoints, folder / "blind"):
        if rounds_folder.is_dir() and not rounds_folder.is_symlink():
            for round in _rounds(rounds_folder):
                round_file(rounds_folder, round).unlink()
    sync_folder(folder)
