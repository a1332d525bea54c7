"""k-bounded Banzhaf values of any game: exact, or by several estimators.

The value of player i among K is the mean of U(T ∪ i) − U(T) over all coalitions T of other players with at most
k − 1 members, each weighing the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from bangs.utils.setting_checks import check_choice, check_integer
from bangs.valuation import coalitions

Generators = Sequence[torch.Generator]

EPSILON = 1e-300  # avoids division by zero


class Game(Protocol):
    """The utility U of coalitions, for R runs at once.

    A game may also offer `marginals(members) -> [R, B, K]`, U(S ∪ i) − U(S∖i) for every player i, and
    `gradient(members) -> [R, B, K]`, ∂U/∂mᵢ for relaxed memberships; where it does not, all players are flipped
    one by one, or autograd differentiates U.
    """

    @property
    def runs(self) -> int: ...

    @property
    def players(self) -> int: ...

    @property
    def device(self) -> torch.device: ...

    def __call__(self, members: Tensor, /) -> Tensor:
        """The utility [R, B] of coalitions [R, B, K]: bool, or degrees of membership in [0, 1]."""
        ...


@dataclass(frozen=True, eq=False)
class Values:
    """The value of every player."""

    mean: Tensor  # float64 [R, K]
    stderr: Tensor | None  # float64 [R, K], if the estimator has one
    evaluations: int  # of U, per run; a gradient counts as one, the marginals of a coalition as K + 1


class Estimator(Protocol):
    """Computes the values of a game; run r draws from generator r alone."""

    def __call__(self, game: Game, k: int, generators: Generators) -> Values: ...


@dataclass(frozen=True)
class Exact:
    """The definition, over all coalitions; for at most 20 players."""

    def __call__(self, game: Game, k: int, generators: Generators = ()) -> Values:
        members = coalitions.every(game.players, k, game.device).expand(game.runs, -1, -1)
        mean, _ = _difference(members, game(members).double(), k)
        return Values(mean, torch.zeros_like(mean), members.shape[1])


@dataclass(frozen=True)
class MSR:
    """Maximum sample reuse, the paper's estimator: mean U with i minus mean U without i (Wang and Jia 2023).

    Coalitions are drawn uniformly among those of size ≤ k. `without="smaller"` leaves coalitions of size k out of the
    second mean, as the definition requires (T has at most k − 1 members). `without="all"` keeps them, as in the paper's
    pseudo-code, which shifts all values.
    """

    samples: int = 500
    without: Literal["smaller", "all"] = "smaller"

    def __post_init__(self) -> None:
        check_integer("MSR.samples", self.samples, least=1)
        check_choice("MSR.without", self.without, ("smaller", "all"))

    def __call__(self, game: Game, k: int, generators: Generators) -> Values:
        members = coalitions.draw(game.players, k, self.samples, generators)
        worth = game(members).double()
        bound = k if self.without == "smaller" else game.players + 1
        return Values(*_difference(members, worth, bound), self.samples)


@dataclass(frozen=True)
class WLS:
    """Weighted least squares of U on membership, whose slopes are the values up to a constant.

    Sizes are drawn with P(m) ∝ η_m C(K, m) (`coalitions.regression_weights`), so ordinary least squares with an
    intercept fits. The contributions of other players are fitted; for `MSR` they are noise. The constant comes from
    mean_i φ_i = Σ_{m<k} w_m (Ū_{m+1} − Ū_m), Ū_m the mean utility at size m and w the distribution of |T|. Standard
    errors are those of the regression. Without `samples`, max(1000, 5 K) coalitions.
    """

    samples: int | None = None

    def __post_init__(self) -> None:
        if self.samples is not None:
            check_integer("WLS.samples", self.samples, least=1)

    def __call__(self, game: Game, k: int, generators: Generators) -> Values:
        count = self.samples or max(1000, 5 * game.players)
        members = coalitions.draw(game.players, k, count, generators, "regression")
        return Values(*fit(members, game(members).double(), k), count)


@dataclass(frozen=True)
class Marginals:
    """The mean of U(S ∪ i) − U(S∖i) over drawn coalitions, for every player at once.

    Coalitions S of at most k − 1 members are drawn in `coalitions.blocks`. S∖i is uniform among the coalitions of its
    size without i. Sizes below k − 1 occur with and without i in S, size k − 1 only without, so it gets weight 2. The
    estimator is consistent. Standard errors are those of independent draws; those of blocks are smaller.
    """

    samples: int = 16

    def __post_init__(self) -> None:
        check_integer("Marginals.samples", self.samples, least=1)

    def __call__(self, game: Game, k: int, generators: Generators) -> Values:
        coalitions.check(game.players, k)
        top = min(k, game.players) - 1
        members = coalitions.blocks(game.players, top, self.samples, generators)
        weight = 1.0 + (~members & (members.sum(2, keepdim=True) == top))
        mean, variance = _moments(marginals(game, members), weight)
        return Values(mean, variance.sqrt(), self.samples * (game.players + 1))


@dataclass(frozen=True)
class Gradient:
    """The mean of ∂U/∂mᵢ at drawn coalitions, for every player at once.

    U(T ∪ i) − U(T) = ∫₀¹ ∂U/∂mᵢ dmᵢ: coalitions with i give the right end of the integral, those without (and fewer
    than k members) the left end, and the mean of both ends is the value up to the curvature in mᵢ.
    """

    samples: int = 32

    def __post_init__(self) -> None:
        check_integer("Gradient.samples", self.samples, least=1)

    def __call__(self, game: Game, k: int, generators: Generators) -> Values:
        coalitions.check(game.players, k)
        members = coalitions.blocks(game.players, k, self.samples, generators)
        slope = gradient(game, members).double()
        right, right_variance = _moments(slope, members)
        left, left_variance = _moments(slope, ~members & (members.sum(2, keepdim=True) < k))
        # a player drawn on one side only gets the mean of that side, one drawn on neither gets 0
        right, left = torch.where(right.isnan(), left, right), torch.where(left.isnan(), right, left)
        mean = ((left + right) / 2).nan_to_num(0.0)
        return Values(mean, (left_variance + right_variance).sqrt() / 2, self.samples)


@dataclass(frozen=True)
class MeanField:
    """∂U/∂mᵢ at fractional memberships with mean q = E|T| / (K − 1); deterministic.

    The mean of ∂U/∂mᵢ over mᵢ from 0 to 1 is nearly its value at mᵢ = ½, with the other players at q. If k is near K/2,
    ½ and q are nearly equal, and one pass with all players at q is enough. Else the players are divided into about
    1 / q groups, at most 32. Each group is evaluated at ½, with the others lowered so that the mean stays q.
    """

    def __call__(self, game: Game, k: int, generators: Generators = ()) -> Values:
        coalitions.check(game.players, k)
        q = coalitions.mean_share(game.players, k)
        groups = 1 if q > 0.4 else min(32, game.players, round(1 / max(q, 1 / 32)))
        player = torch.arange(game.players, device=game.device)
        group = player % groups
        members = torch.full((game.runs, groups, game.players), q, device=game.device)
        if groups > 1:
            degree = min(0.5, groups * q / 2)
            members[:] = (q - degree / groups) / (1 - 1 / groups)
            members[:, group, player] = degree
        return Values(gradient(game, members)[:, group, player].double(), None, groups)


ESTIMATORS: dict[str, Callable[[int | None], Estimator]] = {
    "exact": lambda samples: Exact(),
    "msr": lambda samples: MSR() if samples is None else MSR(samples),
    "wls": lambda samples: WLS(samples),
    "marginals": lambda samples: Marginals() if samples is None else Marginals(samples),
    "gradient": lambda samples: Gradient() if samples is None else Gradient(samples),
    "meanfield": lambda samples: MeanField(),
}
DEFAULT = "marginals"


def fit(members: Tensor, worth: Tensor, k: int, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Values and their standard errors [R, K] from coalitions [R, B, K] drawn by the regression distribution.

    With `weight` [R, B] the coalitions come from another distribution and are weighted accordingly.
    """
    member = members.double()
    weight = torch.ones_like(worth) if weight is None else weight
    weight = weight / weight.sum(1, keepdim=True)
    centred = member - torch.einsum("rb,rbk->rk", weight, member)[:, None]
    centred_worth = worth - (weight * worth).sum(1, keepdim=True)
    weighted = centred * weight[..., None]
    # a tiny ridge term gives the smallest solution if there are too few coalitions
    gram = weighted.transpose(1, 2) @ centred
    gram.diagonal(dim1=1, dim2=2).add_(1e-10)
    factor = torch.linalg.cholesky(gram)
    slope = torch.cholesky_solve(weighted.transpose(1, 2) @ centred_worth[..., None], factor)[..., 0]
    residual = centred_worth - torch.einsum("rbk,rk->rb", centred, slope)
    noise = (weight**2 * residual**2).sum(1, keepdim=True)
    stderr = (torch.cholesky_inverse(factor).diagonal(dim1=1, dim2=2) * noise).sqrt()
    return slope + _constant(members, residual, weight, k)[:, None], stderr


