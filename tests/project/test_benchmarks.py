"""What benchmarks compare with computes the same as we do, and their figures are what they say."""

import json
import sys
import tomllib
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import torch

from bangs.core.rng import Streams
from bangs.core.types import Task
from bangs.graphs import splits
from bangs.graphs.datasets.synthetic import citation
from bangs.graphs.pagerank import PPR
from bangs.training.presets import trainer
from bangs.valuation import coalitions
from bangs.valuation.banzhaf import MSR
from bangs.valuation.information import Information
from tests import ROOT

sys.path.append(str(ROOT / "benchmarks"))
peers = import_module("peers")
growth, measuring = import_module("growth"), import_module("measuring")
plain_selection, plain_training = import_module("plain_selection"), import_module("plain_training")
calibration, reading, reasons = import_module("calibration"), import_module("reading"), import_module("reasons")
training, rounds = import_module("training"), import_module("rounds")
estimators, end_to_end = import_module("estimators"), import_module("end_to_end")
forecast, labelling = import_module("forecast"), import_module("labelling")
few_labels, few_labels_rules = import_module("few_labels"), import_module("few_labels_rules")
soft_grid, uneven_labels = import_module("soft_grid"), import_module("uneven_labels")
limits, mean_field, page = import_module("limits"), import_module("mean_field"), import_module("page")
adam = import_module("adam")
together, warm_start = import_module("together"), import_module("warm_start")
# by its path, since `selection` is a folder of tests
spec = spec_from_file_location("benchmark_of_selection", Path(training.__file__).with_name("selection.py"))
selection = module_from_spec(spec)
spec.loader.exec_module(selection)


@pytest.fixture(scope="module")
def data():
    return citation(300, 3, 60)


