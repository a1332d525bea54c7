"""Commands are listed at once and loaded when they are called."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import bangs as package
from bangs import Experiment, SelfTrainingClassifier
from bangs.cli.commands import NAMES, load
from bangs.utils import git_version
from tests import ROOT
from tests.cli.invoke import bangs

ANSWERS_AT_ONCE = """
import sys
from typer.testing import CliRunner
from bangs.cli import app
from bangs.cli.commands import NAMES

def output_of(*words, **env):
    told = CliRunner().invoke(app, words, env=env, prog_name="bangs").output
    slow = {"torch", "numpy", "pandas", "scipy", "sklearn", "matplotlib"} & sys.modules.keys()
    assert not slow, (words, env, slow)
    return told

def completed(line):
    return output_of(_BANGS_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(line.count(" "))).split()

assert "predict" in output_of("--help")
assert output_of("--version").startswith("bangs 0.")
assert completed("bangs pre") == ["predict"]
assert completed("bangs run --see") == ["--seeds"]
for name in NAMES:
    assert "Example" in output_of(name, "-h") == output_of(name, "--help"), name
    assert "<bool>" not in output_of(name, "-h"), name
    assert "--nonsense" in output_of(name, "--nonsense"), name
"""


def test_help_completion_and_slips_of_the_pen_do_not_wait_for_torch() -> None:
    process = subprocess.run([sys.executable, "-c", ANSWERS_AT_ONCE], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr


def defaults(name: str) -> dict[str, Any]:
    """What the options of a command are where they are left out, by parameter."""
    return {param.name: param.default for param in load(name).params}


def test_what_is_left_out_is_the_librarys_own_default() -> None:
    experiment = Experiment()
    run = {name: value for name, value in defaults("run").items() if hasattr(experiment, name) and name != "seeds"}
    assert run == {name: getattr(experiment, name) for name in run}
    learner = SelfTrainingClassifier().get_params(deep=False)
    fit = {name: value for name, value in defaults("fit").items() if name in learner}
    assert fit == {name: learner[name] for name in fit}
    assert len(run) > 15
    assert len(fit) > 8


@pytest.mark.parametrize("name", NAMES)
def test_a_command_is_listed_with_the_first_words_of_its_own_help(name: str) -> None:
    listed = " ".join(bangs("--help").out.replace("│", " ").split())
    summary = " ".join(re.sub(r"\[/?[a-z]+\]", "", load(name).help).split("\n\n")[0].split())
    assert f" {name} {summary}" in listed
    assert len(summary) > 20


def test_a_command_spelled_wrong_is_named_with_a_near_one() -> None:
    result = bangs("predct")
    assert result.code == 2
    assert result.err == "bangs: no such command 'predct'. Did you mean 'predict'? See bangs -h\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("fit",), "missing argument 'graph'; see bangs fit -h"),
        (("fit", "own"), "missing option '--out'; see bangs fit -h"),
        (("fit", "own", "--out=x", "--rounds", "two"), "--rounds must be a whole number, got 'two'; see bangs fit -h"),
        (("explain", "out", "n", "--top=0"), ", got '0'; see bangs explain -h"),
        (("explain", "out", "-12"), "an id that begins with a dash comes after --; see bangs explain -h"),
        (("report", "\x1b[31m", "b"), "got unexpected extra argument"),
        (("run", "--\x1b[31m"), r"no such option: --\x1b[31m"),
    ],
)
def test_what_is_mistyped_is_told_in_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    result = bangs(*words)
    assert result.code == 2
    assert result.err.startswith("bangs: ")
    assert sentence in result.err
    assert result.err.count("\n") == 1


def test_without_a_command_the_commands_are_listed() -> None:
    result = bangs()
    assert result.code == 2
    assert "reproduce" in result.err + result.out


def test_public_names_come_when_they_are_asked_for() -> None:
    assert set(package.__all__) <= set(dir(package))
    assert all(getattr(package, name) is not None for name in package.__all__)
    with pytest.raises(AttributeError, match="module 'bangs' has no attribute 'nothing'"):
        _ = package.nothing


def test_the_version_stands_in_one_place() -> None:
    """The build reads it from the package, and the citation says the same."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/bangs/__init__.py"
    assert f"\nversion: {package.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert bangs("--version").out.split()[:2] == ["bangs", package.__version__]


def test_in_a_checkout_the_version_tells_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--tags"]
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        pytest.skip("these are not the files of a checkout")
    told = bangs("--version").out.rstrip().removesuffix(")").removesuffix("-dirty")
    assert told.endswith(f" ({process.stdout.strip()}")
    monkeypatch.setattr(git_version, "_HERE", tmp_path / "git_version.py")  # as in a wheel
    assert bangs("--version").out == f"bangs {package.__version__}\n"


@pytest.mark.parametrize("name", NAMES)
def test_advice_on_memory_names_only_options_that_the_command_has(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*words: Any, **more: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("bangs.cli.commands.Commands.invoke", fail)
    result = bangs(name)
    assert result.code == 2
    assert result.err.startswith("bangs: memory ran out; ")
    known = {option for param in load(name).params for option in param.opts}
    assert set(re.findall(r"--[a-z-]+", result.err)) <= known
    assert result.err.endswith("use a machine with more memory\n")
