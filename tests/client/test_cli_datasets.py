import json

import pytest
from typer.testing import CliRunner

from helpers import command_app


@pytest.fixture
def prescore(service, quick, monkeypatch):
    monkeypatch.setenv("PRESCORE_URL", service.url)
    app = command_app.prescore()
    return lambda *arguments: CliRunner().invoke(app, ["datasets", *map(str, arguments)])


def test_a_bundle_is_added_and_described(service, prescore, bundle):
    result = prescore("add", "shapes", bundle)
    assert result.exit_code == 0, result.output
    digest = service.datasets["shapes"][0][0]["digest"]
    assert result.stdout == (
        "shapes@v1  test 2 images 4 references, val 1 image 2 references  "
        f"captions only  {digest}\n"
    )
    assert result.stderr == "uploading shapes: 2.0 kB\nuploaded shapes\n"


def test_all_datasets_are_listed(service, prescore, bundle):
    assert prescore("list").stdout == ""
    assert prescore("list", "--json").stdout == "[]\n"
    for name in ("a", "bb", "c"):
        prescore("add", name, bundle)
    lines = prescore("list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["a@v1", "bb@v1", "c@v1"]
    assert len({line.index("test 2 images") for line in lines}) == 1
    listed = json.loads(prescore("list", "--json").stdout)
    assert [dataset["name"] for dataset in listed] == ["a", "bb", "c"]


def test_features_and_pictures_are_named(service, prescore, bundle):
    prescore("add", "shapes", bundle)
    [(facts, _)] = service.datasets["shapes"]
    assert "captions only" in prescore("list").stdout
    facts["splits"]["test"]["pictures"] = 2
    assert "captions and pictures" in prescore("list").stdout
    facts["features"] = {"encoder": {"name": "vgg16", "digest": "d"}, "size": 4096}
    assert "features 4096 of vgg16" in prescore("list").stdout
    facts["features"] |= {"inputs": "regions", "places": 36}
    assert "features regions 36 x 4096 of vgg16" in prescore("list").stdout


@pytest.mark.parametrize("place", ["absent", "empty"])
def test_what_is_no_bundle_exits_2(service, prescore, tmp_path, place):
    (tmp_path / "empty").mkdir()
    result = prescore("add", "shapes", tmp_path / place)
    assert result.exit_code == 2
    assert place in result.stderr
    assert service.requests == []


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("shapes/test", "write shapes"),
        ("my shapes", "write my-shapes"),
        ("shapes@v2", "write shapes"),
        ("../shapes\x1b[2J", "found '../shapes\\x1b[2J'"),
        ("s" * 101, f"write {'s' * 100}"),
        ("/", "found '/'"),
    ],
)
@pytest.mark.parametrize("command", ["add", "images", "fetch"])
def test_a_wrong_name_is_told_before_anything_is_sent(
    service, prescore, bundle, command, name, write
):
    more = ("--digest", f"sha256:{'0' * 64}") if command == "fetch" else ()
    result = prescore(command, name, bundle, *more)
    assert result.exit_code == 2
    assert "expected a dataset's name" in result.stderr
    assert write in result.stderr
    assert service.requests == []
