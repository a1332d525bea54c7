"""Files are whole or not there; JSON from outside is refused with a sentence."""

import contextlib
import errno
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bangs.errors import BangsError, InvalidInput
from bangs.utils.files import (
    MAX_DEPTH,
    Unwritable,
    canonical,
    digest,
    is_temporary,
    json_value,
    parse,
    read_regular_file,
    to_dataclass,
    write_atomic,
)

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", "één")
    assert read_regular_file(tmp_path / "a", 100) == "één".encode()
    write_atomic(str(tmp_path / "a"), b"\0\1")
    assert read_regular_file(tmp_path / "a", 2) == b"\0\1"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS])
def test_a_fault_at_any_call_keeps_the_former_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    path = tmp_path / "a"
    write_atomic(path, "former")

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(Unwritable, match=r"'.*a' could not be written") as caught:
        write_atomic(path, "new")
    monkeypatch.undo()
    assert caught.value.errno == number
    assert path.read_text() == "former"
    assert os.listdir(tmp_path) == ["a"]


def test_an_interrupt_in_the_middle_of_a_write_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "a", "new")
    assert os.listdir(tmp_path) == []


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, body: write(file, body[:3]))
    write_atomic(tmp_path / "a", "0123456789")
    assert (tmp_path / "a").read_text() == "0123456789"


def test_a_network_disk_that_cannot_sync_folders_is_good_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def refuse_folders(file: int) -> None:
        if os.path.isdir(f"/dev/fd/{file}"):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(file)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    write_atomic(tmp_path / "a", "x")
    assert (tmp_path / "a").read_text() == "x"


def test_a_full_disk_is_called_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(Unwritable, match="the disk is full; free some space"):
        write_atomic(tmp_path / "a", "x")


def test_impossible_places_are_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unwritable, match="a part of the path is a file"):
        write_atomic(tmp_path / "file" / "a", "x")
    with pytest.raises(Unwritable, match="could not be written: its folder does not exist; make it"):
        write_atomic(tmp_path / "missing" / "a", "x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(Unwritable, match="it is a folder"):
        write_atomic(tmp_path / "folder", "x")


def test_writing_over_a_link_replaces_the_link_and_not_its_target(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    write_atomic(tmp_path / "link", "new")
    assert (tmp_path / "precious").read_text() == "precious"
    assert (tmp_path / "link").read_text() == "new"


def test_links_pipes_and_oversize_files_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    os.mkfifo(tmp_path / "pipe")
    for name, message in (("link", "could not be read"), ("pipe", "regular file"), ("precious", "at most 4 bytes")):
        with pytest.raises(InvalidInput, match=message):
            read_regular_file(tmp_path / name, 4)
    with pytest.raises(FileNotFoundError):
        read_regular_file(tmp_path / "missing", 4)
    assert read_regular_file(tmp_path / "link", 8, follow=True) == b"precious"
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(InvalidInput, match="could not be read"):
        read_regular_file(tmp_path / "circle", 4, follow=True)


def test_only_our_temporary_files_are_called_so() -> None:
    assert is_temporary(".config.json.0123456789abcdef.tmp")
    assert not any(map(is_temporary, (".bashrc", "config.json", "notes.tmp", ".x.tmp", "a.0123456789abcdef.tmp")))


@given(VALUES)
@settings(max_examples=60, deadline=None)
def test_the_canonical_spelling_is_strict_json_and_a_fixed_point(value: object) -> None:
    text = canonical(json_value(value, "value"))
    assert text.isascii()

    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is not JSON")

    again = json.loads(text, parse_constant=refuse)
    assert canonical(again) == text
    assert digest(again) == digest(json_value(value, "value"))


def test_the_order_of_keys_does_not_matter_but_kinds_of_numbers_do() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert len({digest(value) for value in (1, 1.0, True, "1", None, [1], float("inf"), 0.1, 0.1 + 1e-17 + 1e-16)}) == 9
    assert canonical({"b": [0.1, -math.inf], "a": None}) == '{"a":null,"b":[0.1,"-inf"]}'


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, {2}]}, r"x\.a\[1\] must be made of .* got set"),
        ({"a": {1: 2}}, r"keys of x\.a must be text, got 1"),
        ({"a": b"1"}, r"x\.a must be made of .* got bytes"),
        ({"a": Path("b")}, r"x\.a must be made of"),
    ],
)
def test_what_json_cannot_give_back_is_refused_by_its_place(value: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        json_value(value, "x")


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(InvalidInput, match=f"at most {MAX_DEPTH} deep"):
        json_value(loop, "x")


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"\xff\xfe", b"[" * 1_000_000, b'{"a":' * 100_000, b"1" * 10_000, b"nul", b"[" * 70 + b"]" * 70, b"\0"],
)
def test_unsound_json_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"^x"):
        parse(text, "x")


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
@settings(max_examples=200, deadline=None)
def test_any_bytes_give_a_value_or_a_named_error(text: bytes) -> None:
    with contextlib.suppress(BangsError):
        parse(text, "x")


def test_a_plain_value_becomes_a_dataclass_or_the_wrong_field_is_named() -> None:
    @dataclass(frozen=True)
    class Pair:
        name: str
        sizes: tuple[int, ...] = ()

    assert to_dataclass(Pair, {"name": "a", "sizes": [1, 2], "more": 3}) == Pair("a", (1, 2))
    with pytest.raises(ValueError, match=r"^sizes\.1: Input should be a valid integer"):
        to_dataclass(Pair, {"name": "a", "sizes": [1, "x"]})
    with pytest.raises(ValueError, match=r"^name: Field required"):
        to_dataclass(Pair, {})
