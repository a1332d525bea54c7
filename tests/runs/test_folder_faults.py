"""A disk that is full, read-only or broken stops a run with a sentence and costs it nothing."""

import errno
import os
import resource
import subprocess
from pathlib import Path

import pytest
import torch

from bangs.errors import BangsError
from bangs.runs import RunFolder
from bangs.utils.files import Unwritable

BIG = {"w": torch.arange(100_000.0)}  # 400 kB


def test_a_full_disk_stops_the_run_and_space_lets_it_go_on(small_disk: Path) -> None:
    path = small_disk / "run"
    (small_disk / "ballast").write_bytes(b"x" * 400_000)
    with RunFolder.create_or_resume(path, {}, resume=False) as run:
        run.save(1, BIG, {})
        with pytest.raises(Unwritable, match=r"round-000002.safetensors' could not be written: the disk is full"):
            run.save(2, BIG, {})
        assert os.listdir(path / "checkpoints") == ["round-000001.safetensors"]
        run.event("the log still works")
    (small_disk / "ballast").unlink()
    with RunFolder.create_or_resume(path, {}, resume=True) as run:
        latest = run.latest()
        assert latest is not None
        assert latest.round == 1
        assert torch.equal(latest.tensors["w"], BIG["w"])
        run.save(2, BIG, {})


def test_a_disk_too_full_for_an_event_keeps_whole_lines(small_disk: Path) -> None:
    with RunFolder.create_or_resume(small_disk / "run", {}, resume=False) as run:
        for _ in range(9):
            run.event("long", text="x" * 100_000)
        with pytest.raises(Unwritable, match=r"events.jsonl' could not be written: the disk is full"):
            run.event("too long", text="x" * 200_000)
        written = len(run.events())
    assert (small_disk / "run" / "events.jsonl").read_bytes().endswith(b"\n")
    with RunFolder.create_or_resume(small_disk / "run", {}, resume=True) as run:
        numbers = [event["n"] for event in run.events()]
        assert len(numbers) == written + 1
        assert numbers == sorted(set(numbers))


def test_a_full_disk_cannot_begin_a_run(small_disk: Path) -> None:
    with (small_disk / "ballast").open("wb", buffering=0) as ballast:
        ballast.write(b"x" * 2_000_000)  # as much as there is room for
    with pytest.raises(Unwritable, match="the disk is full"):
        RunFolder.create_or_resume(small_disk / "run", {}, resume=False)
    (small_disk / "ballast").unlink()
    with RunFolder.create_or_resume(small_disk / "run", {}, resume=False) as run:
        assert not run.resumed


def test_a_read_only_disk_is_called_so(small_disk: Path) -> None:
    with RunFolder.create_or_resume(small_disk / "run", {}, resume=False):
        pass
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for path in ("run", "new"):
        with pytest.raises(Unwritable, match="the disk is mounted read-only; write elsewhere"):
            RunFolder.create_or_resume(small_disk / path, {}, resume=True)


def test_a_limit_on_file_sizes_tears_nothing(tmp_path: Path) -> None:
    """The kernel itself cuts the write short here, on any system."""
    with RunFolder.create_or_resume(tmp_path / "run", {}, resume=False) as run:
        run.save(1, BIG, {})
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        try:
            with pytest.raises(Unwritable, match="beyond the size this system allows"):
                run.save(2, BIG, {})
            with pytest.raises(Unwritable, match="beyond the size this system allows"):
                run.event("long", text="x" * 200_000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert os.listdir(tmp_path / "run" / "checkpoints") == ["round-000001.safetensors"]
        assert [event["kind"] for event in run.events()] == ["started"]
        run.save(2, BIG, {})
        run.event("short")
        assert [event["kind"] for event in run.events()] == ["started", "short"]


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_fault_at_any_call_keeps_the_former_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with RunFolder.create_or_resume(tmp_path / "run", {}, resume=False) as run:
        run.save(1, {"w": torch.ones(1)}, {})
        monkeypatch.setattr(os, call, fail)
        with pytest.raises(Unwritable):
            run.save(2, {"w": torch.zeros(1)}, {})
        with pytest.raises(Unwritable):
            run.finish({})
        monkeypatch.undo()
        assert not run.finished
        latest = run.latest()
        assert latest is not None
        assert latest.round == 1
        assert os.listdir(run.path / "checkpoints") == ["round-000001.safetensors"]
        run.save(2, {"w": torch.zeros(1)}, {})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o500)
    with pytest.raises(Unwritable, match="permission is denied"):
        RunFolder.create_or_resume(tmp_path / "mine" / "run", {}, resume=False)


@pytest.mark.parametrize("call", ["open", "mkdir", "listdir"])
def test_a_denied_call_while_opening_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def deny(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, call, deny)
    with pytest.raises(BangsError, match="permission is denied; change the permissions or write elsewhere"):
        RunFolder.create_or_resume(tmp_path / "run", {}, resume=False)


def test_a_checkpoint_on_a_bad_sector_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RunFolder.create_or_resume(tmp_path / "run", {}, resume=False) as run:
        run.save(1, {}, {})
        run.save(2, {}, {})
        plain_open = os.open

        def fail(path: str | Path, *rest: int) -> int:
            if str(path).endswith("round-000002.safetensors"):
                raise OSError(errno.EIO, "Input/output error")
            return plain_open(path, *rest)

        monkeypatch.setattr(os, "open", fail)
        latest = run.latest()
        assert latest is not None
        assert latest.round == 1
        reason = run.events()[-1]["reason"]
        assert "Input/output error" in reason
        assert str(tmp_path) not in reason
