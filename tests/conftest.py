"""The small graph most tests share, and fixtures of several folders."""

import os
import signal
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from bangs.core.rng import Streams
from bangs.core.types import Split, Task
from bangs.nn.dropout import DropoutMasks
from tests import EXAMPLES, ROOT
from tests.cli.invoke import bangs

# programs that tests start find `tests` too
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", "/tmp/bangs-hypothesis")
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
torch.set_num_threads(1)  # small products; more threads only wait for each other
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # a shell starts background jobs so, and tests that interrupt would wait for ever
    signal.signal(signal.SIGINT, signal.default_int_handler)


def two_rings(nodes: int = 24, classes: int = 2, seed: int = 0) -> Data:
    """A graph of `classes` rings joined by one edge each; features tell the class with masks."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(nodes) % classes
    source = torch.arange(nodes)
    target = (source + classes) % nodes
    bridge = torch.tensor([[0], [1]])
    edges = torch.cat([torch.stack([source, target]), bridge], dim=1)
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    x = torch.nn.functional.one_hot(y, classes).float() + 0.5 * torch.randn(nodes, classes, generator=generator)
    return Data(x=x, edge_index=edges, y=y)


def few_labels(nodes: int = 40, classes: int = 2, count: int = 12) -> Data:
    """Rings whose first `count` nodes have a label; the others are -1."""
    data = two_rings(nodes, classes)
    data.y[count:] = -1
    return data


def generators(*seeds: int) -> list[torch.Generator]:
    """A generator for every run, by its seed."""
    return [torch.Generator().manual_seed(seed) for seed in seeds]


def masks(*seeds: int, rate: float | None = None) -> DropoutMasks:
    """Dropout of some runs by torch's generators, which stock modules draw from too."""
    return DropoutMasks(Streams(seeds).at("dropout").generators(), rate)


@pytest.fixture
def data_and_split() -> tuple[Data, Split]:
    """A graph of 24 nodes in two classes with 4 training and 6 validation nodes, for three runs."""
    data = two_rings()
    node = torch.arange(24)
    split = Split.repeated(node < 4, (node >= 4) & (node < 10), node >= 10, runs=3)
    return data, split


@pytest.fixture
def task(data_and_split: tuple[Data, Split]) -> Task:
    return Task.of(*data_and_split)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)], capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if done.returncode:
        pytest.skip(f"mounting is not allowed here: {done.stderr.decode().strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.fixture(scope="session")
def fitted_example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `bangs fit examples/own-graph` writes, with little training."""
    out = tmp_path_factory.mktemp("fitted") / "library"
    settings = ["--method=hard", "--validation=0.25", "--rounds=3", "--epochs=30", "--quiet"]
    result = bangs("fit", EXAMPLES / "own-graph", "--out", out, *settings)
    assert result.code == 0, result.err
    return out
