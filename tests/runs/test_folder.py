"""A run folder keeps what it is given, and refuses what is not its own."""

import contextlib
import getpass
import json
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from bangs.core.rng import Streams
from bangs.errors import BangsError, InvalidInput
from bangs.runs import RunFolder, config_hash, read_run
from bangs.runs import events as events_room
from bangs.runs.environment import environment
from bangs.runs.folder import _round_files
from tests.hostile.canary import seen

CONFIG: dict[str, Any] = {"method": {"name": "bangs", "k": 100, "floor": float("-inf")}, "seeds": [0, 1], "lr": 0.01}


@contextmanager
def opened(path: Path, config: dict[str, Any] = CONFIG, resume: bool = True) -> Iterator[RunFolder]:
    with RunFolder.create_or_resume(path, config, resume=resume) as run:
        yield run


def kinds(run: RunFolder) -> list[str]:
    return [event["kind"] for event in run.events()]


def filled(path: Path, rounds: int = 3) -> Path:
    with opened(path) as run:
        for round in range(1, rounds + 1):
            run.save(round, {"w": torch.full((4,), float(round))}, {"round": round})
    return path


# configuration


def test_the_hash_does_not_depend_on_the_order_of_keys() -> None:
    assert config_hash({"a": 1, "b": {"c": 0.1, "d": [1]}}) == config_hash({"b": {"d": (1,), "c": 0.1}, "a": 1})
    assert config_hash({"a": 0.1}) != config_hash({"a": 0.1 + 2**-55})
    assert config_hash({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"  # sha256 of {}


def test_a_new_folder_describes_the_run(tmp_path: Path) -> None:
    with opened(tmp_path / "deep" / "run", resume=False) as run:
        assert not run.resumed
        assert not run.finished
        assert run.latest() is None
    record = read_run(tmp_path / "deep" / "run")
    assert record.config == {"method": {"name": "bangs", "k": 100, "floor": "-inf"}, "seeds": [0, 1], "lr": 0.01}
    assert record.environment == environment()
    assert record.result is None
    stored = json.loads((tmp_path / "deep" / "run" / "config.json").read_text())
    assert (stored["format"], stored["sha256"]) == (1, config_hash(CONFIG))


def test_the_environment_names_no_one(tmp_path: Path) -> None:
    facts = environment()
    assert {"python", "torch", "torch-geometric", "numpy", "bangs", "commit", "device", "platform"} <= facts.keys()
    text = json.dumps(facts)
    assert str(Path.home()) not in text
    assert "/" not in text
    for name in (platform.node(), getpass.getuser()):
        assert name not in facts.values()


def test_an_existing_run_is_refused_with_the_ways_out(tmp_path: Path) -> None:
    filled(tmp_path / "run")
    with pytest.raises(InvalidInput, match=r"already holds a run; add --resume .*--overwrite .*another folder"):
        RunFolder.create_or_resume(tmp_path / "run", CONFIG, resume=False)
    with opened(tmp_path / "run") as run:
        run.finish({})
    with pytest.raises(InvalidInput, match="already holds a finished run"):
        RunFolder.create_or_resume(tmp_path / "run", CONFIG, resume=False)


def test_another_configuration_is_refused_with_the_difference_key_by_key(tmp_path: Path) -> None:
    filled(tmp_path / "run")
    other = {"method": {"name": "bangs", "k": 200, "floor": float("-inf"), "é\x1b[2J": 1}, "seeds": [0], "lr": 0.01}
    with pytest.raises(InvalidInput) as refused:
        RunFolder.create_or_resume(tmp_path / "run", other, resume=True)
    assert str(refused.value).splitlines() == [
        f"'{tmp_path / 'run'}' holds a run of another configuration:",
        '  method."\\u00e9\\u001b[2J": nothing in the folder, 1 now',
        "  method.k: 100 in the folder, 200 now",
        "  seeds[1]: 1 in the folder, nothing now",
        "use the folder's settings, add --overwrite to delete its run, or choose another folder",
    ]
    with opened(tmp_path / "run") as run:  # and the folder is as it was, and free
        assert run.latest() is not None


def test_a_long_difference_is_cut(tmp_path: Path) -> None:
    filled(tmp_path / "run")
    with pytest.raises(InvalidInput, match="… and 985 more") as refused:
        RunFolder.create_or_resume(tmp_path / "run", {f"key{i}": "x" * 9999 for i in range(999)}, resume=True)
    assert len(str(refused.value)) < 4000


def test_long_values_that_differ_at_the_end_differ(tmp_path: Path) -> None:
    with opened(tmp_path / "run", {"a": "x" * 500 + "1"}):
        pass
    with pytest.raises(InvalidInput, match="another configuration"):
        RunFolder.create_or_resume(tmp_path / "run", {"a": "x" * 500 + "2"}, resume=True)


def test_overwriting_discards_the_run_and_nothing_else(tmp_path: Path) -> None:
    filled(tmp_path / "run")
    with opened(tmp_path / "run") as run:
        run.finish({"accuracy": 0.5})
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with RunFolder.create_or_resume(tmp_path / "run", {"k": 1}, resume=False, overwrite=True) as run:
        assert not run.resumed
        assert not run.finished
        assert run.latest() is None
        assert kinds(run) == ["started"]
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"
    with pytest.raises(InvalidInput, match="either resumed or overwritten"):
        RunFolder.create_or_resume(tmp_path / "run", CONFIG, resume=True, overwrite=True)


FIT = {"command": "fit", "graph": "a"}
LEFT = ("model.safetensors", "predictions.csv", "report.html", "history.jsonl", "notes.txt")


def finished_fit(path: Path) -> Path:
    with opened(path, FIT) as run:
        for name in LEFT:
            (path / name).write_text("of a")
        run.finish({})
    return path


def test_a_run_that_is_overwritten_leaves_no_result_beside_another_configuration(tmp_path: Path) -> None:
    """Else `predict` would answer from the model of one fit by the columns of another."""
    path = finished_fit(tmp_path / "run")
    RunFolder.create_or_resume(path, {**FIT, "graph": "b"}, resume=False, overwrite=True).close()
    assert read_run(path).config["graph"] == "b"
    assert [name for name in LEFT if (path / name).exists()] == ["notes.txt"]


@pytest.mark.parametrize("fails", ["result.json", "model.safetensors", "environment", "config"])
def test_a_crash_while_overwriting_leaves_no_mixture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    path, real = finished_fit(tmp_path / "run"), Path.unlink

    def unlink(file: Path, missing_ok: bool = False) -> None:
        if file.name == fails:
            raise KeyboardInterrupt
        real(file, missing_ok)

    def write_checksummed(file: Path, content: Any) -> None:
        if file.stem == fails:
            raise KeyboardInterrupt

    monkeypatch.setattr("bangs.runs.folder.write_checksummed", write_checksummed)
    monkeypatch.setattr(Path, "unlink", unlink)
    with pytest.raises(KeyboardInterrupt):
        RunFolder.create_or_resume(path, {**FIT, "graph": "b"}, resume=False, overwrite=True)
    monkeypatch.undo()
    assert read_run(path).config == FIT
    RunFolder.create_or_resume(path, {**FIT, "graph": "b"}, resume=False, overwrite=True).close()
    assert not (path / "model.safetensors").exists()


def test_the_same_run_may_be_discarded_and_no_other(tmp_path: Path) -> None:
    path = finished_fit(tmp_path / "run")
    with pytest.raises(InvalidInput, match="already holds a finished run"):
        RunFolder.create_or_resume(path, CONFIG, resume=False, overwrite="same")
    assert read_run(path).result is not None
    RunFolder.create_or_resume(path, FIT, resume=False, overwrite="same").close()
    assert read_run(path).result is None
    RunFolder.create_or_resume(tmp_path / "new", FIT, resume=False, overwrite="same").close()


@pytest.mark.parametrize("flags", [{"resume": False}, {"resume": True}, {"resume": False, "overwrite": True}])
def test_other_peoples_folders_are_never_touched(tmp_path: Path, flags: dict[str, bool]) -> None:
    (tmp_path / "config.json").write_text('{"model": "theirs"}')
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(InvalidInput, match=r"is not a run folder and holds other files \(such as 'thesis.tex'\)"):
        RunFolder.create_or_resume(tmp_path, CONFIG, **flags)
    assert sorted(os.listdir(tmp_path)) == ["config.json", "thesis.tex"]


@pytest.mark.parametrize("flags", [{"resume": False}, {"resume": True}, {"resume": False, "overwrite": True}])
@pytest.mark.parametrize(
    "names",
    [
        ("config.json",),
        ("lock",),
        ("checkpoints/round-000001.safetensors",),
        (".notes.txt.0123456789abcdef.tmp",),
        ("result.json", "lock"),
        ("lock", "events.jsonl", "checkpoints/round-000001.safetensors"),
    ],
)
def test_files_of_others_under_our_names_are_never_touched(
    tmp_path: Path, names: tuple[str, ...], flags: dict[str, bool]
) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('{"model": "theirs"}')
    before = seen(tmp_path)
    with pytest.raises(InvalidInput, match=r"is not a run folder and holds other files \(such as '.+'\)") as refused:
        RunFolder.create_or_resume(tmp_path, CONFIG, **flags)
    assert any(repr(name.partition("/")[0]) in str(refused.value) for name in names)
    assert seen(tmp_path) == before


def test_a_run_that_lost_its_configuration_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "run")
    (tmp_path / "run" / "config.json").unlink()
    with pytest.raises(InvalidInput, match="a run without its config"):
        RunFolder.create_or_resume(tmp_path / "run", CONFIG, resume=True)
    with RunFolder.create_or_resume(tmp_path / "run", CONFIG, resume=False, overwrite=True) as run:
        assert run.latest() is None


def test_a_file_or_a_strange_name_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="must be a folder, but it is a file"):
        RunFolder.create_or_resume(tmp_path / "file", CONFIG, resume=False)
    with pytest.raises(BangsError, match="a part of the path is a file"):
        RunFolder.create_or_resume(tmp_path / "file" / "run", CONFIG, resume=False)
    with pytest.raises(InvalidInput, match="zero byte"):
        RunFolder.create_or_resume("a\0b", CONFIG, resume=False)
    with pytest.raises(BangsError, match="could not be written"):
        RunFolder.create_or_resume(tmp_path / ("x" * 300), CONFIG, resume=False)


