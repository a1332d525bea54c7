"""Engines: workers that end with the process that hands out the jobs, and no earlier."""

import os
import signal
import subprocess
import sys
import time

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
