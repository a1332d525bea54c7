"""A process forked after a fit can fit again."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, sys, torch
torch.set_num_threads(2)
from bangs import SelfTrainingClassifier
from bangs.graphs.datasets.synthetic import citation

data = citation(nodes=1500)

def fitted():
    return SelfTrainingClassifier(selector=sys.argv[1], rounds=1, epochs=3, device="cpu").fit(data).predict().tolist()

mine = fitted()
child = os.fork()
if child == 0:
    os._exit(0 if fitted() == mine else 3)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.parametrize("selector", ["banzhaf", "agreement"])
def test_a_fit_with_two_threads_does_not_hang_the_fits_of_forked_processes(selector: str) -> None:
    words = [sys.executable, "-W", "ignore", "-c", SCRIPT, selector]
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment["CUDA_VISIBLE_DEVICES"] = ""  # where torch sees a GPU, it refuses gradients in a forked process
    completed = subprocess.run(words, capture_output=True, text=True, timeout=240, env=environment)
    assert completed.stdout.split() == ["0"], completed.stderr
