"""Misuse: the Python interface called with arguments of every kind, sound ones in odd spellings among them."""

import random
import traceback
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from sklearn.exceptions import NotFittedError

import bangs
from bangs.errors import BangsError, ran_out_of_memory
from tests.hostile.commands import Finding, describe

Draw = random.Random
NODES = 40
QUICK: dict[str, Any] = {"rounds": 1, "k": 3, "epochs": 4, "device": "cpu"}


def features() -> Any:
    rng = np.random.default_rng(0)
    return (np.arange(NODES) % 2)[:, None] + rng.normal(size=(NODES, 5)).astype(np.float32)


def links() -> Any:
    ring = np.stack([np.arange(NODES), (np.arange(NODES) + 2) % NODES])
    return np.concatenate([ring, ring[::-1]], axis=1)


def labels() -> Any:
    return np.where(np.arange(NODES) < 16, np.arange(NODES) % 2, -1)


X, EDGES, Y = features().astype(np.float32), links(), labels()
ODD: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2.5, float("nan"), float("inf"), -float("inf"), 10**30, 2**63, -(2**63), 1e-320),
    *("", "gcn", "\x1b[2J", "9" * 400, b"x", [], [1, 2], (), (3,), {}, {"a": 1}, {1}, object(), Ellipsis, int, len),
    *(np.int64(3), np.float32(0.5), np.array(2), np.array([1.0]), np.nan, np.str_("sgc"), pd.NA, pd.NaT, Path("x")),
    *(torch.tensor(2), torch.tensor([0.5, 1.0]), 1 + 2j, range(3), lambda *_: 7, ValueError("x")),
)


def _sparse(change: Callable[[Any], None]) -> Any:
    matrix = sp.csr_array(np.where(X > 1, X, 0))
    change(matrix)
    return matrix


def _frame(**changes: Any) -> pd.DataFrame:
    return pd.DataFrame(X, columns=list("abcde")).assign(**changes)


