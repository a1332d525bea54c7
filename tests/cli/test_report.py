"""`bangs report`: the page, made again."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from bangs.experiments.results import json_lines
from bangs.experiments.suites.read_suite import read_suite
from bangs.runs import RunFolder
from tests.cli.invoke import bangs
from tests.helpers.small_graphs import fake_rows, suite_file
from tests.report.sample_runs import experiment_result, experiment_rows


def test_the_page_is_the_same_when_made_again(fitted_example: Path) -> None:
    page = fitted_example / "report.html"
    before = page.read_text()
    page.unlink()
    result = bangs("report", fitted_example)
    assert result.code == 0
    assert str(page) in "".join(result.out.split("\n"))
    assert page.read_text() == before


def test_the_page_of_one_run_is_made_without_pyg(fitted_example: Path) -> None:
    code = f"""if True:
        import sys
        sys.argv = ["bangs", "report", {str(fitted_example)!r}]
        from bangs.cli import main
        try:
            main()
        except SystemExit:
            print("torch_geometric" in sys.modules)
        """
    process = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert process.stdout.splitlines()[-1] == "False"


def test_a_run_folder_gets_a_page(tmp_path: Path) -> None:
    with RunFolder.create_or_resume(tmp_path / "run", {"method": "bangs", "k": 3}, resume=False) as folder:
        write_history(folder.path)
        folder.finish(experiment_result())
    facts = json.loads(bangs("report", tmp_path / "run", "--json").out)
    text = Path(facts["page"]).read_text()
    assert text.count("<h2>") > 5
    assert "bangs on synthetic" in text


def test_a_suite_folder_gets_a_page(tmp_path: Path) -> None:
    (tmp_path / "suites").mkdir()
    suite = read_suite(suite_file(tmp_path / "suites"))
    rows = [row for cell in suite.cells() for row in fake_rows(cell.experiment, [[0.6, 0.7], [0.5, 0.8]])]
    rows = [{**row, **{key: [1, 1] for key in ("pseudo_accuracy", "labelled", "epochs")}} for row in rows]
    (tmp_path / "rows.jsonl").write_text(json_lines(rows))
    assert bangs("report", tmp_path).code == 0
    assert "75.00" in (tmp_path / "report.html").read_text()


def test_an_unfinished_run_gives_a_clear_error(tmp_path: Path) -> None:
    with RunFolder.create_or_resume(tmp_path / "run", {"method": "bangs"}, resume=False) as folder:
        write_history(folder.path)
    output = bangs("report", tmp_path / "run")
    assert output.code == 2
    assert "holds no result.json" in output.err


def test_a_folder_of_other_files_gives_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps(experiment_result()))
    result = bangs("report", tmp_path)
    assert result.code == 2
    assert "is not a run folder: it has no config.json" in result.err


def test_the_folder_of_one_run_is_no_table(fitted_example: Path) -> None:
    result = bangs("table", fitted_example)
    assert result.code == 2
    assert (
        "is the folder of one run, which `bangs report` shows; give the --out folder of `bangs reproduce`" in result.err
    )


def test_a_missing_folder_gives_a_clear_error(tmp_path: Path) -> None:
    assert "is not a folder" in bangs("report", tmp_path / "none").err


def write_history(folder: Path, rows: list[dict[str, Any]] | None = None) -> None:
    text = "".join(json.dumps(row) + "\n" for row in rows or experiment_rows())
    (folder / "history.jsonl").write_text(text)
