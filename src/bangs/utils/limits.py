"""The largest values that settings may have."""

MAX_COUNT = 10**9  # of any count: larger ones exceed 64-bit numbers somewhere, and no graph needs them
MAX_FANOUT = 10_000  # neighbours per node and hop; time grows with it. "all" has no limit
MAX_SEEDS = 10_000  # runs of one experiment
MAX_JOBS = 1024  # processes at the same time
