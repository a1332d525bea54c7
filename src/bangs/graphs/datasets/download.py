"""Download: a file from the network, whole and checked, or not at all."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bangs.errors import DataUnavailable

TIMEOUT = 30.0  # seconds without a byte


@dataclass(frozen=True)
class Remote:
    """A file on a server."""

    url: str
    sha256: str | None = None  # None where the source publishes none; then the first bytes must do
    starts: bytes = b""  # what the file begins with; an error page does not


def download(remote: Remote, target: Path, attempts: int = 3) -> Path:
    """The target, once it holds the whole file with the right sha256; it never holds a part of it."""
    import pooch  # with requests, half a second that only a download needs

    if urlsplit(remote.url).scheme not in ("http", "https"):
        raise DataUnavailable(f"{remote.url} cannot be fetched: only http and https are supported")
    pooch.get_logger().setLevel("WARNING")
    registry = pooch.create(
        target.parent,
        base_url="",
        registry={target.name: remote.sha256 and f"sha256:{remote.sha256}"},
        urls={target.name: remote.url},
        retry_if_failed=attempts - 1,
    )

    def fetch(url: str, file: str, pooch_registry: Any) -> None:
        web = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=TIMEOUT, headers={"User-Agent": "bangs"})
        web(url, file, pooch_registry)
        with open(file, "rb") as stream:
            if stream.read(len(remote.starts)) != remote.starts:
                raise ValueError("it is not the kind of file expected; the server may have answered with a web page")

    try:
        return Path(registry.fetch(target.name, downloader=fetch))
    except (OSError, ValueError) as error:  # requests raises the first, a checksum the second
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataUnavailable(f"{remote.url} could not be fetched: {reason}") from error