@pytest.mark.parametrize("name", ["config.json", "environment.json", "result.json", "events.jsonl", "lock"])
def test_links_in_the_folder_lead_nowhere(tmp_path: Path, name: str) -> None:
    (tmp_path / "precious").write_text("precious")
    filled(tmp_path / "run")
    (tmp_path / "run" / name).unlink(missing_ok=True)
    (tmp_path / "run" / name).symlink_to(tmp_path / "precious")
    with contextlib.suppress(BangsError), opened(tmp_path / "run") as run:
        run.event("x")
        run.save(9, {}, {})
        run.finish({})
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_linked_checkpoint_folder_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "run")
    shutil.move(tmp_path / "run" / "checkpoints", tmp_path / "elsewhere")
    (tmp_path / "run" / "checkpoints").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match="must be a folder, not a link"):
        RunFolder.create_or_resume(tmp_path / "run", CONFIG, resume=True)
    with pytest.raises(InvalidInput, match="must be a folder, not a link"):
        RunFolder.create_or_resume(tmp_path / "run", CONFIG, resume=False, overwrite=True)
    assert len(os.listdir(tmp_path / "elsewhere")) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is not valid JSON"),
        (b"\xff\x00", "is not valid JSON"),
        (b"[" * 500_000, "nested at most"),
        (b'{"format":1,"config":{"a":' * 1000, "is not valid JSON|nested"),
        (b" " * (17 << 20), "at most 16,777,216 bytes"),
        (b'{"format":2,"config":{},"sha256":""}', "has format 2, this version of bangs reads format 1; upgrade bangs"),
        (b'{"format":0,"config":{},"sha256":""}', "has format 0, this version of bangs reads format 1; choose another"),
        (b'{"format":true,"config":{}}', "states no format"),
        (b'{"format":1,"config":{"out":"/etc"},"sha256":"0"}', "does not match its checksum"),
        (b'{"format":1,"config":[],"sha256":"0"}', "does not match its checksum"),
        (b"7", "states no format"),
    ],
)
def test_an_unsound_config_is_refused_with_a_clear_error(tmp_path: Path, text: bytes, message: str) -> None:
    filled(tmp_path / "run")
    (tmp_path / "run" / "config.json").write_bytes(text)
    for resume in (True, False):
        with pytest.raises(InvalidInput, match=message):
            RunFolder.create_or_resume(tmp_path / "run", CONFIG, resume=resume)
    with pytest.raises(InvalidInput, match=message):
        read_run(tmp_path / "run")
    with RunFolder.create_or_resume(tmp_path / "run", CONFIG, resume=False, overwrite=True) as run:
        assert (run.resumed, run.latest(), read_run(tmp_path / "run").config["seeds"]) == (False, None, CONFIG["seeds"])


