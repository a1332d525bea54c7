"""Nothing is trusted blindly: files from outside run no code, lead nowhere and ask for no more than they hold."""

import ast
import csv
import json
import os
import pickle
import re
import zipfile
from collections.abc import Callable
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bangs.cli import run
from bangs.experiments.experiment import Experiment
from bangs.graphs.datasets import lastfm, planetoid
from bangs.graphs.npz import read_graph
from bangs.runs import RunFolder
from tests.cli.invoke import CommandResult, bangs
from tests.fuzz.targets import targets
from tests.helpers.small_graphs import graph_file, suite_file

SHORT = ("--rounds=1", "--epochs=5", "--device=cpu", "--quiet")
QUICK = ("--method=hard", "--validation=0.25", *SHORT)
RUN = (*SHORT, "--seeds=2", "--k=5", "--candidates=10")


SOURCE = Path(run.__file__).parents[1]
MODULES = {"pickle", "marshal", "shelve", "subprocess", "importlib.util", "runpy"}
CALLS = {"eval", "exec", "os.system", "os.popen", "torch.load"}
KNOWN = {
    "experiments/user_code.py": {"importlib.util"},  # the file that a person names by --code
    "graphs/datasets/planetoid.py": {"pickle"},  # an unpickler of its own, which admits a few names and no code
    "labelling/refit.py": {"subprocess"},  # this program's own `bangs fit`, on the files the person gave it
    "utils/git_version.py": {"subprocess"},  # git, with fixed arguments
}


def risks(source: str) -> set[str]:
    """The modules and calls in a source by which a file could run code."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & MODULES
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module} & MODULES
        elif isinstance(node, ast.Call):
            found |= {ast.unparse(node.func)} & CALLS
            found |= {word.arg for word in node.keywords} & {"allow_pickle", "shell"}
    return found


def test_no_file_can_run_code_but_where_it_is_known_that_it_cannot() -> None:
    assert risks("import pickle\nfrom os import path\ntorch.load(eval(x), allow_pickle=True)") == {
        *("pickle", "torch.load", "eval", "allow_pickle")
    }
    for path in SOURCE.rglob("*.py"):
        assert risks(path.read_text()) == KNOWN.get(str(path.relative_to(SOURCE)), set()), path


class Harmful:
    """A pickle that makes a file where it is read."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.system, (f"touch {self.mark}",)


def refused(result: CommandResult, *words: str) -> None:
    """An error message with these words, and no traceback."""
    assert result.code == 2
    assert result.err.startswith("bangs: ")
    assert "Traceback" not in result.err
    for word in words:
        assert word in result.err


def test_a_planetoid_file_with_a_harmful_pickle_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    raw, mark = tmp_path / "Cora" / "raw", tmp_path / "owned"
    raw.mkdir(parents=True)
    for part in planetoid.PARTS:
        (raw / f"ind.cora.{part}").write_bytes(pickle.dumps(Harmful(mark)))
    refused(bangs("run", "--dataset=cora", "--data", tmp_path, *RUN), "which is not allowed")
    assert not mark.exists()


