import json

import pytest
from typer.testing import CliRunner

import commanding


@pytest.fixture
def prescore(service, quick, monkeypatch):
    monkeypatch.setenv("PRESCORE_URL", service.url)
    app = commanding.prescore()
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


def test_the_same_bundle_is_the_same_version(service, prescore, bundle):
    for _ in range(2):
        result = prescore("add", "shapes", bundle, "--json")
        assert json.loads(result.stdout)["version"] == "v1"
    assert len(service.datasets["shapes"]) == 1


def test_what_is_left_out_of_a_folder_is_said(service, prescore, bundle):
    (bundle / "notes.txt").write_text("mine")
    assert "left out of the bundle: notes.txt" in prescore("add", "shapes", bundle).stderr


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


def test_features_are_named_with_their_encoder(service, prescore, bundle):
    facts, _ = service.add_dataset("shapes", _tar_of(bundle))
    facts["features"] = {"encoder": {"name": "vgg16", "digest": "d"}, "size": 4096}
    assert "features 4096 of vgg16" in prescore("list").stdout
    facts["features"] |= {"inputs": "regions", "places": 36}
    assert "features regions 36 x 4096 of vgg16" in prescore("list").stdout


def test_pictures_without_features_are_no_captions_only(service, prescore, bundle):
    facts, _ = service.add_dataset("shapes", _tar_of(bundle))
    assert "captions only" in prescore("list").stdout
    facts["splits"]["test"]["pictures"] = 2
    assert "captions and pictures" in prescore("list").stdout


@pytest.mark.parametrize("place", ["absent", "empty"])
def test_what_is_no_bundle_exits_2(service, prescore, tmp_path, place):
    (tmp_path / "empty").mkdir()
    result = prescore("add", "shapes", tmp_path / place)
    assert result.exit_code == 2
    assert place in result.stderr
    assert service.requests == []


def test_one_image_is_one_image(service, prescore, tmp_path):
    one = '{"image": "a.jpg", "split": "test", "references": ["a"]}\n'
    (tmp_path / "captions.jsonl").write_text(one)
    assert "test 1 image 1 reference  " in prescore("add", "single", tmp_path).stdout


def test_a_refusal_exits_2(service, prescore, bundle):
    problem = {"title": "Not a bundle", "detail": "line 3, references: expected a list"}
    service.fault("PUT", "/v1/datasets", status=422, body=problem)
    result = prescore("add", "shapes", bundle)
    assert result.exit_code == 2
    assert "line 3, references: expected a list" in result.stderr


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


def _tar_of(folder):
    from prescore.files import bundles

    return b"".join(bundles.body(folder).chunks())
