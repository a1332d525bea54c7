"""The git version of the checkout that this package runs from."""

import subprocess  # only git, with fixed arguments  # nosec B404
from pathlib import Path

_HERE = Path(__file__)


def describe(*options: str) -> str | None:
    """The output of `git describe`, with -dirty if files have changed; None outside of a checkout."""
    git = ["git", "--no-optional-locks", "-C", str(_HERE.parent)]
    tracked = [*git, "ls-files", "--error-unmatch", _HERE.name]  # else it is a package inside someone else's checkout
    described = [*git, "describe", "--always", "--dirty", *options]
    try:
        for command in (tracked, described):
            done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)  # nosec B603
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
