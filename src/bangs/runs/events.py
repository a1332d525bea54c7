"""An append-only log of JSON lines; a crash in the middle of a line does not damage it."""

import contextlib
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bangs.errors import InvalidInput
from bangs.utils.files import AppendOnlyFile, check_size, finite, json_value, open_to_read, parse

MAX_LOG_BYTES = 1 << 28
_MAX_LINE_BYTES = 16 << 20
_RESERVED_KEYS = ("n", "time", "clock", "kind")


class Log:
    """The events of a run; a new event goes after the last complete line.

    `n` counts the events of a folder; `clock` is the seconds since the log was opened, by a monotonic clock; `time` is
    the date and time.
    """

    def __init__(self, path: Path):
        self._count = end = 0
        self._opened = time.monotonic()
        for end, event in _valid_events(path):  # noqa: B007
            self._count = max(self._count, event["n"])
        self._file = AppendOnlyFile(path, end)
        self.cut = self._file.cut  # bytes of an incomplete line that were removed

    def append(self, kind: str, facts: dict[str, Any]) -> None:
        """Write one event; when this returns, it is on the disk."""
        if reserved := [key for key in _RESERVED_KEYS if key in facts]:
            raise InvalidInput(f"an event's facts must not be called {' or '.join(reserved)}; these names are reserved")
        content = json_value(facts, "event")
        self._count += 1
        header = {
            "n": self._count,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "clock": round(time.monotonic() - self._opened, 3),
            "kind": kind,
        }
        line = json.dumps(header | finite(content), allow_nan=False).encode() + b"\n"
        if len(line) > _MAX_LINE_BYTES:
            raise InvalidInput(f"an event must take at most {_MAX_LINE_BYTES:,} bytes, '{kind}' takes {len(line):,}")
        self._file.append(line)

    def close(self) -> None:
        self._file.close()


def read_events(path: Path) -> list[dict[str, Any]]:
    """The complete events of a log, oldest first; none if there is no log."""
    return [event for _, event in _valid_events(path)]


def _valid_events(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each event and the offset after it; incomplete and damaged lines are skipped."""
    try:
        stream = open_to_read(path)
    except FileNotFoundError:
        return
    with stream:
        check_size(stream, path, MAX_LOG_BYTES)
        end = 0
        while line := stream.readline(_MAX_LINE_BYTES):
            end += len(line)
            with contextlib.suppress(InvalidInput):
                event = parse(line, "event")
                if line.endswith(b"\n") and isinstance(event, dict) and isinstance(event.get("n"), int):
                    yield end, event
