"""Refit: a fit in a process of its own, while a person goes on labelling."""

import contextlib
import os
import signal
import subprocess  # nosec B404  # the command line is this program's own
import threading
from collections.abc import Callable, Sequence

from bangs.errors import BangsError
from bangs.labelling.session import Session

LAST_WORDS = 2000  # bytes of what a failed fit printed
PATIENCE = 5.0  # seconds for a fit to end when it is asked to


class Refits:
    """Runs a command at most once at a time, and lets the session take up what it leaves."""

    def __init__(self, command: Sequence[str], session: Session, tell: Callable[[str], None]):
        self.command, self.session, self.tell = list(command), session, tell
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def __call__(self) -> None:
        """Begin a fit, unless one is under way; its answers count then."""
        with self._lock:
            if self._closed or self.session.fitting:
                return
            self.session.fitting, self.session.fault = True, ""
            # a session of its own: Ctrl-C in the terminal reaches the server, which ends the fit
            self._process = subprocess.Popen(  # nosec B603
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
            threading.Thread(target=self._follow, args=(self._process,), daemon=True).start()

    def close(self) -> None:
        """End the fit that is under way."""
        with self._lock:
            self._closed = True
            process = self._process
        if process is None or process.poll() is not None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, number)
                process.wait(PATIENCE)
                return

    def _follow(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stderr is not None
        words = process.stderr.read()[-LAST_WORDS:].decode(errors="replace").strip()
        code = process.wait()
        if self._closed:
            return
        session = self.session
        fault = words.removeprefix("bangs: ") or f"exit code {code}" if code else ""
        if not code:
            try:
                session.load()
            except BangsError as error:
                fault = str(error)
        if fault:
            session.fault = f"The last fit failed: {fault}"
        session.fitting = False  # before it is told, so that who hears of it may fit again
        if fault:
            self.tell(session.fault)
        elif session.waiting >= session.batch:  # answered meanwhile
            self()