def test_the_plain_utility_and_values_are_ours(data):
    logits = torch.randn(300, 3, generator=torch.Generator().manual_seed(0))
    known, players = torch.arange(300) < 30, torch.arange(30, 50)
    game = Information.of(PPR()(data), logits[None], known[None], players[None])
    plain = plain_selection.PlainSelection(samples=40)
    members = coalitions.draw(20, 10, 40, [torch.Generator().manual_seed(3)])
    step = plain.transition(data)
    worth = torch.stack([plain.utility(step, logits, known, players[who]) for who in members[0]])
    torch.testing.assert_close(game(members)[0], worth.double(), rtol=1e-4, atol=1e-6)
    values = MSR(40)(game, 10, [torch.Generator().manual_seed(3)]).mean[0]
    torch.testing.assert_close(values, plain(data, logits, known, players, 10, seed=3).double(), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("preset", ["paper", "tuned"])
def test_the_plain_network_has_the_logits_of_ours(data, preset):
    task = Task.of(data, splits.default(data, [0]), 3)
    settings = trainer("gcn", preset, epochs=5)
    teacher = settings.fit(task, task.given, Streams((0,)))
    weights = {name: value[0] for name, value in teacher.weights.items()}
    plain = plain_training.PlainGCN(60, 3, settings.model).eval()
    for layer, number in ((plain.first, 0), (plain.second, 1)):
        layer.lin.weight.data = weights[f"weight.{number}"].T
        layer.bias.data = weights[f"bias.{number}"][0]
    expected = plain(data.x.to_dense(), data.edge_index)
    torch.testing.assert_close(teacher.predict(task.graph).logits[0], expected.detach(), rtol=1e-4, atol=1e-5)


def test_acts_take_turns_after_one_call_to_warm_up():
    calls = []
    acts = {"one": lambda: calls.append(1), "other": lambda: calls.append(2)}
    times = measuring.in_turns(acts, 3, {"other": 10.0})
    assert calls == [1, 2, 1, 2, 1, 2, 1, 2]
    assert len(times["one"].clock) == len(times["other"].processor) == 3
    times["one"].clock, times["other"].clock = [1.0, 2.0, 9.0], [8.0, 1.0, 6.0]
    assert times["one"].against(times["other"])["ratio"] == 3.0


def test_peak_memory_is_that_of_the_act():
    measured = "cuda" if torch.cuda.is_available() else "cpu"
    assert measuring.peak_of(lambda: torch.ones(2**24, device=measured)) >= 0.9 * 2**26
    assert measuring.peak_of(lambda: None) < 2**24


def test_exponents_of_known_powers_are_found():
    rows = [
        {
            **vars(case),
            "edges": case.nodes * case.degree,
            "reached": case.nodes / 2,
            "cpu_seconds": 1e-6 * case.nodes * case.degree * case.K**0.5,
            "peak_bytes": 100 * case.nodes,
        }
        for case in growth.cases(10**6)
    ]
    found = {(row["act"], row["in"]): row for row in growth.exponents(rows)}
    assert found["epoch", "edges"]["time"] == pytest.approx(1.0)
    assert found["epoch", "nodes"]["memory"] == pytest.approx(1.0)
    assert found["selection", "K"]["time"] == pytest.approx(0.5)
    assert found["selection", "k"]["time"] == pytest.approx(0.0, abs=1e-9)


def test_every_axis_varies_its_own_size_alone():
    for act, axes in growth.AXES.items():
        for grows, sizes in axes.items():
            own = [case for case in growth.cases(10**6) if (case.act, case.grows) == (act, grows)]
            varied = {name for name in vars(own[0]) if len({getattr(case, name) for case in own}) > 1}
            assert varied == {"degree" if grows == "edges" else grows}
            assert len(own) == len(sizes)


@pytest.mark.parametrize(
    ("script", "words", "rows"),
    [
        (calibration, "--datasets tiny --seeds 2 --calibrators none ets --validation 10 20", 4),
        (reading, "--nodes 2000 --edges 4000 --columns 10", 1),
        (reasons, "--nodes 500 --edges 2000 --adopted 50", 3),
    ],
    ids=["calibration", "reading", "reasons"],
)
def test_as_json_a_benchmark_is_one_object_with_rows(data, script, words, rows, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmark", *words.split(), "--json"])
    if script is calibration:
        monkeypatch.setattr(calibration, "graph", lambda name: (name, data))
    script.main()
    printed = json.loads(capsys.readouterr().out)
    assert {"device", "torch", "python"} <= printed.keys()
    assert len(printed["rows"]) == rows
    for row in printed["rows"]:
        assert row["seconds"] > 0
        assert row["cpu_seconds"] >= 0
        assert row["peak_bytes"] >= 0
    assert len(measuring.table(printed["rows"]).splitlines()) == rows + 2


@pytest.fixture
def small(data, monkeypatch):
    """A graph, settings and budgets with which benchmarks take seconds."""
    for benchmark in (training, end_to_end, rounds, adam, limits, mean_field, together, warm_start):
        monkeypatch.setattr(benchmark, "graph", lambda name: (name, data))
    cases = {"cora": lambda repeats: selection.case("cora", rounds.trained("synthetic"), 20, 10, 1, 2, repeats)}
    for benchmark, name, value in (
        (selection, "CASES", cases),
        (selection, "COALITIONS", 20),
        (selection, "TURN", 0.0),
        (estimators, "SETTINGS", ((20, 10),)),
        (estimators, "BUDGETS", {"msr": (20,), "meanfield": (None,), "marginals": (4,)}),
    ):
        monkeypatch.setattr(benchmark, name, value)


@pytest.mark.parametrize(
    ("script", "words", "rows"),
    [
        (training, "--datasets synthetic --presets paper --labels given soft --epochs 2 --runs 2 --repeats 1", 6),
        (selection, "--repeats 1", 4),
        (estimators, "--datasets synthetic --seeds 1 --reference 2", 3),
        (end_to_end, "--dataset synthetic --preset tuned --rounds 1 --every 100 --repeats 1", 2),
    ],
    ids=["training", "selection", "estimators", "end_to_end"],
)
def test_a_row_of_a_comparison_has_seconds_the_ratio_to_the_plain_one_and_memory(
    small, script, words, rows, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", ["benchmark", *words.split(), "--json"])
    script.main()
    printed = json.loads(capsys.readouterr().out)["rows"]
    assert len(printed) == rows
    for row in printed:
        assert row["seconds"] > 0
        assert row["ratio"] > 0
        assert row["peak_bytes"] >= 0
        assert ("spearman" in row) == (script in (selection, estimators))


@pytest.mark.parametrize(
    ("script", "words", "rows"),
    [
        (adam, "--datasets synthetic --presets tuned --repeats 1", 2),
        (limits, "--dataset synthetic --preset tuned --repeats 1", 1),
        (mean_field, "--datasets synthetic --samples 2", 1),
        (together, "--datasets synthetic --runs 2 --repeats 1", 4),
        (warm_start, "--datasets synthetic --seeds 2 --rounds 1", 3),
    ],
    ids=["adam", "limits", "mean_field", "together", "warm_start"],
)
def test_the_commands_of_the_page_of_benchmarks_run(small, script, words, rows, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmark", *words.split(), "--json"])
    script.main()
    assert len(json.loads(capsys.readouterr().out)["rows"]) == rows


@pytest.mark.parametrize("act", ["epoch", "selection"])
def test_growth_is_beside_the_plain_one_where_graphs_are_small(act, monkeypatch):
    case = growth.Case(act, "runs", nodes=300, runs=2, K=20, k=10)
    near = growth.measure(case, 1)
    monkeypatch.setattr(growth, "PLAIN_UP_TO", 0)
    far = growth.measure(case, 1)
    assert near.keys() == far.keys() >= {"seconds", "ratio", "peak_bytes"}
    assert near["ratio"] > 0
    assert far["ratio"] is None


def test_a_mean_with_its_deviation_is_one_cell():
    assert "| 0.5123 ± 0.0123 |" in measuring.table([{"nll": {"mean": 0.51234, "std": 0.0123}}])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def made_from_rows() -> dict[str, str]:
    """What the commands write, by the names of the pages."""
    return {
        "benchmarks": page.written(),
        "few-labels": few_labels.written(few_labels.summary(lines(few_labels.ROWS))),
        "few-labels-rules": few_labels_rules.written(lines(few_labels_rules.ROWS)),
        "forecast": forecast.written(lines(forecast.ROWS)),
        "labelling": labelling.written(labelling.read(forecast.ROWS.parent, "test"), 5),
        "peers": peers.written(json.loads(peers.ROWS.read_text())),
        "soft-labels": soft_grid.written(soft_grid.cells()),
        "uneven-labels": uneven_labels.written(lines(uneven_labels.ROWS)),
    }


def test_every_page_of_results_is_what_its_command_writes() -> None:
    pages = {path.stem: path.read_text() for path in (ROOT / "docs" / "results").glob("*.md")}
    assert pages.pop("theory").splitlines()[2].startswith("Made by `")  # tests/theory/test_page.py compares its tables
    made = made_from_rows()
    assert pages.keys() == made.keys()
    assert [name for name in pages if pages[name] != made[name]] == []


def test_every_file_of_measured_rows_is_on_the_page_of_benchmarks() -> None:
    files = [part["file"] for part in tomllib.loads(page.WORDS.read_text())["part"] if "file" in part]
    assert sorted(files) == sorted(path.stem for path in page.ROWS.iterdir())


def test_a_peer_that_did_not_run_has_its_line_in_the_table() -> None:
    row = {"task": "values", "system": "pyDVL MSR", "note": "pydvl is not installed"}
    table = peers.page_table({"rows": [row], "data": "cora", "torch": "2", "device": "CPU"})
    assert "| values | pyDVL MSR | – | – | – | pydvl is not installed |" in table


@pytest.mark.parametrize("system", ["PyG label propagation", "PyG Correct & Smooth", "bangs MSR"])
def test_a_peer_runs_alone(system: str) -> None:
    found = peers.alone(system, "synthetic", 5, 0)
    assert (50 if system.startswith("PyG") else -1) < found["accuracy"] <= 100
    assert found["seconds"] > 0


def test_a_peer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydvl.valuation", None)
    assert "pip install 'bangs[peers]'" in peers.alone("pyDVL MSR", "synthetic", 5, 0)["missing"]


def test_a_forecast_equals_the_propagation_and_the_worth_of_the_game(data):
    task = Task.of(data, splits.default(data, [0]), 3)
    logits = torch.randn(300, 3, generator=torch.Generator().manual_seed(0))
    known, players = task.given.known[0], (~task.given.known[0]).nonzero()[:12, 0]
    members = torch.rand(7, 12, generator=torch.Generator().manual_seed(1)) < 0.5
    taught = known.repeat(7, 1)
    taught[:, players] = members
    spread, mass = forecast.propagated(PPR()(data), logits, taught)
    for normalise, logits_of_all in (("none", spread), ("mass", spread / mass.clamp_min(1e-9))):
        game = Information.of(PPR()(data), logits[None], known[None], players[None], normalise=normalise)
        worth = forecast.information(logits_of_all.log_softmax(-1), ~known)
        torch.testing.assert_close(game(members[None])[0], worth, rtol=1e-4, atol=1e-6)


def test_the_fitted_forecast_finds_the_restarts_and_the_scale_of_a_planted_teacher(data):
    task = Task.of(data, splits.default(data, [0]), 3)
    known = task.given.known[0]
    logits = 5 * torch.randn(300, 3, generator=torch.Generator().manual_seed(0))
    propagated = 4 * forecast.propagated(forecast.pagerank(task, 0.4), logits, known[None])[0][0]
    teacher = torch.where(known[:, None], logits, propagated)  # elsewhere its logits are propagated from its labels
    assert forecast.fitted(task, teacher, known) == (0.4, 4.0)


def test_ridge_regression_repeats_the_labels_it_learned_and_is_as_sharp_as_the_teacher():
    draw = torch.Generator().manual_seed(0)
    x, logits = 100 * torch.eye(6, dtype=torch.float64), torch.randn(6, 3, generator=draw)
    taught, label = torch.rand(4, 6, generator=draw) < 0.7, torch.tensor([0, 1, 2, 0, 1, 2])
    predicted = forecast.ridge(x, taught, label, logits)
    assert (predicted.argmax(-1) == label)[taught].all()
    torch.testing.assert_close(predicted[0].std(), logits.std())


def test_the_best_possible_correlation_is_that_of_a_planted_worth():
    draw = torch.Generator().manual_seed(0)
    worth, noise = torch.randn(200_000, generator=draw), 2.0 * torch.randn(4, 200_000, generator=draw)
    students = worth + noise
    mean, one = students[:3].mean(0), students[3]
    among = float(torch.corrcoef(torch.stack([mean, one]))[0, 1])
    true = float(torch.corrcoef(torch.stack([mean, worth]))[0, 1])
    assert forecast.ceiling(among, 3) == pytest.approx(true, abs=0.01)
    assert forecast.ceiling(1.0, 3) == pytest.approx(1.0)
    assert forecast.ceiling(-0.2, 3) == 0.0


def test_the_forecast_study_has_one_row_for_every_seed_and_forecast():
    rows = lines(forecast.ROWS)
    assert len({(row["layers"], row["dataset"], row["seed"], row["forecast"]) for row in rows}) == len(rows)


def test_a_table_of_some_methods_leaves_the_cells_of_the_others_empty():
    cell = {"graph": "cora", "scheme": "20:3", "draw": 0, "accuracy": 71.25, "recall": 70.0, "error": 0.05}
    lines = uneven_labels.table([{**cell, "method": "none"}, {**cell, "method": "none", "draw": 1}]).splitlines()
    assert lines[-1] == "| 20:3 | mean | – | 71.2 / 70.0 / 0.050 | – | – |"
