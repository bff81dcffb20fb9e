"""Checkpoints of plug-ins over HTTP: verified by a worker that has the package, scored as the same
network in Prescore's own form, and never mixed with what another version has computed.
"""

import os
import subprocess
import sys
from contextlib import ExitStack

import numpy as np
import pytest

from helpers import plugin_packages as packages
from helpers.fleet import bundle, bundle_of, digest
from helpers.submissions import store_checkpoint, submit
from service.engine import fleet_status
from workers.runtime.worker import record_plugins

IMAGES = 8
NEVER_ENDS = packages.changed(
    "self.output = Product(network.words.weight.t(), network.words.bias)",
    "network.words.bias[1] = -1e6\n"
    "        self.output = Product(network.words.weight.t(), network.words.bias)",
)
PERPLEXITY = "geomean_join_pplx_none"


@pytest.fixture(scope="module", autouse=True)
def dataset(service):
    with service.client() as client:
        assert client.put("/v1/datasets/seen", content=bundle(IMAGES)).status_code == 201


@pytest.fixture
def started(service, tmp_path):
    """Start a worker that has the page's package, in this version and of this code."""
    with ExitStack() as worker:

        def start(version="1.0", code=None):
            worker.close()
            folder = tmp_path / f"{version}-{len(list(tmp_path.iterdir()))}"
            packages.install(folder, version, code)
            worker.enter_context(packages.beside(folder))
            service.forget_models()
            record_plugins(service.records)

        yield start
    service.forget_models()


@pytest.fixture(autouse=True)
def forgotten(service):
    """No worker has told of a plug-in."""
    with service.records.transaction() as connection:
        connection.execute(fleet_status.plugins.delete())


def _evaluated(client, content, **asked):
    request = {
        "dataset": "seen/test",
        "checkpoint": digest(content),
        "pregen": "all",
        "postgen": ["bleu_1"],
        "tokenizer": "none",
        **asked,
    }
    return client.get(f"/v1/evaluations/{submit(client, **request)}").json()


def _pregen(client, run):
    found = client.get(f"/v1/evaluations/{run['id']}/pregen").json()["scores"]
    return {name: score["value"] for name, score in found.items()}, {
        score["signature"] for score in found.values()
    }


def test_it_is_verified_and_scored_as_the_same_network_in_our_own_form(client, started):
    started("1.0")
    content, arrays = packages.checkpoint(note="a")
    found = store_checkpoint(client, content)
    assert (found["format"], found["state"], found["problem"]) == ("plugin", "ready", None)
    assert found["plugin"] == {
        "name": "show-and-tell",
        "package": "acme-captioners",
        "version": "1.0",
    }
    assert (found["architecture"], found["inputs"]) == ("plugin:show-and-tell", "features")
    assert (found["units"], found["vocabulary_size"], found["config"]) == ("words", 50, None)
    assert found["parameters"] == sum(each.size for each in arrays.values())
    ours = packages.canonical(arrays)
    store_checkpoint(client, ours)
    runs = [_evaluated(client, each) for each in (content, ours)]
    assert [run["status"] for run in runs] == ["succeeded"] * 2, runs[0]["tasks"]
    (theirs, signatures), (expected, _) = (_pregen(client, run) for run in runs)
    both = np.array([[theirs[name], expected[name]] for name in expected], float)  # null: infinite
    np.testing.assert_allclose(both[:, 0], both[:, 1], rtol=1e-5, atol=1e-9)
    assert np.count_nonzero(np.isfinite(both[:, 0]) & (both[:, 0] != 0)) > 300
    named = "plugin:show-and-tell@acme-captioners-1.0"
    assert signatures == {f"pregen|columns|fp32|{named}|v:1", f"pregen|prefix|{named}|v:1"}
    comparison = client.post(
        "/v1/comparisons", json={"a": runs[0]["id"], "b": runs[1]["id"], "metrics": ["perplexity"]}
    )
    assert "plugin" in comparison.text, comparison.text


