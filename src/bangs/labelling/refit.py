"""Refit: run a fit in another process while the user continues labelling."""

import contextlib
import os
import signal
import subprocess  # nosec B404  # the command line is this program's own
import threading
from collections.abc import Callable, Sequence

from bangs.errors import BangsError
from bangs.labelling.session import Session

MAX_ERROR_BYTES = 2000  # of the output of a failed fit
STOP_SECONDS = 5.0  # for a fit to end after a signal


class Refits:
    """Runs the fit command, at most once at a time; the session loads its queue afterwards."""

    def __init__(self, command: Sequence[str], session: Session, tell: Callable[[str], None]):
        self.command, self.session, self.tell = list(command), session, tell
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def __call__(self) -> None:
        """Start a fit, unless one is running."""
        with self._lock:
            if self._closed or self.session.fitting:
                return
            self.session.fitting, self.session.fault = True, ""
            # in a new session, so that Ctrl-C in the terminal reaches the server only, which ends the fit
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
        """Stop the running fit."""
        with self._lock:
            self._closed = True
            process = self._process
        if process is None or process.poll() is not None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, number)
                process.wait(STOP_SECONDS)
                return

    def _follow(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stderr is not None
        output = process.stderr.read()[-MAX_ERROR_BYTES:].decode(errors="replace").strip()
        code = process.wait()
        if self._closed:
            return
        session = self.session
        fault = output.removeprefix("bangs: ") or f"exit code {code}" if code else ""
        if not code:
            try:
                session.load()
            except BangsError as error:
                fault = str(error)
        if fault:
            session.fault = f"The last fit failed: {fault}"
        session.fitting = False  # before `tell`, which may start another fit
        if fault:
            self.tell(session.fault)
        elif session.waiting >= session.batch:  # answers given during the fit
            self()
