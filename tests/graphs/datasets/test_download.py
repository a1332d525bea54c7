"""A download gives the complete file, verified, or no file."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bangs.errors import DataUnavailable
from bangs.graphs.datasets.download import Remote, download
from tests.graphs.datasets.server import Server, serving

CONTENT = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other at once."""
    monkeypatch.setattr("pooch.core.time.sleep", lambda _: None)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server({"file": CONTENT})) as running:
        yield running


def remote(server: Server, sha256: str | None = SHA256, name: str = "file") -> Remote:
    return Remote(f"{server.url}/{name}", sha256)


def test_a_file_arrives_whole_in_a_folder_made_for_it(server: Server, tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder" / "file"
    assert download(remote(server), target).read_bytes() == CONTENT
    assert os.listdir(target.parent) == ["file"]


def test_a_broken_transfer_is_begun_again(server: Server, tmp_path: Path) -> None:
    server.breaks, server.after = 2, 100_000
    assert download(remote(server), tmp_path / "file").read_bytes() == CONTENT
    assert len(server.requests) == 3


@pytest.mark.parametrize("length", [True, False])
def test_what_never_arrives_whole_leaves_nothing(server: Server, tmp_path: Path, length: bool) -> None:
    server.breaks, server.after, server.length = 9, 10, length
    with pytest.raises(DataUnavailable, match=r"could not be fetched: .*(broken|hash)"):
        download(remote(server), tmp_path / "file")
    assert os.listdir(tmp_path) == []


def test_a_wrong_checksum_leaves_nothing_and_the_old_file_stays(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    with pytest.raises(DataUnavailable, match=r"hash of downloaded file .* does not match the known hash"):
        download(remote(server, "00"), tmp_path / "file")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_a_web_page_in_place_of_the_file_is_noticed(server: Server, tmp_path: Path) -> None:
    server.files["file"] = b"<html>Too many users have viewed or downloaded this file</html>"
    with pytest.raises(DataUnavailable, match="answered with a web page"):
        download(Remote(f"{server.url}/file", starts=b"PK"), tmp_path / "file")
    assert os.listdir(tmp_path) == []


def test_a_missing_remote_file_is_a_clear_error(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable, match=r"could not be fetched: 404 .*Not Found"):
        download(remote(server, name="other"), tmp_path / "other")
    assert os.listdir(tmp_path) == []


def test_a_failing_server_is_tried_again(server: Server, tmp_path: Path) -> None:
    server.status = 503
    with pytest.raises(DataUnavailable, match="could not be fetched: 503"):
        download(remote(server), tmp_path / "file")
    assert len(server.requests) == 3


def test_an_unreachable_server_is_a_clear_error(tmp_path: Path) -> None:
    with serving(Server()) as gone:
        url = gone.url
    with pytest.raises(DataUnavailable, match=r"could not be fetched: .*refused"):
        download(Remote(f"{url}/file"), tmp_path / "file")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/file", "/etc/passwd"])
def test_only_the_web_is_fetched_from(url: str, tmp_path: Path) -> None:
    with pytest.raises(DataUnavailable, match="only http and https"):
        download(Remote(url), tmp_path / "file")


def test_a_target_that_cannot_be_written_is_a_clear_error(server: Server, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("no folder")
    with pytest.raises(DataUnavailable, match=r"could not be fetched: .*(Not a directory|File exists)"):
        download(remote(server), tmp_path / "plain" / "file")
