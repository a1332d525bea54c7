"""A download gives the whole file, checked, or nothing under its name."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bangs.errors import DataUnavailable
from bangs.graphs.datasets.download import Download, Remote
from tests.graphs.datasets.server import Server, serving

CONTENT = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
FETCH = Download(attempts=3, pause=0.001, timeout=5)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server({"file": CONTENT})) as running:
        yield running


def remote(server: Server, sha256: str | None = SHA256, name: str = "file", **facts: int) -> Remote:
    return Remote(f"{server.url}/{name}", sha256, **facts)  # type: ignore[arg-type]


def test_a_file_arrives_whole_in_a_folder_made_for_it(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder" / "file"
    assert FETCH(remote(server), target).read_bytes() == CONTENT
    assert os.listdir(target.parent) == ["file"]


def test_a_broken_transfer_goes_on_where_it_stopped(server: Server, tmp_path: Path) -> None:
    server.breaks, server.after = 2, 100_000
    assert FETCH(remote(server), tmp_path / "file").read_bytes() == CONTENT
    assert server.asked == [None, "bytes=100000-", "bytes=200000-"]


def test_a_server_that_cannot_go_on_is_read_from_the_start(server: Server, tmp_path: Path) -> None:
    server.breaks, server.after, server.ranges = 1, 100_000, False
    assert FETCH(remote(server), tmp_path / "file").read_bytes() == CONTENT


def test_a_part_longer_than_the_file_is_thrown_away(server: Server, tmp_path: Path) -> None:
    # the first answer lacks its length and is cut, so that only the sum tells; the second finds a shorter file
    server.files["file"] = CONTENT + b"more"
    server.breaks, server.after = 1, len(CONTENT) + 2
    changed = iter([CONTENT])

    class Changing(dict[str, bytes]):
        def get(self, key: str, default: object = None) -> bytes:  # type: ignore[override]
            if len(server.asked) == 2:
                server.files = {"file": next(changed)}
            return self["file"] if len(server.asked) == 1 else server.files["file"]

    server.files = Changing(server.files)
    assert FETCH(remote(server), tmp_path / "file").read_bytes() == CONTENT
    assert server.asked[2] is None


@pytest.mark.parametrize("length", [True, False])
def test_what_never_arrives_whole_leaves_nothing(server: Server, tmp_path: Path, length: bool) -> None:
    server.breaks, server.after, server.length = 9, 10, length
    with pytest.raises(DataUnavailable, match=r"the connection ended after|its sha256 is"):
        FETCH(remote(server), tmp_path / "file")
    assert os.listdir(tmp_path) == []


def test_a_wrong_checksum_leaves_nothing_and_the_old_file_stays(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    with pytest.raises(DataUnavailable, match=f"its sha256 is {SHA256}, not 00"):
        FETCH(remote(server, "00"), tmp_path / "file")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_a_web_page_in_place_of_the_file_is_noticed(server: Server, tmp_path: Path) -> None:
    server.files["file"] = b"<html>Too many users have viewed or downloaded this file</html>"
    with pytest.raises(DataUnavailable, match="answered with a web page"):
        FETCH(Remote(f"{server.url}/file", starts=b"PK"), tmp_path / "file")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("length", [True, False])
def test_a_file_larger_than_expected_is_not_taken(server: Server, tmp_path: Path, length: bool) -> None:
    server.length = length
    with pytest.raises(DataUnavailable, match="bytes"):
        FETCH(remote(server, most_bytes=1000), tmp_path / "file")
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_not_there_is_asked_for_once(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable, match="the server answered 404"):
        FETCH(remote(server, name="other"), tmp_path / "other")
    assert len(server.asked) == 1


def test_a_server_in_trouble_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.status = 503
    with pytest.raises(DataUnavailable, match="the server answered 503"):
        FETCH(remote(server), tmp_path / "file")
    assert len(server.asked) == 3


def test_no_server_is_a_sentence(tmp_path: Path) -> None:
    with serving(Server()) as gone:
        url = gone.url
    with pytest.raises(DataUnavailable, match=r"could not be fetched: .*refused"):
        FETCH(Remote(f"{url}/file"), tmp_path / "file")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/file", "/etc/passwd"])
def test_only_the_web_is_fetched_from(url: str, tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable, match="only http and https"):
        FETCH(Remote(url), tmp_path / "file")


def test_a_place_that_cannot_be_written_is_a_sentence(server: Server, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("no folder")
    with pytest.raises(DataUnavailable, match="cannot be written"):
        FETCH(remote(server), tmp_path / "plain" / "file")
