"""Ray: the jobs of a suite on a cluster, or on a local Ray on this machine only."""

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

from bangs.core.number_checks import check_number
from bangs.errors import BangsError
from bangs.experiments.jobs import Job, Outcome
from bangs.experiments.process_workers import RETRIES, Tell, check_jobs, work
from bangs.graphs.datasets.by_name import data_folder
from bangs.utils.signals import check

PATIENCE = 60.0  # seconds that a lost worker's hold on its folder may outlast it, on a network file system
LOOK_EVERY = 2.0  # seconds between two looks at the runs under way

Watch = Callable[[Sequence[Job]], None]


@dataclass(frozen=True)
class Ray:
    """The Ray cluster at `address`, whose machines must see the same --out folder; without one, a local Ray.

    A job whose worker is lost is retried and continues from its checkpoint. A local Ray listens on the loopback only,
    and asks for a token that is made for it; a cluster gets the token that Ray finds (docs/distributed.md).
    """

    count: int | None = None  # runs at the same time on a local Ray; None = as many as it has cores
    address: str | None = None
    gpu_share: float = 1.0  # of a GPU for one run, where runs take a GPU
    watch: Watch | None = None  # called with the jobs that have not ended yet

    def __post_init__(self) -> None:
        if self.count is not None:
            check_jobs(self.count)
        check_number("--gpu-share", self.gpu_share, within="(0, 1]")

    def __call__(self, jobs: Sequence[Job], tell: Tell) -> None:
        with self._connected() as ray:
            gpus = self.gpu_share if _wants_gpu(ray, jobs) else 0
            remote = ray.remote(max_retries=RETRIES, num_cpus=1, num_gpus=gpus)(work)
            under_way = {remote.remote(_anywhere(job), PATIENCE): job for job in jobs}
            looked = time.monotonic()
            while under_way:
                check()
                ready, _ = ray.wait(list(under_way), timeout=0.2)
                for reference in ready:
                    job = under_way.pop(reference)
                    outcome = _outcome(ray, reference)
                    if outcome.kind == "stopped":  # its machine was taken away; the job is not to blame
                        under_way[remote.remote(_anywhere(job), PATIENCE)] = job
                    else:
                        tell(job, outcome)
                if self.watch is not None and time.monotonic() - looked > LOOK_EVERY:
                    self.watch(list(under_way.values()))
                    looked = time.monotonic()

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Ray, connected until the block ends; one that the caller has connected stays so."""
        address = self.address or os.environ.get("RAY_ADDRESS")
        _guard(address)
        ray = _import_ray()
        mine = not ray.is_initialized()
        if mine:
            with _own_signals():
                _connect(ray, address, self.count)
        try:
            yield ray
        finally:
            if mine:
                ray.shutdown()


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise BangsError(
            "--engine ray needs Ray, which is not installed; run: pip install 'bangs[ray]', or use --engine local"
        ) from error
    return ray


def _connect(ray: Any, address: str | None, count: int | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": "error"}
    if address is None:
        # "local" starts a Ray of our own, even if another Ray runs on this machine
        ray.init("local", num_cpus=count, include_dashboard=False, **quiet)
        return
    try:
        _check_reachable(address)
        ray.init(address, **quiet)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise BangsError(
            f"no way into the Ray cluster at '{address}': {str(error).strip().splitlines()[0]}; check the address, and "
            "that RAY_AUTH_MODE and the token are the same here and there (docs/distributed.md, 'Ray')"
        ) from error


def _check_reachable(address: str) -> None:
    """Raise where nobody listens; Ray itself would wait for minutes."""
    host, _, port = address.rpartition("/")[2].rpartition(":")
    if port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _guard(address: str | None) -> None:
    """Ask for authentication, and for a local Ray also for the loopback, unless the user has decided otherwise.

    Ray reads these words of the environment once, when it is imported, and its processes inherit them; a program that
    has imported Ray before has decided.
    """
    if "ray" in sys.modules:
        return
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if address is None:
        # Ray's own switch to stay on 127.0.0.1, which it throws by itself on macOS and Windows
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        if "RAY_AUTH_TOKEN_PATH" not in os.environ:
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


@contextmanager
def _own_signals() -> Iterator[None]:
    """Inside, Ray may take SIGTERM over; afterwards it is handled as before."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread() and handler is not None:
        signal.signal(signal.SIGTERM, handler)


def _wants_gpu(ray: Any, jobs: Sequence[Job]) -> bool:
    """Whether runs take a GPU: they ask for one, or take what there is and there is one."""
    devices = {job.device for job in jobs}
    return any(device.startswith("cuda") for device in devices) or (
        "auto" in devices and ray.cluster_resources().get("GPU", 0) > 0
    )


def _anywhere(job: Job) -> Job:
    """The job with paths that mean the same in every working folder."""
    data, code = (None if path is None else path.resolve() for path in (data_folder(job.data), job.code))
    return replace(job, runs=job.runs.resolve(), data=data, code=code)


def _outcome(ray: Any, reference: Any) -> Outcome:
    try:
        outcome: Outcome = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        return Outcome("failed", error=f"its Ray worker could not begin: {str(error).strip().splitlines()[-1]}")
    except ray.exceptions.RayError as error:
        why = str(error).strip().splitlines()[0]
        return Outcome("failed", error=f"its Ray worker was lost {RETRIES + 1} times: {why}")
    return outcome
