"""Bringing assets: from folders and from a repository, a real server with files of ours."""

import functools
import hashlib
import http.server
import json
import re
import threading
import zipfile

import pytest
from typer.testing import CliRunner

from helpers import adapter_folders, encoders, object_list_files, vision_language_folders
from service.contract import assets as registry
from service.contract.assets import Asset, AssetFolders
from service.contract.errors import AssetRefused, InvalidSetting, MetricFailed, MetricUnavailable
from service.contract.formats import digests
from workers.cli.assets import assets as command
from workers.metrics.vectors import word_vectors
from workers.offline import assets

MEMBER = "models/grammar.gz"
JAR = b"code"


def _digest(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Two small assets in place of the real ones, and the users' own."""
    models = tmp_path / "repository/org/nlp/parser/1.0/parser-1.0-models.jar"
    models.parent.mkdir(parents=True)
    with zipfile.ZipFile(models, "w") as archive:
        archive.writestr("models/another.gz", b"left out" * 1000)
        archive.writestr(MEMBER, b"grammar")
    (models.parent / "parser-1.0.jar").write_bytes(JAR)
    code = Asset(
        "code", "a parser", "tuples", "GPL", ("parser-1.0.jar",), 4, _digest(JAR),
        maven="org.nlp:parser:1.0", maven_sha256=_digest(JAR),
    )  # fmt: skip
    grammar = Asset(
        "grammar", "its grammar", "tuples", "GPL", ("grammar.jar", "parser-1.0-models.jar"), 7,
        _digest(b"grammar"), member=MEMBER, maven="org.nlp:parser:1.0:models",
        maven_sha256=_digest(models.read_bytes()),
    )  # fmt: skip
    own = (registry.ASSETS[name] for name in ("word-vectors", "encoder", "objects"))
    rows = {asset.name: asset for asset in (code, grammar, *own)}
    for module in (registry, assets):
        monkeypatch.setattr(module, "ASSETS", rows)
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "home"))
    return AssetFolders(tmp_path / "home")


@pytest.fixture
def repository(places, tmp_path, monkeypatch):
    """The address of one: a real server of files."""
    handler = functools.partial(_Quiet, directory=tmp_path / "repository")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("PRESCORE_MAVEN_URL", url)
        yield url
        server.shutdown()
        thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def _left(places):
    return sorted(path.name for path in places.own.iterdir())


def test_a_distribution_gives_the_jar_and_the_one_grammar(places, tmp_path):
    """Its jars lie in a folder below the one that is named."""
    found = assets.add_folder(tmp_path / "repository/org/nlp/parser", places)
    assert list(found) == ["code", "grammar"]
    assert _left(places) == ["grammar.jar", "parser-1.0.jar"]
    with zipfile.ZipFile(places.own / "grammar.jar") as archive:
        assert archive.namelist() == [MEMBER]
    assert registry.explain_missing("spice", places) is None


def test_a_folder_without_them_is_refused(places, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "parser-1.0.jar").write_bytes(b"another")
    with pytest.raises(AssetRefused, match=r"found none of parser-1\.0\.jar, grammar\.jar"):
        assets.add_folder(tmp_path / "other", places)
    with pytest.raises(AssetRefused, match="expected a folder"):
        assets.add_folder(tmp_path / "nowhere", places)


def test_what_a_repository_gives_must_be_the_pinned_file(places, repository, tmp_path):
    (tmp_path / "repository/org/nlp/parser/1.0/parser-1.0.jar").write_bytes(b"evil")
    code, told = registry.ASSETS["code"], []
    with pytest.raises(
        AssetRefused, match=f"expected SHA-256 {_digest(JAR)}, found {_digest(b'evil')}"
    ):
        assets.fetch_asset(code, repository, places, lambda *at: told.append(at))
    assert told[0] == (4, 4)
    assert _left(places) == []


def test_a_repository_that_has_it_not_is_an_error_that_names_the_address(places, repository):
    with pytest.raises(
        AssetRefused,
        match=r"parser-1\.0\.jar cannot be downloaded: HTTP Error 404",
    ):
        assets.fetch_asset(registry.ASSETS["code"], f"{repository}/empty", places)
    with pytest.raises(InvalidSetting, match="PRESCORE_MAVEN_URL"):
        assets.fetch_asset(registry.ASSETS["code"], None, places)


def _vectors(path, number=3):
    path.write_text(f"2 3\na 1 2 {number}\nb 1 0 0\n")
    return path


