"""Engines: workers that end with the process that hands out the jobs, and no earlier."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from bangs.experiments.experiment import Experiment
from bangs.experiments.jobs import Job, Outcome
from bangs.experiments.process_workers import InProcess
from tests.helpers.small_graphs import graph_file

SCRIPT = """
from bangs.experiments.process_workers import Processes, _pool

with _pool(1) as pool:
    pool.submit(print, "ready", flush=True).result()
    pool.submit(exec, "import time; time.sleep(30); print('outlived', flush=True)").result()
"""


def test_a_worker_ends_with_its_parent_though_that_was_killed() -> None:
    """The worker shares the parent's stdout, which is read to its end: when both are gone."""
    parent = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    parent.kill()
    assert parent.communicate()[0] == ""


INTERRUPTED = """
import threading, time
from bangs.experiments.process_workers import Processes, _pool
from bangs.utils.signals import Stopped, graceful

def tell(pool):
    while not pool._processes:
        time.sleep(0.001)
    print("begun", flush=True)

try:
    with graceful(), _pool(1) as pool:
        threading.Thread(target=tell, args=(pool,)).start()
        Processes(1)._hand_out(pool, {"a job": None}, print)
except Stopped:
    print("stopped")
"""


def test_a_worker_that_is_still_beginning_leaves_ctrl_c_to_its_parent() -> None:
    """A terminal sends it to both, and one that imports torch would end with a traceback."""
    parent = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "begun\n"
    time.sleep(1.0)  # to be amid its imports
    os.killpg(parent.pid, signal.SIGINT)
    assert parent.communicate()[0] == "stopped\n"


HOLDER = """
import sys, time
from pathlib import Path
from bangs.runs.lock import Lock
lock = Lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(2)
"""


def test_a_suite_waits_for_a_worker_of_an_earlier_one_that_is_about_to_end(tmp_path: Path) -> None:
    """The hold of a killed suite's worker may outlast the suite by seconds on a busy machine."""
    graph = graph_file(tmp_path / "one.npz")
    job = Job(Experiment(str(graph), "raw", seeds=(0,), changes={"epochs": 2}), tmp_path / "runs", device="cpu")
    job.folder.mkdir(parents=True)
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(job.folder)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    outcomes: list[Outcome] = []
    InProcess()([job], lambda _, outcome: outcomes.append(outcome))
    holder.communicate()
    assert [outcome.kind for outcome in outcomes] == ["done"]
