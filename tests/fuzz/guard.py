"""Guard: what a reader does beside reading, by Python's audit events."""

import os
import sys
import sysconfig
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGING = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.truncate", "os.chmod"}
_NEVER = {
    "os.system",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "subprocess.Popen",
    "socket.connect",
    "socket.getaddrinfo",
    "pickle.find_class",
    "ctypes.dlopen",
}
_INSTALLED = sysconfig.get_path("platlib") + os.sep  # threadpoolctl opens the libraries of numpy and scipy there


class Guard:
    """Notices, by Python's audit events, what a reader does beside reading."""

    def __init__(self) -> None:
        self.allowed: str | None = None  # a folder that may be changed
        self.seen: list[str] = []
        self.watching = False
        sys.addaudithook(self._on_event)

    def _on_event(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.watching:
            return
        if event == "open":
            path, _, flags = args
            if isinstance(flags, int) and flags & _WRITING and not self._inside(path):
                self.seen.append(f"opened {path!r} for writing")
        elif event in _CHANGING:
            if not self._inside(args[0]):
                self.seen.append(f"{event} {args[0]!r}")
        elif event in _NEVER and not (event == "ctypes.dlopen" and str(args[0]).startswith(_INSTALLED)):
            self.seen.append(f"{event} {args[:1]!r}")

    def _inside(self, path: Any) -> bool:
        if isinstance(path, int):
            return True  # a descriptor that was opened before
        where = os.path.abspath(os.fsdecode(path))
        return self.allowed is not None and os.path.commonpath([where, self.allowed]) == self.allowed
