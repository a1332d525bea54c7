"""Ranks: two processes under torchrun end where one process ends, even if one of them is killed on the way."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from bangs.distributed import ranks
from bangs.runs import read_run
from bangs.training.data_parallel import DistributedSession
from tests.distributed import torchrun_fit
from tests.helpers.small_graphs import graph_file
from tests.helpers.without_seconds import without_seconds


def test_a_process_alone_is_the_first_and_shares_nothing() -> None:
    x = torch.arange(3.0)
    assert (ranks.world_size(), ranks.rank(), ranks.is_first(), ranks.launched(), ranks.restarted()) == (
        1,
        0,
        True,
        1,
        False,
    )
    assert ranks.all_reduce(x) is x
    assert ranks.broadcast(x) is x
    assert ranks.broadcast_object("a fact") == "a fact"
    assert list(ranks.shard(3)) == [0, 1, 2]
    with ranks.process_group(torch.device("cpu")):
        assert ranks.world_size() == 1


@pytest.mark.parametrize(
    ("cards", "local", "carried_by", "card"), [(2, 2, "nccl", 1), (8, 2, "nccl", 1), (1, 2, "gloo", 0)]
)
def test_a_rank_takes_the_gpu_of_its_place_and_nccl_where_none_is_shared(
    cards: int, local: int, carried_by: str, card: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(local))
    assert ranks.backend(torch.device("cpu")) == "gloo"
    assert taken == []
    assert ranks.backend(torch.device("cuda")) == carried_by
    assert taken == [card]


def test_a_lost_rank_gives_a_clear_error_without_the_transports_own_places() -> None:
    words = "[/somewhere/gloo/pair.cc:537] Read error [127.0.0.1]:4999: Connection reset by peer. This is typical."
    message = str(ranks.RankLost(RuntimeError(words)))
    assert message.startswith(
        "the ranks of this run have lost each other (Read error [127.0.0.1]:4999: Connection reset "
    )
    assert "--max-restarts" in message
    assert "--resume" in message


def history_rows(out: Path) -> list[dict[str, Any]]:
    """The rows of a run, without times."""
    return [without_seconds(json.loads(line)) for line in (out / "run" / "history.jsonl").read_text().splitlines()]


def torchrun(options: list[str], script: str, *words: object, **settings: str) -> subprocess.Popen[str]:
    """A torchrun that starts its ranks once more if one is lost, with all they say in one stream."""
    command = [sys.executable, "-m", "torch.distributed.run", *options, "--max-restarts", "1", script, *map(str, words)]
    environment = os.environ | settings
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


@contextmanager
def one_machine(script: str, *words: object) -> Iterator[subprocess.Popen[str]]:
    """Two ranks of the script on one machine."""
    agent = torchrun(["--standalone", "--nproc-per-node", "2"], script, *words)
    try:
        yield agent
    finally:
        agent.kill()


@contextmanager
def two_machines(script: str, *words: object) -> Iterator[list[subprocess.Popen[str]]]:
    """Two ranks of the script, each under a torchrun of its own; for nccl, each has a machine and a GPU of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    options = ["--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-endpoint", address]
    options += ["--local-addr", "127.0.0.1"]  # the name of a machine need not lead anywhere
    machine = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}
    agents = [torchrun(options, script, *words, NCCL_HOSTID=name, **machine) for name in ("one", "two")]
    try:
        yield agents
    finally:
        for agent in agents:
            agent.kill()


def output_of(agent: subprocess.Popen[str], seconds: float) -> str:
    """All that a torchrun prints; it is killed after so many seconds."""
    try:
        return agent.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        agent.kill()
        return agent.communicate()[0]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_ranks_that_wait_end_with_their_torchrun(number: signal.Signals) -> None:
    with one_machine(str(Path(__file__).with_name("torchrun_wait.py"))) as agent:
        assert agent.stdout is not None
        list(islice((line for line in agent.stdout if line.startswith("rank ")), 2))
        agent.send_signal(number)
        output, _ = agent.communicate(timeout=100)  # returns when the last of them has let go of the stream
    # who notices first ends, and may break the other's wait before that one has looked
    assert ("torchrun has died" in output) == (number == signal.SIGKILL), output
    assert "no safe point" not in output, output  # what rank 0 waits for breaks when rank 1 has come to one


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Folders for a run alone, and for one that is shared and loses a rank; the graph stands above them."""
    graph_file(tmp_path / "graph.npz")
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    for folder in (alone, shared):
        folder.mkdir()
    (shared / "strike").touch()
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(DistributedSession, "epoch", DistributedSession.epoch)
    return alone, shared


@pytest.mark.slow
def test_two_ranks_one_killed_learn_value_and_choose_as_one_process(places: tuple[Path, Path]) -> None:
    alone, shared = places
    torchrun_fit.everything(alone.parent / "graph.npz", alone)
    with one_machine(torchrun_fit.__file__, alone.parent, shared) as agent:
        output, _ = agent.communicate(timeout=200)
    assert agent.returncode == 0, output
    assert_alike(alone, shared, "gloo")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_two_machines_with_a_gpu_each_share_a_run_by_nccl_one_killed(places: tuple[Path, Path]) -> None:
    """The machines are two torchruns, and both have the one GPU that is here."""
    alone, shared = places
    torchrun_fit.everything(alone.parent / "graph.npz", alone, "cuda")
    with two_machines(torchrun_fit.__file__, alone.parent, shared, "cuda") as agents:
        output = "\n".join(output_of(agent, 120) for agent in agents)
    assert [agent.returncode for agent in agents] == [0, 0], output
    assert_alike(alone, shared, "nccl")


def assert_alike(alone: Path, shared: Path, transport: str) -> None:
    """Weights, values and chosen nodes are those of one process, and a rank was lost on the way."""
    one, two = (torch.load(out / "learned.pt", map_location="cpu") for out in (alone, shared))
    assert two["bytes"] > 0 == one["bytes"]
    assert two["carried_by"] == transport
    for name, value in one["weights"].items():
        torch.testing.assert_close(two["weights"][name], value, atol=1e-5, rtol=0)
    for name, value in one["values"].items():
        torch.testing.assert_close(two["values"][name], value, atol=1e-6, rtol=1e-5, msg=name)
    assert torch.equal(one["validation"], two["validation"])

    assert not (shared / "strike").exists()
    kinds = [event["kind"] for event in read_run(shared / "run").events]
    assert [kinds.count(kind) for kind in ("started", "resumed", "finished")] == [1, 1, 1]
    for one_process, two_processes in zip(history_rows(alone), history_rows(shared), strict=True):
        assert [adoption["node"] for adoption in one_process["adopted"]] == [
            adoption["node"] for adoption in two_processes["adopted"]
        ]
        assert (one_process["test"], one_process["validation"], one_process["epochs"]) == (
            two_processes["test"],
            two_processes["validation"],
            two_processes["epochs"],
        )
