"""Estimators: how well each finds the values of candidate nodes, and how long it takes.

    python benchmarks/estimators.py [--datasets cora] [--seeds 5] [--threads 1] [--plot docs/estimators.png] [--json]

A GCN is trained on each dataset and calibrated. Its most confident nodes play the information game, and estimators are
held to a reference of exact marginals. Ranks are compared by Spearman's correlation and by the share of the k best
that are found. Times are medians over seeds, and count everything from the game's making on, propagation included; the
processor's own time stands beside the clock's, which others' work lengthens. The ratio is that of the paper's
pseudo-code (`plain_selection.py`, 500 coalitions, of which one in ten is timed), which takes turns with the others.
Without BANGS_DATA the embedded synthetic graph takes the place of the datasets.
"""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bangs.valuation.banzhaf import DEFAULT, ESTIMATORS, Estimator, Values
from bangs.valuation.information import Information
from measuring import in_turns, options, peak_of, show
from plain_selection import PlainSelection
from rounds import Occasion, Reference, agreement, rank_correlation, trained

COALITIONS, SCALE = 500, 10  # of the plain one, and one in so many is timed
SETTINGS = ((200, 100), (500, 100))
BUDGETS: dict[str, tuple[int | None, ...]] = {
    "msr": (500, 5000),
    "wls": (500, 1000, 2500, 5000),
    "gradient": (16, 64),
    "meanfield": (None,),
    "marginals": (4, 8, 16, 32),
}


def measure(occasion: Occasion, players: int, k: int, seeds: int, halves: int) -> tuple[dict[str, Any], list[Any]]:
    """What is known of the reference, and one row for every estimator and budget."""
    begin = time.perf_counter()
    reference = Reference.of(occasion, players, k, halves)
    setting = {"dataset": occasion.name, "K": players, "k": k}
    known = setting | {
        "split_half": reference.split_half,
        "samples": 2 * halves,
        "seconds": time.perf_counter() - begin,
    }
    trials = [Trial(name, budget) for name, budgets in BUDGETS.items() for budget in budgets]
    acts: dict[str, Callable[[], Any]] = {trial.title: partial(trial, occasion.game, players, k) for trial in trials}
    peaks = {title: peak_of(act) for title, act in acts.items()}
    plain = PlainSelection(samples=COALITIONS // SCALE)
    acts["plain"] = lambda: plain(occasion.graph, occasion.logits, occasion.known, occasion.players(players), k)
    times = in_turns(acts, seeds, {"plain": SCALE})
    rows = []
    for trial in trials:
        spearman = [rank_correlation(values.mean[0], reference.values) for values in trial.values]
        top = [agreement(values.mean[0], reference.values, k) for values in trial.values]
        rows.append(
            setting
            | {
                "estimator": trial.name,
                "samples": trial.budget,
                "evaluations": trial.values[0].evaluations,
                **times[trial.title].against(times["plain"]),
                "peak_bytes": peaks[trial.title],
                "spearman": statistics.mean(spearman),
                "spearman_worst": min(spearman),
                "top_k": statistics.mean(top),
                "top_k_worst": min(top),
                "default": trial.estimator == ESTIMATORS[DEFAULT](None),
            }
        )
    return known, rows


@dataclass
class Trial:
    """An estimator at one budget, called again and again; every call but the first has a seed of its own."""

    name: str
    budget: int | None
    values: list[Values] = field(default_factory=list)
    calls: int = 0

    @property
    def title(self) -> str:
        return f"{self.name} {self.budget}"

    @property
    def estimator(self) -> Estimator:
        return ESTIMATORS[self.name](self.budget)

    def __call__(self, game: Callable[[int], Information], players: int, k: int) -> None:
        """Values of the game; kept for the seeds from 0 on, which come after two calls to warm up."""
        seed = self.calls - 2
        self.calls += 1
        values = self.estimator(game(players), k, [torch.Generator().manual_seed(max(seed, 0))])
        if seed >= 0:
            self.values.append(values)


def plot(rows: Sequence[dict[str, Any]], file: Path) -> None:
    """Quality against time, one panel a setting."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    settings = list(dict.fromkeys((row["dataset"], row["K"], row["k"]) for row in rows))
    figure, axes = plt.subplots(1, len(settings), figsize=(4.2 * len(settings), 3.4), sharey=True, squeeze=False)
    for axis, setting in zip(axes[0], settings, strict=True):
        for name in BUDGETS:
            chosen = [
                row for row in rows if row["estimator"] == name and (row["dataset"], row["K"], row["k"]) == setting
            ]
            points = [(1000 * row["cpu_seconds"], max(1 - row["spearman"], 1e-4)) for row in chosen]
            axis.plot(*zip(*points, strict=True), marker="o", markersize=4, linewidth=1, label=name)
        axis.axhline(0.01, color="grey", linewidth=0.6, linestyle=":")
        axis.set(xscale="log", yscale="log", xlabel="milliseconds", title="{}, K = {}, k = {}".format(*setting))
    axes[0][0].set_ylabel("1 − rank correlation (less is better)")
    axes[0][-1].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = options(__doc__, repeats=None)
    parser.add_argument("--datasets", nargs="+", default=["cora"])
    parser.add_argument("--adopted", type=int, nargs="+", default=[0], help="pseudo-labels that are there already")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--reference", type=int, default=100, help="coalitions in each half of the reference")
    parser.add_argument("--plot", type=Path, metavar="FILE")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    references, rows = [], []
    for name in args.datasets:
        first = trained(name)
        for adopted in args.adopted:
            occasion = first.after(adopted) if adopted else first
            for players, k in SETTINGS:
                print(f"{occasion.name}, K = {players}, k = {k} …", file=sys.stderr)
                known, trial_rows = measure(occasion, players, k, args.seeds, args.reference)
                references.append(known)
                rows += trial_rows
    if args.plot is not None:
        plot(rows, args.plot)
    worst = min(known["split_half"] for known in references)
    reference = {"split_half": worst, "settings": references}
    show(rows, args.json, default=DEFAULT, reference=reference, unit=f"medians of {args.seeds} seeds")


if __name__ == "__main__":
    main()
