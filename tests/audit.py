"""Audit: `python tests/audit.py constraints.txt` says whether a pinned package has a known weakness.

It asks pip-audit, which needs the advisories of a package index. Where these are out of reach it says so and does not
fail, so that `make audit` still tells what bandit found.
"""

import json
import subprocess
import sys
from typing import Any

OUT_OF_REACH = "advisories are out of reach from here, so {} packages were not checked; run `make audit` with a network"


def main(pinned: str) -> int:
    command = [sys.executable, "-m", "pip_audit", "--requirement", pinned, "--no-deps", "--disable-pip"]
    try:
        done = subprocess.run([*command, "--format=json", "--progress-spinner=off"], capture_output=True, text=True)
        told = json.loads(done.stdout)
    except (OSError, ValueError):
        print(f"pip-audit: {OUT_OF_REACH.format('the')}")
        return 0
    found, lines = verdict(told)
    print("\n".join(f"pip-audit: {line}" for line in lines))
    return int(found)


def verdict(told: dict[str, Any]) -> tuple[bool, list[str]]:
    """Whether anything was found, and what to say, of pip-audit's JSON."""
    packages = told["dependencies"]
    skipped = [own["name"] for own in packages if "skip_reason" in own]
    weak = [own for own in packages if own.get("vulns")]
    lines = [
        f"{own['name']} {own['version']} has {fault['id']}; fixed in {', '.join(fault['fix_versions']) or 'no version'}"
        for own in weak
        for fault in own["vulns"]
    ]
    if skipped:
        lines.append(OUT_OF_REACH.format(f"{len(skipped)} of {len(packages)}"))
    return bool(weak), lines or [f"no known weakness in {len(packages)} packages"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
