"""Ranks: two processes under torchrun end where one process ends.

With BANGS_LONG=1 one of the two is killed in the middle of a round. That does not always end well on a busy machine (a
rank that waits for the dead one is given half a minute to stop, and restarts may run out), so it is not the default.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import ranked
from bangs import ranks
from bangs.learners.shared import Shared
from bangs.runs import read_run
from worlds import graph_file


def test_a_process_alone_is_the_first_and_shares_nothing() -> None:
    x = torch.arange(3.0)
    assert (ranks.size(), ranks.rank(), ranks.first(), ranks.started(), ranks.restarted()) == (1, 0, True, 1, False)
    assert ranks.summed(x) is x
    assert ranks.agreed(x) is x
    assert ranks.told("a fact") == "a fact"
    assert list(ranks.own(3)) == [0, 1, 2]
    with ranks.joined(torch.device("cpu")):
        assert ranks.size() == 1


def told(out: Path) -> list[dict[str, Any]]:
    """The rows of a run, without what a clock says."""
    rows = [json.loads(line) for line in (out / "run" / "history.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


@pytest.mark.slow
def test_two_ranks_learn_value_and_choose_as_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph_file(tmp_path / "graph.npz")
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    for folder in (alone, shared):
        folder.mkdir()
    killed = os.environ.get("BANGS_LONG") == "1"
    if killed:
        (shared / "strike").touch()
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(Shared, "epoch", Shared.epoch)
    ranked.everything(tmp_path / "graph.npz", alone)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    torchrun += ["--max-restarts", "2"]
    done = subprocess.run(
        [*torchrun, ranked.__file__, str(tmp_path), str(shared)], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, [line for line in done.stderr.splitlines() if "Error" in line]

    one, two = (torch.load(out / "learned.pt") for out in (alone, shared))
    assert two["bytes"] > 0 == one["bytes"]
    for name, value in one["weights"].items():
        torch.testing.assert_close(two["weights"][name], value, atol=1e-5, rtol=0)
    for name, value in one["values"].items():
        torch.testing.assert_close(two["values"][name], value, atol=1e-6, rtol=1e-5, msg=name)
    assert torch.equal(one["validation"], two["validation"])

    assert not (shared / "strike").exists()
    kinds = [event["kind"] for event in read_run(shared / "run").events]
    assert [kinds.count(kind) for kind in ("started", "resumed", "finished")] == [1, int(killed), 1]
    for here, there in zip(told(alone), told(shared), strict=True):
        assert [own["node"] for own in here["adopted"]] == [own["node"] for own in there["adopted"]]
        assert (here["test"], here["validation"], here["epochs"]) == (
            there["test"],
            there["validation"],
            there["epochs"],
        )
