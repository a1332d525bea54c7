"""A setting that must be a number, or one of a few words, says so, whatever came."""

import re

import numpy as np
import pandas as pd
import pytest
import torch

import bangs
from bangs.calibration.calibrators import calibrator
from bangs.errors import InvalidInput, UnknownName
from bangs.nn.models.grand import GRAND
from bangs.selection.scores import Agreement, Banzhaf
from bangs.selftraining.loss_weights import BanzhafWeight
from bangs.selftraining.methods import method
from bangs.selftraining.published_settings import authors
from bangs.selftraining.soft_labels import Sharpen
from bangs.suggestion.strategies import strategy
from bangs.training.presets import trainer
from bangs.training.trainer import Trainer
from bangs.utils.setting_checks import check_integer, check_number
from bangs.valuation.banzhaf import MSR
from tests.conftest import two_rings


@pytest.mark.parametrize("value", [None, True, "3", [3], (3,), {}, 2j, pd.NA, torch.tensor(2), np.array([1]), int, 2.5])
def test_what_is_no_whole_number_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"Top.k must be a whole number, got "):
        check_integer("Top.k", value)


@pytest.mark.parametrize(("value", "within"), [(0, "(0, 1]"), (1.5, "(0, 1]"), (1, "[0, 1)"), (float("nan"), "[0, 2)")])
def test_a_number_outside_its_interval_is_refused_with_the_interval(value: float, within: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(f"Part.rate must lie in {within}, got {value}")):
        check_number("Part.rate", value, within=within)
    check_number("Part.rate", 0.5, within=within)


@pytest.mark.parametrize(
    ("value", "within", "rule"), [(0, "(0, inf)", "be positive"), (float("nan"), "[0, inf)", "not be negative")]
)
def test_an_interval_without_an_end_is_described_in_words(value: float, within: str, rule: str) -> None:
    with pytest.raises(InvalidInput, match=f"Part.rate must {rule}, got {value}"):
        check_number("Part.rate", value, within=within)


def test_a_whole_number_below_the_least_is_refused() -> None:
    check_integer("Part.k", 1, least=1)
    with pytest.raises(InvalidInput, match=r"Part\.k must be at least 1, got 0"):
        check_integer("Part.k", 0, least=1)


@pytest.mark.parametrize("value", [pd.NA, None, "yes", 1, np.array([True])])
def test_directed_is_true_or_false(value: object) -> None:
    model = bangs.SelfTrainingClassifier(directed=value)
    with pytest.raises(InvalidInput, match="directed must be True or False, got "):
        model.fit(two_rings())


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), 10**30])
def test_every_whole_number_is_one(value: int) -> None:
    check_integer("Top.k", value)
    check_number("Top.k", value)


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), float("inf")])
def test_every_real_number_is_one(value: float) -> None:
    check_number("Top.floor", value)


@pytest.mark.parametrize(
    ("part", "setting"),
    [
        *((part, "hidden") for part in ("GCN", "GraphSAGE", "GIN", "GAT", "APPNP", "GCNII", "GRAND")),
        *((part, "dropout") for part in ("GCN", "SGC", "GIN")),
        *(("Top", "k"), ("Top", "floor"), ("TopPerClass", "k"), ("Balanced", "k"), ("Above", "threshold")),
        *(("Banzhaf", "k"), ("Banzhaf", "budget"), ("Agreement", "clusters"), ("PPR", "alpha"), ("PPR", "steps")),
        *(("Push", "error"), ("Push", "steps"), ("Trainer", "lr"), ("Trainer", "epochs"), ("Method", "rounds")),
        *(("Sampling", "size"), ("Sampling", "fanout"), ("DropEdges", "rate"), ("DropFeatures", "rate")),
    ],
)
@pytest.mark.parametrize("value", ["many", [1], None, object()], ids=["word", "list", "none", "object"])
def test_every_part_names_a_setting_that_is_no_number(part: str, setting: str, value: object) -> None:
    needed = {"k": 3} if part in ("Top", "TopPerClass", "Balanced") else {}
    with pytest.raises(InvalidInput, match=rf"{part}.{setting} must"):
        getattr(bangs, part)(**{**needed, setting: value})