FEATURES: dict[str, Callable[[Draw], Any]] = {
    "one odd number": lambda draw: _with(X, draw, (np.nan, np.inf, 1e38, -1e38, 1e-45)),
    "another shape": lambda draw: draw.choice((X[0], X[None], X[:, :0], X[:0], X[:7], X.T, np.float32(3), X[:, :1])),
    "another type": lambda draw: X.astype(draw.choice(("?", "u1", "f2", "O", "U8", "S8", "c8", "i8"))),
    "times": lambda draw: X.astype("i8").astype(draw.choice(("M8[s]", "m8[s]"))),
    "a record": lambda draw: np.zeros(NODES, dtype=[("a", "f4"), ("b", "U3")]),
    "ragged": lambda draw: [[1.0], [1.0, 2.0]] * (NODES // 2),
    "all zero": lambda draw: np.zeros_like(X),
    "all alike": lambda draw: np.full_like(X, 1e15),
    "a frame of words": lambda draw: _frame(a="x"),
    "a frame with missing": lambda draw: _frame(a=[None, *X[1:, 0]]),
    "a frame of categories": lambda draw: _frame(a=pd.Categorical(["u", "v"] * (NODES // 2))),
    "a frame named twice": lambda draw: _frame().set_axis(list("aabcd"), axis=1),
    "a frame of times": lambda draw: _frame(a=pd.Timestamp("2026-01-01")),
    "an index of two levels": lambda draw: _frame().set_index(["a", "b"]),
    "an index named twice": lambda draw: _frame().set_axis(["n"] * NODES),
    "indices out of range": lambda draw: _sparse(lambda m: m.indices.__setitem__(0, draw.choice((99, -1, 2**30)))),
    "pointers that fall": lambda draw: _sparse(lambda m: m.indptr.__setitem__(3, draw.choice((0, 10**6, -5)))),
    "sparse and infinite": lambda draw: _sparse(lambda m: m.data.__setitem__(0, draw.choice((np.nan, np.inf)))),
    "a tensor with a gradient": lambda draw: torch.tensor(X, requires_grad=True) * 2,
    "a meta tensor": lambda draw: torch.empty(NODES, 5, device="meta"),
    "a sparse tensor": lambda draw: torch.tensor(X).relu().to_sparse(),
    "a tensor of integers": lambda draw: torch.tensor(X).to(draw.choice((torch.int8, torch.bool, torch.complex64))),
    "masked": lambda draw: np.ma.masked_array(X, mask=X > 2),
    "a generator": lambda draw: (row for row in X),
    "odd": lambda draw: draw.choice(ODD),
}
LINKS: dict[str, Callable[[Draw], Any]] = {
    "one odd number": lambda draw: _with(EDGES, draw, (-1, NODES, 2**31, 2**62, -(2**40))),
    "one odd float": lambda draw: _with(EDGES.astype(float), draw, (np.nan, np.inf, 0.5, -1.0, 1e30)),
    "another shape": lambda draw: draw.choice((EDGES.T, EDGES[0], EDGES[:, :0], EDGES[None], EDGES[:1], np.int64(1))),
    "another type": lambda draw: EDGES.astype(draw.choice(("?", "U4", "S4", "O", "c8", "M8[s]", "f2"))),
    "ragged": lambda draw: [[0, 1], [1]],
    "a wrong adjacency": lambda draw: sp.csr_array((NODES, draw.choice((3, NODES + 1)))),
    "an adjacency with odd weights": lambda draw: _adjacency(draw.choice((np.nan, np.inf, -1.0, 0.0, 1e38))),
    "an adjacency out of range": lambda draw: _spoilt_adjacency(draw),
    "a frame of names": lambda draw: pd.DataFrame({"s": ["a", "b"], "t": ["b", "z"]}),
    "a frame of one column": lambda draw: pd.DataFrame({"s": EDGES[0]}),
    "a frame of four": lambda draw: pd.DataFrame(np.zeros((4, 4))),
    "a tensor of floats": lambda draw: torch.tensor(
        EDGES, dtype=draw.choice((torch.float32, torch.bool, torch.cfloat))
    ),
    "a meta tensor": lambda draw: torch.empty(2, 9, dtype=torch.long, device="meta"),
    "masked": lambda draw: np.ma.masked_array(EDGES, mask=EDGES > 30),
    "a set": lambda draw: {(0, 1), (1, 2)},
    "odd": lambda draw: draw.choice(ODD),
}
LABELS: dict[str, Callable[[Draw], Any]] = {
    "one odd number": lambda draw: _with(Y, draw, (-2, 99, 2**62, -(2**62))),
    "one odd float": lambda draw: _with(Y.astype(float), draw, (0.5, np.inf, 1e300, -np.inf)),
    "another length": lambda draw: draw.choice((Y[:-1], Y[:0], np.r_[Y, 1], Y[:, None, None], np.stack([Y, Y]).T)),
    "nobody": lambda draw: draw.choice((np.full(NODES, -1), [""] * NODES, [None] * NODES, np.full(NODES, np.nan))),
    "one class": lambda draw: np.where(Y >= 0, 1, -1),
    "one label each": lambda draw: np.arange(NODES),
    "a mixture": lambda draw: ["a", 1, 2.5, None, True] * (NODES // 5),
    "times": lambda draw: np.array(["2026-01-01"] * NODES, dtype="M8[D]"),
    "complex": lambda draw: Y + 1j,
    "objects": lambda draw: [object()] * NODES,
    "lists": lambda draw: [[1, 2]] * NODES,
    "long words": lambda draw: [draw.choice(("a" * 10_000, "\x1b[2J", "=1+1", "")) for _ in range(NODES)],
    "bytes": lambda draw: [b"a", b"b"] * (NODES // 2),
    "odd": lambda draw: draw.choice(ODD),
}
WEIGHTS: dict[str, Callable[[Draw], Any]] = {
    "one odd number": lambda draw: _with(np.ones(EDGES.shape[1]), draw, (np.nan, np.inf, -1.0, 1e38, 0.0)),
    "another length": lambda draw: draw.choice((np.ones(3), np.ones((2, 80)), np.ones(0), np.float32(1))),
    "words": lambda draw: ["a"] * EDGES.shape[1],
    "nothing": lambda draw: np.zeros(EDGES.shape[1]),
    "a gradient": lambda draw: torch.ones(EDGES.shape[1], requires_grad=True),
    "complex": lambda draw: np.ones(EDGES.shape[1]) + 1j,
    "masked": lambda draw: np.ma.masked_array(np.ones(EDGES.shape[1]), mask=[True, False] * (EDGES.shape[1] // 2)),
    "odd": lambda draw: draw.choice(ODD),
}

# what is meant is the same, so the answer must be
SAME: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
    "lists": lambda: (X.tolist(), EDGES.tolist(), Y.tolist()),
    "doubles": lambda: (X.astype(np.float64), EDGES, Y.astype(float)),
    "by columns": lambda: (np.asfortranarray(X), np.asfortranarray(EDGES), Y),
    "views": lambda: (np.repeat(X, 2, axis=0)[::2], np.repeat(EDGES, 3, axis=1)[:, ::3], np.repeat(Y, 2)[::2]),
    "backwards": lambda: (X[::-1].copy()[::-1], EDGES[:, ::-1].copy()[:, ::-1], Y[::-1].copy()[::-1]),
    "other byte order": lambda: (X.astype(">f4"), EDGES.astype(">i4"), Y.astype(">i2")),
    "small numbers": lambda: (X, EDGES.astype(np.uint8), Y.astype(np.int8)),
    "unsigned": lambda: (X, EDGES.astype(np.uint64), pd.Series(Y, dtype="Int64").replace(-1, pd.NA)),
    "unsigned, shorter": lambda: (X, EDGES.astype(np.uint16), np.where(Y < 0, np.nan, Y)),
    "tensors": lambda: (torch.tensor(X), torch.tensor(EDGES), torch.tensor(Y)),
    "tensors of other sizes": lambda: (torch.tensor(X).double(), torch.tensor(EDGES).int(), torch.tensor(Y).short()),
    "frames": lambda: (X, pd.DataFrame(EDGES.T), pd.Series(Y)),  # one of features is scaled, as a table is
    "words": lambda: (X, EDGES, np.where(Y < 0, "", np.where(Y == 0, "a", "b"))),
    "words and None": lambda: (X, EDGES, [None if y < 0 else "ab"[y] for y in Y]),
    "words and nan": lambda: (X, EDGES, [float("nan") if y < 0 else "ab"[y] for y in Y]),
    "categories": lambda: (X, EDGES, pd.Series(pd.Categorical([None if y < 0 else "ab"[y] for y in Y]))),
    "masked labels": lambda: (X, EDGES, np.ma.masked_array(np.where(Y < 0, 1, Y), mask=Y < 0)),
    "an adjacency": lambda: (X, sp.coo_array((np.ones(80, np.float32), (EDGES[0], EDGES[1])), shape=(40, 40)), Y),
    "large labels": lambda: (X, EDGES, np.where(Y < 0, -1, Y + 2**53)),
    "read only": lambda: tuple(_locked(part) for part in (X, EDGES, Y)),  # type: ignore[return-value]
    "a graph": lambda: (_data(), None, None),
}


@cache
def fitted() -> Any:
    """A sound fit, made before the cases and shared by their processes."""
    return bangs.SelfTrainingClassifier(**QUICK).fit(X, Y, edge_index=EDGES)


def nonsense(draw: Draw) -> str:
    """A fit with one strange argument: refused in a sentence, or its numbers are sound."""
    given: dict[str, Any] = {"X": X, "edge_index": EDGES, "y": Y}
    settings = dict(QUICK)
    kind = draw.choice(("X", "X", "edge_index", "edge_index", "y", "y", "edge_weight", "settings", "settings"))
    if kind == "settings":
        name = draw.choice(sorted(bangs.SelfTrainingClassifier().get_params()))
        settings[name] = draw.choice(ODD)
        what = f"{name} = {settings[name]!r:.30}"
    else:
        table = {"X": FEATURES, "edge_index": LINKS, "y": LABELS, "edge_weight": WEIGHTS}[kind]
        name = draw.choice(sorted(table))
        given[kind] = table[name](draw)
        what = f"{kind}: {name}"
    with _sentences(what):
        model = bangs.SelfTrainingClassifier(**settings).fit(**given)
        _check(model)
    return what


def spelled(draw: Draw) -> str:
    """A fit of the same graph in another spelling gives the same answer."""
    name = draw.choice(sorted(SAME))
    x, edges, y = SAME[name]()
    want = fitted().predict_proba()
    with _sentences(f"spelling {name}", refusals=False):
        probs = bangs.SelfTrainingClassifier(**QUICK).fit(x, y, edge_index=edges).predict_proba()
    if probs.shape != want.shape or not np.allclose(probs, want, atol=1e-3):
        raise Finding("silent", f"the graph spelled as {name} is another one")
    return name


def questions(draw: Draw) -> str:
    """A few odd questions to a fitted model."""
    return " · ".join(_question(fitted(), draw) for _ in range(5))


def _question(model: Any, draw: Draw) -> str:
    odd = draw.choice(ODD)
    name, ask = draw.choice(
        (
            ("explain", lambda: model.explain(odd)),
            ("explain top", lambda: model.explain(3, top=odd)),
            ("predict_proba X", lambda: _sound(model.predict_proba(odd, EDGES), odd is None)),
            ("predict_proba edges", lambda: _sound(model.predict_proba(X, odd))),
            (
                "predict_proba features",
                lambda: _sound(model.predict_proba(FEATURES[draw.choice(sorted(FEATURES))](draw), EDGES)),
            ),
            ("score", lambda: model.score(X, odd, edge_index=EDGES)),
            ("score labels", lambda: model.score(X, LABELS[draw.choice(sorted(LABELS))](draw), edge_index=EDGES)),
            ("score without X", lambda: model.score(y=odd)),
            ("score weights", lambda: model.score(y=Y, sample_weight=odd)),
            ("rows of X", lambda: bangs.SelfTrainingClassifier(**QUICK).fit(bangs.NodeRows(odd, EDGES), Y)),
            ("rows of y", lambda: bangs.SelfTrainingClassifier(**QUICK).fit(bangs.NodeRows(X, EDGES), odd)),
            ("edges alone", lambda: bangs.SelfTrainingClassifier(**QUICK).fit(None, Y, edge_index=odd)),
            ("hidden labels", lambda: list(bangs.LabelMask(3).split(X, odd))),
            ("parts", lambda: list(bangs.LabelMask(odd).split(X, Y))),
            ("page", lambda: bangs.write_report(odd, "page.html")),
            ("load", lambda: bangs.SelfTrainingClassifier.load(odd)),
            ("unfitted", lambda: bangs.SelfTrainingClassifier().predict_proba()),
        )
    )
    with _sentences(f"{name} {odd!r:.30}"):
        ask()
    return name


def parts(draw: Draw) -> str:
    """Parts with one odd setting each: refused, or it can be printed and compared."""
    return " · ".join(_part(draw) for _ in range(20))


def _part(draw: Draw) -> str:
    part = getattr(bangs, draw.choice(PARTS))
    name = draw.choice([own.name for own in fields(part) if own.init])
    odd = draw.choice(ODD)
    with _sentences(f"{part.__name__}({name}={odd!r:.30})"):
        made = part(**{**NEEDED.get(part.__name__, {}), name: odd})
        assert repr(made)
    return f"{part.__name__}.{name}"


PARTS = (
    *(
        "GCN",
        "GraphSAGE",
        "SGC",
        "GAT",
        "GIN",
        "APPNP",
        "GCNII",
        "GRAND",
        "Trainer",
        "Sampling",
        "Method",
        "Experiment",
    ),
    *("Top", "TopPerClass", "Balanced", "Banzhaf", "Agreement", "PPR", "Push"),
)
NEEDED: dict[str, dict[str, Any]] = {"Top": {"k": 3}, "TopPerClass": {"k": 3}, "Balanced": {"k": 3}}


class _sentences:  # noqa: N801
    """Inside, an error is a sentence of ours; anything else is a finding."""

    def __init__(self, what: str, *, refusals: bool = True):
        self.what, self.refusals = what, refusals

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if error is None or isinstance(error, Finding | KeyboardInterrupt):
            return False
        if not self.refusals:
            raise Finding("silent", f"{self.what} is refused: {error}") from error
        if isinstance(error, BangsError) or _ours(error) or ran_out_of_memory(error):
            return True
        raise Finding("tracebacks", f"{self.what}: {describe(error)}") from error


def _ours(error: BaseException) -> bool:
    """Whether a line of bangs, or of scikit-learn, whose conventions a fit follows, raised it on purpose."""
    if not isinstance(error, TypeError | ValueError | NotFittedError):
        return False
    if "os.PathLike" in str(error):  # what Python says of every path that is none
        return True
    last = traceback.extract_tb(error.__traceback__)[-1]
    by = "/bangs/" in last.filename or "/sklearn/" in last.filename
    return by and (last.line or "").startswith("raise")


def _check(model: Any) -> None:
    _sound(model.predict_proba())
    if not set(model.labeled_iter_.tolist()) <= {-1, 0, 1}:
        raise Finding("silent", f"nodes were adopted in rounds {set(model.labeled_iter_.tolist())}")


def _sound(probs: Any, known: bool = False) -> None:
    if not np.isfinite(probs).all() or not np.allclose(probs.sum(1), 1):
        raise Finding("silent", "the answer is no probability")


def _with(array: Any, draw: Draw, values: tuple[Any, ...]) -> Any:
    out = array.copy()
    out.flat[draw.randrange(out.size)] = draw.choice(values)
    return out


def _adjacency(weight: float) -> Any:
    values = np.ones(80, np.float32)
    values[3] = weight
    return sp.coo_array((values, (EDGES[0], EDGES[1])), shape=(NODES, NODES))


def _spoilt_adjacency(draw: Draw) -> Any:
    matrix = _adjacency(1.0).tocsr()
    matrix.indices[draw.randrange(80)] = draw.choice((99, -1, 2**30))
    return matrix


def _locked(array: Any) -> Any:
    out = array.copy()
    out.flags.writeable = False
    return out


def _data() -> Any:
    from torch_geometric.data import Data

    return Data(x=torch.tensor(X), edge_index=torch.tensor(EDGES), y=torch.tensor(Y))
