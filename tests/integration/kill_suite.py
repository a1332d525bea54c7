"""A suite that is killed:
`python -m tests.integration.kill_suite FOLDER KILLS` starts `bangs reproduce` again after every kill.

Prints what the run folders hold in the end and the table, beside those of an undisturbed suite.
"""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

from bangs.cli.reproduce import reproduce
from bangs.experiments.results import results_in
from bangs.experiments.suites.read_suite import read_suite
from bangs.experiments.tables.render import markdown
from bangs.experiments.tables.table import tabulate
from bangs.runs import Record, read_run
from tests.helpers.killing import killed, undisturbed
from tests.helpers.small_graphs import suite_file


def run(suite: Path, out: Path) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    reproduce([str(suite)], out=out, device="cpu", quiet=True)


def summary(suite: Path, out: Path) -> dict[str, Any]:
    records = [read_run(folder) for folder in (out / "runs").iterdir()]
    return {
        "runs": len(records),
        "finished once": sum(record.result is not None and untouched_since(record) for record in records),
        "table": markdown(tabulate(read_suite(suite), results_in(out))),
    }


def untouched_since(record: Record) -> bool:
    """Whether nothing was done after the run was finished; a kill may have left its last event unwritten."""
    kinds = [event["kind"] for event in record.events]
    return "finished" not in kinds[:-1]


def main(folder: Path, kills: int) -> None:
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    suite = suite_file(folder)
    undisturbed(lambda: run(suite, folder / "whole"))
    seconds = undisturbed(lambda: run(suite, folder / "again"))
    struck = killed(lambda: run(suite, folder / "killed"), kills, 0.6 * seconds)
    ends = {name: summary(suite, folder / name) for name in ("whole", "killed")}
    print(json.dumps({"struck": struck, **ends}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
