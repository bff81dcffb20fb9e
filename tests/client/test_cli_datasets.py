import pytest

FEATURES = {"encoder": {"name": "vgg16", "digest": "d"}, "size": 4096}
REGIONS = FEATURES | {"inputs": "regions", "places": 36}


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, "captions only"),
        ({"splits": {"test": {"images": 2, "pictures": 2}}}, "captions and pictures"),
        ({"features": FEATURES}, "features 4096 of vgg16"),
        ({"features": REGIONS}, "features regions 36 x 4096 of vgg16"),
    ],
)
def test_features_and_pictures_are_named(service, prescore, facts, said):
    service.datasets["shapes"] |= facts
    assert said in prescore("datasets", "list").stdout


@pytest.mark.parametrize("place", ["absent", "empty"])
def test_what_is_no_bundle_exits_2(service, prescore, tmp_path, place):
    (tmp_path / "empty").mkdir()
    result = prescore("datasets", "add", "shapes", tmp_path / place)
    assert result.exit_code == 2
    assert place in result.stderr
    assert service.requests == []


@pytest.mark.parametrize(
    ("command", "name", "write"),
    [
        ("add", "shapes/test", "write shapes"),
        ("add", "my shapes", "write my-shapes"),
        ("add", "../shapes\x1b[2J", "found '../shapes\\x1b[2J'"),
        ("add", "s" * 101, f"write {'s' * 100}"),
        ("add", "/", "found '/'"),
        ("images", "shapes@v2", "write shapes"),
        ("fetch", "shapes@v2", "write shapes"),
    ],
)
def test_a_wrong_name_is_told_before_anything_is_sent(
    service, prescore, tmp_path, command, name, write
):
    more = ("--digest", f"sha256:{'0' * 64}") if command == "fetch" else ()
    result = prescore("datasets", command, name, tmp_path, *more)
    assert result.exit_code == 2
    assert "expected a dataset's name" in result.stderr
    assert write in result.stderr
    assert service.requests == []
