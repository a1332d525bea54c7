"""Makes examples/own-graph and examples/own-graph-grown: the readers of a small town library.

One reader in ten filled in a card, so their favourite shelf is known. An edge joins two readers who borrowed the same
books in the same month; its weight is the number of books. A year later the library has forty more readers.

    python examples/make_own_graph.py [--folder examples] [--seed 7] [--truth truth.csv]

`--truth` also writes the shelf of every reader, so that predictions can be checked.
"""

import argparse
import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

READERS, NEWCOMERS = 300, 40
EDGES, NEW_EDGES = 900, 120
LABELLED = 30
SAME_SHELF = 0.6  # the chance that a shared book joins readers of one shelf

NODE_COLUMNS = ("id", "age", "visits_per_month", "books_per_visit", "evening_share", "branch", "card", "label")
EDGE_COLUMNS = ("source", "target", "weight")


@dataclass(frozen=True)
class Shelf:
    """What readers of a shelf are like, on average."""

    name: str
    age: float
    visits: float
    books: float
    evening: float
    branches: tuple[int, int, int]  # how often each branch is theirs


SHELVES = (
    Shelf("crime", 52, 3.2, 3.4, 0.55, (5, 3, 2)),
    Shelf("science fiction", 31, 2.6, 2.8, 0.60, (2, 3, 5)),
    Shelf("history", 58, 2.2, 2.1, 0.35, (5, 2, 3)),
    Shelf("cookery", 44, 2.4, 1.8, 0.40, (3, 5, 2)),
)
BRANCHES = ("Market Square", "Mill Lane", "Station")


@dataclass(frozen=True)
class Reader:
    """A row of the node table, and the truth."""

    id: str
    age: int
    visits: float
    books: float
    evening: float
    branch: str
    card: str
    shelf: str

    def row(self, labelled: bool) -> list[object]:
        numbers = [self.age, f"{self.visits:.1f}", f"{self.books:.1f}", f"{self.evening:.2f}"]
        return [self.id, *numbers, self.branch, self.card, self.shelf if labelled else ""]


def reader(number: int, random: Random) -> Reader:
    """A reader with a shelf drawn at random and habits around that shelf's averages."""
    shelf = random.choices(SHELVES, weights=(35, 25, 22, 18))[0]
    age = round(min(max(random.gauss(shelf.age, 15), 8), 92))
    card = (
        "junior" if age < 16 else "student" if age < 26 and random.random() < 0.7 else "senior" if age > 64 else "adult"
    )
    return Reader(
        id=f"R-{number:04d}",
        age=age,
        visits=max(random.gauss(shelf.visits, 1.1), 0.1),
        books=max(random.gauss(shelf.books, 1.0), 0.1),
        evening=min(max(random.gauss(shelf.evening, 0.2), 0.0), 1.0),
        branch=random.choices(BRANCHES, weights=shelf.branches)[0],
        card=card,
        shelf=shelf.name,
    )


def joined(readers: list[Reader], firsts: list[Reader], count: int, random: Random) -> list[tuple[str, str, int]]:
    """`count` different pairs, each with one of the firsts; every one of the firsts is in at least one pair."""
    by_shelf = {shelf.name: [other for other in readers if other.shelf == shelf.name] for shelf in SHELVES}
    pairs: dict[tuple[str, str], int] = {}
    waiting = list(firsts)
    while len(pairs) < count:
        one = waiting.pop() if waiting else random.choice(firsts)
        alike = random.random() < SAME_SHELF
        other = random.choice(by_shelf[one.shelf] if alike else readers)
        if one is other:
            waiting.append(one)
            continue
        pair = (min(one.id, other.id), max(one.id, other.id))
        pairs[pair] = pairs.get(pair, 0) + 1 + int(alike and random.random() < 0.4)
    return [(source, target, weight) for (source, target), weight in sorted(pairs.items())]


def with_cards(readers: list[Reader], random: Random) -> set[str]:
    """The ids of those who filled in a card: as evenly over the shelves as it goes."""
    chosen: set[str] = set()
    for number, shelf in enumerate(SHELVES):
        of_shelf = [one.id for one in readers if one.shelf == shelf.name]
        share = LABELLED // len(SHELVES) + (number < LABELLED % len(SHELVES))
        chosen.update(random.sample(of_shelf, share))
    return chosen


def write(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def make(folder: Path, seed: int, truth: Path | None = None) -> None:
    """Writes both folders, and the truth if a place for it is given."""
    random = Random(seed)
    # numbers of library cards have gaps: people move away
    numbers = sorted(random.sample(range(1, 1000), READERS)) + sorted(random.sample(range(1000, 1100), NEWCOMERS))
    everybody = [reader(number, random) for number in numbers]
    old, new = everybody[:READERS], everybody[READERS:]
    labelled = with_cards(old, random)
    edges = joined(old, old, EDGES, random)
    grown = edges + joined(everybody, new, NEW_EDGES, random)
    for name, people, pairs in (("own-graph", old, edges), ("own-graph-grown", everybody, grown)):
        write(folder / name / "nodes.csv", NODE_COLUMNS, (one.row(one.id in labelled) for one in people))
        write(folder / name / "edges.csv", EDGE_COLUMNS, pairs)
    if truth is not None:
        write(truth, ("id", "label"), ((one.id, one.shelf) for one in everybody))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent, help="where both folders go")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--truth", type=Path, help="also write everybody's shelf to this file")
    arguments = parser.parse_args()
    make(arguments.folder, arguments.seed, arguments.truth)


if __name__ == "__main__":
    main()
