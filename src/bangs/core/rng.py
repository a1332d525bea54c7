"""One random stream per run, a function of the seed and a name, so that no random state is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import torch
from torch import Tensor


@dataclass(frozen=True)
class Streams:
    """The random numbers of R runs.

    A stream is a pure function of its run's seed and its path. So a run draws the same numbers alone and in a batch,
    and a resumed run needs no saved random state: `streams.at("round", 3, "coalitions")` always gives the same numbers.
    """

    seeds: tuple[int, ...]
    path: tuple[str | int, ...] = ()

    def __len__(self) -> int:
        return len(self.seeds)

    def at(self, *path: str | int) -> "Streams":
        """The streams below this one."""
        return Streams(self.seeds, (*self.path, *path))

    def only(self, runs: Sequence[int]) -> "Streams":
        """The streams of some of the runs."""
        return Streams(tuple(self.seeds[run] for run in runs), self.path)

    def numbers(self) -> list[int]:
        """One 63-bit seed per run, for a generator of any library."""
        names = ("/".join(map(str, (seed, *self.path))).encode() for seed in self.seeds)
        return [int.from_bytes(blake2b(name, digest_size=8).digest(), "big") >> 1 for name in names]

    def generators(self, device: torch.device | str = "cpu") -> list[torch.Generator]:
        """One fresh generator per run, at the start of its stream."""
        return [torch.Generator(device).manual_seed(number) for number in self.numbers()]

    def rand(self, *shape: int, device: torch.device | str = "cpu") -> Tensor:
        """Uniform numbers in [0, 1): float [R, *shape]."""
        numbers = torch.empty(len(self), *shape, device=device)
        for row, generator in zip(numbers, self.generators(device), strict=True):
            torch.rand(shape, generator=generator, device=device, out=row)
        return numbers

    def randn(self, *shape: int, device: torch.device | str = "cpu") -> Tensor:
        """Normal numbers: float [R, *shape]."""
        return torch.stack([torch.randn(shape, generator=g, device=device) for g in self.generators(device)])
