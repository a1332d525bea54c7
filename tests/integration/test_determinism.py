"""Equal commands give equal results: what docs/determinism.md promises, line by line."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv

from bangs.cli import app
from bangs.core.rng import Streams
from bangs.core.types import Task
from bangs.nn.ensemble import Network, Separate
from bangs.nn.models import GCN
from bangs.runs import read_run
from bangs.runs.environment import environment
from bangs.selftraining.budget import Budget
from bangs.selftraining.loop import SelfTrainer, State
from bangs.selftraining.methods import METHODS, method
from bangs.training.trainer import Trainer
from bangs.utils.threads import deterministic_kernels
from bangs.valuation.banzhaf import ESTIMATORS
from tests.integration.chaos import outcome, small
from tests.integration.test_no_leak import SEEDS, citation_graph, experiment

ROUNDING = 1e-4  # of logits, where sums are grouped otherwise; docs/determinism.md states it
BUDGET = Budget(k=8, candidates=16, rounds=2, teacher="first")
TRAINER = Trainer(GCN(hidden=16), epochs=20, subgraph="whole")
BRIEF = replace(TRAINER, epochs=4)


def states_of(
    recipe: str, task: Task | None = None, seeds: tuple[int, ...] = SEEDS, trainer: Trainer = TRAINER, **changes: Any
) -> list[State]:
    """Every round of a method; `changes` are those of its score."""
    made, states = method(recipe, BUDGET), list[State]()
    if changes:
        made = replace(made, score=replace(made.score, **changes))  # type: ignore[type-var]
    SelfTrainer(trainer, made, [states.append]).fit(citation_task() if task is None else task, seeds)
    return states


def citation_task() -> Task:
    of = experiment("bangs")
    return Task.of(citation_graph(), of._split(citation_graph()), 3)


@contextmanager
def threads(count: int) -> Iterator[None]:
    former = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(former)


def bits(states: list[State]) -> list[torch.Tensor]:
    """All numbers of a repeat that anything later depends on."""
    held = []
    for state in states:
        held += [
            state.labels.target,
            state.labels.adopted_round,
            state.labels.weight,
            state.prediction.logits,
            state.best_round,
        ]
        if state.adoption is not None:
            held += [state.adoption.ranking.score, state.adoption.confidence]
    return held


def assert_equal(states: list[State], others: list[State]) -> None:
    assert len(states) == len(others)
    assert all(torch.equal(one, other) for one, other in zip(bits(states), bits(others), strict=True))


def assert_rounded(states: list[State], others: list[State], run: int = 0, other_run: int = 0) -> None:
    """The same nodes with the same labels, and logits that differ by rounding only."""
    assert len(states) == len(others)
    for one, other in zip(states, others, strict=True):
        assert torch.equal(one.labels.target[run], other.labels.target[other_run])
        assert torch.equal(one.labels.adopted_round[run], other.labels.adopted_round[other_run])
        mine, yours = one.prediction.logits[run], other.prediction.logits[other_run]
        torch.testing.assert_close(mine, yours, rtol=0, atol=ROUNDING)


def words(out: Path, graph: Path) -> list[str]:
    settings = ("--rounds=2", "--k=8", "--candidates=16", "--seeds=2", "--epochs=20", "--device=cpu", "--quiet")
    return ["run", f"--dataset={graph}", f"--out={out}", "--deterministic", *settings]


@pytest.mark.slow
def test_two_equal_commands_give_equal_files_whatever_the_threads_and_the_hash_seed(tmp_path: Path) -> None:
    graph = small(tmp_path / "small.npz")
    with threads(2):
        app(words(tmp_path / "here", graph), standalone_mode=False)
    other = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-m", "bangs", *words(tmp_path / "there", graph)], check=True, env=other)
    assert outcome(tmp_path / "here") == outcome(tmp_path / "there")
    assert read_run(tmp_path / "here").config == read_run(tmp_path / "there").config
    facts = read_run(tmp_path / "here").environment
    assert (facts["threads"], facts["deterministic"]) == (1, True)
    assert read_run(tmp_path / "here").config["changes"]["subgraph"] == "whole"


@pytest.mark.parametrize("name", METHODS)
def test_one_thread_and_two_give_the_same_bits_in_a_deterministic_run(name: str) -> None:
    repeats = []
    for count in (1, 2):
        with threads(count), deterministic_kernels():
            repeats.append(states_of(name))
    assert_equal(*repeats)


@pytest.mark.parametrize("name", ["bangs", "soft-aligned"])
def test_an_experiment_on_few_nodes_uses_one_thread_however_many_there_are(name: str) -> None:
    repeats: list[list[State]] = [[], []]
    for count, states in enumerate(repeats, 1):

        def look(state: State, row: dict[str, Any], states: list[State] = states) -> None:
            assert torch.get_num_threads() == 1
            states.append(state)

        with threads(count):
            experiment(name).run(data=citation_graph(), observers=[look])
            assert torch.get_num_threads() == count
    assert_equal(*repeats)


def test_an_experiment_on_many_nodes_uses_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bangs.utils.threads.ONE_THREAD_NODES", 10)
    used = set[int]()
    with threads(2):
        experiment("raw").run(data=citation_graph(), observers=[lambda state, row: used.add(torch.get_num_threads())])
    assert used == {2}


def test_without_it_two_threads_may_round_otherwise_and_choose_the_same() -> None:
    with threads(2):
        two = states_of("bangs", trainer=BRIEF)
        assert_equal(two, states_of("bangs", trainer=BRIEF))  # the same bits, though, for the same number of threads
    for run in range(len(SEEDS)):
        assert_rounded(states_of("bangs", trainer=BRIEF), two, run, run)


def test_a_hidden_unit_near_zero_turns_rounding_into_another_model() -> None:
    """Why rounding grows: weights that differ by 2e-8 are 1e-2 apart after one step of Adam."""
    task = citation_task().only([0])
    learner = replace(TRAINER, model=GCN(hidden=2, dropout=0.0), epochs=1, weight_decay=0.0).prepare(task)
    start, ends = learner.network.weights(), []
    start["weight.0"].zero_()  # the input of a hidden unit is then its bias
    for bias in (1e-8, -1e-8):
        start["bias.0"][..., 0] = bias
        ends.append(learner.fit(task.given, Streams((0,)), start=start).weights)
    apart = max(float((one - other).abs().max()) for one, other in zip(*(end.values() for end in ends), strict=True))
    assert apart > 5e-3


def test_the_block_gives_the_settings_back() -> None:
    before = torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()
    with threads(2):
        with deterministic_kernels():
            assert torch.are_deterministic_algorithms_enabled()
            assert environment()["threads"] == 1
            with deterministic_kernels():
                pass
            assert torch.are_deterministic_algorithms_enabled()
        assert torch.get_num_threads() == 2
    assert (torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()) == before


@pytest.mark.parametrize("estimator", [name for name in ESTIMATORS if name != "exact"])
def test_the_memory_a_valuation_may_take_does_not_change_what_is_adopted(estimator: str) -> None:
    """The budget decides how many coalitions are looked at together."""
    estimate = ESTIMATORS[estimator](16)
    large_budget = states_of("bangs", trainer=BRIEF, estimate=estimate)
    for budget in (1, 2**16):
        small_budget = states_of("bangs", trainer=BRIEF, estimate=estimate, budget=budget)
        for run in range(len(SEEDS)):
            assert_rounded(large_budget, small_budget, run, run)
        for one, other in zip(large_budget[1:], small_budget[1:], strict=True):
            assert one.adoption is not None
            assert other.adoption is not None
            torch.testing.assert_close(one.adoption.ranking.score, other.adoption.ranking.score, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("subgraph", ["whole", "needed"])
@pytest.mark.parametrize("name", ["bangs", "cpl", "m3s", "drgst", "random"])
def test_a_run_draws_the_same_alone_and_in_a_batch(name: str, subgraph: Literal["whole", "needed"]) -> None:
    trainer = replace(TRAINER, subgraph=subgraph)
    together = states_of(name, trainer=trainer)
    for run, seed in enumerate(SEEDS):
        assert_rounded(states_of(name, citation_task().only([run]), (seed,), trainer), together, 0, run)


def test_the_order_of_the_seeds_does_not_matter() -> None:
    forth, back = states_of("bangs"), states_of("bangs", citation_task().only([1, 0]), SEEDS[::-1])
    for run in range(len(SEEDS)):
        assert_rounded(forth, back, run, len(SEEDS) - 1 - run)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("asked", [deterministic_kernels, nullcontext])
@pytest.mark.parametrize("name", METHODS)
def test_a_gpu_gives_the_same_bits_twice(name: str, asked: Callable[[], AbstractContextManager[None]]) -> None:
    repeats = []
    for _ in range(2):
        with asked():
            repeats.append(states_of(name, citation_task().to("cuda")))
    assert_equal(*repeats)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_a_run_draws_the_same_alone_and_in_a_batch_on_a_gpu() -> None:
    task = citation_task().to("cuda")
    together = states_of("bangs", task)
    for run, seed in enumerate(SEEDS):
        assert_rounded(states_of("bangs", task.only([run]), (seed,)), together, 0, run)


class Stock(nn.Module):
    """A layer of PyG's, which scatters its messages."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.layer = GATConv(features, classes, heads=2, concat=False, dropout=0.3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.layer(x, edge_index)
        return out

    @staticmethod
    def build(features: int, classes: int, rng: Streams) -> Network:
        return Separate(lambda: Stock(features, classes), rng)


@pytest.mark.parametrize(
    ("device", "asked"),
    [
        ("cpu", nullcontext),
        ("cpu", deterministic_kernels),
        pytest.param(
            *("cuda", deterministic_kernels),
            marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")],
        ),
    ],
)
def test_a_stock_layer_learns_the_same_bits(device: str, asked: Callable[[], AbstractContextManager[None]]) -> None:
    task, repeats = citation_task().to(device), []
    for _ in range(3):
        with threads(2), asked():
            taught = Trainer(Stock, epochs=10).fit(task, task.given, Streams(SEEDS))  # type: ignore[arg-type]
            repeats.append(taught.weights)
    assert all(torch.equal(value, repeat[name]) for repeat in repeats for name, value in repeats[0].items())
