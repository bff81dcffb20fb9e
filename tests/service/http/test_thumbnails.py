"""Small forms of a dataset's pictures over HTTP: shown by their owner's wish, made once."""

import hashlib
import io
import time
from functools import partial
from urllib.parse import quote

import numpy as np
import pytest
import sqlalchemy as sa

from helpers import image_encoders
from helpers.contract_files import line
from helpers.submissions import add_pictures, run_command
from prescore import Client, Refused
from service.contract.plan import planning
from service.engine.tables import attempts, task_rows, thumbnail_rows
from service.stored import garbage, thumbnails

Image = pytest.importorskip("PIL.Image", reason="pictures are decoded by Pillow")
from helpers.picture_files import (  # noqa: E402
    BLUE,
    GREEN,
    GREYS,
    MOVING,
    RED,
    RIGHT,
    WHITE,
    WRONG,
    saved,
)

pytestmark = [pytest.mark.processes, pytest.mark.long]


def _added(client, name, pictures, *, more=(), shown=True):
    lines = [line(each, references=["w2 w3", "w5"]) for each in (*pictures, *more)]
    added = add_pictures(client, name, b"".join(lines), pictures)
    if shown:
        assert _show(client, name).json()["pictures_shown"] is True
    return added


def _show(client, name, shown=True):
    return client.patch(f"/v1/datasets/{name}", json={"pictures_shown": shown})


def _get(client, dataset, image, size=320):
    return client.get(f"/v1/datasets/{dataset}/images/{quote(image)}?size={size}")


def _opened(answer):
    assert answer.status_code == 200, answer.text
    return Image.open(io.BytesIO(answer.content))


def _attempts(service, kind):
    """How often tasks of this kind have begun."""
    count = sa.select(sa.func.count()).join_from(
        attempts, task_rows, task_rows.c.key == attempts.c.task_key
    )
    with service.records.reading() as connection:
        return connection.execute(count.where(task_rows.c.kind == kind)).scalar_one()


def _missing(answer, *words):
    assert answer.status_code == 404, answer.text
    assert answer.json()["code"] == "not_found"
    assert all(word in answer.json()["detail"] for word in words), answer.json()["detail"]


def test_a_picture_is_looked_at_in_two_sizes_once_its_owner_shows_it(client):
    large = image_encoders.photo(1, size=(1200, 900))
    added = _added(client, "two", {"a.jpg": large, "b.jpg": image_encoders.photo(2)}, shown=False)
    assert added["pictures_shown"] is False
    _missing(_get(client, "two", "a.jpg"), "two@v1 are not shown", "--show")
    assert _show(client, "two").json() == {**added, "pictures_shown": True}
    assert _opened(_get(client, "two", "a.jpg", 320)).size == (320, 240)
    assert _opened(_get(client, "two", "a.jpg", 960)).size == (960, 720)
    usual = client.get("/v1/datasets/two/images/a.jpg")
    assert usual.content == _get(client, "two", "a.jpg", 320).content
    assert _opened(_get(client, "two", "b.jpg", 960)).size == (48, 40)
    assert _show(client, "two@v1", shown=False).json() == added
    _missing(_get(client, "two@v1", "a.jpg"), "not shown")


def test_an_answer_may_be_kept_for_ever_by_version_and_is_asked_for_again_by_name(client):
    _added(client, "kept", {"a.jpg": image_encoders.photo(3)})
    by_name, by_version = _get(client, "kept", "a.jpg"), _get(client, "kept@v1", "a.jpg")
    for answer in (by_name, by_version):
        assert answer.headers["Content-Type"] == "image/webp"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["ETag"] == f'"{hashlib.sha256(answer.content).hexdigest()}"'
    assert by_name.headers["Cache-Control"] == "private, no-cache"
    assert by_version.headers["Cache-Control"] == "private, max-age=31536000, immutable"
    again = client.get(
        "/v1/datasets/kept/images/a.jpg", headers={"If-None-Match": by_name.headers["ETag"]}
    )
    assert (again.status_code, again.content) == (304, b"")
    other = client.get("/v1/datasets/kept/images/a.jpg", headers={"If-None-Match": '"x"'})
    assert other.content == by_name.content