@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_config_changed_anywhere_is_read_or_refused_never_misread(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "run"
    if not path.exists():
        filled(path)
    original = (path / "config.json").read_bytes()
    body = bytearray(original)
    position = data.draw(st.integers(0, len(body) - 1))
    body[position : position + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    (path / "config.json").write_bytes(body)
    with contextlib.suppress(BangsError):
        assert read_run(path).config == json.loads(original)["config"]
    (path / "config.json").write_bytes(original)


def test_a_config_that_is_not_plain_is_refused_by_its_place(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"config\.method\.k must be made of .* got Tensor"):
        RunFolder.create_or_resume(tmp_path / "run", {"method": {"k": torch.tensor(1)}}, resume=False)
    assert not (tmp_path / "run").exists()


def test_reading_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not a run folder"):
        read_run(tmp_path)
    with pytest.raises(InvalidInput, match="not a run folder"):
        read_run(tmp_path / "missing")


# events


def test_events_are_numbered_lines(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as run:
        run.event("round", index=1, accuracy=[0.5, float("nan")], note="<script>\n")
    with opened(tmp_path / "run") as run:
        run.event("round", index=2)
        events = run.events()
    assert [event["n"] for event in events] == [1, 2, 3, 4]
    assert [event["kind"] for event in events] == ["started", "round", "resumed", "round"]
    assert events[1] | {"index": 1, "accuracy": [0.5, "nan"], "note": "<script>\n"} == events[1]
    assert len((tmp_path / "run" / "events.jsonl").read_text().splitlines()) == 4


def test_a_clock_that_goes_back_breaks_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(datetime):
        year_now = 2030

        @classmethod
        def now(cls, tz: Any = None) -> "datetime":
            cls.year_now -= 1
            return datetime(cls.year_now, 1, 1, tzinfo=UTC)

    monkeypatch.setattr(events_room, "datetime", Clock)
    with opened(tmp_path / "run") as run:
        run.event("a")
        run.event("b")
    with opened(tmp_path / "run") as run:
        events = run.events()
    assert [event["n"] for event in events] == [1, 2, 3, 4]
    assert [event["time"][:4] for event in events] == ["2029", "2028", "2027", "2026"]
    assert 0 <= events[0]["clock"] <= events[1]["clock"] <= events[2]["clock"]


def test_a_torn_line_is_cut_at_every_length(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with opened(path) as run:
        run.event("a")
    original = (path / "events.jsonl").read_bytes()
    first = original.index(b"\n") + 1
    for length in (*range(first, len(original), 7), len(original) - 1):  # at last only the line's end is missing
        (path / "events.jsonl").write_bytes(original[:length])
        torn = length - first
        assert [event["kind"] for event in read_run(path).events] == ["started"]
        with opened(path) as run:
            expected = ["started", "resumed"] + (["cut events"] if torn else [])
            assert kinds(run) == expected
            assert [event["n"] for event in run.events()] == list(range(1, len(expected) + 1))
            assert not torn or run.events()[-1]["bytes"] == torn


def test_a_block_of_zeros_from_a_power_cut_is_cut(tmp_path: Path) -> None:
    with opened(tmp_path / "run"):
        pass
    with (tmp_path / "run" / "events.jsonl").open("ab") as log:
        log.write(b"\0" * 4096)
    with opened(tmp_path / "run") as run:
        assert kinds(run) == ["started", "resumed", "cut events"]


def test_a_damaged_line_in_the_middle_costs_itself_only(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as run:
        run.event("a")
        run.event("b")
    log = tmp_path / "run" / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b'{"n": 2', b'\xff"n": 2'))
    with opened(tmp_path / "run") as run:
        assert [(event["n"], event["kind"]) for event in run.events()] == [(1, "started"), (3, "b"), (4, "resumed")]


def test_an_event_must_be_plain_short_and_not_use_the_names_of_its_own(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as run:
        with pytest.raises(InvalidInput, match="must not be called n"):
            run.event("a", n=1)
        with pytest.raises(InvalidInput, match=r"event\.x must be made of"):
            run.event("a", x=torch.zeros(1))
        with pytest.raises(InvalidInput, match="at most"):
            run.event("a", x="x" * (17 << 20))
        assert kinds(run) == ["started"]


def test_a_changed_environment_is_reported(tmp_path: Path) -> None:
    with opened(tmp_path / "run"):
        pass
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        with opened(tmp_path / "run") as run:
            assert run.events()[-1]["changed"] == {"threads": [threads, threads + 1]}
    finally:
        torch.set_num_threads(threads)


# checkpoints


def test_the_last_two_rounds_are_kept(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as run:
        for round in (0, 1, 2, 3, 1_000_000):
            run.save(round, {"w": torch.tensor([round])}, {"round": round})
            latest = run.latest()
            assert latest is not None
            assert (latest.round, latest.facts, int(latest.tensors["w"])) == (round, {"round": round}, round)
    assert sorted(os.listdir(tmp_path / "run" / "checkpoints")) == [
        "round-000003.safetensors",
        "round-1000000.safetensors",
    ]


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path: Path) -> None:
    newest = filled(tmp_path / "run") / "checkpoints" / "round-000003.safetensors"
    newest.write_bytes(newest.read_bytes()[:-5])
    with opened(tmp_path / "run") as run:
        latest = run.latest()
        assert latest is not None
        assert latest.round == 2
        event = run.events()[-1]
        assert (event["kind"], event["round"]) == ("damaged checkpoint", 3)
        assert "cut short" in event["reason"]
        run.save(3, {"w": torch.ones(1)}, {})
    with opened(tmp_path / "run") as run:
        latest = run.latest()
        assert latest is not None
        assert latest.round == 3
        assert list(_round_files(run.path / "checkpoints")) == [3, 2]


@given(st.integers(0, 10**6), st.integers(0, 7))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_flipped_bit_anywhere_falls_back(tmp_path: Path, position: int, bit: int) -> None:
    newest = tmp_path / "run" / "checkpoints" / "round-000003.safetensors"
    if not newest.exists():
        filled(tmp_path / "run")
    original = newest.read_bytes()
    body = bytearray(original)
    body[position % len(body)] ^= 1 << bit
    newest.write_bytes(body)
    with opened(tmp_path / "run") as run:
        latest = run.latest()
        assert latest is not None
        assert latest.round == 2
        assert torch.equal(latest.tensors["w"], torch.full((4,), 2.0))
    newest.write_bytes(original)


def test_where_no_checkpoint_is_whole_the_run_begins_again(tmp_path: Path) -> None:
    folder = filled(tmp_path / "run") / "checkpoints"
    for path in folder.iterdir():
        path.write_bytes(b"")
    with opened(tmp_path / "run") as run:
        assert run.latest() is None
        assert kinds(run)[-2:] == ["damaged checkpoint"] * 2
        run.save(1, {}, {})
        assert os.listdir(folder) == ["round-000001.safetensors"]


def test_a_checkpoint_under_a_wrong_name_or_of_another_run_is_not_used(tmp_path: Path) -> None:
    folder = filled(tmp_path / "run") / "checkpoints"
    shutil.copy(folder / "round-000003.safetensors", folder / "round-000009.safetensors")
    with opened(tmp_path / "other", {"k": 1}) as other:
        other.save(8, {}, {})
    shutil.copy(tmp_path / "other" / "checkpoints" / "round-000008.safetensors", folder)
    (folder / "round-0000010.safetensors").touch()
    (folder / "round-000011.safetensors").mkdir()
    with opened(tmp_path / "run") as run:
        latest = run.latest()
        assert latest is not None
        assert latest.round == 3
        reasons = [event["reason"] for event in run.events() if event["kind"] == "damaged checkpoint"]
    assert len(reasons) == 3
    assert "regular file" in reasons[0]
    assert reasons[1:] == ["it holds round 3", "it belongs to a run of another configuration"]


def test_a_saved_round_must_follow_the_newest(tmp_path: Path) -> None:
    filled(tmp_path / "run")
    with opened(tmp_path / "run") as run:
        for round in (3, 1, -1, 10**9):
            with pytest.raises(InvalidInput, match=r"must follow the newest one \(3\)"):
                run.save(round, {}, {})
        assert list(_round_files(run.path / "checkpoints")) == [3, 2]
        run.save(4, {}, {})
        assert list(_round_files(run.path / "checkpoints")) == [4, 3]


def test_left_over_temporary_files_are_removed(tmp_path: Path) -> None:
    filled(tmp_path / "run")
    for folder in (tmp_path / "run", tmp_path / "run" / "checkpoints"):
        (folder / ".round-000004.safetensors.0123456789abcdef.tmp").touch()
        (folder / ".mine").touch()
    with opened(tmp_path / "run"):
        pass
    leftovers = [path.name for path in (tmp_path / "run").rglob(".*")]
    assert leftovers == [".mine", ".mine"]


def evolve(path: Path, rounds: int, stop_after: int | None = None) -> dict[str, Tensor]:
    """A run whose state depends on all its rounds and on random numbers."""
    streams = Streams((1, 2))
    with opened(path) as run:
        latest = run.latest()
        first = latest.round + 1 if latest else 1
        state = latest.tensors["w"] if latest else torch.zeros(2, 5)
        history = latest.facts["history"] if latest else []
        for round in range(first, rounds + 1):
            state = (state + streams.at("round", round).randn(5)).sin()
            history = [*history, [round, float(state.sum()), float("nan")]]
            if round == stop_after:
                raise RuntimeError("the power went")
            run.save(round, {"w": state}, {"history": history})
        run.finish({"history": history})
        return {"w": state, "history": torch.tensor([row[1] for row in history], dtype=torch.float64)}


def test_a_run_stopped_in_every_round_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    undisturbed = evolve(tmp_path / "whole", 6)
    for stop in range(1, 7):
        with pytest.raises(RuntimeError):
            evolve(tmp_path / "broken", 6, stop_after=stop)
    resumed = evolve(tmp_path / "broken", 6)
    assert torch.equal(resumed["w"], undisturbed["w"])
    assert torch.equal(resumed["history"], undisturbed["history"])
    assert read_run(tmp_path / "broken").result == read_run(tmp_path / "whole").result


# results


def test_a_finished_run_says_so(tmp_path: Path) -> None:
    result = {"accuracy": [0.8, 0.9], "loss": float("inf")}
    with opened(tmp_path / "run") as run:
        run.finish(result)
        assert run.finished
    with opened(tmp_path / "run") as run:
        assert run.finished
        assert run.result == {"accuracy": [0.8, 0.9], "loss": "inf"}
        assert kinds(run) == ["started", "finished", "resumed"]


def test_a_damaged_result_is_no_result(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as run:
        run.finish({"accuracy": 0.8})
    path = tmp_path / "run" / "result.json"
    path.write_text(path.read_text().replace("0.8", "0.9"))
    with opened(tmp_path / "run") as run:
        assert not run.finished
        run.finish({"accuracy": 0.8})
        assert run.result == {"accuracy": 0.8}