def packed(names: dict[str, bytes]) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in names.items():
            archive.writestr(name, content)
    return out.getvalue()


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_zip_that_points_upwards_writes_nothing_anywhere(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "LastFMAsia" / "raw"
    folder.mkdir(parents=True)
    contents = targets()["lastfm"].files
    evil = {f"../../../{name}": content for name, content in contents.items()}
    (folder / lastfm.ARCHIVE).write_bytes(packed({**evil, "../../escaped": b"x", "/etc/bangs-was-here": b"x"}))
    with np.load(graph_file(tmp_path / "graph.npz")) as arrays:
        members = {f"{name}.npy": npy(arrays[name]) for name in arrays}
    (tmp_path / "graph.npz").write_bytes(packed({**members, "../escaped.npy": npy(np.ones(2)), "/etc/x.npy": b""}))
    before = tree(tmp_path)
    lastfm.read_lastfm(folder)
    assert bangs("run", "--dataset", tmp_path / "graph.npz", *RUN).code == 0
    assert tree(tmp_path) == before
    assert not Path("/etc/bangs-was-here").exists()


def npy(array: Any) -> bytes:
    out = BytesIO()
    np.save(out, array)
    return out.getvalue()


@pytest.mark.parametrize("place", ["/etc/passwd", "/etc", "../../../../../../etc/passwd"])
def test_a_suite_with_a_path_to_etc_gets_an_error_that_shows_nothing_of_it(tmp_path: Path, place: str) -> None:
    suite = suite_file(tmp_path)
    text = suite.read_text().replace(str(tmp_path / "one.npz"), place)
    suite.write_text(re.sub(r"(?s)\[published\].*", "", text))
    result = bangs("reproduce", suite, "--out", tmp_path / "out", "--methods=raw", "--device=cpu", "--json")
    everything = result.out + result.err + "".join(path.read_text() for path in (tmp_path / "out").rglob("*.json*"))
    assert result.code != 0
    assert "root:x" not in everything
    assert "Traceback" not in result.err


def test_a_run_folder_whose_config_names_etc_is_shown_without_looking_there(tmp_path: Path) -> None:
    experiment = Experiment(dataset="/etc/passwd", method="raw", rounds=0, seeds=(0,), changes={"epochs": 2})
    data = read_graph(graph_file(tmp_path / "one.npz"))
    with RunFolder.create_or_resume(tmp_path / "run", experiment.config(), resume=False) as folder:
        experiment.run(data=data, device="cpu", run_folder=folder)
    assert bangs("report", tmp_path / "run").code == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "raw on passwd" in page
    assert "root:x" not in page
    assert "/etc" not in page


class Tags(HTMLParser):
    """Every tag of a page and the names of its attributes."""

    def __init__(self, page: str):
        super().__init__()
        self.seen: list[tuple[str, tuple[str, ...]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, tuple(name for name, _ in attrs)))


HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)//",
    '"><img src=x onerror=alert(3)>',
    "<!--",
    "=HYPERLINK(A1)",
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
)


