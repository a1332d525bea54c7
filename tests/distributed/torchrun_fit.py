"""What one run learns, alone or shared:
`python -m tests.distributed.torchrun_fit FOLDER OUT [DEVICE]`, or the same under torchrun.

A whole `bangs run` first; where FOLDER/strike exists, rank 1 removes it and is killed in the middle of the second
round. Then 50 steps of training and the values of some candidates, kept in FOLDER/learned.pt.
"""

import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bangs.cli import main
from bangs.core.rng import Streams
from bangs.core.types import Task
from bangs.distributed import ranks
from bangs.graphs import npz, splits
from bangs.graphs.pagerank import PPR, Operator
from bangs.graphs.pagerank_push import Push
from bangs.training.data_parallel import DistributedSession
from bangs.training.neighbour_sampling import Sampling
from bangs.training.presets import trainer
from bangs.valuation.banzhaf import ESTIMATORS
from bangs.valuation.distributed_information import share
from bangs.valuation.information import Information

WORDS = "--seeds 1 --rounds 3 --k 4 --candidates 12 --epochs 10 --batch-size 16 --fanout 4,4 --pieces 4"


def run(graph: Path, out: Path, *words: str) -> None:
    """`bangs run`, of which only the folder is of interest."""
    sys.argv = [
        "bangs",
        "run",
        "--method",
        "bangs",
        "--dataset",
        str(graph),
        "--out",
        str(out),
        "--quiet",
        *WORDS.split(),
        *words,
    ]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise


def count_traffic() -> Counter[str]:
    """The "bytes" that this process hands to the others from now on."""
    traffic, message = Counter[str](), ranks._message

    def counted(x: Tensor) -> Tensor:
        traffic["bytes"] += x.numel() * x.element_size()
        return message(x)

    ranks._message = counted
    return traffic


def strike(mark: Path, at: int) -> None:
    """Kill rank 1 in its epoch number `at`, if the mark is there, which it takes away."""
    whole, calls = DistributedSession.epoch, [0]

    def epoch(session: DistributedSession) -> Tensor:
        calls[0] += 1
        if calls[0] == at and ranks.rank() == 1 and mark.exists():
            mark.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(session)

    DistributedSession.epoch = epoch  # type: ignore[method-assign]


def learned(graph: Path, device: str) -> dict[str, Any]:
    """Weights after 50 steps, and candidates' values by every estimator that draws."""
    data = npz.read_graph(graph)
    split = splits.by_share(data.y, 0.5, 0.2, [0])
    task = Task.of(data, split, data.get("num_classes")).to(device)
    sampling = Sampling(size=10, fanout=(4, 4), pieces=4)
    teacher = trainer("gcn", "tuned", epochs=10, patience=10, batches=sampling).fit(task, task.given, Streams((0,)))
    players = (~task.given.known[0]).nonzero().squeeze(1)[None, :16]
    logits = torch.randn(1, len(data.y), task.classes, generator=torch.Generator().manual_seed(0)).to(device)

    def value(estimator: str, operator: Operator) -> Tensor:
        game = Information.of(operator, logits, task.given.known, players, budget=2**16)
        generators = [torch.Generator(device).manual_seed(1)]
        return ESTIMATORS[estimator](None)(share(game), 6, generators).mean

    values = {name: value(name, PPR()(task.graph)) for name in ("msr", "wls", "marginals", "gradient", "meanfield")}
    values |= {f"{name}, pushed": value(name, Push()(task.graph)) for name in ("wls", "marginals", "meanfield")}
    return {"weights": teacher.learner.network.weights(), "values": values, "validation": teacher.validation}


def everything(graph: Path, out: Path, device: str = "cpu") -> None:
    """The run, then the steps and values."""
    strike(out / "strike", at=15)
    traffic = count_traffic()
    with ranks.process_group(torch.device(device)):  # one group for both
        run(graph, out / "run", "--device", device)
        carried_by = torch.distributed.get_backend() if ranks.world_size() > 1 else None
        results = learned(graph, device) | {"carried_by": carried_by}
        if ranks.is_first():
            torch.save({**results, "bytes": traffic["bytes"]}, out / "learned.pt")


if __name__ == "__main__":
    torch.set_num_threads(1)
    everything(Path(sys.argv[1]) / "graph.npz", Path(sys.argv[2]), *sys.argv[3:])
