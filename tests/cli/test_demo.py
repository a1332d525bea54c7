"""`bangs demo` and `bangs list`: what a newcomer sees first."""

import inspect
import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from bangs.calibration.calibrators import CALIBRATORS
from bangs.cli import app, demo
from bangs.cli.known_names import KINDS
from bangs.errors import BangsError
from bangs.experiments.experiment import Experiment
from bangs.experiments.suites.find_suite import suite_files
from bangs.experiments.suites.read_suite import read_suite
from bangs.graphs.datasets import loading
from bangs.graphs.datasets.synthetic import citation
from bangs.nn.models import MODELS
from bangs.runs import RunFolder, read_run
from bangs.runs.lock import InUse
from bangs.selftraining.methods import METHODS, method
from bangs.suggestion.strategies import STRATEGIES
from bangs.valuation.banzhaf import ESTIMATORS


@pytest.fixture
def short(monkeypatch, tmp_path):
    """A demo of a small graph, two seeds, one round and few epochs."""
    quick = {"seeds": (0, 1), "rounds": 1, "changes": {"lr": 0.02, "epochs": 25}}
    monkeypatch.setattr(demo, "SETTINGS", demo.SETTINGS | quick)
    monkeypatch.setattr(loading, "load", lambda name: citation(nodes=400))
    monkeypatch.chdir(tmp_path)
    return lambda *more: CliRunner().invoke(app, ["demo", "--device", "cpu", *more])


def test_the_demo_runs_the_method_that_its_words_describe(short, tmp_path):
    result = short()
    ran = read_run(tmp_path / "runs/demo").config
    assert ran["method"] == Experiment().method  # the default of `bangs run`
    assert f"({ran['method']})" in result.output
    assert f"GCN, {ran['method']}" in result.output
    recipe = method(ran["method"])
    assert recipe.believe is not None  # "its probabilities become the labels of all other papers"


def test_the_demo_compares_with_raw_and_names_its_page(short, tmp_path):
    result = short()
    assert result.exit_code == 0, result.output
    assert "Raw GCN" in result.output
    assert "difference" in result.output
    assert "report.html" in result.output
    assert {"report.html", "result.json", "history.jsonl"} <= {path.name for path in (tmp_path / "runs/demo").iterdir()}
    assert not (tmp_path / "out").exists()  # `bangs fit … --out out` comes next in the README, and needs it empty


def test_a_second_demo_takes_the_place_of_the_first(short, tmp_path):
    assert short().exit_code == 0
    (tmp_path / "runs/demo/notes.txt").write_text("mine")
    first = (tmp_path / "runs/demo/result.json").stat().st_mtime_ns
    assert short().exit_code == 0
    assert (tmp_path / "runs/demo/result.json").stat().st_mtime_ns != first
    assert (tmp_path / "runs/demo/notes.txt").read_text() == "mine"


@pytest.mark.parametrize("content", ["another run", "a run in use", "other files"])
def test_the_demo_writes_into_no_folder_of_another(short, tmp_path, content):
    out = tmp_path / "mine"
    with RunFolder.create_or_resume(out, {"method": "mine"}, resume=False) as folder:
        folder.finish({"mine": 1})
        before = (out / "result.json").read_bytes()
        if content == "other files":
            folder.close()
            for name in ("config.json", "lock"):
                (out / name).unlink()
            (out / "notes.txt").write_text("mine")
        if content == "another run":
            folder.close()
        result = short("--out", str(out))
    assert result.exit_code != 0
    assert isinstance(result.exception, BangsError)
    assert (out / "result.json").read_bytes() == before
    assert not (out / "report.html").exists()


def test_two_demos_in_one_folder_do_not_write_at_the_same_time(short, tmp_path):
    assert short().exit_code == 0
    out = tmp_path / "runs/demo"
    with RunFolder.create_or_resume(out, read_run(out).config, resume=True):
        result = short()
    assert isinstance(result.exception, InUse)
    assert read_run(out).result is not None


def test_as_json_the_demo_is_one_object_and_nothing_else(short):
    fact = json.loads(short("--json").output)
    gains = [a - b for a, b in zip(fact["validation"]["per_seed"], fact["raw"]["per_seed"], strict=True)]
    assert fact["comparison"]["difference"] == pytest.approx(sum(gains) / 2)
    assert len(fact["rounds"]) == 2


def test_the_comparison_is_a_paired_test_known_on_paper():
    result = {"validation": {"per_seed": [82.0, 83.0, 84.0]}, "raw": {"per_seed": [81.0, 81.0, 81.0]}}
    comparison = demo.compare(result)
    # gains 1, 2, 3: mean 2, standard error 1/√3, t = 2√3 with two degrees of freedom
    assert comparison["difference"] == 2
    assert comparison["wins"] == 3
    assert comparison["p"] == pytest.approx(0.0371, abs=1e-3)


def test_where_all_seeds_gain_the_same_there_is_no_p():
    same = {"validation": {"per_seed": [81.0, 82.0]}, "raw": {"per_seed": [80.0, 81.0]}}
    assert demo.compare(same)["p"] is None


TABLES = {
    "datasets": {name: dataset.description for name, dataset in loading.DATASETS.items()},
    "methods": {name: inspect.getdoc(part) for name, part in METHODS.items()},
    "models": {name: inspect.getdoc(part) for name, part in MODELS.items()},
    "calibrators": {name: inspect.getdoc(part) for name, part in CALIBRATORS.items()},
    "estimators": {name: inspect.getdoc(make(None)) for name, make in ESTIMATORS.items()},
    "strategies": {name: inspect.getdoc(part) for name, part in STRATEGIES.items()},
    "suites": {name: read_suite(path).title for name, path in suite_files().items()},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_is_listed_with_the_first_sentence_of_its_description(kind):
    facts = json.loads(CliRunner().invoke(app, ["list", kind, "--json"]).output)[kind]
    assert facts == {name: words.split("\n")[0] for name, words in TABLES[kind].items()}
    assert list(facts) == list(TABLES[kind])
    assert all(len(words) > 5 for words in facts.values())


def test_a_list_imports_no_torch():
    script = "import sys; sys.argv[1:] = ['list']; from bangs.cli import main\ntry: main()\nexcept SystemExit: pass\n"
    check = "print([name for name in ('torch', 'numpy', 'scipy', 'pandas') if name in sys.modules])"
    process = subprocess.run([sys.executable, "-c", script + check], capture_output=True, text=True, check=True)
    assert process.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("kind", ["datasets", "calibrators", "estimators", "methods", "models"])
def test_lists_are_plain_lines_in_a_pipe(kind):
    result = CliRunner().invoke(app, ["list", kind])
    assert result.exit_code == 0
    assert len(result.output.splitlines()) > 3


def test_without_a_kind_all_of_them_are_listed():
    result = CliRunner().invoke(app, ["list"]).output.splitlines()
    assert [line for line in result if line.endswith("s:") and " " not in line] == [f"{kind}:" for kind in KINDS]
    assert set(json.loads(CliRunner().invoke(app, ["list", "--json"]).output)) == set(KINDS)


def test_an_unknown_list_gets_a_suggestion():
    result = CliRunner().invoke(app, ["list", "method"])
    assert "did you mean 'methods'" in str(result.exception)


def test_the_list_of_datasets_names_the_folder_that_holds_others():
    """Errors name the .npz files of BANGS_DATA among the known datasets, so the list must say that they count."""
    assert "every NAME.npz in the folder that BANGS_DATA names" in CliRunner().invoke(app, ["list", "datasets"]).output