def test_word_vectors_become_a_file_of_ours(places, tmp_path):
    said = "`prescore assets add word-vectors PATH` registers it, .*`prescore assets train vectors"
    with pytest.raises(MetricUnavailable, match=said):
        registry.locate_asset("word-vectors", places)
    given = _vectors(tmp_path / "vectors.txt")
    found = assets.add_asset("word-vectors", given, places)["word-vectors"]
    assert found == registry.locate_asset("word-vectors", places)
    kept = word_vectors.read_word_vectors(found.path)
    assert kept.source == _digest(given.read_bytes())
    assert kept.vectors[kept.find(["a"])[0]].tolist() == [1, 2, 3]
    given.unlink()
    assert registry.list_asset_parameters("wmd", places) == {"vectors": found.sha256}
    other = assets.add_asset("word-vectors", _vectors(given, 4), places)["word-vectors"]
    assert other.sha256 != found.sha256
    assert _left(places) == ["registered.json", other.path.name]


def test_a_list_of_objects_is_copied_and_known_by_its_content(places, tmp_path):
    given = object_list_files.write(tmp_path / "synonyms.txt", ",")
    with pytest.raises(MetricFailed, match=r"synonyms\.txt: expected an object in each line"):
        assets.add_asset("objects", given, places)
    with pytest.raises(AssetRefused, match="expected a list of objects, found no file"):
        assets.add_asset("objects", tmp_path / "nowhere", places)
    object_list_files.write(given)
    found = assets.add_asset("objects", given, places)["objects"]
    assert found.path.parent == places.own
    assert found.path.read_bytes() == given.read_bytes()
    assert found.sha256 == _digest(given.read_bytes())
    given.unlink()
    assert registry.list_asset_parameters("chair", places) == {"objects": found.sha256}
    other = assets.add_asset("objects", object_list_files.write(given, "dog\n"), places)["objects"]
    assert other.sha256 != found.sha256
    assert _left(places) == [other.path.name, "registered.json"]
    other.path.unlink()
    assert registry.list_asset_parameters("chair", places) == {"objects": None}


def test_a_model_stays_where_it_lies_and_must_stay_as_it_is(places, tmp_path):
    folder = encoders.make(tmp_path / "model")
    found = assets.add_asset("encoder", folder, places, layer=2)["encoder"]
    assert (found.path, found.layer) == (folder, 2)
    assert found == registry.find_encoder(places)
    for family in ("bertscore", "refscore"):
        assert registry.list_asset_parameters(family, places) == {
            "encoder": found.sha256,
            "layer": 2,
        }
    config = folder / "config.json"
    text = config.read_text()
    config.write_text(text)  # another time, the same content
    assert registry.locate_asset("encoder", places).sha256 == found.sha256
    config.write_text(text + "\n")
    with pytest.raises(MetricUnavailable, match="has changed since it was registered"):
        registry.locate_asset("encoder", places)
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(MetricUnavailable, match="does not exist"):
        registry.locate_asset("encoder", places)
    assert registry.list_asset_parameters("bertscore", places) == {"encoder": None, "layer": None}


@pytest.fixture
def pinned(places, tmp_path, monkeypatch):
    """A pinned encoder in place of MiniLM, and its folder."""
    folder = encoders.make(tmp_path / "pinned", seed=3)
    found = digests.measure_file(folder)
    minilm = Asset(
        "minilm", "a small model", "encoder", "MIT", ("small",), found.bytes, found.sha256, pypi="m"
    )
    monkeypatch.setitem(registry.ASSETS, "minilm", minilm)
    return folder, minilm


def test_a_metric_that_was_learned_by_an_encoder_has_that_one_beside_the_users_own(
    places, pinned, tmp_path
):
    folder, minilm = pinned
    wanted = {"encoder": minilm.sha256, "layer": None}
    none = "a small model .* is not here; `prescore assets add minilm` brings it"
    assert re.match(none, registry.explain_missing("accord_large", places))
    own = assets.add_asset("encoder", encoders.make(tmp_path / "model"), places, layer=2)["encoder"]
    reason = registry.explain_missing("accord_large", places)
    assert (
        f"of SHA-256 {minilm.sha256[:12]}…, found another one, model of SHA-256 {own.sha256[:12]}…"
        in reason
    )
    assert reason.endswith("; it may stand beside yours")
    assert registry.explain_missing("bertscore", places) is None
    with pytest.raises(MetricUnavailable, match="found another one, model of SHA-256"):
        registry.find_encoder_by_digest(minilm.sha256, places)
    folder.rename(places.own / "small")
    assert registry.explain_missing("accord_large", places) is None
    assert registry.list_asset_parameters("accord_large", places) == wanted
    assert registry.list_asset_parameters("bertscore", places) == {
        "encoder": own.sha256,
        "layer": 2,
    }
    assert registry.find_encoder_by_digest(minilm.sha256, places).path == places.own / "small"
    assert registry.find_encoder_by_digest(own.sha256, places) == own


def test_that_encoder_may_be_registered_as_the_users_own(places, pinned):
    folder, minilm = pinned
    own = assets.add_asset("encoder", folder, places)["encoder"]
    assert registry.explain_missing("accord_large", places) is None
    assert registry.find_encoder_by_digest(minilm.sha256, places) == own


