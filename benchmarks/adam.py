"""An epoch with our Adam, which calls torch's fused kernel directly, and with `torch.optim.Adam(fused=True)`.

    python benchmarks/adam.py [--datasets synthetic cora] [--presets paper tuned] [--threads 1] [--json]

One seed of a GCN on a processor; both take turns. The weights after the epochs are equal to the bit.
"""

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from bangs.core.rng import Streams
from bangs.core.types import Task
from bangs.graphs import splits
from bangs.training.presets import trainer
from measuring import graph, in_turns, options, show

EPOCHS = 50  # a turn


class OptimAdam(torch.optim.Adam):
    """`torch.optim.Adam` with the arguments and methods that the epoch loop needs."""

    def __init__(self, weights: Sequence[Tensor], lr: float, decays: Sequence[float]):
        groups = [{"params": [weight], "weight_decay": decay} for weight, decay in zip(weights, decays, strict=True)]
        super().__init__(groups, lr=lr, fused=True)

    def step(self, closure: None = None) -> None:
        """One step of Adam."""
        super().step(closure)
        # the fused kernel does not do it, and the cache of the first layer needs it
        torch.autograd.graph.increment_version([weight for group in self.param_groups for weight in group["params"]])

    def restart(self) -> None:
        """Forget the moments and the number of steps."""
        self.state.clear()


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--datasets", nargs="+", default=["synthetic", "cora"])
    parser.add_argument("--presets", nargs="+", default=["paper", "tuned"])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rows = []
    for wanted in args.datasets:
        name, data = graph(wanted)
        for preset in args.presets:
            rows += [{"dataset": name, "preset": preset, **row} for row in compared(data, preset, args.repeats)]
    show(rows, args.json, unit=f"seconds of one epoch of one seed; medians of {args.repeats}")


def compared(data: Any, preset: str, repeats: int) -> list[dict[str, Any]]:
    """A row for each Adam; `ratio` is the time of torch.optim's over its own."""
    task = Task.of(data, splits.default(data, [0]), data.get("num_classes"))
    settings = trainer("gcn", preset, epochs=EPOCHS, patience=10**6)

    def fit() -> Any:
        return settings.prepare(task).fit(task.given, Streams((0,)))

    def fit_with_optim() -> Any:
        with patch("bangs.training.epoch_loop.Adam", OptimAdam):
            return fit()

    ways = {"torch.optim.Adam(fused=True)": fit_with_optim, "bangs": fit}
    one, other = (way().predict(task.graph).logits for way in ways.values())
    if not torch.equal(one, other):
        raise AssertionError("the two must take the same steps")
    times = in_turns(ways, repeats, dict.fromkeys(ways, 1 / EPOCHS))
    first = times["torch.optim.Adam(fused=True)"]
    return [{"adam": name, **time.against(first)} for name, time in times.items()]


if __name__ == "__main__":
    main()