def test_without_the_plug_in_it_is_invalid_and_says_which_there_are(client, started, service):
    content, _ = packages.checkpoint(prescore_plugin="other")
    found = store_checkpoint(client, content)
    assert (found["state"], found["problem"]["code"]) == ("invalid", "plugin_unavailable")
    assert "'other'" in found["problem"]["detail"]
    assert "plug-ins there: none" in found["problem"]["detail"]
    started("1.0")
    detail = store_checkpoint(client, content)["problem"]["detail"]
    assert "show-and-tell (acme-captioners 1.0)" in detail


def test_a_new_version_computes_anew_and_is_not_mixed_with_the_old_one(client, started):
    content, _ = packages.checkpoint(note="versions")
    started("1.0")
    store_checkpoint(client, content)
    first = _evaluated(client, content)
    again = _evaluated(client, content)
    started(
        "2.0",
        packages.changed(
            "return self.network.image(inputs)", "return 2 * self.network.image(inputs)"
        ),
    )
    state = client.get(f"/v1/checkpoints/{digest(content)}").json()
    assert (state["state"], state["plugin"]["version"]) == ("converting", None)
    second = _evaluated(client, content)
    assert {run["status"] for run in (first, again, second)} == {"succeeded"}
    cached = [{task["name"]: task["cached"] for task in run["tasks"]} for run in (again, second)]
    assert cached[0]["columns"]
    assert not any(cached[1][name] for name in ("checkpoint", "prefix", "columns", "captions"))
    (old, signed), (new, signed_anew) = (_pregen(client, run) for run in (again, second))
    assert old[PERPLEXITY] != new[PERPLEXITY]
    assert signed != signed_anew
    assert _pregen(client, first) == (old, signed)
    found = client.get(f"/v1/checkpoints/{digest(content)}").json()
    assert (found["state"], found["plugin"]["version"]) == ("ready", "2.0")


def test_pieces_are_scored_as_words_unless_asked_and_captions_fit_the_model(client, started):
    started("1.0", NEVER_ENDS)
    letters = {f"{at}.jpg": ["ab c", "b ca"] for at in range(3)}
    rows = np.random.default_rng(2).normal(size=(3, 5)).astype(np.float32)
    assert client.put("/v1/datasets/letters", content=bundle_of(letters, rows)).status_code == 201
    content = packages.of_pieces()
    found = store_checkpoint(client, content)
    assert (found["state"], found["units"], found["vocabulary_size"]) == ("ready", "pieces", 6)
    for units, tokens in (("words", ["ab", "c", "<end>"]), ("pieces", [None] * 3 + ["<end>"])):
        run = _evaluated(client, content, dataset="letters/test", units=units)
        assert run["status"] == "succeeded", run["tasks"]
        assert all(f"|units:{units}|" in each for each in _pregen(client, run)[1])
        shown = client.get(f"/v1/evaluations/{run['id']}/tokens/0.jpg").json()["captions"][0]
        assert [token["word"] for token in shown["tokens"]] == tokens
        said = client.get(f"/v1/evaluations/{run['id']}/captions").json()["items"]
        assert {len(item["caption"].split()) for item in said} == {8}
    request = {
        "dataset": "letters/test",
        "checkpoint": digest(content),
        "decoding": {"max_words": 9},
    }
    answer = client.post("/v1/evaluations", json=request)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/decoding/max_words"


@pytest.mark.slow
def test_the_package_of_the_page_is_built_by_pip_and_its_file_is_scored(
    client, service, started, tmp_path, monkeypatch
):
    project, target = tmp_path / "acme-captioners", tmp_path / "site"
    packages.write_project(project)
    assert len(packages.module().splitlines()) < 80
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*command, "--target", str(target), str(project)],
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.chdir(tmp_path)
    with packages.beside(target):
        service.forget_models()
        record_plugins(service.records)
        exec(compile(packages.writing(), packages.PAGE, "exec"), {})  # noqa: S102  our own page
        content = (tmp_path / "model.safetensors").read_bytes()
        found = store_checkpoint(client, content)
        assert (found["state"], found["problem"]) == ("ready", None)
        assert found["plugin"]["version"] == "1.0"
        run = _evaluated(client, content)
        assert run["status"] == "succeeded", run["tasks"]
