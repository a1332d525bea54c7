"""Rules for the probabilities of the default fit with few labels, compared on nodes that may choose settings.

    python benchmarks/few_labels_rules.py FOLDER
    python benchmarks/few_labels_rules.py --page docs/results/few-labels-rules.md

FOLDER holds the files of `few_labels_trust.py`. Every rule multiplies the temperatures of all members by one factor
and so keeps all labels (but for ties of an average); a rule that averages over factors or asks for a level stands for
the factor of that mean confidence. `level` is the mean distance between mean confidence and accuracy, `error` the
expected calibration error (ten bins), both also for each number of labels a class. Rules that learn from other graphs
leave out the graph that they are judged by. The last three rules look at the hidden labels: they show what better
knowledge would bring. A second table compares the accuracy that a fit tells of itself with that of the hidden nodes.
"""

import argparse
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from measuring import page

Array = npt.NDArray[Any]
LOG_FACTORS = np.arange(-60, 61) / 20  # logarithms of factors; the middle one changes nothing
UNCHANGED = len(LOG_FACTORS) // 2


def log_softmax(logits: Array) -> Array:
    top = logits - logits.max(-1, keepdims=True)
    result: Array = top - np.log(np.exp(top).sum(-1, keepdims=True))
    return result


def calibration_error(probs: Array, truth: Array, bins: int = 10) -> float:
    """Σ_b n_b/n · |accuracy − mean confidence| of the most likely class."""
    confidence, correct = probs.max(1), probs.argmax(1) == truth
    bin_of = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    gaps = np.bincount(bin_of, correct - confidence, bins)
    return float(np.abs(gaps).sum() / len(truth))


@dataclass(frozen=True, eq=False)
class Cell:
    """One fit: n hidden nodes that may choose settings, M judged labels, K members, R folds, G factors."""

    graph: str
    labels: int
    record: dict[str, Array]

    @classmethod
    def read(cls, path: Path) -> "Cell":
        match = re.fullmatch(r"(.+)-(\d+)-\d+", path.stem)
        assert match is not None, f"{path} is no file of few_labels_trust.py"
        return cls(match[1], int(match[2]), dict(np.load(path)))

    def _mixed(self, logs: Array, scale: float) -> Array:
        scales = (self.record["temperatures"] * scale)[:, None, None]
        probs = np.exp(log_softmax(logs.astype(float) / scales))
        mixed: Array = (probs * self.record["weights"][:, None, None]).sum(0)
        return mixed

    @cached_property
    def probs(self) -> list[Array]:
        """Of the hidden nodes, for every factor: G times [n, C]."""
        return [
            self._mixed(self.record["members_mean"], np.exp(log) * float(self.record["sharper"])) for log in LOG_FACTORS
        ]

    @cached_property
    def unseen(self) -> Array:
        """Of the judged nodes: [G, M, C]."""
        return np.stack([self._mixed(self.record["members_unseen"], np.exp(log)) for log in LOG_FACTORS])

    @cached_property
    def label_log_probs(self) -> Array:
        """Log-probability of each judged label: [G, M]."""
        probs = self.unseen[:, np.arange(len(self.record["judged"])), self.record["judged"]]
        return np.log(probs.clip(1e-20))

    @cached_property
    def confidence(self) -> Array:
        """Mean confidence on hidden nodes: [G]."""
        return np.array([probs.max(1).mean() for probs in self.probs])

    @cached_property
    def errors(self) -> Array:
        return np.array([calibration_error(probs, self.record["truth"]) for probs in self.probs])

    @cached_property
    def accuracy(self) -> float:
        return float((self.probs[UNCHANGED].argmax(1) == self.record["truth"]).mean())

    @cached_property
    def folds(self) -> Array:
        """Probabilities by the models of one fold: [R, n, C]."""
        probs = self.record["folds"].astype(float).clip(1e-7)
        scaled: Array = probs / probs.sum(-1, keepdims=True)
        return scaled

    @cached_property
    def agreement(self) -> float:
        """The share of hidden nodes on which two folds agree, the mean over pairs."""
        labels = self.folds.argmax(-1)
        return float(np.mean([(labels[a] == labels[b]).mean() for a in range(len(labels)) for b in range(a)]))

    @cached_property
    def views_agree(self) -> float:
        """Cohen's kappa of the fit with each candidate that every fit tries, the mean: agreement beyond chance."""
        labels, classes = self.probs[UNCHANGED].argmax(1), self.unseen.shape[-1]

        def shares(label: Array) -> Array:
            return np.bincount(label, minlength=classes) / len(label)

        chance = np.array([shares(labels) @ shares(other) for other in self.record["said"]])
        return float((((self.record["said"] == labels).mean(1) - chance) / (1 - chance)).mean())

    @cached_property
    def plain(self) -> "Cell":
        """The same fit where no member has a temperature."""
        alike = np.ones_like(self.record["temperatures"])
        return replace(self, record={**self.record, "temperatures": alike, "sharper": np.array(1.0)})

    def factor_of(self, level: float) -> int:
        """The factor whose mean confidence is the nearest."""
        return int(np.abs(self.confidence - level).argmin())


