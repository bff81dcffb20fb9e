"""`prescore keys`: made, listed, replaced and revoked on the operator's terminal."""

import json
import re

import pytest
from typer.testing import CliRunner

from helpers import command_app
from service.access import keys

KEY = re.compile(r"psk_[0-9a-z]{12}_[0-9A-Za-z]{49}")


@pytest.fixture
def home(records, tmp_path):
    """The folder of this record."""
    return tmp_path


def _keys(home, *words):
    """Its exit code, its output and its errors."""
    result = CliRunner().invoke(command_app.prescore(), ["keys", *words, "--home", str(home)])
    return result.exit_code, result.stdout, result.stderr


def _made(home, *words):
    code, out, _ = _keys(home, "create", *words)
    assert code == 0
    return out.strip()


def test_a_key_alone_is_printed_and_what_it_is_goes_to_the_terminal(home, records):
    code, out, told = _keys(home, "create", "--team", "red", "--scope", "submit", "--name", "ci")
    assert (code, bool(KEY.fullmatch(out.strip()))) == (0, True)
    (key,) = keys.list_keys(records)
    assert told == f"key {key.id} of red (submit), valid for ever; it is shown this once:\n"
    assert keys.parse_key_text(out.strip()).id == key.id
    assert (key.team, key.scope, key.name, key.expires_at) == ("red", "submit", "ci", None)


def test_json_has_the_key_and_what_it_is(home):
    found = json.loads(
        _made(home, "--team", "red", "--scope", "read", "--expires", "90d", "--json")
    )
    assert KEY.fullmatch(found["key"])
    assert (found["team"], found["scope"], found["state"]) == ("red", "read", "valid")
    assert found["expires"] > found["created"]


def test_the_list_has_no_key_and_tells_the_state_of_each(home, records):
    text = _made(home, "--team", "red", "--scope", "read", "--name", "nightly")
    other = keys.parse_key_text(_made(home, "--team", "blue", "--scope", "admin")).id
    assert _keys(home, "rotate", other, "--overlap", "0")[0] == 0
    old = keys.parse_key_text(text).id
    code, new, _ = _keys(home, "rotate", old, "--overlap", "12h")
    assert code == 0
    assert _keys(home, "revoke", keys.parse_key_text(new.strip()).id)[0] == 0
    code, listed, _ = _keys(home, "list")
    assert code == 0
    assert not KEY.search(listed)
    assert listed.splitlines()[0].split() == [
        *("id", "team", "scope", "name", "created", "expires", "used", "state")
    ]
    rows = {key["id"]: key for key in json.loads(_keys(home, "list", "--json")[1])}
    assert (rows[old]["state"], rows[rows[old]["follower"]]["state"]) == ("replaced", "revoked")
    assert rows[other]["state"] == "expired"  # with no overlap, at once
    only = json.loads(_keys(home, "list", "--team", "blue", "--json")[1])
    assert [key["team"] for key in only] == ["blue", "blue"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("create", "--team", "Red!", "--scope", "read"), "expected a name of lower-case letters"),
        (("create", "--team", "red", "--scope", "all"), "is not one of"),
        (("create", "--team", "red", "--scope", "read", "--expires", "1y"), "a time like 90d"),
        (("create", "--team", "red", "--scope", "read", "--expires", "0d"), "a time like 90d"),
        (("create", "--team", "red", "--scope", "read", "--name", "a\x1b[1m"), "printable"),
        (("revoke", "nosuchkey000"), "not_found: no key 'nosuchkey000'"),
        (("rotate", "nosuchkey000"), "`prescore keys list` shows them"),
    ],
)
def test_what_is_wrong_is_said(home, words, said):
    code, out, told = _keys(home, *words)
    assert (code, out) == (2, "")
    assert said in told
    assert "\x1b" not in told


def test_where_there_is_no_record_none_is_made(tmp_path):
    code, _, told = _keys(tmp_path, "list")
    assert code == 2
    assert "--home" in told
    assert list(tmp_path.iterdir()) == []
