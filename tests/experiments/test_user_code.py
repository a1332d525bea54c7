"""A method of one's own in the commands: the file that names it is run first, and only because it is asked for."""

import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args
from unittest import mock

import pytest

from bangs import METHODS, Experiment
from bangs.calibration.calibrators import CALIBRATORS
from bangs.cli import options
from bangs.errors import InvalidInput
from bangs.experiments import user_code
from bangs.experiments.jobs import Job, perform
from bangs.experiments.reproduce import reproduce
from bangs.experiments.user_code import run_code
from bangs.nn.models import MODELS
from bangs.runs import read_run
from bangs.training.presets import trainer
from bangs.valuation.banzhaf import ESTIMATORS
from tests.cli.invoke import bangs
from tests.helpers.small_graphs import graph_file

CODE = """
from __future__ import annotations
from dataclasses import dataclass, replace

from bangs import METHODS, Budget, Method, Ranking, Round, method

@dataclass(frozen=True)
class Unsure:
    power: float = 2.0

    def __call__(self, round: Round) -> Ranking:
        return Ranking((-round.prediction.confidence).masked_fill(~round.pool, float("-inf")))

def unsure(budget: Budget) -> Method:
    return replace(method("confidence", budget), score=Unsure())

METHODS["unsure"] = unsure

if __name__ == "__main__":
    raise SystemExit("this is no script here")
"""
SUITE = """
[experiment]
rounds = 1
k = 5
seeds = 1
changes = { epochs = 5 }
[axes]
dataset = ["GRAPH"]
method = ["raw", "unsure"]
"""


@pytest.fixture(autouse=True)
def restore_registries() -> Iterator[None]:
    """What a file adds is not for other tests."""
    with mock.patch.dict(METHODS), mock.patch.dict(CALIBRATORS), mock.patch.dict(MODELS), mock.patch.dict(ESTIMATORS):
        run_code.cache_clear()
        yield
    run_code.cache_clear()


@pytest.fixture
def code(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(CODE)
    return path


@pytest.fixture
def graph(tmp_path: Path) -> str:
    return str(graph_file(tmp_path / "tiny.npz"))


def test_a_file_of_code_gives_a_method_to_bangs_run(code: Path, graph: str) -> None:
    words = ("run", "--dataset", graph, "--method=unsure", "--seeds=1", "--rounds=1", "--k=5")
    refused = bangs(*words)
    assert refused.code == 2
    assert "method 'unsure' is unknown" in refused.err
    result = bangs(*words, "--epochs=5", "--device=cpu", "--code", code)
    assert result.code == 0, result.err


def test_a_suite_is_run_with_code_and_its_table_made_without(code: Path, graph: str, tmp_path: Path) -> None:
    suite = tmp_path / "own.toml"
    suite.write_text(SUITE.replace("GRAPH", graph))
    with mock.patch.dict(METHODS):
        result = bangs("reproduce", suite, "--out", tmp_path / "out", "--device=cpu", "--code", code)
        assert result.code == 0, result.err
    assert "unsure" not in METHODS
    table = bangs("table", tmp_path / "out", "--format=csv")
    assert table.code == 0, table.err
    assert table.out.count(",unsure,") == 2
    assert bangs("table", tmp_path / "out", "--suite=own", "--format=csv").out == table.out
    refused = bangs("table", tmp_path / "out", "--suite=won")
    assert refused.code == 2
    assert "suite 'won' is unknown; did you mean 'own'?" in refused.err


def test_a_table_shows_the_method_as_it_was_when_last_asked_for(code: Path, graph: str, tmp_path: Path) -> None:
    """Whatever their hashes, and with fewer seeds too; the other runs stay, so going back costs nothing."""
    suite = tmp_path / "own.toml"
    suite.write_text(SUITE.replace("GRAPH", graph))
    shown = {}
    for power, seeds in ((2.0, 2), (3.0, 1), (4.0, 1), (2.0, 2)):
        code.write_text(CODE.replace("2.0", str(power)))
        run_code.cache_clear()
        words = ("--methods=unsure", f"--seeds={seeds}", "--device=cpu", "--code", code, "--json")
        result = bangs("reproduce", suite, "--out", tmp_path / "out", *words)
        assert json.loads(result.out)["already_done"] == (power in shown)
        run = bangs("table", tmp_path / "out", "--format=csv").out.split("\n")[1].split(",")[-1]
        assert f"Unsure(power={power})" in read_run(tmp_path / "out" / "runs" / run).config["parts"]["method"]
        assert shown.setdefault(power, run) == run
    assert len(set(shown.values())) == 3


def test_a_script_may_name_one_suite_without_a_list(code: Path, graph: str, tmp_path: Path) -> None:
    run_code(code)
    suite = tmp_path / "own.toml"
    suite.write_text(SUITE.replace("GRAPH", graph))
    messages: list[str] = []
    assert reproduce(str(suite), tmp_path / "out", device="cpu", say=messages.append) == []
    assert len(messages) == 2


def test_a_job_brings_its_code_to_another_process(code: Path, graph: str, tmp_path: Path) -> None:
    with mock.patch.dict(METHODS):
        run_code(code)
        experiment = Experiment(graph, "unsure", seeds=(0,), rounds=1, k=5, changes={"epochs": 5})
        sent = pickle.dumps(Job(experiment, tmp_path / "runs", device="cpu", code=code))
    run_code.cache_clear()
    outcome = perform(pickle.loads(sent))
    assert outcome.kind == "done", outcome.error


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "mine.py' does not exist; name the file"),
        ("x = 1\ny = undefined", "failed in line 2: NameError: name 'undefined' is not defined"),
        ("x = (", "SyntaxError: '\\(' was never closed"),
    ],
)
def test_code_that_fails_gives_a_clear_error_with_the_line(tmp_path: Path, text: str | None, sentence: str) -> None:
    path = tmp_path / "mine.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidInput, match=sentence):
        run_code(path)


