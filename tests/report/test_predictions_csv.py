"""Cells of a spreadsheet, a model card, positions on a map."""

import csv
import io

import numpy as np
import pytest
import torch

from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.report.model_card import escape
from bangs.report.node_layout import positions
from bangs.report.predictions_csv import predictions, pseudo_labels
from bangs.utils.csv_safe import cell, to_csv
from tests.conftest import two_rings
from tests.runs.test_snapshot_soft import with_beliefs


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("=1+1", "'=1+1"),
        ("+49 30 1234", "'+49 30 1234"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-cmd", "'-cmd"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("-5", "-5"),
        ("+2.5e3", "+2.5e3"),
        ("-inf", "'-inf"),
        ("-1\n", "'-1\n"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_only_what_a_spreadsheet_would_run_is_marked(text: str, shown: str) -> None:
    assert cell(text) == shown


def test_commas_quotes_and_lines_survive() -> None:
    assert to_csv(["a", "=b"], [['x,"y"', 1.5], ["two\nlines", -3]]) == 'a,\'=b\n"x,""y""",1.5\n"two\nlines",-3\n'


def test_a_pseudo_label_that_no_labelled_node_reaches_has_a_reason_too() -> None:
    data = two_rings(30, 2)
    data.edge_index = data.edge_index[:, (data.edge_index < 20).all(0)]
    data.y = torch.where(torch.arange(30) < 12, data.y, -1)
    snapshot = SelfTrainingClassifier(method="hard", validation=0.25, rounds=1, k=18, epochs=20).fit(data).snapshot_
    rows = list(csv.DictReader(io.StringIO(pseudo_labels(snapshot, [str(node) for node in range(30)], ["a", "b"]))))
    influences = {row["id"]: row["influences"] for row in rows}
    assert influences["29"] == "no labelled node within reach: its own features decide"
    assert "%" in influences["13"]


def test_markdown_in_a_text_is_escaped() -> None:
    assert escape("a|b") == r"a\|b"
    assert escape("<img>\n# x") == r"\<img\> \# x"


def test_positions_are_the_same_for_the_same_logits_and_fill_the_square() -> None:
    logits = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    one, two = positions(logits), positions(logits)
    assert (one == two).all()
    assert one.min(0) == pytest.approx([0, 0])
    assert one.max(0) == pytest.approx([1, 1])


def test_two_groups_lie_apart() -> None:
    logits = torch.zeros(60, 2)
    logits[:, 0] = torch.where(torch.arange(60) < 30, 8.0, -8.0) + torch.linspace(0, 1, 60)
    points = positions(logits)
    near = np.linalg.norm(points[:30] - points[:30].mean(0), axis=1).mean()
    assert np.linalg.norm(points[:30].mean(0) - points[30:].mean(0)) > near


@pytest.mark.parametrize("count", [1, 2, 9, 10])
def test_few_or_equal_points_have_positions_too(count: int) -> None:
    assert np.isfinite(positions(torch.zeros(count, 3))).all()


def test_soft_labels_are_listed_with_their_probabilities_and_weights() -> None:
    snapshot, state = with_beliefs()
    names, classes = [f"n{node}" for node in range(60)], ["a", "b", "c"]
    rows = list(csv.DictReader(io.StringIO("".join(pseudo_labels(snapshot, names, classes)))))
    assert [row["id"] for row in rows] == names[24:]  # all that are neither given nor held
    assert {row["round"] for row in rows} == {str(snapshot.chosen)}
    assert state.labels.belief is not None
    for node, row in enumerate(rows, 24):
        belief = [float(row[f"q_{name}"]) for name in classes]
        assert belief == pytest.approx(state.labels.belief[0, node].tolist(), abs=1e-5)
        assert row["label"] == classes[belief.index(max(belief))]
    # Balance makes all soft labels together count as much as all eighteen given ones
    assert sum(float(row["weight"]) for row in rows) == pytest.approx(18, rel=1e-3)
    predicted = csv.DictReader(io.StringIO("".join(predictions(snapshot, names, classes))))
    assert [row["source"] for row in predicted] == ["given"] * 18 + ["held"] * 6 + ["soft"] * 36


def test_more_nodes_than_anchors_stand_near_nodes_like_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bangs.report.node_layout.MAX_TSNE_NODES", 40)
    logits = torch.zeros(200, 2)
    logits[:, 0] = torch.where(torch.arange(200) < 100, 8.0, -8.0) + torch.linspace(0, 1, 200)
    points = positions(logits)
    assert points.shape == (200, 2)
    near = np.linalg.norm(points[:100] - points[:100].mean(0), axis=1).mean()
    assert np.linalg.norm(points[:100].mean(0) - points[100:].mean(0)) > near


def test_a_class_without_any_chance_has_a_position_too() -> None:
    logits = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    logits[:, 2] = float("-inf")
    assert np.isfinite(positions(logits)).all()