HOSTILE = {"sub/ä b%2F.jpg": 4, "狗 🐕.jpg": 5, "a?size=960&b#c.jpg": 6, "<img onerror=x>": 7}


def test_images_are_found_by_whatever_name_they_have_and_by_no_path(client):
    pictures = {name: image_encoders.photo(seed) for name, seed in HOSTILE.items()}
    _added(client, "named", pictures, more=["none.jpg"])
    for name, seed in HOSTILE.items():
        by_pillow = Image.open(io.BytesIO(image_encoders.photo(seed)))
        difference = np.abs(np.asarray(_opened(_get(client, "named", name)), int) - by_pillow)
        assert difference.mean() < 6, name
        by_segment = client.get(f"/v1/datasets/named/images/{quote(name, safe='')}")
        assert by_segment.status_code == 200
    _missing(_get(client, "named", "none.jpg"), "no picture of the image 'none.jpg'")
    for path in ("%2e%2e/captions.jsonl", "%2e%2e%2fcaptions.jsonl", "..%5Ca", "%00", "%ED%A0%80"):
        _missing(client.get(f"/v1/datasets/named/images/{path}"), "has no image")
    _missing(_get(client, "named", "x" * 3000), "has no image")


@pytest.mark.parametrize("size", ["321", "0", "-320", "320.0", "0320", "", "large", "960&size=x"])
def test_no_other_size_is_made(client, size):
    answer = client.get(f"/v1/datasets/none/images/a.jpg?size={size}")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/query/size"


def test_what_is_not_there_cannot_be_shown(client):
    _added(client, "captions", {}, more=["a.jpg"], shown=False)
    told = _show(client, "captions")
    assert (told.status_code, told.json()["errors"][0]["pointer"]) == (409, "/pictures_shown")
    assert "no pictures to show" in told.json()["detail"]
    assert _show(client, "captions", shown=False).status_code == 200
    _missing(_show(client, "absent"), "no dataset 'absent'")
    for body in ({}, {"pictures_shown": "yes"}, {"pictures_shown": True, "digest": "x"}, []):
        assert client.patch("/v1/datasets/captions", json=body).status_code == 422


BLACK = Image.new("RGB", (8, 8)).convert("P")
SEEN_THROUGH = {
    "alpha.png": saved(Image.new("RGBA", (8, 8), (255, 0, 0, 0)), "PNG"),
    "palette.png": saved(BLACK, "PNG", transparency=BLACK.getpixel((0, 0))),
    "alpha.webp": saved(Image.new("RGBA", (8, 8), (0, 0, 0, 0)), "WEBP"),
}


def test_pictures_of_every_kind_are_upright_in_rgb_and_on_white(client):
    kinds = {**RIGHT, **MOVING}
    _added(client, "kinds", kinds)
    for name in kinds:
        found = _opened(_get(client, "kinds", name, 960))
        assert (found.mode, found.size, found.n_frames) == ("RGB", (32, 16), 1), name
        pixels = np.asarray(found, int)
        for place, colour in {(3, 7): RED, (3, 24): GREEN, (12, 7): BLUE, (12, 24): WHITE}.items():
            assert np.abs(pixels[place] - colour).max() < 30, (name, place)
    _added(client, "greys", GREYS)
    for name in GREYS:
        assert np.abs(np.asarray(_opened(_get(client, "greys", name)), int) - 100).max() < 4, name
    _added(client, "clear", SEEN_THROUGH)
    for name in SEEN_THROUGH:
        assert np.asarray(_opened(_get(client, "clear", name))).min() > 250, name


