"""Models of all learned metrics go one way: read by their marks, tried, registered, loaded."""

from dataclasses import replace

import numpy as np
import pytest

from helpers import learned_models
from service.contract.assets import (
    AssetFolders,
    list_asset_parameters,
    list_registered_models,
    read_register,
)
from service.contract.errors import MetricFailed, MetricUnavailable
from service.contract.metrics import catalogue
from service.contract.metrics.objectives import OBJECTIVES
from workers.jobs.toolbox import Toolbox
from workers.metrics import postgen, references
from workers.metrics.accord.caption_features import NAMES
from workers.metrics.family import ScoringInput
from workers.metrics.learned import kinds, soundness
from workers.metrics.learned.kinds import KINDS
from workers.offline import assets

PEOPLE = [["a cat", "the cat"], ["a dog in the park"]]


@pytest.fixture
def files(tmp_path):
    made = {"nneval": learned_models.by_chance(PEOPLE), "accord": learned_models.of_accord()}
    for family, model in made.items():
        KINDS[family].write(tmp_path / family, model)
    return tmp_path


def test_every_learned_metric_has_a_kind_and_is_trained_by_an_objective():
    assert set(KINDS) == set(catalogue.LEARNED) == {row.family for row in OBJECTIVES.values()}


@pytest.mark.parametrize("family", KINDS)
def test_a_file_says_whose_model_it_is_and_its_name_has_its_digits(files, family):
    assert kinds.find_family(files / family) == family
    found = kinds.read_sound_model(family, files / family, postgen.score_family)
    assert found.name == f"{family}@{found.digest[:12]}"
    other = next(each for each in KINDS if each != family)
    with pytest.raises(MetricFailed, match=r"expected a model of (accord|NNEval) of format 1"):
        KINDS[other].read(files / family)


def test_a_file_of_something_else_is_no_model(tmp_path):
    (tmp_path / "x").write_bytes(b"something")
    with pytest.raises(MetricFailed, match="x is no file of a learned metric"):
        kinds.find_family(tmp_path / "x")


@pytest.mark.parametrize("family", KINDS)
def test_the_shipped_model_is_sound_and_no_kind_of_captions_has_the_score_of_the_next(family):
    found = soundness.judge_model(KINDS[family].shipped(), postgen.score_family)
    means = list(found.means.values())
    assert found.wrong == ()
    assert sorted(set(means), reverse=True) == means
    assert means[0] - means[-1] > 0.5


@pytest.mark.parametrize("name", ["learned", "accord"])
def test_a_model_is_registered_as_what_its_file_says_and_takes_the_shipped_ones_place(files, name):
    places = AssetFolders(files / "home")
    for family, own in (("accord", "accord"), ("nneval", "learned")):
        added = assets.add_asset(name, files / family, places)
        assert list(added) == [own]
        digest = added[own].sha256
        asked = list_asset_parameters(family, places)
        assert asked["model"] == digest
        tools = Toolbox("cpu", places).bring(family, asked)
        assert tools["model"].digest == digest
    assert sorted(read_register(places)) == ["accord", "learned"]
    assert {family for family, _ in list_registered_models(places)} == set(KINDS)


def test_no_registered_model_of_accord_leaves_its_key_as_it_was(tmp_path):
    assert list_asset_parameters("accord", AssetFolders(tmp_path)) == {}
    assert list_asset_parameters("accord@0123456789ab", AssetFolders(tmp_path)) == {}


def test_a_model_of_accord_that_says_nothing_is_neither_registered_nor_loaded(files):
    """One that sees only whether the last word is a content word."""
    weights = np.where(np.array(NAMES) == "ended", 1.0, 0.0)
    flat = replace(learned_models.of_accord(), weights=weights)
    KINDS["accord"].write(files / "flat", flat)
    places = AssetFolders(files / "home")
    with pytest.raises(MetricFailed, match="says nothing of captions: expected a spread") as caught:
        assets.add_asset("learned", files / "flat", places)
    assert ", found " in caught.value.detail
    assert read_register(places) == {}
    with pytest.raises(MetricFailed, match="says nothing of captions"):
        Toolbox("cpu", places).named("accord", "", files / "flat", {})


def _task(tokenizer, **tools):
    prepared = references.index_tokens(PEOPLE, tokenizer)
    rows = np.arange(2)
    return ScoringInput(
        ["a cat", "a dog"], rows, prepared, None, others=postgen.score_family, tools=tools
    )


def test_a_trained_model_takes_its_own_tokenizer_alone_and_the_shipped_accord_any():
    trained = learned_models.of_accord(tokenizer="ptb")
    with pytest.raises(MetricUnavailable, match="tokenizer 'ptb', found references of 'none'"):
        postgen.score_family("accord", _task("none", model=trained))
    for task in (_task("none"), _task("ptb", model=trained)):
        assert 0 < postgen.score_family("accord", task).corpus["accord"] <= 1


def test_a_score_has_the_name_that_tells_its_model():
    own = replace(learned_models.of_accord(0.5), digest="0123456789abcdef")
    found = postgen.score_family("accord", _task("none", model=own, name=own.name))
    assert list(found.corpus) == list(found.captions) == ["accord@0123456789ab"]
    assert found.signatures[own.name] == "accord|refs:1-2|tok:none|model:0123456789ab|v:2"
    shipped = postgen.score_family("accord", _task("none"))
    assert found.corpus[own.name] != shipped.corpus["accord"]
