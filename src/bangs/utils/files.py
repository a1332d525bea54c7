"""Atomic writes, bounded reads of regular files, and JSON with one canonical form."""

import contextlib
import errno
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from hashlib import sha256
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeVar

from bangs.errors import BangsError, InvalidInput

T = TypeVar("T")

MAX_DEPTH = 64  # levels of nesting in any JSON we write or read
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")
_REASONS = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "your disk quota is used up; free some space",
    errno.EFBIG: "the file grew beyond the size this system allows; raise the limit (ulimit -f) or write elsewhere",
    errno.EROFS: "the disk is mounted read-only; write elsewhere",
    errno.EACCES: "permission is denied; change the permissions or write elsewhere",
    errno.EPERM: "permission is denied; change the permissions or write elsewhere",
    errno.ENOENT: "its folder does not exist; make it, or write elsewhere",
    errno.EEXIST: "a file is where a folder should be; write elsewhere",
    errno.ENOTDIR: "a part of the path is a file, not a folder; write elsewhere",
    errno.EISDIR: "it is a folder, not a file; name a file",
    errno.ELOOP: "it is a symbolic link, which is not followed here; put a plain file or folder in its place",
}
_HEAD_BYTES = 4096  # by which a file is recognised


class Unwritable(BangsError, OSError):
    """A file could not be written; its former content is unchanged."""


def write_atomic(path: str | Path, content: bytes | str | Iterable[str | memoryview]) -> None:
    """Replace the file by the content (text as UTF-8, perhaps in pieces); a reader, or a crash, sees all or nothing.

    A temporary file beside it is written, synced and renamed, then the folder is synced. If anything fails, the
    temporary file is removed and the former content stays.
    """
    path = Path(path)
    pieces = [content] if isinstance(content, bytes | str) else content
    temporary = temporary_beside(path)
    with explain_write_errors(path):
        try:
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
            try:
                write_all(file, pieces)
            finally:
                os.close(file)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        sync_folder(path.parent)


def check_replaceable(path: Path, begin: bytes | re.Pattern[bytes], command: str) -> None:
    """Raise if writing to the path would replace a file that `bangs COMMAND` did not write.

    A file is ours if it begins with `begin`. An empty file may be replaced.
    """
    if not os.path.lexists(path):
        return
    with open_to_read(path) as stream:
        head = stream.read(_HEAD_BYTES)
    ours = begin.match(head) if isinstance(begin, re.Pattern) else head.startswith(begin)
    if head and not ours:
        raise InvalidInput(
            f"'{path}' exists and was not written by `bangs {command}`; move it away, or write to another path"
        )


def make_folder(path: Path) -> None:
    """Create the folder and its parents if they do not exist."""
    with explain_write_errors(path):
        path.mkdir(parents=True, exist_ok=True)


def write_all(file: int, pieces: Iterable[bytes | str | memoryview]) -> None:
    """Write all pieces, each in one call unless the disk fills up, and sync them."""
    for piece in pieces:
        remaining = memoryview(piece.encode() if isinstance(piece, str) else piece)
        while remaining:
            remaining = remaining[os.write(file, remaining) :]
    os.fsync(file)