def write_tables(folder: Path, names: tuple[str, ...], labels: tuple[str, str], column: str) -> Path:
    """Forty nodes in two classes, the first of them with these names; half of them labelled."""
    folder.mkdir()
    ids = [*names, *(f"{'-' if i % 2 else ''}{i}.5" for i in range(40 - len(names)))]
    with (folder / "nodes.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["id", column, "label"])
        out.writerows([name, i % 2 + i / 100, labels[i % 2] if i < 20 else ""] for i, name in enumerate(ids))
    with (folder / "edges.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["source", "target"])
        out.writerows([ids[i], ids[(i + 2) % 40]] for i in range(40))
    return folder


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two fits: one of hostile names, one of escape_controls ones."""
    place = tmp_path_factory.mktemp("home-of-someone")
    write_tables(place / "evil", HOSTILE, ("=1+1|x", "<b>bold</b>"), "<i onload=alert(4)>")
    write_tables(place / "good", tuple(f"n{i}" for i in range(len(HOSTILE))), ("one", "two"), "size")
    for name in ("evil", "good"):
        result = bangs("fit", place / name, "--id=id", "--label=label", "--out", place / f"{name}-out", *QUICK)
        assert result.code == 0, result.err
    return place


def test_html_in_a_table_adds_no_tag_and_no_attribute_to_the_page(fitted: Path) -> None:
    evil, good = (Tags((fitted / f"{name}-out" / "report.html").read_text()).seen for name in ("evil", "good"))
    assert sorted(set(evil)) == sorted(set(good))
    assert [tag for tag in evil if tag[0] in ("script", "img", "iframe")] == [
        tag for tag in good if tag[0] in ("script", "img", "iframe")
    ]


def test_html_in_a_table_is_text_in_the_model_card(fitted: Path) -> None:
    card = (fitted / "evil-out" / "MODEL_CARD.md").read_text()
    assert r"\<i onload=alert(4)\>" in card
    assert not re.search(r"(?<!\\)<[a-z/!]", card)


@pytest.mark.parametrize("file", ["predictions.csv", "pseudo_labels.csv"])
def test_no_cell_of_a_table_is_a_formula_and_numbers_stay_numbers(fitted: Path, file: str) -> None:
    with (fitted / "evil-out" / file).open(newline="") as stream:
        rows = list(csv.reader(stream))
    for cell in (cell for row in rows for cell in row):
        if cell.startswith(("=", "+", "-", "@", "\t", "\r")):
            float(cell)
    if file == "predictions.csv":
        ids = [row[0] for row in rows[1:]]
        assert [name.removeprefix("'") for name in ids[: len(HOSTILE)]] == list(HOSTILE)
        assert "-1.5" in ids
        assert all(0 <= float(row[3]) <= 1 for row in rows[1:])


def test_a_name_like_a_formula_is_explained_under_its_own_name(fitted: Path) -> None:
    name = next(name for name in HOSTILE if name.startswith("="))
    result = bangs("explain", fitted / "evil-out", name, "--json")
    assert result.code == 0, result.err
    assert name in result.out


def test_names_that_command_a_terminal_or_look_like_markup_are_shown_as_they_are(tmp_path: Path) -> None:
    evil = "\x1b[2J[/bold] [red]:smile:\u202e"
    write_tables(tmp_path / "evil", (evil, *HOSTILE), ("[/]", "\x1b]0;owned\x07"), "size")
    out = tmp_path / "[/] [red]"
    results = [bangs("fit", tmp_path / "evil", "--out", out, *QUICK[:-1]), bangs("explain", out, evil)]
    results += [bangs("run", "--dataset", tmp_path / "\x1b[31m.npz", *RUN), bangs("explain", out, "\x1b[2J?")]
    assert [result.code for result in results] == [0, 0, 2, 2]
    for result in results:
        assert not {"\x1b", "\x07", "\u202e"} & set(result.out + result.err)
    assert "\\x1b[2J[/bold] [red]:smile:" in results[1].out
    assert str(out) in results[0].out


def test_nothing_made_for_others_names_a_home_or_a_secret(
    fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "s3cr3t-t0ken")
    suite = suite_file(fitted)
    assert bangs("run", "--dataset", fitted / "one.npz", "--out", fitted / "run", *RUN).code == 0
    assert bangs("report", fitted / "run").code == 0
    rows = fitted / "rows.jsonl"
    assert bangs("reproduce", suite, "--out", fitted / "suite", "--methods=raw", "--export", rows).code == 0
    (fitted / "two.npz").unlink()
    again = bangs("reproduce", suite, "--out", fitted / "failed", "--methods=raw", "--export", fitted / "more.jsonl")
    assert again.code == 1
    assert bangs("report", fitted / "suite").code == 0
    shown = [rows, fitted / "more.jsonl", *fitted.glob("*-out/*"), *fitted.glob("*/report.html")]
    for path in (path for path in shown if path.is_file()):
        content = path.read_bytes()
        for secret in (str(fitted), f"{Path.home()}/", "s3cr3t-t0ken"):
            assert secret.encode() not in content, (path.name, secret)
    assert json.loads(rows.read_text().splitlines()[0])["config"]["dataset"] == "one"


def claiming(path: Path, header: bytes) -> Path:
    """An .npz of a graph whose labels have another header."""
    with np.load(graph_file(path)) as arrays:
        members = {f"{name}.npy": npy(arrays[name]) for name in arrays}
    y = members["y.npy"]
    path.write_bytes(packed({**members, "y.npy": header + y[128:]}))
    return path


def test_a_header_that_claims_a_million_million_nodes_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    spelled = b"{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000,), }".ljust(117) + b"\n"
    header = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + spelled
    path = claiming(tmp_path / "huge.npz", header)
    refused(bangs("run", "--dataset", path, *RUN), "claims shape (1000000000000,)", "it is refused")
    refused(bangs("fit", path, "--out", tmp_path / "out", *QUICK), "1000000000000")
