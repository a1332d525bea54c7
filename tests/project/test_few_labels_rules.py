"""The comparison of rules for probabilities looks at hidden labels only where it says so."""

import sys
from dataclasses import replace
from importlib import import_module

import numpy as np

from tests import ROOT

sys.path.append(str(ROOT / "benchmarks"))
rules = import_module("few_labels_rules")


def cell(graph: str, seed: int) -> "rules.Cell":
    """An overconfident fit: the labels are drawn from milder probabilities than it predicts."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(400, 4))
    truth = np.array([rng.choice(4, p=np.exp(row) / np.exp(row).sum()) for row in logits])
    members = 3 * logits + rng.normal(scale=0.1, size=(2, 400, 4))
    folds = np.exp(rules.log_softmax(3 * logits + rng.normal(scale=0.3, size=(4, 400, 4))))
    record = {
        "truth": truth[20:],
        "judged": truth[:20],
        "members_mean": members[:, 20:],
        "members_unseen": members[:, :20],
        "temperatures": np.ones(2),
        "weights": np.full(2, 0.5),
        "sharper": np.array(1.0),
        "folds": folds[:, 20:],
        "said": folds[:, 20:].argmax(-1),
        "shares": np.full(4, 0.25),
    }
    return rules.Cell(graph, 5, record)


def test_a_rule_looks_at_no_hidden_label_of_the_graph_it_is_judged_by() -> None:
    cells = [cell(name, seed) for seed, name in enumerate(("one", "two", "three"))]
    other = cells[0].record["truth"][::-1]
    changed = [replace(cells[0], record={**cells[0].record, "truth": (other + 1) % 4}), *cells[1:]]
    for name, rule in rules.RULES.items():
        same = np.array_equal(rule(cells)[0], rule(changed)[0])
        assert same == (not name.startswith("not possible")), name


def test_knowing_the_accuracy_calibrates_an_overconfident_fit() -> None:
    fit = cell("one", 0)
    factor = fit.factor_of(fit.accuracy)
    assert fit.errors[factor] < 0.06 < 0.15 < fit.errors[rules.UNCHANGED]
    assert rules.likelihood(fit, 2.0) > rules.UNCHANGED  # twenty judged labels say so too


def test_views_that_agree_by_chance_alone_give_no_confidence() -> None:
    fit = cell("one", 0)
    assert fit.views_agree > 0.8
    guesses = np.random.default_rng(0).permuted(fit.record["said"], axis=1)
    assert abs(replace(fit, record={**fit.record, "said": guesses}).views_agree) < 0.1


def test_as_many_new_labels_make_an_overconfident_fit_less_confident_but_not_calibrated() -> None:
    fit = cell("one", 0)
    error = fit.errors[rules.from_new(fit)].mean()
    assert fit.errors[fit.factor_of(fit.accuracy)] < error < fit.errors[rules.UNCHANGED]


def test_a_factor_hardly_changes_a_label() -> None:
    fit = cell("one", 0)
    labels = fit.probs[rules.UNCHANGED].argmax(1)
    assert all((probs.argmax(1) == labels).mean() > 0.97 for probs in fit.probs)


def test_the_table_has_a_line_for_every_rule() -> None:
    text = rules.compared([cell("one", 0), cell("two", 1)])
    assert [line.split(" | ")[0].strip("| ") for line in text.splitlines()[2:]] == list(rules.RULES)