def likelihood(cell: Cell, spread: float) -> int:
    """The most probable factor, with another prior than the fit's."""
    return int((cell.label_log_probs.sum(1) - LOG_FACTORS**2 / (2 * spread**2)).argmax())


def brier(cell: Cell) -> int:
    """The squared error of probabilities in place of the likelihood."""
    truth = np.eye(cell.unseen.shape[-1])[cell.record["judged"]]
    loss = np.square(cell.unseen - truth).sum((1, 2))
    return int((loss + LOG_FACTORS**2 / (2 * 0.5**2)).argmin())


def by_shares(cell: Cell) -> int:
    """Judged labels weigh as the share of their class among the predictions."""
    judged, shares = cell.record["judged"], cell.record["shares"]
    counts = np.bincount(judged, minlength=len(shares)).clip(1)
    weight = (shares.clip(1e-3) / counts)[judged]
    weight *= weight.sum() / np.square(weight).sum()  # as many labels as they are worth
    return int((cell.label_log_probs @ weight - LOG_FACTORS**2 / 2).argmax())


def votes(cell: Cell, count: float = 10) -> int:
    """What the folds vote for counts as further labels."""
    share = np.eye(cell.folds.shape[-1])[cell.folds.argmax(-1)].mean(0)
    log_likelihood = np.array([(share * np.log(probs.clip(1e-20))).sum(1).mean() for probs in cell.probs])
    return int((cell.label_log_probs.sum(1) + count * log_likelihood).argmax())


def near_agreement(cell: Cell, width: float = 0.15) -> int:
    """The posterior mean with a Cauchy prior around the factor at which the fit is as sure as folds agree."""
    log_odds = np.log(cell.agreement / (1 - cell.agreement)) - 0.45 * np.log(cell.labels / 3)
    middle = LOG_FACTORS[cell.factor_of(1 / (1 + np.exp(-log_odds)))]
    log = cell.label_log_probs.sum(1) - np.log1p(np.square((LOG_FACTORS - middle) / width))
    weight = np.exp(log - log.max())
    return int(np.abs(LOG_FACTORS - (weight * LOG_FACTORS).sum() / weight.sum()).argmin())


def averaged(cell: Cell) -> int:
    """The mean over all factors, each as probable as the judged labels and the prior make it."""
    log = cell.label_log_probs.sum(1) - LOG_FACTORS**2 / 2
    weight = np.exp(log - log.max())
    return cell.factor_of(float(weight @ cell.confidence / weight.sum()))


def near_views(cell: Cell) -> int:
    """Confidence and the agreement of candidates beyond chance, which counts as one label a class."""
    return cell.factor_of((cell.labels * cell.confidence[UNCHANGED] + cell.views_agree) / (cell.labels + 1))


def by_fifths(cell: Cell, prior: float = 10) -> int:
    """The share of right unseen labels, all members together, in each fifth of the hidden nodes by confidence.

    What the fit says itself counts as ten more labels in each fifth.
    """
    record, confidence = cell.record, cell.probs[UNCHANGED].max(1)
    unseen = np.exp(log_softmax(record["members_unseen"].astype(float) / record["temperatures"][:, None, None]))
    edges = np.quantile(confidence, (0.2, 0.4, 0.6, 0.8))
    unseen_fifth, fifth = np.digitize(unseen.max(-1), edges), np.digitize(confidence, edges)
    correct = (unseen.argmax(-1) == record["judged"]) * record["weights"][:, None]
    level = 0.0
    for number in range(5):
        count = ((unseen_fifth == number) * record["weights"][:, None]).sum()
        mean_confidence = confidence[fifth == number].sum() / max((fifth == number).sum(), 1)
        level += (
            (fifth == number).mean()
            * (correct[unseen_fifth == number].sum() + prior * mean_confidence)
            / (count + prior)
        )
    return cell.factor_of(level)


def together(cell: Cell) -> int:
    """The mean level of three rules that err on different graphs."""
    return cell.factor_of(
        float(np.mean([cell.confidence[rule(cell)] for rule in (near_agreement, near_views, by_fifths)]))
    )