@pytest.mark.parametrize(
    ("what", "layer", "expected"),
    [
        ("word-vectors", None, "expected a first line with the number of words"),
        ("encoder", None, "expected weights in model.safetensors"),
        ("encoder", 9, "expected a layer from 1 to 3, found 9"),
    ],
)
def test_what_is_no_such_file_is_not_registered(places, tmp_path, what, layer, expected):
    path = encoders.make(tmp_path / "model") if layer else tmp_path / "given"
    if what == "encoder":
        path.mkdir(exist_ok=True)
    else:
        path.write_text("no vectors\n")
    with pytest.raises(MetricFailed, match=expected):
        assets.add_asset(what, path, places, layer)
    assert _left(places) == []
    with pytest.raises(AssetRefused, match="expected a file of word vectors"):
        assets.add_asset("word-vectors", tmp_path / "nowhere", places)


def test_the_commands_list_fetch_and_list_again(places, repository):
    """`prescore assets`, by its own application."""
    runner = CliRunner()
    before = json.loads(runner.invoke(command, ["list", "--json"]).stdout)
    assert [row["status"] for row in before] == ["unavailable"] * 5
    assert runner.invoke(command, ["fetch"]).exit_code == 0
    assert _left(places) == ["grammar.jar", "parser-1.0.jar"]
    assert registry.explain_missing("spice", places) is None
    after = json.loads(runner.invoke(command, ["list", "--json"]).stdout)
    assert [row["status"] for row in after] == ["available"] * 2 + ["unavailable"] * 3
    text = runner.invoke(command, ["list"]).stdout
    assert "licence: GPL" in text
    assert _digest(JAR) in text
    refused = runner.invoke(command, ["add", "/nowhere"])
    assert (refused.exit_code, refused.stderr) == (
        2,
        "asset_refused: expected a folder, found none at /nowhere\n",
    )


def test_the_real_assets_are_taken_from_a_folder(spice_jars, tmp_path):
    places = AssetFolders(tmp_path)
    assert list(assets.add_folder(spice_jars[0].parent, places)) == ["corenlp", "corenlp-grammar"]
    assert registry.explain_missing("spice", places) is None
    assert len(_left(places)) == 2


@pytest.fixture
def base_folder(tmp_path):
    """A folder that transformers has saved, of a small model."""
    return vision_language_folders.save_model(tmp_path / "base", "llava").folder


def test_bases_have_names_of_their_own_by_which_adapters_find_them(
    base_folder, tmp_path, monkeypatch
):
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "home"))
    places, runner = AssetFolders(tmp_path / "home"), CliRunner()
    with pytest.raises(MetricUnavailable, match=r"registered: none\. .*add base NAME FOLDER`"):
        registry.find_base("acme/tiny", places)
    for name in ("tiny", "acme/other"):
        added = runner.invoke(command, ["add", "base", name, str(base_folder)])
        assert added.exit_code == 0, added.stderr
    found = registry.list_bases(places)
    assert {name: each.path for name, each in found.items()} == {
        "tiny": base_folder,
        "acme/other": base_folder,
    }
    for asked, name in {
        "tiny": "tiny", "acme/tiny": "tiny", "/data/tiny/": "tiny", "acme/other": "acme/other",
    }.items():  # fmt: skip
        assert registry.find_base(asked, places) == (name, found[name])
    with pytest.raises(MetricUnavailable, match="of 'other'; registered: acme/other, tiny"):
        registry.find_base("other", places)
    listed = json.loads(runner.invoke(command, ["list", "--json"]).stdout)
    assert [row["name"] for row in listed if row["path"] == str(base_folder)] == [
        "base acme/other",
        "base tiny",
    ]
    old = found["tiny"].sha256
    assert registry.find_base_by_digest(old, places).path == base_folder
    (base_folder / "prompt.json").write_text('{"prompt": "it is"}')
    with pytest.raises(MetricUnavailable, match="has changed since it was registered"):
        registry.find_base("tiny", places)
    assets.add_base("tiny", base_folder, places)
    with pytest.raises(MetricUnavailable, match=f"a base model with SHA-256 {old[:12]}"):
        registry.find_base_by_digest(old, places)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["tiny"], "expected a name such as .* and a folder, found 'tiny' and no folder"),
        (["tiny", "{}/nowhere"], "expected the folder of a base model, found none at"),
        (["a@b", "{}"], "expected a name such as llava-1.5-7b and a folder, found 'a@b'"),
        (["tiny", "{}/adapter"], "expected what transformers has saved, found adapter"),
        ([], "add base NAME FOLDER` registers it"),
    ],
)
def test_what_is_no_base_is_not_registered(arguments, expected, tmp_path, monkeypatch):
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "home"))
    adapter_folders.write(tmp_path / "adapter", adapter_folders.make_pairs({"lm_head": (3, 4)}))
    given = [each.format(tmp_path) for each in arguments]
    refused = CliRunner().invoke(command, ["add", "base", *given])
    assert refused.exit_code == 2
    assert re.search(expected, refused.stderr), refused.stderr