@pytest.mark.parametrize(
    ("setting", "value"),
    [("preset", 1), ("preset", []), ("validation", pd.NA), ("validation", "half"), ("teacher", 3), ("selector", 2j)],
)
def test_a_fit_names_a_setting_that_is_none(setting: str, value: object) -> None:
    with pytest.raises((InvalidInput, UnknownName), match=rf"(?i){setting}"):
        bangs.SelfTrainingClassifier(**{setting: value}).fit(two_rings())


def test_more_candidates_than_a_machine_can_count_are_refused() -> None:
    with pytest.raises(InvalidInput, match="candidates must be a whole number from 1 to 1,000,000,000"):
        bangs.SelfTrainingClassifier(candidates=2**63, rounds=1, k=2, epochs=2).fit(two_rings())


def test_a_graph_without_numbers_is_refused() -> None:
    data = two_rings()
    for name in ("x", "edge_index"):
        strange = data.clone().update({name: data[name].to("meta")})
        with pytest.raises(InvalidInput, match="'meta' device, which holds no numbers"):
            bangs.SelfTrainingClassifier().fit(strange)
    with pytest.raises(InvalidInput, match="must hold whole numbers of shape"):
        bangs.SelfTrainingClassifier().fit(data.clone().update({"edge_index": data.edge_index.to(torch.cfloat)}))


def test_rows_of_unequal_length_are_refused() -> None:
    data = two_rings()
    with pytest.raises(InvalidInput, match="one row of features per node"):
        bangs.SelfTrainingClassifier().fit([[1.0], [1.0, 2.0]], [0, 1], edge_index=data.edge_index)
    with pytest.raises(InvalidInput, match=r"an array \[2, E\] of row numbers"):
        bangs.SelfTrainingClassifier().fit(data.x, data.y, edge_index=[[0, 1], [1]])


def test_a_class_in_place_of_a_calibrator_and_na_in_place_of_a_word_are_named() -> None:
    with pytest.raises(InvalidInput, match="calibrator must be a name or a part that can be called, got <class 'int'>"):
        bangs.SelfTrainingClassifier(calibrator=int).fit(two_rings())
    with pytest.raises(InvalidInput, match="selector must be a name or a part that can be called, got <built-in "):
        bangs.SelfTrainingClassifier(selector=len).fit(two_rings())
    with pytest.raises(InvalidInput, match=r"Method\.start must be one of fresh, teacher, got '<NA>'"):
        bangs.Method(start=pd.NA)


ODD = pytest.mark.parametrize("value", [pd.NA, np.array(["a", "b"]), [], {}, 3, object], ids=str)


@ODD
@pytest.mark.parametrize(
    ("part", "setting"),
    [
        *((Agreement, "space"), (Banzhaf, "normalise"), (Sharpen, "shares"), (BanzhafWeight, "scale")),
        *((GRAND, "spread"), (MSR, "without"), (Trainer, "monitor"), (Trainer, "subgraph"), (Trainer, "precision")),
    ],
)
def test_every_part_names_a_setting_with_an_unknown_word(part: type, setting: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=rf"{part.__name__}\.{setting} must be one of "):
        part(**{setting: value})


@ODD
@pytest.mark.parametrize("setting", ["method", "preset", "features", "teacher", "device"])
def test_a_fit_names_a_setting_with_an_unknown_word(setting: str, value: object) -> None:
    with pytest.raises(UnknownName, match=f"^{setting} '.*' is unknown"):
        bangs.SelfTrainingClassifier(**{setting: value}).fit(two_rings())


@ODD
def test_a_name_that_is_none_is_unknown(value: object) -> None:
    for ask in (calibrator, method, strategy, trainer, lambda name: authors(name, "cora")):
        with pytest.raises(UnknownName, match="is unknown"):
            ask(value)  # type: ignore[arg-type]
