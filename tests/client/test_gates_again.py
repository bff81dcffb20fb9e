"""A checkpoint that failed its gates is not the baseline of its second try: the command, the
action's script and GitLab's job against a real service.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from helpers.builders import captions_with_references
from helpers.fleet import bundle_of

CLIENT = Path(sys.prefix)
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
GITLAB = yaml.safe_load((DEPLOY / "gitlab" / "prescore-gate.yml").read_text(encoding="utf-8"))
GATES = ("cider_d >= baseline - 0.01", "no_significant_drop(cider_d, bleu_1)")
ARGUMENTS = ["--tokenizer", "none", "--postgen", "bleu,cider_d"]  # METEOR starts a Java
WORDS = ["a", "man", "woman", "people", "dog", "runs", "sits", "on", "grass", "big"]
SAID, PEOPLE = captions_with_references(WORDS, 40, 0)
IMAGES = {f"{at}.jpg": image for at, image in enumerate(PEOPLE)}
TRIES = {"good": [people[0] for people in PEOPLE], "bad": SAID}


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    with serve_here(tmp_path_factory.mktemp("a home")) as service:
        yield service


@pytest.fixture
def folder(tmp_path):
    for name, said in TRIES.items():
        given = [{"image": image, "caption": one} for image, one in zip(IMAGES, said, strict=True)]
        (tmp_path / f"{name}.json").write_text(json.dumps(given))
    return tmp_path


def _command(target, dataset, _):
    gates = [word for gate in GATES for word in ("--gate", gate)]
    words = ["prescore", "gate", target, "--dataset", dataset, "--baseline", "branch=main", *gates]
    given = ["--label", "branch=main", "--if-no-baseline", "pass", *ARGUMENTS]
    return [*words, *given], {}


def _action(target, dataset, commit):
    given = {
        "TARGET": target,
        "DATASET": dataset,
        "BASELINE": "branch=main",
        "IF_NO_BASELINE": "pass",
        "GATES": "\n".join(GATES),
        "ARGUMENTS": "\n".join(ARGUMENTS),
        "JUNIT": "gates.xml",
        "GITHUB_ACTIONS": "true",
        "GITHUB_SHA": commit,
        "GITHUB_REF_NAME": "main",
    }
    return ["sh", str(DEPLOY / "github-action" / "gate.sh")], given


def _gitlab(target, dataset, commit):
    (gate,) = GITLAB.values()
    *_, script = gate["script"]
    given = {
        **gate["variables"],
        "TARGET": target,
        "DATASET": dataset,
        "BASELINE": "branch=main",
        "GATES": "\n".join(GATES),
        "ARGUMENTS": "\n".join(ARGUMENTS),
        "CI_COMMIT_SHA": commit,
        "CI_COMMIT_BRANCH": "main",
    }
    return ["sh", "-ec", script], given


@pytest.mark.long
@pytest.mark.parametrize("way", [_command, _action, _gitlab])
def test_a_worse_checkpoint_fails_however_often_it_is_tried(service, folder, way):
    dataset = f"tried-{way.__name__.strip('_')}"
    with service.client() as client:
        sent = client.put(f"/v1/datasets/{dataset}", content=bundle_of(IMAGES))
        assert sent.status_code == 201, sent.text
    codes = []
    for commit, target in enumerate(("good.json", "bad.json", "bad.json", "bad.json")):
        words, variables = way(target, f"{dataset}/test", str(commit))
        environment = {
            "PATH": f"{CLIENT / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "CLIENT": str(CLIENT),
            "client": str(CLIENT),  # of GitLab's job
            "PRESCORE_URL": service.url,
            **variables,
        }
        ended = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        codes.append(ended.returncode)
    assert codes == [0, 1, 1, 1], ended.stdout + ended.stderr
    listed = subprocess.run(
        ["prescore", "list", dataset],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert listed.stdout.count("failed") == 3
    assert "passed (no baseline)" in listed.stdout
    assert "not_comparable" not in listed.stdout
