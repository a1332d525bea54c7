"""Experiments that are killed:
`python -m tests.integration.kill_experiments FOLDER KILLS METHOD…` compares them with undisturbed ones.

For each method an undisturbed run, then one that is killed KILLS times at random moments and taken up
again. Prints {method: {"equal": …, "history": …, "kills": …, "resumed": …}}.
"""

import json
import random
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from bangs.experiments.experiment import Experiment
from bangs.graphs.datasets.synthetic import citation
from bangs.runs import RunFolder, read_run
from tests.helpers.killing import killed, undisturbed
from tests.helpers.without_seconds import without_seconds


def small() -> Data:
    return citation(nodes=120, classes=3, features=40, isolated=0.0, signal=0.6)


def experiment(method: str, **settings: Any) -> Experiment:
    chosen = {"rounds": 4, "k": 8, "candidates": 16, "seeds": (0, 1, 2), "changes": {"epochs": 12, "patience": 8}}
    return Experiment(dataset="small", method=method, **{**chosen, **settings})


def attempt(folder: Path, of: Experiment, pause: float = 0.0, device: str = "cpu") -> dict[str, Any]:
    """Run the experiment in the folder, from wherever it stands."""
    with RunFolder.create_or_resume(folder, of.config(), resume=True) as run_folder:
        if run_folder.result is None:
            of.run(data=small(), device=device, run_folder=run_folder, pause=pause)
        result: dict[str, Any] = without_seconds(run_folder.result)
        return result


def history(folder: Path) -> list[Any]:
    return [without_seconds(json.loads(line)) for line in (folder / "history.jsonl").read_text().splitlines()]


def main(folder: Path, kills: int, methods: list[str]) -> None:
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    outcomes = {}
    for method in methods:
        of = experiment(method)
        attempt(folder / f"{method}-warm", of)  # what is imported on the way is imported once
        seconds = undisturbed(lambda of=of: attempt(folder / f"{of.method}-undisturbed", of))

        def work(of: Experiment = of) -> None:
            attempt(folder / of.method, of, pause=random.choice([0.0, 0.2]))

        struck = killed(work, kills, 0.7 * seconds)
        whole = attempt(folder / f"{method}-undisturbed", of)
        outcomes[method] = {
            "equal": attempt(folder / method, of) == whole,
            "history": history(folder / method) == history(folder / f"{method}-undisturbed"),
            "kills": struck,
            "resumed": sum(event["kind"] == "resumed" for event in read_run(folder / method).events),
        }
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
