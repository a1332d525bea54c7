"""What `make audit` finds in pinned packages, by an index on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.graphs.datasets.server import Server, serving
from tests.project import audit
from tests.project.audit import main, pins

FAULT = {"id": "PYSEC-1", "fixed_in": ["1.1"], "withdrawn": None}


def project(newest: str, faults: list[dict[str, Any]] | None = None, **releases: Any) -> bytes:
    """What an index answers about a project: its newest version, that one's weaknesses, and the files of all."""
    files = {version.strip("v").replace("_", "."): [file] for version, file in releases.items()}
    project = {"info": {"version": newest}, "vulnerabilities": faults or [], "releases": files}
    return json.dumps(project).encode()


def file(date: str = "2026-01-02", **more: Any) -> dict[str, Any]:
    return {"upload_time": f"{date}T03:04:05", "yanked": False, "yanked_reason": None, **more}


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """An index that knows two sound packages, and the weak one."""
    monkeypatch.setattr(audit, "PATIENCE", 5.0)
    files = {
        "pypi/pycrypto/json": project("2.6.1", [FAULT], v2_6_1=file("2014-06-20")),
        "pypi/sound/json": project("1.0", v1_0=file("2026-03-04")),
        "pypi/older/json": project("2.0", v1_0=file(), v2_0=file()),
    }
    with serving(Server(files)) as server:
        yield server


def run_audit(index: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], *pinned: str) -> tuple[int, str]:
    """The exit code of an audit of these pins, and what it prints."""
    path = tmp_path / "constraints.txt"
    path.write_text("\n".join(pinned))
    return main(str(path), index.url), capsys.readouterr().out


def test_sound_packages_pass_and_the_checks_and_the_age_of_the_answers_are_printed(index, tmp_path, capsys) -> None:
    code, printed = run_audit(index, tmp_path, capsys, "sound==1.0", "older==1.0")
    assert code == 0
    assert "2 pinned packages: 0 with a weakness; the index gave advisories of 1 and withdrawals of 2" in printed
    assert "the newest file it knew of is of 2026-03-04" in printed
    assert "as they are not the newest: older 1.0 (2.0 is the newest)" in printed


def test_a_weakness_fails_and_is_named_with_its_way_out(index, tmp_path, capsys) -> None:
    index.files["pypi/weak/json"] = project("1.0", [FAULT], v1_0=file())
    code, printed = run_audit(index, tmp_path, capsys, "sound==1.0", "weak==1.0")
    assert code == 1
    assert "weak 1.0 has PYSEC-1; fixed in 1.1" in printed


def test_an_index_with_advisories_of_every_version_is_asked_for_that_version(index, tmp_path, capsys) -> None:
    exact = {"info": {"version": "1.0"}, "vulnerabilities": [FAULT], "urls": [file()]}
    index.files["pypi/older/1.0/json"] = json.dumps(exact).encode()
    code, printed = run_audit(index, tmp_path, capsys, "older==1.0")
    assert code == 1
    assert "older 1.0 has PYSEC-1" in printed
    assert "not the newest" not in printed


def test_a_weakness_that_was_taken_back_is_none(index, tmp_path, capsys) -> None:
    index.files["pypi/once/json"] = project("1.0", [{**FAULT, "withdrawn": "2026-01-01"}], v1_0=file())
    assert run_audit(index, tmp_path, capsys, "once==1.0")[0] == 0


def test_a_version_its_makers_withdrew_fails_even_if_it_is_old(index, tmp_path, capsys) -> None:
    broken = file(yanked=True, yanked_reason="eats files")
    index.files["pypi/yanked/json"] = project("2.0", v1_0=broken, v2_0=file())
    code, printed = run_audit(index, tmp_path, capsys, "yanked==1.0")
    assert code == 1
    assert "yanked 1.0 was withdrawn by its makers: eats files" in printed


def test_a_version_that_is_gone_fails(index, tmp_path, capsys) -> None:
    code, printed = run_audit(index, tmp_path, capsys, "sound==0.9", "nobody==1.0")
    assert code == 1
    assert "sound 0.9 is not on the index" in printed
    assert "nobody 1.0 is not on the index" in printed


def test_an_index_without_advisories_is_not_believed(index, tmp_path, capsys) -> None:
    index.files["pypi/pycrypto/json"] = project("2.6.1", v2_6_1=file())
    code, printed = run_audit(index, tmp_path, capsys, "sound==1.0")
    assert code == 2
    assert "gives no advisory of pycrypto 2.6.1, which has some, so it cannot be trusted" in printed


def test_an_index_out_of_reach_is_no_success(index, tmp_path, capsys) -> None:
    index.status = 503
    code, printed = run_audit(index, tmp_path, capsys, "sound==1.0", "older==1.0")
    assert code == 2
    assert "none of 2 packages was checked" in printed


def test_one_package_that_could_not_be_asked_for_is_no_success(index, tmp_path, capsys) -> None:
    index.files["pypi/odd/json"] = b"<html>"
    code, printed = run_audit(index, tmp_path, capsys, "sound==1.0", "odd==1.0")
    assert code == 2
    assert "odd 1.0 was not checked" in printed


def test_pins_are_read_and_what_pins_nothing_is_refused() -> None:
    text = "a==1.0  # why\n\nB-c.d_e==2!1+cpu; python_version > '3'\n"
    assert list(pins(text)) == [("a", "1.0"), ("B-c.d_e", "2!1+cpu")]
    with pytest.raises(SystemExit, match="'a>=1' pins no version"):
        list(pins("a>=1"))
