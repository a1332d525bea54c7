"""Audit: `python tests/project/audit.py constraints.txt [INDEX]` checks whether a pinned package has a known weakness.

It asks the package index for the advisories of every version, as pip-audit does, and whether its makers have withdrawn
it. An index may give the advisories of a project's newest version only; those pinned to an older one are named. The
index is also asked for a package that is known to be weak, to see whether it gives advisories at all. Ends with 1 where
anything was found, and with 2 where not everything could be asked for.
"""

import json
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

INDEX = "https://pypi.org"
WEAK = ("pycrypto", "2.6.1")  # abandoned in 2014 with advisories that no version fixes
PIN = re.compile(r"([A-Za-z0-9._-]+)==([A-Za-z0-9._+!-]+)")
PATIENCE = 60.0  # seconds for an answer
AT_ONCE = 8


@dataclass(frozen=True)
class Answer:
    """What an index answers about one version of a package."""

    name: str
    version: str
    faults: tuple[str, ...] = ()  # each a sentence
    newest: str | None = None  # the project's newest version, where the index gives advisories of that one alone
    uploaded: str = ""  # when the project's last file came; empty where the index does not know the version
    unasked: str | None = None  # why the index did not answer

    @property
    def pin(self) -> str:
        return f"{self.name} {self.version}"


def main(pinned: str, index: str = INDEX) -> int:
    """Ask for every pin and say what came: 0 for no weakness, 1 for one, 2 where some could not be asked for."""
    found, lines = audit(list(pins(Path(pinned).read_text())), index)
    print("\n".join(f"audit: {line}" for line in lines))
    return found


def pins(text: str) -> Iterator[tuple[str, str]]:
    """Names and versions of a constraints file; a line that pins nothing is an error."""
    for line in text.splitlines():
        requirement = line.split("#")[0].split(";")[0].strip()
        if not requirement:
            continue
        match = PIN.fullmatch(requirement)
        if match is None:
            raise SystemExit(f"audit: '{line}' pins no version; write name==version")
        yield match[1], match[2]


def audit(wanted: list[tuple[str, str]], index: str) -> tuple[int, list[str]]:
    """How it ends, and what to say."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        canary, *answers = pool.map(lambda pin: ask(index, *pin), [WEAK, *wanted])
    silent = [own for own in answers if own.unasked is not None]
    if len(silent) == len(answers):
        return 2, [f"{index} did not answer, so none of {len(answers)} packages was checked: {silent[0].unasked}"]
    if not canary.faults:
        return 2, [f"{index} gives no advisory of {canary.pin}, which has some, so it cannot be trusted"]
    lines = [sentence for own in answers for sentence in own.faults]
    lines += [f"{own.pin} was not checked: {own.unasked}" for own in silent]
    return (1 if any(own.faults for own in answers) else 2 if silent else 0), [*lines, *_summary(answers, index)]


def _summary(answers: list[Answer], index: str) -> Iterator[str]:
    """What was checked, and how old the answers may be."""
    asked = [own for own in answers if own.uploaded]
    held = [own for own in asked if own.newest is not None]
    today = datetime.now(tz=UTC).date()
    known = max((own.uploaded for own in asked), default="no date")[:10]
    weak = sum(bool(own.faults) for own in answers)
    yield (
        f"asked {index} on {today} for {len(answers)} pinned packages: {weak} with a weakness; the index gave "
        f"advisories of {len(asked) - len(held)} and withdrawals of {len(asked)}; "
        f"the newest file it knew of is of {known}"
    )
    if held:
        names = ", ".join(f"{own.pin} ({own.newest} is the newest)" for own in held)
        yield f"the index gave no advisories of these, as they are not the newest: {names}"


def ask(index: str, name: str, version: str) -> Answer:
    """What the index answers about one version."""
    try:
        exact = _fetched(f"{index}/pypi/{name}/{version}/json")
        project = exact or _fetched(f"{index}/pypi/{name}/json")
    except (OSError, ValueError) as reason:  # of the network, or of what is no JSON
        return Answer(name, version, unasked=str(reason) or type(reason).__name__)
    files = None if project is None else project["urls"] if exact else project["releases"].get(version)
    if project is None or not files:
        return Answer(name, version, (f"{name} {version} is not on the index; it may have been taken away",))
    newest = str(project["info"]["version"])
    has_advisories = exact is not None or newest == version
    faults = [*_withdrawn(name, version, files), *(_weaknesses(name, version, project) if has_advisories else ())]
    every = [file for release in project.get("releases", {}).values() for file in release] or files
    last = max(str(file.get("upload_time", "")) for file in every)
    return Answer(name, version, tuple(faults), None if has_advisories else newest, last)


def _withdrawn(name: str, version: str, files: list[dict[str, Any]]) -> Iterator[str]:
    if any(file.get("yanked") for file in files):
        reasons = {str(file["yanked_reason"]) for file in files if file.get("yanked_reason")}
        yield f"{name} {version} was withdrawn by its makers: {', '.join(sorted(reasons)) or 'no reason given'}"


def _weaknesses(name: str, version: str, project: dict[str, Any]) -> Iterator[str]:
    for fault in project.get("vulnerabilities", ()):
        if not fault.get("withdrawn"):
            yield f"{name} {version} has {fault['id']}; fixed in {', '.join(fault['fixed_in']) or 'no version'}"


def _fetched(url: str) -> dict[str, Any] | None:
    """The object behind an address, or None where there is none."""
    try:
        with urlopen(url, timeout=PATIENCE) as answer:
            project: dict[str, Any] = json.load(answer)
            return project
    except HTTPError as reason:
        if reason.code == 404:
            return None
        raise


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
