"""The largest whole numbers that settings may have."""

MOST = 10**9  # more runs into the limits of 64-bit numbers somewhere, and no graph needs it
MOST_NEIGHBOURS = 10_000  # of a fan-out, which takes time by the number; "all" has no limit
MOST_JOBS = 1024  # processes at the same time
