"""The guides: every command and every block of Python in them works as printed."""

import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.cli.speaking import bangs

ROOT = Path(__file__).parents[1]
GUIDES = ("quickstart", "own-graph", "extending")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `examples/` is at hand; what one guide makes the next may use."""
    made = tmp_path_factory.mktemp("guides")
    (made / "examples").symlink_to(ROOT / "examples")
    return made


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_works_as_printed(name: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    space: dict[str, Any] = {"__name__": "guide"}
    blocks = re.findall(r"^```(python|sh)\n(.*?)^```", (ROOT / "docs" / f"{name}.md").read_text(), re.M | re.S)
    assert blocks
    for kind, text in blocks:
        if kind == "python":
            exec(compile(text, f"{name}.md", "exec"), space)
            continue
        for line in text.strip().splitlines():
            words = shlex.split(line)
            assert words[0] == "bangs"
            said = bangs(*words[1:])
            assert said.code == 0, f"{line}\n{said.err}"


@pytest.mark.parametrize("name", GUIDES)
def test_links_between_files_lead_somewhere(name: str) -> None:
    text = (ROOT / "docs" / f"{name}.md").read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / "docs" / target).exists(), target


def test_a_score_of_ones_own_runs() -> None:
    found = runpy.run_path(str(ROOT / "examples" / "own_score.py"))["main"](nodes=200, rounds=1, epochs=20)
    assert set(found) == {"own", "banzhaf", "confidence"}
    assert min(found.values()) > 0.3


def test_a_calibrator_of_ones_own_runs() -> None:
    found = runpy.run_path(str(ROOT / "examples" / "own_calibrator.py"))["main"](nodes=200, epochs=20)
    assert set(found) == {"none", "own", "ets"}


def test_every_command_has_help_with_an_example() -> None:
    listed = bangs("--help").out
    for name in ("fit", "predict", "explain", "report", "demo", "run", "list"):
        assert name in listed
        said = bangs(name, "--help")
        assert said.code == 0
        assert f"bangs {name}" in said.out
        assert "Example" in said.out
