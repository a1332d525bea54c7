"""Training settings by name."""

import pytest

from bangs.errors import UnknownName
from bangs.nn.models import GAT, GCN, GCNII, MODELS
from bangs.training.presets import PRESETS, trainer


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("model", MODELS)
def test_every_model_has_settings(model, preset):
    assert type(trainer(model, preset).model) is MODELS[model]


def test_the_papers_are_those_of_the_published_code():
    made = trainer("gcn", "paper", "cora")
    assert (made.lr, made.weight_decay, made.epochs, made.patience) == (1e-3, 5e-4, 2000, 500)
    assert made.model == GCN(hidden=128, layers=2, dropout=0.3, loops=2.0)
    assert trainer("gat", "paper").model == GAT(hidden=128, heads=8, layers=3)


def test_a_models_authors_may_suggest_others_for_a_graph():
    assert trainer("gcnii", dataset="cora").model == trainer("gcnii", dataset="my own").model == GCNII(decay=20.0)
    assert trainer("gcnii", dataset="PubMed").model == GCNII(decay=1.0)
    assert trainer("gcn", dataset="pubmed") == trainer("gcn", dataset="cora")
    grand = trainer("grand", dataset="pubmed")
    assert grand.model.batch_norm
    assert (grand.lr, grand.monitor) == (0.2, "loss")


def test_single_settings_can_be_changed():
    assert trainer("gcn", epochs=7).epochs == 7


@pytest.mark.parametrize(
    ("words", "message"), [(("gnc",), "did you mean 'gcn'"), (("gcn", "papr"), "did you mean 'paper'")]
)
def test_unknown_names_get_a_suggestion(words, message):
    with pytest.raises(UnknownName, match=message):
        trainer(*words)
