"""One process writes in a folder; another learns who."""

import json
import os
import shutil
import signal
import threading
from pathlib import Path

import pytest

from bangs.errors import BangsError
from bangs.runs import RunFolder
from bangs.runs.lock import InUse, Lock, acquire


class Holder:
    """Another process that holds a folder until it is asked to release it, or killed."""

    def __init__(self, folder: Path):
        ready_reader, ready_writer = os.pipe()
        stop_reader, self._stop_writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                lock = Lock(folder)
                os.write(ready_writer, b"x")
                os.read(stop_reader, 1)
                lock.release()
            finally:
                os._exit(0)
        assert os.read(ready_reader, 1)
        for file in (ready_reader, ready_writer, stop_reader):
            os.close(file)

    def release(self) -> None:
        os.write(self._stop_writer, b"x")
        self._wait()

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self._wait()

    def _wait(self) -> None:
        os.waitpid(self.pid, 0)
        os.close(self._stop_writer)


def test_a_second_process_gets_an_error_that_names_the_holder(tmp_path: Path) -> None:
    holder = Holder(tmp_path)
    for flags in ({"resume": True}, {"resume": False}, {"resume": False, "overwrite": True}):
        with pytest.raises(InUse, match=rf"is in use by process {holder.pid} since 20\d\d-.*; wait for it, stop it"):
            RunFolder.create_or_resume(tmp_path, {}, **flags)
    holder.release()
    with RunFolder.create_or_resume(tmp_path, {}, resume=True) as run:
        assert [event["kind"] for event in run.events()] == ["started"]


def test_a_killed_holder_leaves_a_stale_lock_that_is_recognised(tmp_path: Path) -> None:
    holder = Holder(tmp_path)
    holder.kill()
    with RunFolder.create_or_resume(tmp_path, {}, resume=True) as run:
        event = run.events()[-1]
    assert (event["kind"], event["holder"]["pid"]) == ("stale lock", holder.pid)


def test_this_process_cannot_hold_a_folder_twice(tmp_path: Path) -> None:
    with (
        RunFolder.create_or_resume(tmp_path, {}, resume=True),
        pytest.raises(InUse, match="in use by this very process"),
    ):
        RunFolder.create_or_resume(tmp_path, {}, resume=True)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"host": "0" * 12}, r"process \d+ of another machine since"),
        ({"pid": 999_999_999}, "a process started by process 999999999, which is gone"),
        ({"pid": "1; rm"}, "another process"),
        ({"since": "\x1b[2J"}, "another process"),
        ({"pid": -1}, "another process"),
    ],
)
def test_the_holder_is_named_as_well_as_it_is_known(tmp_path: Path, facts: dict[str, object], words: str) -> None:
    with RunFolder.create_or_resume(tmp_path, {}, resume=True):
        lock = tmp_path / "lock"
        lock.write_text(json.dumps(json.loads(lock.read_text()) | facts))
        with pytest.raises(InUse, match=f"is in use by {words}"):
            RunFolder.create_or_resume(tmp_path, {}, resume=True)


def test_the_lock_names_neither_machine_nor_user(tmp_path: Path) -> None:
    with RunFolder.create_or_resume(tmp_path, {}, resume=True):
        facts = json.loads((tmp_path / "lock").read_text())
    assert facts.keys() == {"pid", "since", "host"}
    assert os.uname().nodename not in facts["host"] or len(os.uname().nodename) < 3
    assert (tmp_path / "lock").read_text() == ""


def test_nonsense_in_the_free_lock_of_a_run_is_no_obstacle(tmp_path: Path) -> None:
    RunFolder.create_or_resume(tmp_path, {}, resume=True).close()
    (tmp_path / "lock").write_bytes(b"[" * 100_000)
    with RunFolder.create_or_resume(tmp_path, {}, resume=True) as run:
        assert [event["kind"] for event in run.events()] == ["started", "resumed"]


@pytest.mark.parametrize("content", [b"", b"\0" * 80])
def test_a_lock_without_facts_is_no_obstacle(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "lock").write_bytes(content)
    with RunFolder.create_or_resume(tmp_path, {}, resume=True) as run:
        assert [event["kind"] for event in run.events()] == ["started"]


def test_a_forked_worker_neither_keeps_the_lock_nor_writes(tmp_path: Path) -> None:
    run = RunFolder.create_or_resume(tmp_path, {}, resume=True)
    ready, wrote = os.pipe()
    end, go = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with pytest.raises(BangsError, match="this is a forked process"):
                run.event("from the child")
            os.write(wrote, b"refused")
            os.read(end, 1)
        finally:
            os._exit(0)
    assert os.read(ready, 10) == b"refused"
    run.event("from the parent")
    run.close()
    with RunFolder.create_or_resume(tmp_path, {}, resume=True) as reopened:  # while the child lives
        assert [event["kind"] for event in reopened.events()] == ["started", "from the parent", "resumed"]
    os.write(go, b"x")
    os.waitpid(child, 0)
    for file in (ready, wrote, end, go):
        os.close(file)


def test_a_folder_closed_or_replaced_is_written_no_more(tmp_path: Path) -> None:
    run = RunFolder.create_or_resume(tmp_path / "run", {}, resume=True)
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(BangsError, match="is not held any more"):
        run.event("lost")
    with RunFolder.create_or_resume(tmp_path / "run", {}, resume=True) as new:
        with pytest.raises(BangsError, match="is not held any more"):
            run.save(1, {}, {})
        assert new.latest() is None
    run.close()
    run.close()
    with pytest.raises(BangsError, match="is not held any more"):
        new.finish({})


def test_a_lock_in_use_is_waited_for_as_long_as_one_likes(tmp_path: Path) -> None:
    first = Lock(tmp_path)
    with pytest.raises(InUse):
        acquire(tmp_path, patience=0.1)
    threading.Timer(0.3, first.release).start()
    second = acquire(tmp_path, patience=60)
    assert second.held()
    second.release()
