"""The lock of a run folder: one process at a time may write."""

import contextlib
import fcntl
import functools
import json
import os
import platform
import re
import time
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import WeakSet

from bangs.errors import BangsError, InvalidInput
from bangs.utils.files import open_regular_file, open_to_read, parse
from bangs.utils.signals import check

_RETRY_SECONDS = 0.2
_MAX_BYTES = 4096  # of a lock file that are read
_HOLDER_PATTERNS = {"pid": r"\d{1,9}", "since": r"[\d:.TZ+-]{10,40}", "host": r"[0-9a-f]{12}"}


class InUse(BangsError):
    """Another process has locked the folder."""


class Lock:
    """An operating-system lock on the file `lock` of a folder; the file also describes its holder.

    The system releases the lock when the process ends, even if it was killed. A free lock that still describes a
    holder is of such a process; its description is kept as `stale`.
    """

    def __init__(self, folder: Path):
        self.stale: dict[str, Any] | None = None
        self._path = folder / "lock"
        self._file = open_regular_file(self._path, os.O_RDWR | os.O_CREAT)
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                holder = _describe(self._holder())
                raise InUse(
                    f"'{folder}' is in use by {holder}; wait for it, stop it, or choose another folder"
                ) from error
            self.stale = self._holder()
            os.ftruncate(self._file, 0)
            since = datetime.now(UTC).isoformat(timespec="seconds")
            os.pwrite(self._file, json.dumps({"pid": os.getpid(), "since": since, "host": _host()}).encode(), 0)
        except BaseException:
            os.close(self._file)
            raise
        _register_fork_handler()
        _open_locks.add(self)

    def held(self) -> bool:
        """Whether this process holds the lock, and the file in the folder is still the same."""
        try:
            return self._file >= 0 and os.path.samestat(os.fstat(self._file), os.lstat(self._path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        if self._file >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, 0)
            self.forget()

    def forget(self) -> None:
        """Close the file without releasing the lock of a parent process."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _holder(self) -> dict[str, Any] | None:
        return _parse_holder(os.pread(self._file, _MAX_BYTES, 0))


def is_lock(path: Path) -> bool:
    """Whether bangs wrote this `lock` file: it is empty, describes a holder, or holds zeros (after a power cut)."""
    with open_to_read(path) as stream:
        content = stream.read(_MAX_BYTES)
    return not content.strip(b"\0") or _parse_holder(content) is not None


def acquire(folder: Path, patience: float = 0.0) -> Lock:
    """Lock the folder; raises `InUse` if another process still holds the lock after `patience` seconds.

    On a network file system, the lock of a dead process may outlast it.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            return Lock(folder)
        except InUse:
            check()
            if time.monotonic() >= deadline:
                raise
            time.sleep(_RETRY_SECONDS)


_open_locks: "WeakSet[Lock]" = WeakSet()


@functools.cache
def _register_fork_handler() -> None:
    def close_all() -> None:  # a forked worker inherits the locks, and would keep them if its parent is killed
        for lock in list(_open_locks):
            lock.forget()

    os.register_at_fork(after_in_child=close_all)


def _parse_holder(content: bytes) -> dict[str, Any] | None:
    """The holder that the content of a lock file describes, None if it is not valid."""
    try:
        holder = parse(content, "lock")
    except InvalidInput:
        return None
    if not isinstance(holder, dict):
        return None
    valid = all(re.fullmatch(pattern, str(holder.get(key))) for key, pattern in _HOLDER_PATTERNS.items())
    return {key: holder[key] for key in _HOLDER_PATTERNS} if valid else None


def _describe(holder: dict[str, Any] | None) -> str:
    if holder is None:
        return "another process"
    pid, since = int(holder["pid"]), holder["since"]
    if holder["host"] != _host():
        return f"process {pid} of another machine since {since}"
    if pid == os.getpid():
        return f"this very process since {since}"
    with contextlib.suppress(PermissionError, OverflowError):  # alive, but another user's; or no pid at all
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return f"a process started by process {pid}, which is gone"
    return f"process {pid} since {since}"


def _host() -> str:
    """A hash of the name of this machine."""
    return sha256(f"bangs {platform.node()}".encode()).hexdigest()[:12]
