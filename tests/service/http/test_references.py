"""What people have written about an image, over HTTP."""

import pytest

from helpers.contract_files import line
from helpers.submissions import add_pictures

PICTURE = b"\x89PNG\r\n\x1a\n, or what is called so"
NAMES = {  # an image's name -> its references
    "0.jpg": ["a dog runs", "a big dog", "a dog runs"],
    "album/2.jpg": ["a man  sits", "Straße"],
    "album": ["grass"],
    "album/references": ["a woman sits"],
}


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    with serve_here(tmp_path_factory.mktemp("a home")) as service:
        with service.client() as client:
            lines = [line(image, said) for image, said in NAMES.items()]
            lines.append(line("seen.jpg", ["people"], split="train", id="77"))
            add_pictures(client, "tiny", b"".join(lines), {})
            add_pictures(client, "tiny", line("0.jpg", ["another version"]), {})
        yield service


@pytest.mark.parametrize("image", NAMES)
@pytest.mark.parametrize("encoded", [True, False])
def test_the_references_of_an_image_are_as_they_were_written(client, image, encoded):
    name = image.replace("/", "%2F") if encoded else image
    answer = client.get(f"/v1/datasets/tiny@v1/images/{name}/references")
    pinned = client.get("/v1/datasets/tiny@v1").json()
    dataset = {**{name: pinned[name] for name in ("name", "version", "digest")}, "split": "test"}
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "dataset": dataset,
        "image": image,
        "id": None,
        "split": "test",
        "references": NAMES[image],
        "before": ([None, *NAMES])[list(NAMES).index(image)],
        "after": ([*NAMES, None])[list(NAMES).index(image) + 1],
        "has_picture": False,
    }


@pytest.mark.parametrize("name", ["seen.jpg", "77"])
def test_an_image_is_found_in_whatever_split_by_its_name_or_id(client, name):
    found = client.get(f"/v1/datasets/tiny@v1/images/{name}/references").json()
    assert (found["image"], found["id"], found["split"]) == ("seen.jpg", "77", "train")
    assert found["references"] == ["people"]


def test_without_a_version_they_are_the_latest_ones(client):
    found = client.get("/v1/datasets/tiny/images/0.jpg/references").json()
    assert (found["references"], found["dataset"]["version"]) == (["another version"], "v2")


def test_the_picture_of_an_image_that_is_called_so_is_asked_for_with_its_slash_encoded(client):
    """No picture is there: what is told is of which image."""
    of_picture = client.get("/v1/datasets/tiny@v1/images/album%2Freferences")
    assert of_picture.status_code == 404
    assert "the pictures of tiny@v1 are not shown" in of_picture.json()["detail"]
    of_references = client.get("/v1/datasets/tiny@v1/images/album/references")
    assert of_references.json()["references"] == NAMES["album"]


def test_a_picture_is_there_if_it_is_shown_and_not_known_to_be_missing(service, client):
    lines = b"".join(line(f"{at}.jpg", ["a"]) for at in range(3))

    def told(name, at):
        return client.get(f"/v1/datasets/{name}/images/{at}.jpg/references").json()["has_picture"]

    add_pictures(client, "whole", lines, {f"{at}.jpg": PICTURE for at in range(3)})
    add_pictures(client, "part", lines, {"0.jpg": PICTURE, "2.jpg": PICTURE})
    assert not told("whole", 1)  # it is not shown
    with service.held():  # nobody has looked yet which pictures there are
        for name in ("whole", "part"):
            assert client.patch(f"/v1/datasets/{name}", json={"pictures_shown": True}).is_success
        assert [told("whole", 1), told("part", 0), told("part", 1)] == [True] * 3
    assert [told("part", at) for at in range(3)] == [True, False, True]
