"""A student that diverges costs its round: the teacher stays, an event says so, and the run goes on."""

from pathlib import Path
from typing import Any

import pytest

from bangs.runs import read_run
from bangs.training.trainer import Learner
from tests.integration.kill_experiments import attempt, experiment, history


@pytest.mark.parametrize("teacher", ["first", "latest", "best"])
def test_a_diverging_student_costs_its_round_and_an_event_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, teacher: Any
) -> None:
    real, fits = Learner.fit, []

    def fit(self: Learner, labels: Any, rng: Any, **options: Any) -> Any:
        """In round 2, nan in the loss of the second run."""
        fits.append(labels)
        weight = labels.weight.clone()
        if len(fits) == 3:
            weight[1] *= float("nan")
        return real(self, labels.weighted(weight), rng, **options)

    monkeypatch.setattr(Learner, "fit", fit)
    attempt(tmp_path, experiment("bangs", teacher=teacher, rounds=3))
    (event,) = [event for event in read_run(tmp_path).events if event["kind"] == "rejected round"]
    assert (event["index"], event["runs"]) == (2, [1])
    assert "the teacher stays" in event["reason"]
    rows = history(tmp_path)
    assert [row["labelled"][1] - rows[0]["labelled"][1] for row in rows] == [0, 8, 8, 16]
    assert [row["labelled"][0] - rows[0]["labelled"][0] for row in rows] == [0, 8, 16, 24]
    assert rows[2]["validation"][1] == rows[1]["validation"][1]
    assert [len(row["adopted"][1]["node"]) for row in rows] == [0, 8, 0, 8]