def from_new(cell: Cell, times: int = 30) -> Array:
    """Not possible: as many new labels of each class judge the finished fit, again and again."""
    truth, draw = cell.record["truth"], np.random.default_rng(0)
    log_probs = np.log([probs[np.arange(len(truth)), truth].clip(1e-20) for probs in cell.plain.probs])
    counts = np.bincount(cell.record["judged"], minlength=cell.unseen.shape[-1])
    nodes = [(np.flatnonzero(truth == label), count) for label, count in enumerate(counts)]
    factors = []
    for _ in range(times):
        drawn = np.concatenate([draw.choice(members, count) for members, count in nodes if len(members)])
        best = (log_probs[:, drawn].sum(1) - LOG_FACTORS**2 / 2).argmax()
        factors.append(cell.factor_of(cell.plain.confidence[best]))
    return np.array(factors)


def from_folds(cell: Cell) -> int:
    """Not possible: the factor of single folds by the labels of all hidden nodes."""
    truth, logs = cell.record["truth"], np.log(cell.folds)
    nodes = np.arange(len(truth))
    return int(np.argmax([log_softmax(logs / np.exp(log))[:, nodes, truth].mean() for log in LOG_FACTORS]))


def learned(cells: list[Cell], feature: Callable[[Cell], float], limit: float) -> list[int]:
    """Log-odds of confidence moved by at most `limit` to a feature that is shifted as other graphs ask for."""

    def odds(value: float) -> float:
        return float(np.log(np.clip(value, 0.02, 0.98) / (1 - np.clip(value, 0.02, 0.98))))

    out = []
    for cell in cells:
        others = [other for other in cells if other.graph != cell.graph and other.labels == cell.labels]
        shift = float(np.median([odds(other.accuracy) - odds(feature(other)) for other in others]))
        current = odds(cell.confidence[UNCHANGED])
        shifted = current + np.clip(odds(feature(cell)) + shift - current, -limit, limit)
        out.append(cell.factor_of(1 / (1 + np.exp(-shifted))))
    return out


RULES: dict[str, Callable[[list[Cell]], Sequence[int | Array]]] = {
    "as it is": lambda cells: [UNCHANGED] * len(cells),
    "prior of spread 0.25": lambda cells: [likelihood(cell, 0.25) for cell in cells],
    "prior of spread 2": lambda cells: [likelihood(cell, 2) for cell in cells],
    "squared error": lambda cells: [brier(cell) for cell in cells],
    "weights by class shares": lambda cells: [by_shares(cell) for cell in cells],
    "folds vote as ten labels": lambda cells: [votes(cell) for cell in cells],
    "prior at the folds' agreement": lambda cells: [near_agreement(cell) for cell in cells],
    "shift learned on other graphs": lambda cells: learned(cells, lambda cell: cell.confidence[UNCHANGED], 9),
    "level of agreement, learned": lambda cells: learned(cells, lambda cell: cell.agreement, 9),
    "a step of 0.1 to that level": lambda cells: learned(cells, lambda cell: cell.agreement, 0.1),
    "level of plain members, learned": lambda cells: learned(cells, lambda cell: cell.plain.confidence[UNCHANGED], 9),
    "a step of 0.1 to this level": lambda cells: learned(cells, lambda cell: cell.plain.confidence[UNCHANGED], 0.1),
    "the mean over all factors": lambda cells: [averaged(cell) for cell in cells],
    "accuracy in fifths of confidence": lambda cells: [by_fifths(cell) for cell in cells],
    "agreement of candidates as a label": lambda cells: [near_views(cell) for cell in cells],
    "the mean of these two and of the folds'": lambda cells: [together(cell) for cell in cells],
    "not possible: as many new labels judge": lambda cells: [from_new(cell) for cell in cells],
    "not possible: all hidden labels judge": lambda cells: [from_folds(cell) for cell in cells],
    "not possible: accuracy known": lambda cells: [cell.factor_of(cell.accuracy) for cell in cells],
}


