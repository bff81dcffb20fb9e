import dataclasses
import hashlib
import zipfile

import pytest

from service.contract import assets
from service.contract.assets import ASSETS, Asset, AssetFolders
from service.contract.errors import AssetRefused, MetricUnavailable
from service.contract.formats import digests
from service.contract.metrics import catalogue

CONTENT = b"a jar of ours"
MEMBER = "a/folder/grammar.gz"


def _digest(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def places(tmp_path, monkeypatch):
    """With two small assets in place of the real ones."""
    plain = Asset(
        "plain", "a parser", "tuples", "MIT", ("plain.jar",), 13, _digest(CONTENT), maven="g:a:1"
    )
    inner = dataclasses.replace(
        plain, name="inner", what="a grammar", names=("small.jar", "large.jar"), member=MEMBER
    )
    own = Asset("own", "a file of your own", "vectors", "its own")
    rows = {asset.name: asset for asset in (plain, inner, own)}
    monkeypatch.setattr(assets, "ASSETS", rows)
    return AssetFolders(tmp_path / "home", tmp_path / "given")


def _put(folder, name, content=CONTENT, member=None):
    folder.mkdir(parents=True, exist_ok=True)
    if member is None:
        (folder / name).write_bytes(content)
    else:
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr(member, content)
    return folder / name


def test_every_asset_serves_a_metric_and_is_pinned_or_the_users_own():
    for name, asset in ASSETS.items():
        assert asset.name == name
        is_for_models = name in (assets.IMAGE_ENCODER, assets.BASE)
        assert bool(asset.metrics) != is_for_models
        assert (asset.sha256 is None) == (asset.bytes is None) == (not asset.names)
        assert asset.sha256 is None or len(asset.sha256) == 64
        assert asset.maven is None or len(asset.maven_sha256) == 64
        assert asset.pypi is None or len(asset.pypi_sha256) == 64
    assert {"spice", "spider"} <= {metric for asset in ASSETS.values() for metric in asset.metrics}
    assert {"spice", "spider"} <= set(catalogue.POSTGEN)


def test_what_is_given_comes_before_what_is_at_home(places):
    at_home = _put(places.own, "plain.jar")
    assert assets.locate_asset("plain", places).path == at_home
    given = _put(places.given, "plain.jar")
    assert assets.locate_asset("plain", places).path == given
    assert assets.locate_asset("plain", AssetFolders(places.home)).path == at_home


def test_a_member_is_found_in_either_archive(places):
    large = _put(places.given, "large.jar", member=MEMBER)
    assert assets.locate_asset("inner", places).path == large
    small = _put(places.given, "small.jar", member=MEMBER)
    assert assets.locate_asset("inner", places) == digests.MeasuredFile(
        small, _digest(CONTENT), len(CONTENT)
    )


def test_what_is_missing_is_a_sentence_with_size_licence_and_advice(places):
    with pytest.raises(
        MetricUnavailable, match=r"a parser \(0\.0 MB, MIT\) is not here; `prescore"
    ):
        assets.locate_asset("plain", places)
    assert assets.explain_missing("spice", places).startswith("a parser")
    assert assets.explain_missing("bleu_1", places) is None
    _put(places.given, "plain.jar")
    assert assets.explain_missing("spice", places).startswith("a grammar")
    _put(places.own, "small.jar", member=MEMBER)
    assert assets.explain_missing("spice", places) is None


@pytest.mark.parametrize(("name", "member"), [("plain.jar", None), ("small.jar", MEMBER)])
def test_another_file_of_that_name_is_refused(places, name, member):
    asset = "plain" if member is None else "inner"
    path = _put(places.given, name, b"something else", member)
    with pytest.raises(MetricUnavailable, match=f"{path} is not .*: its SHA-256 is "):
        assets.locate_asset(asset, places)
    _put(places.given, name, CONTENT, member)
    assert assets.locate_asset(asset, places).path == path


@pytest.mark.parametrize("content", [b"", b"PK\5\6" + bytes(18), b"no archive"])
def test_an_archive_without_the_member_is_refused(places, content):
    _put(places.given, "small.jar", content)
    with pytest.raises(MetricUnavailable, match="is not here"):
        assets.locate_asset("inner", places)


def test_a_folders_digest_is_of_its_names_and_contents(tmp_path):
    _put(tmp_path / "model" / "b", "config.json")
    _put(tmp_path / "model", "weights", b"w")
    lines = f"{_digest(CONTENT)}  b/config.json\n{_digest(b'w')}  weights\n"
    found = digests.measure_file(tmp_path / "model")
    assert (found.sha256, found.bytes) == (_digest(lines.encode()), 14)
    (tmp_path / "model" / "weights").rename(tmp_path / "model" / "others")
    assert digests.measure_file(tmp_path / "model").sha256 != found.sha256


def test_an_unknown_asset_is_refused_with_the_known_ones(places):
    with pytest.raises(AssetRefused, match="plain, inner, own, found 'x'"):
        assets.locate_asset("x", places)
