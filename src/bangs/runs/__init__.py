"""The folder of a run; a crash loses at most the round in progress."""

from bangs.runs.folder import Record, RunFolder, config_hash, read_run

__all__ = ["Record", "RunFolder", "config_hash", "read_run"]
