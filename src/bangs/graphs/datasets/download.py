"""Download a file completely, with its checksum verified, or not at all."""

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
    sha256: str | None = None  # None if the source publishes none; then only the first bytes are checked
    starts: bytes = b""  # the first bytes of the file, which an error page does not have


def download(remote: Remote, target: Path, attempts: int = 3) -> Path:
    """Download to `target`, which never holds a part of the file; returns `target`."""
    import pooch  # imported late: it takes half a second, and only a download needs it

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