def test_a_picture_that_cannot_be_decoded_is_told_by_name_and_the_others_are_shown(client, service):
    wrong = {name: content for name, (content, _) in WRONG.items()}
    right = {f"{place}.jpg": image_encoders.photo(20 + place) for place in range(4)}
    mixed = dict(pair for both in zip(wrong.items(), right.items(), strict=True) for pair in both)
    _added(client, "mixed", mixed)
    for name, (_, why) in WRONG.items():
        _missing(_get(client, "mixed", name), repr(name), "cannot be decoded", why)
    assert all(_get(client, "mixed", name).status_code == 200 for name in right)


def test_equal_pictures_are_made_small_once_whatever_dataset_has_them(client, service):
    same = image_encoders.photo(40)
    other = {"x.jpg": image_encoders.photo(41), "y.jpg": same}
    _added(client, "first", {"a.jpg": same, "b.jpg": same})
    first = _get(client, "first", "a.jpg")
    before = _attempts(service, "thumbnails")
    assert _get(client, "first", "b.jpg").content == first.content
    assert _get(client, "first", "b.jpg", 960).status_code == 200
    _added(client, "second", other)
    assert _get(client, "second", "y.jpg").content == first.content
    assert _attempts(service, "thumbnails") == before
    assert _get(client, "second", "x.jpg").status_code == 200
    assert _attempts(service, "thumbnails") == before + 1
    with service.records.reading() as connection:
        last = sa.select(task_rows.c.parameters).where(task_rows.c.kind == "thumbnails")
        made = connection.execute(last.order_by(task_rows.c.created_at.desc())).scalars().first()
    assert '"places": [0]' in made  # without the picture that is there


def test_a_block_of_images_is_made_at_once_and_no_other(client, service, monkeypatch):
    monkeypatch.setattr(thumbnails, "_BLOCK", 2)
    pictures = {f"{place}.jpg": image_encoders.photo(50 + place) for place in range(5)}
    _added(client, "blocks", pictures)
    before = _attempts(service, "thumbnails")
    for images, begun in ((("3.jpg", "2.jpg"), 1), (("4.jpg",), 2), (("0.jpg", "1.jpg"), 3)):
        for image in images:
            found = np.asarray(_opened(_get(client, "blocks", image)), int)
            expected = Image.open(io.BytesIO(pictures[image]))
            assert np.abs(found - expected).mean() < 6
        assert _attempts(service, "thumbnails") == before + begun


def test_who_looks_while_it_is_made_is_told_to_come_again_and_nothing_is_begun_twice(
    client, service
):
    _added(client, "slow", {"a.jpg": image_encoders.photo(60)}, shown=False)
    with service.held():
        assert _show(client, "slow").status_code == 200
        first = _get(client, "slow", "a.jpg")
        assert first.status_code == 503
        assert int(first.headers["Retry-After"]) > 0
        assert first.json()["code"] == "unavailable"
        assert "try again" in first.json()["detail"]
        assert _get(client, "slow", "a.jpg").status_code == 503
    with service.held():
        assert _get(client, "slow", "a.jpg").status_code == 503
        assert _get(client, "slow", "a.jpg", 960).status_code == 503
    begun = _attempts(service, "thumbnails")
    assert _get(client, "slow", "a.jpg").status_code == 200
    assert _attempts(service, "thumbnails") == begun


def test_what_nobody_looks_at_is_forgotten_its_objects_go_and_it_is_made_again(client, service):
    """Looking is noted once a day."""
    _added(client, "old", {"a.jpg": image_encoders.photo(70)})
    earlier = time.time() - 2 * 24 * 3600
    content = _get(client, "old", "a.jpg").content
    with service.records.transaction() as connection:
        connection.execute(thumbnail_rows.update().values(looked_at=earlier))
    assert _get(client, "old", "a.jpg").content == content
    parts = service._running
    thumbnails.forget_unseen_thumbnails(service.records, time.time() - 3600)
    assert thumbnails.forget_unseen_thumbnails(service.records, time.time() - 60) == 0
    begun = _attempts(service, "thumbnails")
    assert thumbnails.forget_unseen_thumbnails(service.records, time.time() + 1) > 0
    assert garbage.collect_garbage(service.records, parts.blobs, grace=-60) > 0
    assert _get(client, "old", "a.jpg").content == content
    assert _attempts(service, "thumbnails") == begun + 1
    with service.records.reading() as connection:
        rows = connection.execute(sa.select(thumbnail_rows)).all()
    assert len(rows) == 1


