"""Download: a file from the network, whole and checked, or not at all."""

import hashlib
import os
import tempfile
import time
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from bangs.errors import DataUnavailable

_CHUNK = 1 << 16
_FINAL = {400, 401, 403, 404, 410}  # answers that do not change by asking again


@dataclass(frozen=True)
class Remote:
    """A file as its source offers it."""

    url: str
    sha256: str | None = None  # None where the source publishes none; then the first bytes must do
    starts: bytes = b""  # what the file begins with; a web page of apologies does not
    most_bytes: int = 2**30


@dataclass(frozen=True)
class Download:
    """Fetches a file, resuming where a broken connection left it."""

    attempts: int = 4
    pause: float = 0.5  # seconds before the second attempt; doubles with each
    timeout: float = 30.0  # seconds without a byte

    def __call__(self, remote: Remote, target: Path) -> Path:
        """The target, once it holds the whole file; it never holds a part of it.

        Bytes go to a temporary file in the target's folder, which is renamed when its length and sha256 are right.
        """
        if urlsplit(remote.url).scheme not in ("http", "https"):
            raise DataUnavailable(f"{remote.url} cannot be fetched: only http and https are")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        except OSError as error:
            raise DataUnavailable(f"{target} cannot be written: {error.strerror or error}") from error
        part = Path(name)
        try:
            with os.fdopen(handle, "w+b") as file:
                self._fill(remote, file, target.name)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        return target

    def _fill(self, remote: Remote, file: IO[bytes], label: str) -> None:
        reason = "it was not tried"
        with _progress() as progress:
            bar = progress.add_task(label, total=None)
            for attempt in range(self.attempts):
                if attempt:
                    time.sleep(self.pause * 2 ** (attempt - 1))
                try:
                    _receive(remote, file, self.timeout, progress, bar)
                    _verify(remote, file)
                    return
                except HTTPError as error:
                    reason = f"the server answered {error.code} {error.reason}"
                    if error.code in _FINAL:
                        break
                    if error.code == 416:
                        file.truncate(0)
                except _Wrong as error:
                    reason = str(error)
                    file.truncate(0)
                except (OSError, HTTPException) as error:
                    reason = str(getattr(error, "reason", error)) or type(error).__name__
        raise DataUnavailable(f"{remote.url} could not be fetched: {reason}")


class _Wrong(Exception):
    """What arrived is not the file."""


def _receive(remote: Remote, file: IO[bytes], timeout: float, progress: Progress, bar: TaskID) -> None:
    """Everything from where the file ends to where the source ends."""
    have = file.seek(0, os.SEEK_END)
    headers = {"User-Agent": "bangs", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with urlopen(Request(remote.url, headers=headers), timeout=timeout) as answer:  # http and https only  # nosec B310
        if have and not _continues(answer, have):
            # the server sends the whole file again
            file.truncate(0)
            have = file.seek(0)
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length and length.isdecimal() else None
        if total is not None and total > remote.most_bytes:
            raise _Wrong(f"it has {total} bytes where at most {remote.most_bytes} are expected")
        progress.update(bar, total=total, completed=have)
        while chunk := answer.read(_CHUNK):
            file.write(chunk)
            have += len(chunk)
            progress.update(bar, completed=have)
            if have > remote.most_bytes:
                raise _Wrong(f"it has more than the {remote.most_bytes} bytes expected")
    if total is not None and have < total:
        raise HTTPException(f"the connection ended after {have} of {total} bytes")


def _continues(answer: HTTPResponse, have: int) -> bool:
    return answer.status == 206 and (answer.headers.get("Content-Range") or "").startswith(f"bytes {have}-")


def _verify(remote: Remote, file: IO[bytes]) -> None:
    file.flush()
    file.seek(0)
    if file.read(len(remote.starts)) != remote.starts:
        raise _Wrong("it is not the kind of file expected; the host may have answered with a web page")
    file.seek(0)
    found = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    if remote.sha256 is not None and found != remote.sha256:
        raise _Wrong(f"its sha256 is {found}, not {remote.sha256}; the source has changed or was tampered with")


def _progress() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
