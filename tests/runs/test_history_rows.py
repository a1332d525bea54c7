"""Rows: what is written down of a round."""

import json
from dataclasses import replace

import torch

from bangs.core.rng import Streams
from bangs.core.types import Ranking, Task
from bangs.nn.models import GCN
from bangs.runs.history_rows import STAGES, row, seconds_by_stage
from bangs.selection.quotas import Nobody, Top
from bangs.selection.scores import Confidence
from bangs.selftraining.loop import Adoption, Method, SelfTrainer, State
from bangs.training.trainer import Trainer

COLUMNS = ["node", "label", "raw_confidence", "confidence", "score", "stderr"]
QUICK = Trainer(GCN(hidden=8), epochs=3)


def first_round(task: Task, stderr: torch.Tensor | None = None) -> State:
    """A round in which every run adopts nodes 10, 12 and 14, of which 12 scores best."""
    start = SelfTrainer(QUICK, Method(quota=Nobody())).begin(QUICK.prepare(task), Streams((1, 2, 3)))
    node = torch.arange(24)
    chosen = ((node >= 10) & (node < 16) & (node % 2 == 0)).expand(3, -1)
    score = -(node - 12.0).abs() - 0.1 * (node > 12)
    ranking = Ranking(score.expand(3, -1), stderr, evaluations=7)
    label, confidence = node.expand(3, -1), (node / 100).expand(3, -1)
    return replace(start, index=1, adoption=Adoption(chosen, label, confidence / 2, confidence, ranking))


def test_adopted_nodes_are_listed_best_first_with_their_values(task):
    for adopted in row(first_round(task))["adopted"]:
        assert list(adopted) == COLUMNS
        assert adopted["node"] == adopted["label"] == [12, 10, 14]
        assert [round(100 * value) for value in adopted["confidence"]] == [12, 10, 14]
        assert [round(100 * value) for value in adopted["raw_confidence"]] == [6, 5, 7]
        assert [round(value, 1) for value in adopted["score"]] == [0.0, -2.0, -2.1]
        assert adopted["stderr"] == []


def test_standard_errors_follow_their_nodes(task):
    stderr = torch.arange(24.0).expand(3, -1)
    assert row(first_round(task, stderr))["adopted"][0]["stderr"] == [12.0, 10.0, 14.0]


def test_the_first_model_has_adopted_no_node(task):
    facts = row(SelfTrainer(QUICK, Method()).begin(QUICK.prepare(task), Streams((1, 2, 3))))
    assert facts["adopted"] == [{name: [] for name in COLUMNS}] * 3
    assert facts["evaluations"] == facts["round"] == 0


def test_a_row_counts_labels_by_class_and_is_plain_json(task):
    rows = []
    method = Method(rounds=1, score=Confidence(), quota=Top(5))
    SelfTrainer(QUICK, method, (lambda state: rows.append(row(state)),)).fit(task, (1, 2, 3))
    assert rows[0]["class_counts"] == [[2, 2]] * 3
    assert rows[0]["labelled"] == [4] * 3
    assert rows[1]["labelled"] == [9] * 3
    assert [sum(counts) for counts in rows[1]["class_counts"]] == [9] * 3
    assert rows[1]["took_part"] == [True] * 3
    assert tuple(rows[1]["seconds"]) == STAGES
    assert json.loads(json.dumps(rows)) == rows


def test_seconds_are_summed_by_stage_and_a_round_may_lack_one():
    rows = [{"seconds": {"train": 1.0}}, {"seconds": {"calibrate": 0.25, "select": 0.5, "train": 2.0}}]
    assert seconds_by_stage(rows) == {"calibrate": 0.25, "select": 0.5, "train": 3.0}
