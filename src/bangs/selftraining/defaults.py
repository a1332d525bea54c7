"""The named options of a method and their defaults; imports no torch, so that commands start fast."""

from typing import Literal, get_args

Memory = Literal["accumulate", "rebuild", "alternate"]  # which pseudo-labels stay
TeacherChoice = Literal["first", "latest", "best"]  # who labels the next round
Start = Literal["fresh", "teacher"]  # from which weights a student starts
Pool = Literal["free", "open", "unused"]  # who may be adopted

MEMORY: Memory = "accumulate"
# With hard labels and five labels a class on four graphs, `first` was 0.2 to 2.4 points worse than `best`, and with
# `latest` the labels collapse. Methods that make all labels anew each round have the latest model as teacher.
TEACHER: TeacherChoice = "best"
START: Start = "fresh"
ROUNDS = 40  # as in the paper
SOFT_ROUNDS = 15  # of soft labels, whose gains end after about ten
FIT_SOFT_ROUNDS = 3  # of the many linear models of a fit, whose soft labels hardly change after them
FIT_HARD_ROUNDS = 10  # of a fit, since every fold has few labels
POOL: Pool = "free"  # validation nodes are never adopted, so that they judge every round alike

CHOICES: dict[str, tuple[str, ...]] = {
    "memory": get_args(Memory),
    "teacher": get_args(TeacherChoice),
    "start": get_args(Start),
    "pool": get_args(Pool),
}