ROWS = Path(__file__).with_name("rows") / "few_labels_rules.jsonl"
ABOUT = """
The page [Few labels](../few-labels.md#how-sure-the-fit-may-be) has the question. Each rule multiplies all
temperatures by one factor, so nearly all labels stay. The rules were compared blind, before an APPNP joined the
default fit: 120 fits (ten graphs, 3 to 20 labels a class, three further draws), judged by the nodes that may choose
settings. The numbers are mean calibration errors. *Learned* means from the other graphs.
"""
AFTER = """
The best rule gains 0.002. It consists of three rules, and these graphs chose their constants; so the fit keeps its
own. Even as many new labels, from which nobody has learned, would only just reach 0.050. The rest must come from
nodes without labels, and what they say differs from graph to graph. With 3 labels a class the agreement of the folds
is about 0.1 or less from the accuracy on nine graphs in the mean, and 0.3 above it on `actor`.

In these fits, counting the judged labels is off by 0.093, 0.066, 0.052 and 0.040 with 3, 5, 10 and 20 labels a class.
The mean confidence of the fit is off by 0.075, 0.042, 0.041 and 0.031.

Also tried, by scripts that are not kept, and dropped: three models to judge each label, eight or twelve folds, the
agreement of models that learned disjoint halves of the labels, class shares found by expectation maximisation, the
mean confidence of single folds, and other ways to average members.

To compare again: `python benchmarks/few_labels_trust.py --draws 100 101 102 --out FOLDER`, then `python
benchmarks/few_labels_rules.py FOLDER`.
"""
IN_WORDS = {
    "prior of spread 0.25": "a prior four times narrower",
    "prior of spread 2": "a prior twice as wide",
    "squared error": "squared error in place of likelihood",
    "weights by class shares": "judged labels weighed by predicted class shares",
    "folds vote as ten labels": "the votes of the folds as ten more labels",
    "prior at the folds' agreement": "a prior where confidence equals the folds' agreement",
    "level of agreement, learned": "the level of the folds' agreement, learned",
    "a step of 0.1 to that level": "a small step towards that level",
    "level of plain members, learned": "the level of members without temperatures, learned",
    "a step of 0.1 to this level": "a small step towards that level",
    "accuracy in fifths of confidence": "accuracy in fifths of confidence, all members pooled",
    "agreement of candidates as a label": "the candidates' agreement beyond chance, as one label a class",
    "the mean of these two and of the folds'": "the mean of the last two and of the prior at the folds' agreement",
    "not possible: as many new labels judge": "not possible: as many new labels judge the finished fit",
    "not possible: all hidden labels judge": "not possible: all hidden labels judge the folds",
    "not possible: accuracy known": "not possible: the accuracy is known",
}


def written(rows: list[dict[str, Any]]) -> str:
    """The page of all rules, from the rows that were kept."""
    counts = [key for key in rows[0] if key.isdigit()]
    head = " | ".join(f"{count} labels a class" for count in counts)
    lines = [f"| rule | all | {head} |", "|---" * (2 + len(counts)) + "|"]
    for row in rows:
        figures = [f"{row[key]:.3f}" for key in ("mean", *counts)]
        lines.append(f"| {' | '.join([IN_WORDS.get(row['rule'], row['rule']), *figures])} |")
    command = "python benchmarks/few_labels_rules.py --page docs/results/few-labels-rules.md"
    return page("Rules for how sure a fit may be", command, ABOUT.strip(), "\n".join(lines), AFTER.strip())


def compared(cells: list[Cell]) -> str:
    """A Markdown table, the mean of each number of labels a class first."""
    counts = sorted({cell.labels for cell in cells})
    lines = [f"| rule | error | {' | '.join(map(str, counts))} | level | {' | '.join(map(str, counts))} |"]
    lines.append("|---" * (2 * len(counts) + 3) + "|")
    for name, rule in RULES.items():
        chosen = list(zip(cells, rule(cells), strict=True))
        parts = [
            [np.mean([value(cell, factor) for cell, factor in chosen if cell.labels == count]) for count in counts]
            for value in (
                lambda cell, factor: np.mean(cell.errors[factor]),
                lambda cell, factor: np.mean(np.abs(cell.confidence[factor] - cell.accuracy)),
            )
        ]
        figures = [f"{value:.3f}" for part in parts for value in (np.mean(part), *part)]
        lines.append(f"| {name} | {' | '.join(figures)} |")
    return "\n".join(lines)


def told(cells: list[Cell]) -> str:
    """A Markdown table: the accuracy on judged labels minus that of the hidden nodes, and the mean distance of both."""
    lines = ["| labels a class | fits | told - hidden | distance |", "|---|---|---|---|"]
    for count in sorted({cell.labels for cell in cells}):
        chosen = [cell for cell in cells if cell.labels == count]
        gaps = [(cell.unseen[UNCHANGED].argmax(1) == cell.record["judged"]).mean() - cell.accuracy for cell in chosen]
        lines.append(f"| {count} | {len(gaps)} | {np.mean(gaps):+.3f} | {np.mean(np.abs(gaps)):.3f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="what few_labels_trust.py has written")
    parser.add_argument("--page", type=Path, help="write this page from benchmarks/rows/few_labels_rules.jsonl instead")
    args = parser.parse_args()
    if args.page is not None:
        args.page.write_text(written([json.loads(line) for line in ROWS.read_text().splitlines()]))
    elif args.folder is not None:
        cells = [Cell.read(path) for path in sorted(args.folder.glob("*.npz"))]
        print(compared(cells), told(cells), sep="\n\n")
    else:
        parser.error("name a folder, or a page with --page")


if __name__ == "__main__":
    main()
