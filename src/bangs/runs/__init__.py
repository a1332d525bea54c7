"""A run's folder, written so that a crash loses at most the round in progress."""

from bangs.runs.checkpoint import Checkpoint
from bangs.runs.environment import environment
from bangs.runs.folder import FORMAT, Record, RunFolder, config_hash, read_run
from bangs.runs.lock import InUse
from bangs.utils.files import Unwritable, write_atomic
from bangs.utils.signals import Stopped, check, graceful

__all__ = [
    "FORMAT",
    "Checkpoint",
    "InUse",
    "Record",
    "RunFolder",
    "Stopped",
    "Unwritable",
    "check",
    "config_hash",
    "environment",
    "graceful",
    "read_run",
    "write_atomic",
]