def marginals(game: Game, members: Tensor) -> Tensor:
    """U(S ∪ i) − U(S∖i) for coalitions bool [R, B, K] and every player i: [R, B, K]."""
    compute: Callable[[Tensor], Tensor] | None = getattr(game, "marginals", None)
    if compute is not None:
        return compute(members)
    sign = torch.where(members, 1, -1)
    worth = game(members)
    identity = torch.eye(game.players, dtype=torch.bool, device=members.device)
    flipped = torch.stack([game(members ^ identity[i]) for i in range(game.players)], dim=2)
    return sign * (worth[..., None] - flipped)


def gradient(game: Game, members: Tensor) -> Tensor:
    """∂U/∂mᵢ at memberships [R, B, K] in [0, 1] for every player i: [R, B, K]."""
    compute: Callable[[Tensor], Tensor] | None = getattr(game, "gradient", None)
    if compute is not None:
        return compute(members)
    with torch.enable_grad():
        degree = members.double().requires_grad_()
        return torch.autograd.grad(game(degree).sum(), degree)[0]


def _constant(members: Tensor, residual: Tensor, weight: Tensor, k: int) -> Tensor:
    """The constant to add to the slopes: Σ_m w_m (r̄_{m+1} − r̄_m) of the residuals r, [R]."""
    players = members.shape[2]
    w = coalitions.marginal_law(players, k)
    law = coalitions.size_law(players, k, "regression")
    zero = torch.zeros(1, dtype=torch.float64)
    size = members.sum(2)

    def mean(target: Tensor) -> Tensor:
        """The mean residual if sizes had the target distribution."""
        ratio = (target / law).to(size.device)[size] * weight
        return (ratio * residual).sum(1) / ratio.sum(1).clamp(min=EPSILON)

    return mean(torch.cat([zero, w])) - mean(torch.cat([w, zero]))


def _difference(members: Tensor, worth: Tensor, bound: int) -> tuple[Tensor, Tensor]:
    """Mean utility with a player minus that without, in coalitions smaller than `bound`; and its standard error."""
    smaller = members.sum(2, keepdim=True) < bound
    present, present_variance = _moments(worth[..., None], members)
    absent, absent_variance = _moments(worth[..., None], ~members & smaller)
    return (present - absent).nan_to_num(0.0), (present_variance + absent_variance).sqrt()


def _moments(worth: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted mean over coalitions [R, K] and its variance; NaN with fewer than one or two coalitions."""
    weight = weight.double()
    total = weight.sum(1)
    mean = (weight * worth).sum(1) / total
    square = (weight**2 * (worth - mean[:, None]) ** 2).sum(1) / total**2
    effective_count = total**2 / (weight**2).sum(1)
    unbiased = square * effective_count / (effective_count - 1)
    return mean, torch.where(effective_count > 1.001, unbiased, float("nan"))
