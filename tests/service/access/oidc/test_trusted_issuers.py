"""The operator's file of issuers: what is wrong in it is told with its place."""

import re
from pathlib import Path

import pytest

from helpers import ci_tokens
from service.access.oidc import trusted_issuers
from service.contract.errors import InvalidSetting


def _read(tmp_path, text):
    path = tmp_path / "oidc.toml"
    path.write_text(text)
    return trusted_issuers.read_issuers(path)


def _told(tmp_path, text):
    with pytest.raises(InvalidSetting) as raised:
        _read(tmp_path, text)
    before = f"PRESCORE_OIDC: {tmp_path / 'oidc.toml'}: "
    assert raised.value.detail.startswith(before)
    return raised.value.detail.removeprefix(before)


def _with(old, new):
    assert old in ci_tokens.TRUSTED
    return ci_tokens.TRUSTED.replace(old, new, 1)


def test_a_file_is_read_with_what_follows_from_the_kind_of_issuer(tmp_path):
    github, gitlab, other = _read(tmp_path, ci_tokens.TRUSTED).issuers
    assert (github.lifetime, other.lifetime) == (3600, 600)
    assert github.derived == {"branch": "ref", "commit": "sha", "run": "run_id"}
    assert gitlab.derived == {"branch": "ref_path", "commit": "sha", "run": "pipeline_id"}
    assert other.derived == {"job": "sub"}
    assert github.rules[1].match == {"repository_id": ["123", "124"]}
    assert trusted_issuers.read_issuers(None) is None


RULE, NAME = "issuers[0].rules[0].match", '"vision/captions"'
GITHUB_RULE = 'match = { repository_id = "123", ref = "refs/heads/main", ref_protected = "true" }'


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("audience = ", "audiences = ", "issuers[0].audience: expected a value, found none"),
        ('kind = "github"', 'kind = "gitbub"', "issuers[0].kind: expected 'github'"),
        ('kind = "github"\n', "", "issuers[0].kind: expected a value, found none"),
        ('algorithms = ["RS256"]', 'algorithms = ["HS256"]', "issuers[0].algorithms[0]: expected"),
        ('algorithms = ["RS256"]', 'algorithms = ["none"]', "issuers[0].algorithms[0]: expected"),
        ('algorithms = ["RS256"]', "algorithms = []", "issuers[0].algorithms: expected at least 1"),
        (ci_tokens.GITHUB, "http://github.example", "issuers[0].issuer: expected a text like"),
        (ci_tokens.GITLAB, ci_tokens.GITHUB, "issuers[1].issuer: expected each issuer once"),
        ("https://keys", "http://keys", "issuers[0].jwks_uri: "),
        ("https://keys", "https://me:pw@keys", "issuers[0].jwks_uri: "),
        ("lifetime = 600", "lifetime = 1_000_000", "issuers[2].lifetime: expected at most 86400"),
        ('scope = "publish"', 'scope = "admin"', "issuers[0].rules[0].scope: expected 'read'"),
        ('team = "red"', 'team = "Red!"', "issuers[0].rules[0].team: expected a text like"),
        ('team = "red"', 'team = "red"\nuser = 1', "issuers[0].rules[0].user: "),
        (GITHUB_RULE, "match = { repository_id = 123 }", f"{RULE}.repository_id: expected a text"),
        (
            GITHUB_RULE,
            f"match = {{ repository_id = {NAME} }}",
            f"{RULE}.repository_id: expected di",
        ),
        (
            GITHUB_RULE,
            f"match = {{ repository = {NAME} }}",
            f"{RULE}: expected repository_id or",
        ),
        (
            GITHUB_RULE,
            'match = { repository_id = "123" }',
            f"{RULE}: expected ref, found none:",
        ),
        (', ref_protected = "true" }', " }", f"{RULE}: expected ref_protected, found none"),
        ('"true" }', '["true", "false"] }', f'{RULE}.ref_protected: expected "true", found'),
        (GITHUB_RULE, "match = {}", f"{RULE}: expected at least 1"),
        ('ref_path = "refs/heads/main", ', "", "issuers[1].rules[0].match: expected ref_path"),
        ("[[issuers]]", "[[issuers]", "expected TOML: "),
        ('labels = { job = "sub" }', 'labels = { "" = "sub" }', "issuers[2].labels"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path, old, new, told):
    said = _told(tmp_path, _with(old, new))
    assert said.startswith(told)
    assert said.endswith("see deploy/guide/keys.md") or "TOML" in said


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(InvalidSetting, match=r"No such file"):
        trusted_issuers.read_issuers(tmp_path / "oidc.toml")
    with pytest.raises(InvalidSetting, match="at most 1048576 bytes"):
        _read(tmp_path, (1 << 20) * "#" + "#")
    (tmp_path / "oidc.toml").write_bytes(b"\xff")
    with pytest.raises(InvalidSetting, match="expected TOML"):
        trusted_issuers.read_issuers(tmp_path / "oidc.toml")
    assert _told(tmp_path, "").startswith("issuers: expected a value, found none")


def test_the_guides_file_is_one(tmp_path):
    guide = Path(__file__).parents[4] / "deploy" / "guide" / "keys.md"
    (example,) = re.findall(r"```toml\n(.*?)```", guide.read_text("utf-8"), re.DOTALL)
    github, gitlab = _read(tmp_path, example).issuers
    assert [rule.scope for rule in github.rules] == ["publish", "submit"]
    assert gitlab.lifetime == 14400
