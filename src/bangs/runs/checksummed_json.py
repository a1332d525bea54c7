"""JSON files with a format number and a checksum."""

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from bangs.errors import InvalidInput
from bangs.utils.files import digest, finite, parse, read_regular_file, write_atomic

FORMAT = 1
MAX_BYTES = 16 << 20
_MAX_SHOWN = 20  # differences in an error message


def write_checksummed(path: Path, content: dict[str, Any]) -> None:
    """Write a file such as `config.json` as {"format": 1, "sha256": …, "config": content}."""
    body = {"format": FORMAT, "sha256": digest(content), path.stem: finite(content)}
    text = json.dumps(body, indent=1, allow_nan=False) + "\n"
    if len(text) > MAX_BYTES:
        raise InvalidInput(f"{path.name} must take at most {MAX_BYTES:,} bytes, got {len(text):,}")
    write_atomic(path, text)


def read_checksummed(path: Path) -> dict[str, Any] | None:
    """The content of such a file, None if there is no file; raises if it is not valid."""
    hint = "restore the original, or choose another folder"
    try:
        body = parse(read_regular_file(path, MAX_BYTES), f"'{path}'")
    except FileNotFoundError:
        return None
    except InvalidInput as error:
        raise InvalidInput(f"{error}; {hint}") from error
    version = body.get("format") if isinstance(body, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise InvalidInput(f"'{path}' states no format, so it was not written by bangs; {hint}")
    if version != FORMAT:
        hint = "upgrade bangs, or choose another folder" if version > FORMAT else "choose another folder"
        raise InvalidInput(f"'{path}' has format {version}, this version of bangs reads format {FORMAT}; {hint}")
    content = body.get(path.stem)
    if not isinstance(content, dict) or body.get("sha256") != digest(content):
        raise InvalidInput(f"'{path}' does not match its checksum, so it was edited or damaged; {hint}")
    return content


def differences(stored: dict[str, Any], current: dict[str, Any]) -> list[str]:
    """One line for each key where two configurations differ: "method.k: 100 in the folder, 200 now"."""
    old, new = dict(_leaves(stored, "")), dict(_leaves(finite(current), ""))
    keys = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
    lines = [f"{key}: {old.get(key, 'nothing')} in the folder, {new.get(key, 'nothing')} now" for key in keys]
    return lines if len(lines) <= _MAX_SHOWN else [*lines[:_MAX_SHOWN], f"… and {len(lines) - _MAX_SHOWN} more"]


def _leaves(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """Every scalar, empty list and empty dict with its dotted key, in ASCII: ("method.k", "100")."""
    if isinstance(value, dict) and value:
        for child, item in value.items():
            name = child if re.fullmatch(r"\w+", child, re.ASCII) else _clip(json.dumps(child))
            yield from _leaves(item, f"{key}.{name}" if key else name)
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{key}[{index}]")
    else:
        yield key, _clip(json.dumps(value))


def _clip(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}… (sha256 {sha256(text.encode()).hexdigest()[:8]})"
