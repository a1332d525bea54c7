"""Run the jobs of a suite with Ray, on a cluster or on this machine."""

import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from bangs.errors import BangsError
from bangs.experiments.jobs import Job, Outcome
from bangs.experiments.process_workers import RETRIES, Tell, check_jobs, work
from bangs.graphs.datasets.loading import data_folder
from bangs.utils.setting_checks import check_number
from bangs.utils.signals import check

LOCK_TIMEOUT = 60.0  # seconds; on a network file system, the lock of a dead worker may outlast it
WATCH_SECONDS = 2.0  # between two calls of `watch`

Watch = Callable[[Sequence[Job]], None]


@dataclass(frozen=True)
class Ray:
    """Runs jobs on the Ray cluster at `address`, or on a local Ray if there is none.

    All machines of a cluster must see the same --out folder. A job whose worker is lost is retried and continues from
    its checkpoint. A local Ray listens on the loopback only, with a token of its own; a cluster gets the token that Ray
    finds (docs/distributed.md).
    """

    count: int | None = None  # runs at the same time on a local Ray; None = as many as it has cores
    address: str | None = None
    gpu_share: float = 1.0  # of a GPU for one run, if runs use a GPU
    watch: Watch | None = None  # called with the jobs that have not ended yet

    def __post_init__(self) -> None:
        if self.count is not None:
            check_jobs(self.count)
        check_number("--gpu-share", self.gpu_share, within="(0, 1]")

    def __call__(self, jobs: Sequence[Job], tell: Tell) -> None:
        with self._connected() as ray:
            devices = {
                job.device for job in jobs
            }  # runs use a GPU if they ask for one, or for any device and there is one
            any_gpu = "auto" in devices and ray.cluster_resources().get("GPU", 0) > 0
            gpus = self.gpu_share if any_gpu or any(device.startswith("cuda") for device in devices) else 0
            remote = ray.remote(max_retries=RETRIES, num_cpus=1, num_gpus=gpus)(work)
            running = {remote.remote(_with_absolute_paths(job), LOCK_TIMEOUT): job for job in jobs}
            watched = time.monotonic()
            while running:
                check()
                ready, _ = ray.wait(list(running), timeout=0.2)
                for reference in ready:
                    job = running.pop(reference)
                    outcome = _outcome(ray, reference)
                    if outcome.kind == "stopped":  # the worker was stopped, not by an error of the job
                        running[remote.remote(_with_absolute_paths(job), LOCK_TIMEOUT)] = job
                    else:
                        tell(job, outcome)
                if self.watch is not None and time.monotonic() - watched > WATCH_SECONDS:
                    self.watch(list(running.values()))
                    watched = time.monotonic()

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Ray, connected inside the block; a connection of the caller stays open."""
        address = self.address or os.environ.get("RAY_ADDRESS")
        _require_authentication(address)
        try:
            import ray
        except ImportError as error:
            raise BangsError(
                "--engine ray needs Ray, which is not installed; run: pip install 'bangs[ray]', or use --engine local"
            ) from error
        connected_here = not ray.is_initialized()
        if connected_here:
            handler = signal.getsignal(signal.SIGTERM)  # Ray replaces it
            _connect(ray, address, self.count)
            if threading.current_thread() is threading.main_thread() and handler is not None:
                signal.signal(signal.SIGTERM, handler)
        try:
            yield ray
        finally:
            if connected_here:
                ray.shutdown()


def _connect(ray: Any, address: str | None, count: int | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": "error"}
    if address is None:
        # "local" starts a new Ray, even if another one runs on this machine
        ray.init("local", num_cpus=count, include_dashboard=False, **quiet)
        return
    try:
        host, _, port = address.rpartition("/")[2].rpartition(":")
        if port.isdigit():  # Ray would wait for minutes if nothing listens there
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        ray.init(address, **quiet)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise BangsError(
            f"cannot connect to the Ray cluster at '{address}': {str(error).strip().splitlines()[0]}; check the "
            "address, and that RAY_AUTH_MODE and the token are the same on both sides (docs/distributed.md, 'Ray')"
        ) from error


def _require_authentication(address: str | None) -> None:
    """Turn on authentication, and keep a local Ray on the loopback, unless the user has set these variables.

    Ray reads these environment variables once, at import, and its processes inherit them. If Ray is imported already,
    nothing is changed.
    """
    if "ray" in sys.modules:
        return
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if address is None:
        # keeps Ray on 127.0.0.1; on macOS and Windows this is Ray's default
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        if "RAY_AUTH_TOKEN_PATH" not in os.environ:
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def _with_absolute_paths(job: Job) -> Job:
    """The job with absolute paths."""
    data, code = (None if path is None else path.resolve() for path in (data_folder(job.data), job.code))
    return replace(job, runs=job.runs.resolve(), data=data, code=code)


def _outcome(ray: Any, reference: Any) -> Outcome:
    try:
        outcome: Outcome = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        return Outcome("failed", error=f"its Ray worker could not start: {str(error).strip().splitlines()[-1]}")
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[0]
        return Outcome("failed", error=f"its Ray worker was lost {RETRIES + 1} times: {reason}")
    return outcome
