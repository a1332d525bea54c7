"""Experiments that are killed: `python mortal.py FOLDER KILLS METHOD…` says whether their results are as if not.

For each method an undisturbed run, then one that is killed by SIGKILL KILLS times at random moments and taken up
again. Prints {method: {"equal": …, "history": …, "kills": …, "resumed": …}}.
"""

import json
import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from bangs.experiments.experiment import Experiment
from bangs.graphs.synthetic import citation
from bangs.runs import RunFolder, read_run


def small() -> Data:
    return citation(nodes=120, classes=3, features=40, isolated=0.0, signal=0.6)


def experiment(method: str, **settings: Any) -> Experiment:
    chosen = {"rounds": 4, "k": 8, "candidates": 16, "seeds": (0, 1, 2), "changes": {"epochs": 12, "patience": 8}}
    return Experiment(dataset="small", method=method, **{**chosen, **settings})


def attempt(folder: Path, of: Experiment, pause: float = 0.0) -> dict[str, Any]:
    """Run the experiment in the folder, from wherever it stands."""
    with RunFolder.create_or_resume(folder, of.config(), resume=True) as store:
        if store.result is None:
            store.finish(timeless(of.run(data=small(), device="cpu", store=store, pause=pause)))
            store.forget()
        result = store.result
        assert result is not None
        return result


def timeless(result: Any) -> Any:
    """A result without its seconds, which no two runs share."""
    if isinstance(result, dict):
        return {key: timeless(value) for key, value in result.items() if key != "seconds"}
    return [timeless(value) for value in result] if isinstance(result, list | tuple) else result


def history(folder: Path) -> list[Any]:
    return [timeless(json.loads(line)) for line in (folder / "history.jsonl").read_text().splitlines()]


def killed_at_random(folder: Path, of: Experiment, kills: int, longest: float) -> int:
    """Try until the run is finished, with so many kills on the way; how many struck."""
    struck = 0
    for number in range(kills + 1):
        child = os.fork()
        if child == 0:
            attempt(folder, of, pause=random.choice([0.0, 0.2]))
            os._exit(0)
        if number < kills:
            time.sleep(random.uniform(0, longest))
            os.kill(child, signal.SIGKILL)
        struck += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    return struck


def main(folder: Path, kills: int, methods: list[str]) -> None:
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    told = {}
    for method in methods:
        of = experiment(method)
        begin = time.monotonic()
        undisturbed = attempt(folder / f"{method}-undisturbed", of)
        duration = time.monotonic() - begin
        struck = killed_at_random(folder / method, of, kills, 0.7 * duration)
        told[method] = {
            "equal": attempt(folder / method, of) == undisturbed,
            "history": history(folder / method) == history(folder / f"{method}-undisturbed"),
            "kills": struck,
            "resumed": sum(event["kind"] == "resumed" for event in read_run(folder / method).events),
        }
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
