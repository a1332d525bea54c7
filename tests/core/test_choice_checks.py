"""A setting that must be one of a few words says so, whatever came."""

import numpy as np
import pandas as pd
import pytest

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
from bangs.valuation.banzhaf import MSR
from tests.conftest import two_rings

ODD = pytest.mark.parametrize("value", [pd.NA, np.array(["a", "b"]), [], {}, 3, object], ids=str)


@ODD
@pytest.mark.parametrize(
    ("part", "setting"),
    [
        *((Agreement, "space"), (Banzhaf, "normalise"), (Sharpen, "shares"), (BanzhafWeight, "scale")),
        *((GRAND, "spread"), (MSR, "without"), (Trainer, "monitor"), (Trainer, "subgraph"), (Trainer, "precision")),
    ],
)
def test_every_part_names_a_setting_that_is_no_word_of_its_own(part: type, setting: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=rf"{part.__name__}\.{setting} must be one of "):
        part(**{setting: value})


@ODD
@pytest.mark.parametrize("setting", ["method", "preset", "features", "teacher", "device"])
def test_a_fit_names_a_setting_that_is_no_word_of_its_own(setting: str, value: object) -> None:
    with pytest.raises(UnknownName, match=f"^{setting} '.*' is unknown"):
        bangs.SelfTrainingClassifier(**{setting: value}).fit(two_rings())


@ODD
def test_a_name_that_is_none_is_unknown(value: object) -> None:
    for ask in (calibrator, method, strategy, trainer, lambda name: authors(name, "cora")):
        with pytest.raises(UnknownName, match="is unknown"):
            ask(value)  # type: ignore[arg-type]
