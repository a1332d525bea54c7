"""Whatever is typed, given or missing: a sentence that says what is wrong, and exit code 2."""

import io
import sys
from pathlib import Path
from typing import TextIO

import pytest
from rich.console import Console

from bangs.cli import main
from bangs.cli.console import Output, Rounds
from bangs.cli.parsing import parse_names, parse_seeds
from bangs.errors import InvalidInput, UnknownName
from bangs.experiments.suites.read_suite import MAX_SEEDS
from bangs.experiments.tables.page import write_page
from tests.cli.conftest import EXAMPLES
from tests.cli.invoke import bangs

RUN = ("run", "--seeds=1", "--rounds=0", "--epochs=2", "--device=cpu")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with a text, an empty folder, and rows of nothing."""
    (tmp_path / "text").write_text("hello")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "own").mkdir()
    for name in ("nodes.csv", "edges.csv"):
        (tmp_path / "own" / name).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BANGS_DATA", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((*RUN, "--dataset=folder"), "'folder' is a folder, but not a store; `bangs fit` reads tables"),
        ((*RUN, "--dataset=text"), "'text' is neither an .npz file nor a store"),
        ((*RUN, "--dataset=missing.npz"), "missing.npz does not exist; give the path of an .npz file or one of cite"),
        ((*RUN, "--dataset=no/such"), "no/such does not exist"),
        ((*RUN, "--model=gcm"), "did you mean 'gcn'?"),
        ((*RUN, "--seeds=1000000000000"), "--seeds must name from 1 to 10,000 seeds"),
        ((*RUN, "--seeds=3-1"), "--seeds must name from 1 to 10,000 seeds, got '3-1'"),
        ((*RUN, "--fanout=0"), "--fanout must be numbers from 1 to 10,000 such as 10,10, or all, got '0'"),
        ((*RUN, "--batch-size=0"), "--batch-size"),
        ((*RUN, "--epochs=0"), ", got '0'; see bangs run -h"),  # the last one typed
        ((*RUN, "--epochs", "x"), "--epochs must be a whole number, got 'x'"),
        ((*RUN, "--out=text"), "'text' must be a folder, but it is a file"),
        (("fit", EXAMPLES / "own-graph", "--out=x", "--epochs=0"), "--epochs"),
        (("fit", "nowhere", "--out=x", "--model=gcm"), "did you mean 'gcn'?"),  # before anything is read
        (("fit", "nowhere", "--out=x", "--model=automatic"), "did you mean 'auto'?"),
        (("fit", "nowhere", "--out=x", "--class-weight=None"), "class weight 'None' is unknown; did you mean 'none'?"),
        (("predict", "text", "folder"), "'text' is a file; name the folder that `bangs fit` wrote"),
        (("predict", "folder", "folder", "--device=tpu"), "device 'tpu' is unknown"),
        (("report", "missing.jsonl"), "'missing.jsonl' does not exist"),
        (("report", "empty.jsonl"), "'empty.jsonl' holds no rows"),
        (("table", "empty.jsonl", "--suite=table-main"), "'empty.jsonl' holds no rows"),
        (("figure", "missing"), "'missing' does not exist"),
        (("list", "modles"), "kind of names 'modles' is unknown; did you mean 'models'? Known: "),
        (("list", "zzz"), "kind of names 'zzz' is unknown. Known: calibrators, "),
        (("convert", "own", "store"), "2 problems"),
        (("convert", "synthetic:nodes=1e30", "store"), "synthetic nodes must be at most 2,147,483,647"),
        (("convert", "synthetic:nodes=90,edges=200,classes=2", "text/x"), "a file is where a folder should be"),
        (("reproduce", "table-main", "--datasets="), "--datasets must name something, or be left out"),
        (("reproduce", "table-main", "--out=text", "--device=cpu"), "'text/suites' could not be written"),
        (("reproduce", "table-main", "--device=tpu"), "device 'tpu' is unknown"),
        (("demo", "--out=text", "--device=cpu"), "'text' must be a folder, but it is a file"),
    ],
)
def test_odd_input_is_a_sentence(folder: Path, words: tuple[object, ...], sentence: str) -> None:
    result = bangs(*words)
    assert result.code == 2
    assert sentence in result.err
    assert "Traceback" not in result.err


def test_a_page_that_cannot_be_written_is_a_sentence(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="folder' must be a regular file, not a folder"):
        write_page([], [], folder / "folder", "bangs table")


def test_predictions_may_go_into_a_folder_that_is_not_there_yet(library: Path, tmp_path: Path) -> None:
    out = tmp_path / "mit Leerzeichen" / "☃" / "p.csv"
    result = bangs("predict", library, EXAMPLES / "own-graph", "--out", out, "--device=cpu")
    assert result.code == 0, result.err
    assert out.read_text().count("\n") == 301


def test_a_name_that_is_no_text_is_refused_in_a_sentence(folder: Path) -> None:
    odd = folder / "caf\udce9"
    odd.mkdir()
    result = bangs("fit", odd, "--out", "x")
    assert result.code == 2
    assert "the folder's name is not UTF-8" in result.err


def speak_to(output: TextIO | None, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of `bangs list models` whose words go there."""
    monkeypatch.setattr(sys, "argv", ["bangs", "list", "models"])
    monkeypatch.setattr(sys, "stdout", output)
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_a_closed_output_hears_nothing_and_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert speak_to(None, monkeypatch) == 0


def test_an_output_that_knows_ascii_only_is_told_the_rest_in_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = io.BytesIO()
    assert speak_to(io.TextIOWrapper(heard, encoding="ascii", write_through=True), monkeypatch) == 0
    assert b"\\u03c3" in heard.getvalue()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_an_output_on_a_full_disk_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "wb", buffering=0) as full:
        assert speak_to(io.TextIOWrapper(full, write_through=True), monkeypatch) == 2
        assert capsys.readouterr().err == "bangs: No space left on device\n"


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_number_of_a_round_is_lost_in_a_narrow_terminal(width: int) -> None:
    output = Output()
    output.console = Console(file=io.StringIO(), width=width)
    rounds = Rounds(output, "bangs on cora", 40)
    names = ("round", "validation %", "test %", "pseudo-labels", "right %", "epochs", "seconds")
    cells = ("10", "81.54", "79.90", "1000", "97.3", "1234", "1234.56")
    rounds.lines = [dict(zip(names, cells, strict=True))]
    output.console.print(rounds._table())
    shown = output.console.file.getvalue()
    assert all(cell in shown for cell in cells)
    assert "…" not in shown


def test_lists_on_the_command_line_hold_something() -> None:
    assert parse_names("--datasets", " cora, pubmed,") == ["cora", "pubmed"]
    assert parse_names("--datasets", None) is None
    with pytest.raises(InvalidInput, match="--datasets must name something"):
        parse_names("--datasets", " ,")
    assert len(parse_seeds("10000")) == len(parse_seeds("1-10000")) == MAX_SEEDS
    for much in ("10001", "1-10001", "0-99999999999999999999"):
        with pytest.raises(InvalidInput, match="from 1 to 10,000"):
            parse_seeds(much)


def test_of_two_names_equally_near_the_one_that_begins_alike_is_meant() -> None:
    assert "did you mean 'gcn'?" in str(UnknownName("model", "gcm", ("sgc", "gcn", "gin")))
    assert "did you mean 'sgc'?" in str(UnknownName("model", "sgm", ("sgc", "gcn", "gin")))
