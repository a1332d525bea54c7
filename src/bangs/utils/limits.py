"""The largest whole numbers that settings may have."""

MAX_COUNT = 10**9  # more runs into the limits of 64-bit numbers somewhere, and no graph needs it
MAX_FANOUT = 10_000  # of a fan-out, which takes time by the number; "all" has no limit
MAX_JOBS = 1024  # processes at the same time
