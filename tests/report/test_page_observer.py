"""A page_observer of an experiment: its page shows the nodes of the first seed."""

from pathlib import Path

import pytest
import torch

from bangs.experiments.experiment import Experiment
from bangs.graphs.datasets.synthetic import citation
from bangs.report.page_data import page_data
from bangs.report.page_observer import PageObserver
from bangs.report.run_data import gather
from bangs.runs import RunFolder
from tests.cli.invoke import bangs


def test_the_page_of_an_experiment_shows_nodes_and_marks_them(tmp_path: Path) -> None:
    data = citation(nodes=240, seed=1)
    experiment = Experiment(
        method="bangs", seeds=(3, 4), rounds=2, k=8, candidates=16, changes={"epochs": 10, "patience": 8}
    )
    page_observer = PageObserver(experiment.self_trainer().method.calibrate, data.y)
    with RunFolder.create_or_resume(tmp_path, experiment.config(), resume=False) as folder:
        result = experiment.run(data=data, observers=[page_observer], device="cpu", run_folder=folder)
    assert page_observer.write(tmp_path) == tmp_path / "report.html"
    facts = page_data(gather(tmp_path))
    assert facts["total"] == 240
    assert len(facts["pseudo"]["node"]) == sum(len(row["adopted"][0]["node"]) for row in result["rounds"])
    assert facts["chosen"] == result["chosen_round"]
    snapshot = gather(tmp_path).snapshot
    assert snapshot is not None
    assert snapshot.chosen == result["chosen_round"][0]
    test = torch.tensor([row["test"][0] for row in result["rounds"]])
    is_test = data.test_mask if "test_mask" in data else None
    if is_test is not None:
        accuracy = (snapshot.round_labels == data.y)[:, is_test].double().mean(1)
        assert torch.allclose(accuracy, test.double())


def test_a_half_seen_run_gets_a_page_without_nodes(tmp_path: Path) -> None:
    data = citation(nodes=240, seed=1)
    experiment = Experiment(
        method="bangs", seeds=(3,), rounds=1, k=8, candidates=16, changes={"epochs": 5, "patience": 5}
    )
    page_observer = PageObserver(experiment.self_trainer().method.calibrate, data.y)
    with RunFolder.create_or_resume(tmp_path, experiment.config(), resume=False) as folder:
        experiment.run(
            data=data, observers=[lambda state, row: state.index > 0 and page_observer(state, row)], run_folder=folder
        )
    page_observer.write(tmp_path)
    assert gather(tmp_path).snapshot is None


def test_the_page_of_soft_labels_counts_them_by_class(tmp_path: Path) -> None:
    data = citation(nodes=240, seed=1)
    experiment = Experiment(method="soft", seeds=(3, 4), rounds=2, changes={"epochs": 10, "patience": 8})
    page_observer = PageObserver(experiment.self_trainer().method.calibrate, data.y)
    with RunFolder.create_or_resume(tmp_path, {"test": 1}, resume=False) as folder:
        result = experiment.run(data=data, observers=[page_observer], device="cpu", run_folder=folder)
    page_observer.write(tmp_path)
    facts = page_data(gather(tmp_path))
    assert facts["soft"]
    assert facts["values"] == []
    assert facts["pseudo"]["node"] == []
    adopted = [sum(row["adopted"]) / len(row["adopted"]) for row in result["rounds"][1:]]
    assert [sum(row["adopted"]) for row in facts["rounds"][1:]] == pytest.approx(adopted)
    assert sum(facts["rounds"][0]["adopted"]) == 0


def test_a_run_folder_of_soft_labels_has_a_page_without_nodes(tmp_path: Path) -> None:
    words = ("run", "--method", "soft", "--seeds", 1, "--rounds", 1, "--epochs", 5, "--out", tmp_path / "run")
    assert bangs(*words, "--quiet").code == 0
    assert bangs("report", tmp_path / "run").code == 0
    assert "soft on synthetic" in (tmp_path / "run" / "report.html").read_text()
