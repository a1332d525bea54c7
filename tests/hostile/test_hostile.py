"""The short form of `make hostile`: attacks cost nothing, deceive nobody and end in a sentence."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.helpers.forking import FORKING
from tests.hostile import campaign as hostile
from tests.hostile import canary
from tests.hostile.commands import Finding

CASES, SEED = 121, 46
COUNTS = ("lost", "silent", "tracebacks", "hangs", "canary")


def attacked(*words: str) -> dict[str, object]:
    command = [sys.executable, "-m", "tests.hostile", "--json", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=FORKING)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert done.returncode == 0, report["findings"]
    return {name: report[name] for name in ("cases", *COUNTS)}


@pytest.mark.slow
def test_attacks_lose_nothing_give_no_wrong_result_and_end_with_a_clear_error() -> None:
    kinds = [hostile.drawn(SEED, number, (), ()) for number in range(CASES)]
    assert kinds.count("workers") == 1  # signals to a suite of two processes, which take as long as forty others
    assert set(kinds) == set(hostile.ATTACKS)
    assert attacked(f"--cases={CASES}", f"--seed={SEED}") == {"cases": CASES, **dict.fromkeys(COUNTS, 0)}


def test_a_case_is_a_function_of_seed_and_number() -> None:
    kinds = [hostile.drawn(3, number, (), ()) for number in range(300)]
    assert kinds == [hostile.drawn(3, number, (), ()) for number in range(300)]
    assert set(kinds) == set(hostile.ATTACKS)
    assert "workers" not in {hostile.drawn(3, number, (), ("workers",)) for number in range(300)}


def test_the_canary_sees_what_happens_to_it(tmp_path: Path) -> None:
    before = canary.lay(tmp_path / "canary")
    assert canary.touched(before, canary.seen(tmp_path / "canary")) is None
    (tmp_path / "canary" / "new").touch()
    assert canary.touched(before, canary.seen(tmp_path / "canary")) == "added new"
    assert canary.touched(before, canary.seen(tmp_path / "canary"), new=False) is None
    (tmp_path / "canary" / "src" / "app.js").write_bytes(canary.CONTENT["src/app.js"])
    assert canary.touched(before, canary.seen(tmp_path / "canary")) == "changed src/app.js"
    (tmp_path / "canary" / "notes.md").unlink()
    assert canary.touched(before, canary.seen(tmp_path / "canary")) in ("removed notes.md", "changed src/app.js")


@pytest.mark.parametrize("kind", COUNTS[:3])
def test_what_an_attack_finds_is_counted(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find(stage: hostile.Stage, place: Path, draw: hostile.Draw) -> str:
        (place.parent / "canary" / "rows.jsonl").unlink()
        raise Finding(kind, "it broke")

    report = attempted(find, tmp_path, monkeypatch)
    assert (getattr(report, kind), report.canary, report.sound) == (1, 1, False)
    assert report.findings[f"{kind}: it broke"] == [1, 5, "signals"]


def test_what_breaks_or_kills_an_attack_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(stage: hostile.Stage, place: Path, draw: hostile.Draw) -> str:
        raise KeyError("x")

    assert attempted(broken, tmp_path, monkeypatch).tracebacks == 1


def test_what_hangs_is_tried_again_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(stage: hostile.Stage, place: Path, draw: hostile.Draw) -> str:
        while True:
            (place.parent.parent / "tried").open("a").close()

    monkeypatch.setattr(hostile, "PATIENCE", 0.3)
    report = attempted(endless, tmp_path, monkeypatch)
    assert (report.hangs, report.late, report.tracebacks) == (1, 0, 0)


def attempted(attack: hostile.Attack, root: Path, monkeypatch: pytest.MonkeyPatch) -> hostile.Report:
    """What a campaign of one case, number 5, tells of an attack."""
    monkeypatch.setitem(hostile.ATTACKS, "signals", (1, attack))
    report = hostile.Report()
    stage = hostile.Stage(None, None, None)  # type: ignore[arg-type]
    hostile._case(stage, root, 0, 5, ("signals",), (), report)
    assert report.cases == 1
    return report