@pytest.mark.slow
def test_a_lost_object_is_made_again(client, service):
    _added(client, "lost", {"a.jpg": image_encoders.photo(72)})
    content = _get(client, "lost", "a.jpg").content
    with service.records.reading() as connection:
        made = task_rows.c.kind.in_(("thumbnails", "picture_digests"))
        query = sa.select(task_rows.c.result).where(made, task_rows.c.result.is_not(None))
        results = connection.execute(query).scalars().all()
    for digest in results:
        blobs = service._running.blobs
        for store in (blobs, getattr(blobs, "_copies", blobs)):
            store.delete_old(digest, time.time() + 60)
    assert _get(client, "lost", "a.jpg").content == content


def test_after_a_failure_it_is_tried_again_later(client, service, monkeypatch):
    _added(client, "failing", {"a.jpg": image_encoders.photo(73)})
    digest = client.get("/v1/datasets/failing").json()["digest"]
    with service.held():
        assert _get(client, "failing", "a.jpg").status_code == 503
        key = planning.plan_thumbnails(digest, "test", [0]).key
        failed = {"status": "failed", "error": '{"code": "x", "detail": "it burned"}'}
        with service.records.transaction() as connection:
            same = task_rows.update().where(task_rows.c.key == key)
            connection.execute(same.values(**failed, finished_at=time.time()))
        told = _get(client, "failing", "a.jpg")
        assert told.status_code == 503
        assert "it burned" in told.json()["detail"]
    monkeypatch.setattr(thumbnails, "_AGAIN_SECONDS", 0)
    assert _get(client, "failing", "a.jpg").status_code == 200


def test_another_version_with_other_pictures_is_not_shown_by_the_first_ones_wish(client):
    _added(client, "versions", {"a.jpg": image_encoders.photo(75)})
    other = _added(client, "versions", {"a.jpg": image_encoders.photo(76)}, shown=False)
    assert (other["version"], other["pictures_shown"]) == ("v2", False)
    _missing(_get(client, "versions", "a.jpg"), "versions@v2 are not shown")
    assert _get(client, "versions@v1", "a.jpg").status_code == 200


def test_the_client_shows_pictures_and_gets_them(client, service):
    content = image_encoders.photo(80, size=(640, 480))
    name = "ü/a b.jpg"
    _added(client, "clients", {name: content}, shown=False)
    with Client(service.url, patience=0) as caller:
        assert caller.dataset("clients").pictures_shown is False
        with pytest.raises(Refused, match="not shown"):
            caller.image("clients", name)
        assert caller.show_pictures("clients").pictures_shown is True
        assert caller.image("clients@v1", name, 960) == _get(client, "clients", name, 960).content
        assert Image.open(io.BytesIO(caller.image("clients", name))).size == (320, 240)
        with pytest.raises(Refused, match="/query/size"):
            caller.image("clients", name, 100)
        assert caller.show_pictures("clients@v1", shown=False).pictures_shown is False


def test_pictures_are_added_and_shown_by_one_command_and_hidden_by_another(
    client, service, tmp_path
):
    _added(client, "commanded", {}, more=["a.jpg"], shown=False)
    (tmp_path / "a.jpg").write_bytes(image_encoders.photo(81))
    command = partial(run_command, service, "datasets", "images")
    shown = "test 1 image 2 references 1 picture  captions and pictures, pictures shown"
    assert f"commanded@v2  {shown}" in command("commanded", tmp_path, "--show").stdout
    assert _get(client, "commanded", "a.jpg").status_code == 200
    assert "pictures shown" not in command("commanded@v2", "--hide").stdout
    _missing(_get(client, "commanded", "a.jpg"), "not shown")
    command("commanded", code=2)
    assert "no pictures to show" in command("commanded@v1", "--show", code=2).stderr
