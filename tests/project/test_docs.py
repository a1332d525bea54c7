"""The guides: every command and every block of Python in them works as printed."""

import json
import re
import runpy
import shlex
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import bangs as package
from bangs import METHODS, Budget, SelfTrainer, Task, Trainer
from bangs.cli.commands import NAMES, load
from bangs.experiments.suites.find_suite import suite_path
from bangs.experiments.suites.read_suite import read_suite
from bangs.experiments.user_code import run_code
from bangs.graphs import splits
from bangs.graphs.datasets.synthetic import citation
from tests import ROOT
from tests.cli.invoke import bangs
from tests.helpers.notebooks import NOTEBOOKS, run

GUIDES = (
    "quickstart",
    "own-graph",
    "scikit-learn",
    "research",
    "extending",
    "calibration",
    "scale",
    "soft-labels",
    "labelling",
)
FOR_CONTRIBUTORS = {"ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"}
FOLDERS = (ROOT, ROOT / "docs", ROOT / "docs" / "results")
PAGES = sorted(path.relative_to(ROOT) for folder in FOLDERS for path in folder.glob("*.md"))


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
        with mock.patch.dict(METHODS):  # what a guide adds is not for other tests
            if kind == "python":
                exec(compile(text, f"{name}.md", "exec"), space)
                continue
            for line in text.strip().splitlines():
                words = shlex.split(line)
                assert words[0] == "bangs"
                said = bangs(*words[1:])
                assert said.code == 0, f"{line}\n{said.err}"
    run_code.cache_clear()


def test_the_suite_in_its_guide_is_one(tmp_path: Path) -> None:
    text = re.findall(r"^```toml\n(.*?)^```", (ROOT / "docs" / "suites.md").read_text(), re.M | re.S)
    (tmp_path / "guide.toml").write_text(*text)
    cells = read_suite(suite_path(str(tmp_path / "guide.toml"))).cells()
    assert {(cell.experiment.dataset, cell.experiment.method) for cell in cells} == {
        (dataset, name) for dataset in ("cora", "graphs/mine.npz") for name in ("raw", "bangs-uncalibrated", "bangs")
    }


def test_the_readme_works_as_printed() -> None:
    graph = citation(nodes=200, classes=3, seed=0)
    space: dict[str, Any] = {"__name__": "readme", "X": graph.x, "edge_index": graph.edge_index}
    space["y"] = np.where(np.arange(200) < 60, graph.y.numpy(), -1)
    for text in re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S):
        exec(compile(text, "README.md", "exec"), space)
    task = Task.of(graph, splits.by_share(graph.y, 0.1, 0.2, seeds=(0,)), classes=3)
    recipe = space["METHODS"].pop("unsure")(Budget(k=50, rounds=1))
    state = SelfTrainer(Trainer(epochs=20), recipe).fit(task, seeds=(0,))
    assert state.adoption is not None
    chosen, confidence = state.adoption.chosen, state.adoption.confidence
    left = ~(chosen | task.held | task.given.known)
    assert int(chosen.sum()) == 50
    assert confidence[chosen].max() <= confidence[left].min()


def sources() -> list[Path]:
    """What a user copies from: the pages, except those for contributors, and the examples."""
    return [ROOT / page for page in PAGES if page.name not in FOR_CONTRIBUTORS] + list(
        (ROOT / "examples").rglob("*.py")
    )


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.name)
def test_what_a_user_is_asked_to_import_comes_from_bangs_itself(path: Path) -> None:
    text = path.read_text()
    assert not re.findall(r"\b(?:from|import) bangs\.\w+", text)
    lists = re.findall(r"^\s*from bangs import (?:\(([^)]*)\)|(.*))$", text, re.M)
    asked = {name.strip() for pair in lists for name in "".join(pair).split(",") if name.strip()}
    assert asked | set(re.findall(r"\bbangs\.(\w+)\(", text)) <= set(package.__all__)


def test_every_public_name_is_on_the_reference_page_and_spelled_out_once_for_each_reader() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    listed = set(re.findall(r"^::: bangs\.(\w+)", page, re.M)) | set(re.findall(r"`(\w+)`", page))
    assert set(package.__all__) <= listed
    homes = {name for name, home in package._homes().items() if home.startswith("bangs.")}
    assert homes == set(package.__all__)