def test_the_commands_help_names_all_that_a_file_of_code_may_add_to() -> None:
    (option,) = get_args(options.Code)[1:]
    assert all(name in option.help for name in user_code._REGISTRIES)


OWN_PARTS = """
from dataclasses import dataclass

import torch
from torch_geometric.nn import GraphSAGE

from bangs import METHODS, Budget, Prediction, method
from bangs.calibration.calibrators import CALIBRATORS
from bangs.nn.ensemble import Separate
from bangs.nn.models import MODELS
from bangs.valuation.banzhaf import ESTIMATORS, Values

@dataclass(frozen=True)
class Softer:
    def __call__(self, prediction, task):
        return Prediction(prediction.logits / 2)

@dataclass(frozen=True)
class Sage:
    hidden: int = 8
    def build(self, features, classes, rng):
        return Separate(lambda: GraphSAGE(features, self.hidden, 2, classes), rng)

@dataclass(frozen=True)
class Alike:
    samples: int
    def __call__(self, game, k, generators):
        return Values(torch.ones(game.runs, game.players), None, 0)

METHODS["mine"] = lambda budget: method("confidence-calibrated", budget)
CALIBRATORS["softer"] = Softer
ESTIMATORS["alike"] = lambda samples: Alike(samples or 7)
MODELS["sage"] = Sage
"""


def test_an_estimator_of_the_user_runs_by_name_too(tmp_path: Path, graph: str) -> None:
    path = tmp_path / "parts.py"
    path.write_text(OWN_PARTS)
    words = ("run", "--dataset", graph, "--seeds=2", "--rounds=1", "--k=5", "--epochs=5", "--device=cpu", "--json")
    result = bangs(*words, "--estimator=alike", "--candidates=8", "--code", path)
    assert result.code == 0, result.err
    assert "Alike(samples=7)" in Experiment(graph, "bangs", estimator="alike").config()["parts"]["method"]


def test_a_calibrator_and_a_model_of_the_user_run_by_name_too(tmp_path: Path, graph: str) -> None:
    path = tmp_path / "parts.py"
    path.write_text(OWN_PARTS)
    words = ("run", "--dataset", graph, "--seeds=2", "--rounds=1", "--k=5", "--epochs=5", "--device=cpu", "--json")
    result = bangs(*words, "--method=mine", "--calibrator=softer", "--model=sage", "--preset=paper", "--code", path)
    assert result.code == 0, result.err
    config = Experiment(graph, "mine", "sage", calibrator="softer").config()["parts"]
    assert "Sage(hidden=8)" in config["trainer"]
    assert "Softer()" in config["method"]
    assert trainer("sage") == replace(trainer("gcn"), model=MODELS["sage"]())


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            'METHODS["x"] = method("raw")',
            r"METHODS\['x'\] must be a function from a Budget to a Method; it failed: Type",
        ),
        ('METHODS["x"] = Softer', r"METHODS\['x'\] must be .* a Method; it failed: TypeError: Softer"),
        ('METHODS["x"] = lambda budget: budget.nothing', "failed in line 35: AttributeError"),
        ('METHODS["x"] = lambda budget: 1', r"METHODS\['x'\] must be a function .*; it gave int"),
        (
            'CALIBRATORS["x"] = Softer()',
            r"CALIBRATORS\['x'\] must be a class of calibrators that needs no arguments; it",
        ),
        (
            'ESTIMATORS["x"] = lambda samples: 1',
            r"ESTIMATORS\['x'\] must be a function from a number of samples.*; it gave int",
        ),
        ('ESTIMATORS["x"] = Softer()', r"ESTIMATORS\['x'\] must be .* to an estimator; it failed: TypeError"),
        ('MODELS["gcn"] = Softer', r"MODELS\['gcn'\] must be a class of architectures .*; it gave Softer"),
    ],
)
def test_a_name_that_stands_for_something_else_gives_a_clear_error(tmp_path: Path, wrong: str, sentence: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"{OWN_PARTS}\n{wrong}\n")
    with pytest.raises(InvalidInput, match=sentence):
        run_code(path)


def test_code_is_python(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text("")
    with pytest.raises(InvalidInput, match=r"suite.toml' is no Python file \(.py\)"):
        run_code(tmp_path / "suite.toml")
