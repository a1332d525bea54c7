"""Ranks that try one folder after the other: `torchrun … torchrun_refused.py GRAPH FOLDER … -- OPTION …`.

Ends with 0 if `bangs run --resume` was refused in every folder, on every rank, and left no process group behind:
its threads abort about one process in eighteen that ends with them.
"""

import sys

import torch.distributed as dist

from bangs.cli import main


def refused(words: list[str]) -> bool:
    """Whether `bangs run` with these words ends with the code of a sentence, its process group closed."""
    sys.argv = ["bangs", "run", *words]
    try:
        main()
    except SystemExit as end:
        return end.code == 2 and not dist.is_initialized()
    return False


if __name__ == "__main__":
    place = sys.argv.index("--")
    (graph, *folders), options = sys.argv[1:place], sys.argv[place + 1 :]
    ends = [refused([f"--dataset={graph}", f"--out={out}", "--resume", *options]) for out in folders]
    sys.exit(not all(ends))