@pytest.mark.parametrize("name", METHODS)
def test_the_repr_of_a_method_is_python_with_public_names(name: str) -> None:
    names = {own: getattr(package, own) for own in package.__all__} | {"inf": float("inf")}
    for recipe in (package.method(name), package.authors(name, "cora")):
        assert eval(repr(recipe), names) == recipe


def test_the_docs_stay_short() -> None:
    pages = [path for path in (ROOT / "docs").glob("*.md") if path.name != "reproduction.md"]  # a command writes it
    assert sum(len(path.read_text().split()) for path in pages) <= 20_000


def links(page: Path) -> list[tuple[Path, str]]:
    """Where the links of a page lead on this disk: files, and the headings asked for."""
    found = re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)", page.read_text())
    return [((page.parent / file) if file else page, heading) for file, heading in found]


def anchors(page: Path) -> set[str]:
    """The names by which the headings of a page can be linked to."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_between_files_lead_somewhere(page: Path) -> None:
    for file, heading in links(ROOT / page):
        assert file.exists(), file
        assert not heading or heading in anchors(file), (file, heading)


def test_the_architecture_page_names_every_folder_and_no_file_that_is_missing() -> None:
    page, source = (ROOT / "ARCHITECTURE.md").read_text(), Path(package.__file__).parent
    others = ("__pycache__", "suites")  # a wheel carries the suites, which stand beside the package in the repository
    folders = {path.name for path in source.iterdir() if path.is_dir() and path.name not in others}
    assert folders <= set(re.findall(r"\b(\w+)/ ", page.split("```")[1]))
    for name in set(re.findall(r"`([\w/]+/(?:\w+\.py)?)`", page)):
        assert (source / name.removeprefix("src/bangs/")).exists() or (ROOT / name).exists(), name
    for name in set(re.findall(r"`(\w+\.py)`", page)):
        assert list(source.rglob(name)), name


def test_every_page_can_be_found_from_the_readme() -> None:
    seen, left = set(), {ROOT / "README.md"}
    while left:
        page = left.pop()
        seen.add(page)
        left |= {file.resolve() for file, _ in links(page) if file.suffix == ".md"} - seen
    assert seen >= {ROOT / page for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_option_a_page_gives_a_command_exists(page: Path) -> None:
    text = (ROOT / page).read_text().replace("\\\n", " ")
    for name, words in re.findall(r"\bbangs (\w+)((?: [^`#|\n]*)?)", text):
        if name in NAMES:
            known = {option for param in load(name).params for option in param.opts} | {"--help"}
            assert set(re.findall(r"(?<!\S)--[a-z][\w-]*", words)) <= known, words


def test_a_score_of_ones_own_runs() -> None:
    with mock.patch.dict(METHODS):  # the file names its method, which is not for other tests
        found = runpy.run_path(str(ROOT / "examples" / "own_method.py"))["main"](nodes=200, rounds=1, epochs=20)
    assert set(found) == {"own", "banzhaf", "confidence"}
    assert min(found.values()) > 0.3


def test_a_calibrator_of_ones_own_runs() -> None:
    found = runpy.run_path(str(ROOT / "examples" / "own_calibrator.py"))["main"](nodes=200, epochs=20)
    assert set(found) == {"none", "own", "ets"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_draws(path: Path) -> None:
    with mock.patch.dict(METHODS):
        made = run(path)
    outputs = [output for cell in made["cells"] for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    stored = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in stored), f"store its outputs: python -m {run.__module__}"


def test_every_command_has_help_with_an_example() -> None:
    listed = bangs("--help").out
    for name in NAMES:
        assert name in listed
        said = bangs(name, "--help")
        assert said.code == 0
        assert f"bangs {name}" in said.out
        assert "Example" in said.out


@pytest.mark.parametrize("name", NAMES)
def test_help_loses_no_word_of_what_it_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    told = bangs(name, "--help").out.split()
    for param in load(name).params:
        said = (param.help or "").replace("\\[", "[")  # a bracket that is no markup
        assert set(said.split()) <= set(told), param.name