class AppendOnlyFile:
    """A file that only grows; bytes after the first `end`, which a crash left incomplete, are cut off."""

    def __init__(self, path: Path, end: int):
        self.path = path
        self._file = open_regular_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            self.cut = os.fstat(self._file).st_size - end  # bytes
            if self.cut:
                os.ftruncate(self._file, end)
            sync_folder(path.parent)
        except BaseException:
            self.close()
            raise

    def append(self, body: bytes) -> None:
        """Append the whole body or nothing, and sync it."""
        with explain_write_errors(self.path):
            before = os.fstat(self._file).st_size
            try:
                write_all(self._file, [body])
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, before)
                raise

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def sync_folder(folder: Path) -> None:
    """Make renames and removals inside the folder survive a power cut."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network disks cannot sync a folder
            raise
    finally:
        os.close(file)


def temporary_beside(path: Path) -> Path:
    """A new name in the same folder, for a file that is renamed to the path once it is complete."""
    return path.parent / f".{path.name}.{secrets.token_hex(8)}.tmp"


def remove_temporaries(folder: Path) -> None:
    """Remove temporary files that a killed `write_atomic` left in the folder."""
    with explain_write_errors(folder):
        for entry in list(os.scandir(folder)):
            if is_temporary(entry.name) and not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)


def is_temporary(name: str) -> bool:
    return _TEMPORARY.fullmatch(name) is not None


def open_regular_file(path: Path, flags: int, *, follow: bool = False) -> int:
    """A descriptor of a regular file; refuses pipes and devices, which could hang, and links unless `follow`."""
    file = os.open(path, flags | (0 if follow else os.O_NOFOLLOW) | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise InvalidInput(
            f"'{path}' must be a regular file, not a folder, link, pipe or device; move it away or give another path"
        )
    return file


def open_to_read(path: Path, *, follow: bool = False) -> BufferedReader:
    """A regular file, opened to read; FileNotFoundError if there is none. A link is read only with `follow`."""
    try:
        return open(open_regular_file(path, os.O_RDONLY, follow=follow), "rb")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidInput(f"'{path}' could not be read: {error.strerror or error}") from error


def read_regular_file(path: Path, limit: int, *, follow: bool = False) -> bytes:
    """The content of a regular file of at most `limit` bytes; FileNotFoundError if there is none."""
    with open_to_read(path, follow=follow) as stream:
        size = check_size(stream, path, limit)
        try:
            return stream.read(size)
        except OSError as error:
            raise InvalidInput(f"'{path}' could not be read: {error.strerror or error}") from error


def check_size(stream: BufferedReader, path: Path, limit: int) -> int:
    """The size of an open file in bytes; raises if it is more than `limit`."""
    size = os.fstat(stream.fileno()).st_size
    if size > limit:
        raise InvalidInput(f"'{path}' must have at most {limit:,} bytes, it has {size:,}")
    return size


@contextlib.contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Turn an OSError inside the block into an `Unwritable` that says what to do."""
    try:
        yield
    except BangsError:
        raise
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
        explained = Unwritable(f"'{path}' could not be written: {reason}")
        explained.errno = error.errno
        raise explained from error


def json_value(value: Any, name: str, depth: int = 0) -> Any:
    """The value with tuples as lists; raises, with the path to it, if a part of it has no equivalent in JSON."""
    if depth > MAX_DEPTH:
        raise InvalidInput(f"{name[:40]}… must be nested at most {MAX_DEPTH} deep")
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value)
    if isinstance(value, list | tuple):
        return [json_value(item, f"{name}[{index}]", depth + 1) for index, item in enumerate(value)]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise InvalidInput(f"keys of {name} must be text, got {key!r}; write '{key}'")
        return {key: json_value(item, f"{name}.{key}", depth + 1) for key, item in value.items()}
    raise InvalidInput(
        f"{name} must be made of text, numbers, lists and dicts, got {type(value).__name__}; "
        "use .item() or .tolist() for arrays and tensors"
    )


def finite(value: Any) -> Any:
    """A JSON value with nan, inf and -inf as text, since JSON has no numbers for them."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [finite(item) for item in value]
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return value


def canonical(value: Any) -> str:
    """The canonical text of a JSON value: keys sorted, no spaces, floats by `repr`, ASCII only."""
    return json.dumps(finite(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """The sha256 of the canonical text of a JSON value."""
    return sha256(canonical(value).encode()).hexdigest()


def parse(text: bytes | str, name: str) -> Any:
    """The value of a JSON text from outside; raises `InvalidInput` that says what is wrong with it."""
    try:
        return json_value(json.loads(text), name, depth=-2)  # written values are wrapped once or twice
    except RecursionError as error:
        raise InvalidInput(f"{name} must be nested at most {MAX_DEPTH} deep") from error
    except InvalidInput:
        raise
    except ValueError as error:  # not JSON, not UTF-8, or a number of thousands of digits
        raise InvalidInput(f"{name} is not valid JSON: {str(error)[:200]}") from error


def to_dataclass(kind: type[T], value: Any) -> T:
    """A JSON value as a dataclass; raises a ValueError that names the first field that does not fit."""
    from pydantic import TypeAdapter, ValidationError  # a tenth of a second that few commands need

    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
