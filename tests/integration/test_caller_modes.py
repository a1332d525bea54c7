"""What a caller has set around a fit, or does to what it gave, changes nothing."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import pytest
import torch

from bangs.core.rng import Streams
from bangs.errors import InvalidInput
from bangs.estimator.classifier import SelfTrainingClassifier
from bangs.nn.models import GCN
from bangs.training.trainer import Trainer
from bangs.utils.torch_modes import default_torch_modes
from tests.conftest import two_rings
from tests.estimator.test_classifier import half_known

QUICK = {"method": "hard", "validation": 0.25, "rounds": 1, "k": 4, "epochs": 8}


@contextmanager
def double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


MODES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "float64 default": double,
    "meta device": lambda: torch.device("meta"),
}


@pytest.fixture(scope="module")
def fitted() -> SelfTrainingClassifier:
    return SelfTrainingClassifier(**QUICK).fit(half_known()[0])


@pytest.mark.parametrize("mode", MODES)
def test_a_fit_is_the_same_in_every_mode_of_torch(mode: str, fitted: SelfTrainingClassifier) -> None:
    data, _ = half_known()
    with MODES[mode]():
        model = SelfTrainingClassifier(**QUICK).fit(data)
        probs, other_probs = model.predict_proba(), model.predict_proba(data)
        reasons = model.explain(3)
    assert np.array_equal(probs, fitted.predict_proba())
    assert np.array_equal(other_probs, fitted.predict_proba(data))
    assert reasons == fitted.explain(3)


@pytest.mark.parametrize("mode", MODES)
def test_the_modes_come_back(mode: str) -> None:
    def now() -> tuple[object, ...]:
        grad, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        return grad, inference, torch.is_autocast_enabled("cpu"), torch.get_default_dtype(), torch.get_default_device()

    with default_torch_modes():
        default = now()
    with MODES[mode]():
        before = now()
        with default_torch_modes():
            assert now() == default
        assert now() == before != default


def test_a_trainer_learns_under_no_grad(task) -> None:
    with torch.no_grad():
        teacher = Trainer(GCN(hidden=4), epochs=2).fit(task, task.given, Streams((1, 2, 3)))
    assert teacher.sound.all()


def test_attributes_of_a_model_are_copies() -> None:
    model = SelfTrainingClassifier(**QUICK).fit(half_known()[0])
    before = model.labeled_iter_, model.labels_, model.history_, model.predict_proba(), model.explain(3)
    model.labeled_iter_[:] = 7
    model.labels_[:] = 1
    model.predict_proba()[:] = 0
    model.history_[0]["validation"][0] = -1.0
    after = model.labeled_iter_, model.labels_, model.history_, model.predict_proba(), model.explain(3)
    for one, other in zip(before, after, strict=True):
        assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


@pytest.mark.parametrize("batches", [5, "all", (10, 10), True])
def test_batches_are_a_sampling(batches: object) -> None:
    with pytest.raises(InvalidInput, match=r"Trainer.batches must be None or a Sampling"):
        SelfTrainingClassifier(batches=batches).fit(two_rings())  # type: ignore[arg-type]


def test_a_class_in_place_of_an_architecture_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"such as GCN\(hidden=64\), got <class"):
        SelfTrainingClassifier(model=GCN).fit(two_rings())  # type: ignore[arg-type]


@pytest.mark.parametrize("top", [-1, 1.5, "five", None, True])
def test_an_explanation_names_a_whole_number_of_nodes(top: object, fitted: SelfTrainingClassifier) -> None:
    with pytest.raises(InvalidInput, match="must be 0 or more"):
        fitted.explain(3, top=top)  # type: ignore[arg-type]
    assert fitted.explain(3, top=0).influences == []
    assert fitted.explain(3, top=10**30) == fitted.explain(3, top=40)
