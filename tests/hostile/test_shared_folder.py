"""Runs that two ranks share under torchrun: a lost rank, a full disk, a stranger's file in the folder."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bangs.runs import read_run
from tests.helpers.forking import FORKING
from tests.helpers.small_graphs import graph_file
from tests.helpers.strange_files import STRANGE
from tests.helpers.without_seconds import without_seconds
from tests.hostile import canary, torchrun_refused

WORDS = "--seeds=1 --rounds=3 --k=4 --candidates=12 --epochs=6 --batch-size=16 --fanout=4,4 --pieces=2 --device=cpu"
SECONDS = 200  # until a torchrun counts as hanging

pytestmark = pytest.mark.slow


def torchrun(graph: Path, out: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`bangs run` by two ranks."""
    return launched("-m", "bangs", "run", f"--dataset={graph}", f"--out={out}", "--quiet", *WORDS.split(), *words)


def launched(*program: str) -> subprocess.CompletedProcess[str]:
    """A program on two ranks that are not started again; all they say is in stdout."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=0"]
    return subprocess.run(
        [sys.executable, *launch, *program],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=FORKING,
        timeout=SECONDS,
        check=False,
    )


def sentences(output: str) -> list[str]:
    """What bangs itself prints; torchrun adds its own lines."""
    return [line.partition("bangs: ")[2] for line in output.splitlines() if "bangs: " in line]


def history(out: Path) -> list[object]:
    return [without_seconds(json.loads(line)) for line in (out / "history.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graph_file(tmp_path_factory.mktemp("graph") / "graph.npz")


@pytest.fixture(scope="module")
def undisturbed(graph: Path) -> list[object]:
    """The history of a run of two ranks if nothing happens to them."""
    assert torchrun(graph, graph.parent / "twin").returncode == 0
    return history(graph.parent / "twin")


def test_two_ranks_on_a_full_disk_say_so_and_go_on_when_there_is_space(
    graph: Path, undisturbed: list[object], small_disk: Path
) -> None:
    theirs = canary.lay(small_disk / "theirs")
    ballast, out = small_disk / "ballast", small_disk / "run"
    room = os.statvfs(small_disk)
    ballast.write_bytes(b"x" * (room.f_bavail * room.f_frsize - 40_000))
    full = torchrun(graph, out)
    assert full.returncode != 0
    assert any("the disk is full; free some space" in line for line in sentences(full.stdout)), full.stdout
    assert "/bangs/cli/" not in full.stdout  # torchrun shows its own calls, never ours
    ballast.unlink()
    again = torchrun(graph, out, "--resume")
    assert again.returncode == 0, again.stdout
    assert history(out) == undisturbed
    assert canary.touched(theirs, canary.seen(small_disk / "theirs")) is None


def test_two_ranks_refuse_a_strangers_file_in_their_folder(graph: Path, tmp_path: Path) -> None:
    theirs = canary.lay(tmp_path / "theirs")
    folders = {file: tmp_path / file for file in ("config.json", "lock", "events.jsonl")}
    for (file, out), thing in zip(folders.items(), ("a pipe", "an endless file", "a giant"), strict=True):
        out.mkdir()
        STRANGE[thing](out / file)
    ended = launched(
        torchrun_refused.__file__, str(graph), *map(str, folders.values()), "--", "--quiet", *WORDS.split()
    )
    assert ended.returncode == 0, ended.stdout
    for out in folders.values():
        assert any(str(out) in line for line in sentences(ended.stdout)), ended.stdout
    assert canary.touched(theirs, canary.seen(tmp_path / "theirs")) is None


def test_a_killed_rank_ends_the_other_with_a_clear_error_and_the_run_goes_on(graph: Path, tmp_path: Path) -> None:
    code = tmp_path / "killed.py"
    code.write_text(
        "import os, signal\n"
        "from bangs.distributed import ranks\n"
        "from bangs.training.data_parallel import DistributedSession as S\n"
        "whole, calls = S.epoch, [0]\n"
        "def epoch(self):\n"
        "    calls[0] += 1\n"
        "    if calls[0] == 9 and ranks.rank() == 1:\n"
        f"        os.kill(os.getpid(), {int(signal.SIGKILL)})\n"
        "    return whole(self)\n"
        "S.epoch = epoch\n"
    )
    out = tmp_path / "run"
    ended = torchrun(graph, out, f"--code={code}")
    assert ended.returncode != 0
    assert any("have lost each other" in line or "torchrun" in line for line in sentences(ended.stdout)), ended.stdout
    assert read_run(out).result is None
    code.write_text("")
    again = torchrun(graph, out, "--resume", f"--code={code}")
    assert again.returncode == 0, again.stdout
    assert read_run(out).result is not None


def test_two_ranks_pass_over_a_strangers_checkpoint_and_go_on_from_their_own(
    graph: Path, undisturbed: list[object], tmp_path: Path
) -> None:
    """A stopped run whose newest checkpoint was put there by somebody else: it is neither believed nor run."""
    code, out = tmp_path / "stopped.py", tmp_path / "run"
    code.write_text(
        "from bangs.experiments.history_file import History\n"
        "keep = History.keep\n"
        "def stopped(self, state, row):\n"
        "    keep(self, state, row)\n"
        "    if state.index == 2:\n"
        "        raise SystemExit(9)\n"
        "History.keep = stopped\n"
    )
    assert torchrun(graph, out, f"--code={code}").returncode != 0
    mine = sorted((out / "checkpoints").iterdir())
    assert [path.name for path in mine] == ["round-000001.safetensors", "round-000002.safetensors"]
    (out / "checkpoints" / "round-000007.safetensors").write_bytes(b"cos\nsystem\n(S'touch owned'\ntR." * 50)
    os.mkfifo(out / "checkpoints" / "round-000008.safetensors")
    code.write_text("")
    again = torchrun(graph, out, "--resume", f"--code={code}")
    assert again.returncode == 0, again.stdout
    assert history(out) == undisturbed
    damaged = {event["round"] for event in read_run(out).events if event["kind"] == "damaged checkpoint"}
    assert damaged == {7, 8}
    assert not Path("owned").exists()
