"""The figures a person reads first: intervals, numbers of nodes, and sentences that are true of the run."""

from dataclasses import replace
from typing import Any

import pytest

from bangs.core.intervals import wilson
from bangs.report.headline import headline
from bangs.report.leaderboard import HEAD, leaderboard
from bangs.report.model_card import model_card
from bangs.report.page import render
from bangs.report.run_data import RunData
from tests.report.sample_runs import fit_run, soft_run


@pytest.fixture(scope="module")
def run_data() -> RunData:
    return fit_run()


def changed(run_data: RunData, **result: Any) -> RunData:
    return replace(run_data, result={**run_data.result, **result})


def card(run_data: RunData) -> str:
    columns = {"directed": False, "columns": [], "array": 2, "structural": None}
    graph = {"name": "g", "nodes": 60, "edges": 120}
    config = {"graph": graph, "columns": columns, "parts": {"model": "gcn"}, "seed": 0}
    return model_card(config, run_data.result, {})


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [(5, 10, 0.2366, 0.7634), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662)],
)
def test_wilson_intervals_are_those_of_the_textbook(hits: int, count: int, low: float, high: float) -> None:
    assert wilson(hits / count, count) == pytest.approx((low, high), abs=1e-4)


def test_without_nodes_everything_is_possible() -> None:
    assert wilson(0.5, 0) == (0.0, 1.0)


def test_an_accuracy_stands_with_its_interval_and_its_number_of_nodes(run_data: RunData) -> None:
    figures = {figure["label"]: figure for figure in headline(run_data)["figures"]}
    test, validation = figures["Test accuracy"], figures["Validation accuracy"]
    low, high = wilson(run_data.result["test"]["accuracy"], 36)
    assert test["interval"] == f"95\u00a0% interval {100 * low:.1f} to {100 * high:.1f}\u00a0%"
    assert test["note"].startswith("on 36 nodes")
    assert validation["note"].startswith("on 6 nodes")
    assert "6 nodes" in figures["Calibration error"]["note"]
    low, high = run_data.result["validation"]["error_interval"]
    assert figures["Calibration error"]["interval"] == f"95\u00a0% interval {low:.3f} to {high:.3f}"


def test_with_rounds_the_validation_nodes_chose_one(run_data: RunData) -> None:
    assert "they chose the round, so their accuracy is optimistic" in headline(run_data)["protocol"]
    assert "they chose the round, so their accuracy is optimistic" in card(run_data)


def test_without_rounds_no_round_was_chosen(run_data: RunData) -> None:
    alone = changed(run_data, rounds=0, chosen=0, adopted=0, adopted_in_all=0)
    for text in (headline(alone)["protocol"], card(alone)):
        assert "chose the round" not in text
        assert "they decided when training stopped" in text
    assert "no rounds of self-training were asked for" in headline(alone)["lead"]
    assert all("without pseudo-labels" not in figure["note"] for figure in headline(alone)["figures"])


def test_soft_labels_have_a_text_of_their_own() -> None:
    run_data = soft_run()
    shown = headline(run_data)
    assert "gave 36 more nodes soft labels, the probabilities it had predicted for each class" in shown["lead"]
    figures = {figure["label"]: figure for figure in shown["figures"]}
    assert figures["Predicted nodes"]["value"] == "36"
    assert "of them are expected to be wrong" in figures["Predicted nodes"]["note"]
    assert "from soft labels of 36 others" in card(run_data)
    assert "with its probabilities and its weight" in card(run_data)


def test_the_line_under_the_title_of_a_run_does_not_repeat_it(run_data: RunData) -> None:
    result = {"method": "bangs", "dataset": "Cora", "model": "gcn"}
    lead = headline(replace(run_data, kind="run", name="bangs on Cora", result=result))["lead"]
    assert lead == f"Model gcn, {len(run_data.rows) - 1} rounds of self-training, 1 seed."


def test_of_several_models_only_the_one_with_the_most_weight_is_said_to_have_learned_no_pseudo_label(
    run_data: RunData,
) -> None:
    """It may have been stopped before its first round while the others went through all of theirs."""
    line = {"method": "soft", "features": "features", "weight": 0.5, "seconds": 1.0}
    board = [
        {**line, "model": "appnp", "standing": "behind", "round": 0},
        {**line, "model": "walk", "standing": "whole", "round": 3},
    ]
    result = {"adopted": 0, "adopted_in_all": 0, "soft": False, "rounds": 0, "chosen": 0, "folds": True}
    several = changed(run_data, **result, leaderboard=board)
    shown = headline(several)
    assert shown["lead"].endswith(
        "The model with the most weight learned from these only; others learned from soft labels too."
    )
    assert "asked for" not in shown["lead"]
    (figure,) = (item for item in shown["figures"] if item["label"] == "Pseudo-labels")
    assert figure["note"] == "of the model with the most weight"
    assert "labelled nodes only" not in card(several)


def test_notes_of_a_fit_are_sentences_on_the_page_and_lines_of_the_card(run_data: RunData) -> None:
    noted = changed(run_data, notes=["class 'a' has one label", "features are scaled"])
    assert headline(noted)["notes"] == ["Class 'a' has one label.", "Features are scaled."]
    assert "<b>Notes.</b> Class &#39;a&#39; has one label. Features are scaled." in render(noted)
    assert "- features: an array of 2 columns\n- class 'a' has one label\n- features are scaled\n" in card(noted)
    assert "<b>Notes.</b>" not in render(changed(run_data, notes=[]))


def test_the_accuracy_of_an_average_stands_without_that_of_one_of_its_models(run_data: RunData) -> None:
    line = {"method": "soft", "features": "", "round": 2, "standing": "whole", "seconds": 1.0}
    board = [{**line, "model": name, "weight": 0.5} for name in ("walk", "scales")]
    average = changed(run_data, folds=True, leaderboard=board)
    for shown, count in ((run_data, 2), (average, 0)):  # of the test and of the validation
        notes = [figure["note"] for figure in headline(shown)["figures"]]
        assert sum("without pseudo-labels" in note for note in notes) == count
        assert card(shown).count("without pseudo-labels") == count
    assert "the same labels chose the weights of the models, which raises it" in headline(average)["protocol"]


def test_the_card_counts_an_undirected_edge_once(run_data: RunData) -> None:
    assert "- 60 nodes and 60 edges\n" in card(run_data)


def test_no_zero_has_a_sign() -> None:
    line = {"model": "walk", "method": "soft", "features": "", "weight": 0.5, "round": 0, "standing": "", "seconds": 1}
    score = {"log_likelihood": {"value": -0.004, "low": -0.1, "high": -0.001}}
    assert leaderboard([{**line, **score}] * 2)[0][HEAD.index("log-likelihood")] == "0.00 (-0.10 to 0.00)"
