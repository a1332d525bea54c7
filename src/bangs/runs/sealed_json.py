"""JSON files that state their format and carry their own checksum."""

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from bangs.errors import InvalidInput
from bangs.utils.files import digest, finite, parse, read_regular_file, write_atomic

FORMAT = 1
LARGEST = 16 << 20  # bytes of a file
_SHOWN = 20  # differences


def seal(path: Path, content: dict[str, Any]) -> None:
    """Write `config.json` as {"format": 1, "sha256": …, "config": content}, and so for other names."""
    body = {"format": FORMAT, "sha256": digest(content), path.stem: finite(content)}
    text = json.dumps(body, indent=1, allow_nan=False) + "\n"
    if len(text) > LARGEST:
        raise InvalidInput(f"{path.name} must take at most {LARGEST:,} bytes, got {len(text):,}")
    write_atomic(path, text)


def unseal(path: Path) -> dict[str, Any] | None:
    """The content of a sealed file, None if there is no file; raises, with the broken rule, if it is not valid."""
    way = "restore the original, or choose another folder"
    try:
        body = parse(read_regular_file(path, LARGEST), f"'{path}'")
    except FileNotFoundError:
        return None
    except InvalidInput as error:
        raise InvalidInput(f"{error}; {way}") from error
    form = body.get("format") if isinstance(body, dict) else None
    if not isinstance(form, int) or isinstance(form, bool):
        raise InvalidInput(f"'{path}' states no format, so it was not written by bangs; {way}")
    if form != FORMAT:
        way = "upgrade bangs, or choose another folder" if form > FORMAT else "choose another folder"
        raise InvalidInput(f"'{path}' has format {form}, this version of bangs reads format {FORMAT}; {way}")
    content = body.get(path.stem)
    if not isinstance(content, dict) or body.get("sha256") != digest(content):
        raise InvalidInput(f"'{path}' does not match its checksum, so it was edited or damaged; {way}")
    return content


def differences(there: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """One line for each place where two plain values differ: "method.k: 100 in the folder, 200 now"."""
    old, new = dict(_leaves(there, "")), dict(_leaves(finite(here), ""))
    places = [place for place in sorted(old.keys() | new.keys()) if old.get(place) != new.get(place)]
    lines = [f"{place}: {old.get(place, 'nothing')} in the folder, {new.get(place, 'nothing')} now" for place in places]
    return lines if len(lines) <= _SHOWN else [*lines[:_SHOWN], f"… and {len(lines) - _SHOWN} more"]


def _leaves(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Every scalar, empty list and empty dict under its place, in ASCII: ("method.k", "100")."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            name = key if re.fullmatch(r"\w+", key, re.ASCII) else _clip(json.dumps(key))
            yield from _leaves(item, f"{place}.{name}" if place else name)
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{place}[{index}]")
    else:
        yield place, _clip(json.dumps(value))


def _clip(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}… (sha256 {sha256(text.encode()).hexdigest()[:8]})"
