"""Engines: workers that end with the process that hands out the jobs."""

import subprocess
import sys

SCRIPT = """
from bangs.experiments.engines import Processes

with Processes(1)._pool() as pool:
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
