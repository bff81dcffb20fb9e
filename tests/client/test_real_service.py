"""The client and its commands add, find, change and delete, and say who did: on a real service."""

import json

import pytest

import prescore
from helpers.fleet import bundle, checkpoint
from helpers.service_here import service_here
from helpers.submissions import run_command

SAID = [f"w{at % 7 + 2} w3 w{at % 5 + 2}" for at in range(40)]
OTHERS = ["w3 w4"] * 40


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with service_here(tmp_path_factory.mktemp("home")) as service:
        service.add_dataset("tiny", bundle(40))
        yield service


@pytest.fixture(scope="module")
def client(service):
    with prescore.Client(service.url) as client:
        yield client


@pytest.fixture(scope="module")
def evaluation(client):
    return _submitted(client, SAID, branch="main").id


def _submitted(client, said, **labels):
    captions = {f"{at}.jpg": caption for at, caption in enumerate(said)}
    asked = {"captions": captions, "postgen": ["rouge_l"], "tokenizer": "none", "labels": labels}
    return client.wait(client.submit("tiny/test", **asked).id, timeout=60)


@pytest.fixture
def folder(tmp_path):
    """Of a dataset: the captions of three images."""
    folder = tmp_path / "shapes"
    folder.mkdir()
    _write(folder, "a red square")
    return folder


def _write(folder, first):
    images = (("a.jpg", "test"), ("7", "test"), ("c.jpg", "val"))
    lines = [
        {"image": name, "split": split, "references": [first, "a square"]} for name, split in images
    ]
    (folder / "captions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_folder_or_a_tar_becomes_a_version_of_a_dataset_once(client, folder, tmp_path):
    first = client.add_dataset("versions", folder)
    assert (first.name, first.version, first.splits["val"].references) == ("versions", "v1", 2)
    sent = []
    assert client.add_dataset("versions", folder, lambda *call: sent.append(call)) == first
    _write(folder, "a blue square")
    assert str(client.add_dataset("versions", folder)) == "versions@v2"
    _write(folder, "a red square")
    assert client.add_dataset("versions", folder, lambda *call: sent.append(call)) == first
    (tmp_path / "tiny.tar").write_bytes(bundle(40))
    known = client.add_dataset("tiny", tmp_path / "tiny.tar", lambda *call: sent.append(call))
    assert (str(known), sent) == ("tiny@v1", [])
    assert client.dataset("versions").version == "v2"
    with pytest.raises(prescore.Refused, match="has no version v3"):
        client.dataset("versions@v3")


def test_commands_add_and_list_datasets(service, client, folder):
    added = run_command(service, "datasets", "add", "shapes", folder)
    told = "shapes@v1  test 2 images 4 references, val 1 image 2 references  captions only  "
    assert added.stdout == f"{told}{client.dataset('shapes').digest}\n"
    assert added.stderr == "uploading shapes: 2.0 kB\nuploaded shapes\n"
    listed = run_command(service, "datasets", "list").stdout.splitlines()
    lines = {line.split()[0]: line for line in listed}
    assert lines["tiny@v1"].index("test 40") == lines["shapes@v1"].index("test 2 images")
    assert "features 5 of random" in lines["tiny@v1"]
    found = json.loads(run_command(service, "datasets", "list", "--json").stdout)
    assert [str(each) for each in client.datasets()] == [
        f"{each['name']}@{each['version']}" for each in found
    ]


def _scores(captions):
    return [caption.scores["rouge_l"] for caption in captions]


@pytest.mark.long
def test_captions_are_sorted_and_found(client, evaluation):
    every = list(client.captions(evaluation))
    assert [caption.caption for caption in every] == SAID
    low, high = sorted(_scores(every))[5:30:24]
    bounds = {"sort": "rouge_l", "page_size": 7, "at_least": low, "at_most": high}
    some = list(client.captions(evaluation, **bounds))
    assert _scores(some) == [score for score in sorted(_scores(every)) if low <= score <= high]
    found = list(client.captions(evaluation, search="W8 W3"))
    assert [caption.caption for caption in found] == [text for text in SAID if "w8 w3" in text]
    (one,) = client.captions(evaluation, image="7.jpg")
    assert one == every[7]


@pytest.mark.long
def test_all_images_of_a_comparison_are_there(client, evaluation):
    compared = client.compare(evaluation, _submitted(client, OTHERS).id)
    asked = {"metric": "rouge_l", "sort": "-difference", "page_size": 9}
    images = list(client.compared_images(compared.id, **asked))
    differences = [image.scores["rouge_l"].difference for image in images]
    assert differences == sorted(differences, reverse=True)
    assert sorted((image.a, image.b) for image in images) == sorted(zip(SAID, OTHERS, strict=True))


def test_captions_are_a_table_and_coco_results_too(client, evaluation):
    heading, *rows = client.captions_csv(evaluation).splitlines()
    assert heading == "image,caption,rouge_l,nearest,invented,missed"
    assert [row.split(",")[1] for row in rows] == SAID
    found = client.captions_coco(evaluation)
    assert found[7] == {"image_id": 907, "caption": SAID[7]}
    assert len(found) == 40


def test_a_checkpoint_has_facts_scores_and_words(client, tmp_path):
    file = tmp_path / "model.safetensors"
    file.write_bytes(checkpoint(seed=98))
    digest = client.upload_checkpoint(file)
    facts = client.checkpoint(digest)
    assert (facts.digest, facts.bytes, facts.state) == (digest, file.stat().st_size, "ready")
    assert facts.created_at.utcoffset().total_seconds() == 0
    assert client.has_checkpoint(digest)
    assert not client.has_checkpoint(f"sha256:{'0' * 64}")
    asked = {"pregen": "all", "postgen": [], "tokens": {"top": 2, "entropy": True}}
    run = client.wait(client.submit("tiny/test", checkpoint=digest, **asked).id)
    assert run.scores.keys() - {"perplexity"} < client.pregen(run.id).keys()
    words = client.tokens(run.id, "3.jpg")
    assert words.image == "3.jpg"
    assert [caption.tokens[-1].word for caption in words.captions] == ["<end>"] * 3
    assert all(len(token.tops) == 2 and token.entropy > 0 for token in words.captions[0].tokens)
    assert [each.name for each in client.metrics() if each.name == "cider_d"] == ["cider_d"]


def test_an_image_has_references(client):
    found = client.references("tiny@v1", "3.jpg")
    assert (found.image, found.id, str(found.dataset)) == ("3.jpg", "903", "tiny@v1/test")
    assert len(found.references) == 3
    assert not found.has_picture
    with pytest.raises(prescore.Refused, match="no image"):
        client.references("tiny", "a/b")


def test_labels_queues_and_workers_are_seen(client, evaluation):
    assert client.wait(evaluation).labels == {"branch": "main"}
    (label,) = (label for label in client.labels("tiny/test") if label.name == "branch")
    assert {"main"} <= {one.value for one in label.values}
    assert client.labels("none") == ()
    assert {queue.name for queue in client.queues()} >= {"inference", "metrics"}
    assert {queue.waiting for queue in client.queues()} == {0}
    assert [worker.role for worker in client.workers()] == ["inference", "metrics"]
    assert {worker.state for worker in client.workers()} == {"idle"}


@pytest.fixture
def passing(client):
    """An evaluation that may be changed and deleted."""
    return _submitted(client, OTHERS, run="7").id


def test_a_checkpoint_is_deleted_and_a_dataset_that_runs_need_is_not(client, passing, tmp_path):
    file = tmp_path / "model.safetensors"
    file.write_bytes(checkpoint(seed=99))
    digest = client.upload_checkpoint(file)
    client.delete_checkpoint(digest)
    assert not client.has_checkpoint(digest)
    with pytest.raises(prescore.Refused, match="is needed by"):
        client.delete_dataset("tiny@v1")


def test_commands_label_delete_and_tell_who_did(service, client, passing, folder):
    asked = ("branch=main", "--remove", "run", "--note", "half")
    labelled = run_command(service, "label", passing, *asked)
    assert "branch=main" in labelled.output
    assert client.evaluation(passing).note == "half"
    assert client.evaluation(passing).labels == {"branch": "main"}
    assert client.change(passing, note="").note is None
    run_command(service, "label", passing, code=2)
    run_command(service, "delete", passing)
    run_command(service, "delete", passing, code=2)
    told = json.loads(run_command(service, "audit", "--of", passing, "--json").stdout)
    assert [change["action"] for change in told] == ["run.deleted", *["run.changed"] * 2]
    assert {(change["object"], change["address"]) for change in told} == {(passing, "127.0.0.1")}
    shown = run_command(service, "audit", "--action", "run.deleted", "--limit", "1")
    assert passing in shown.output
    client.add_dataset("passing", folder)
    run_command(service, "datasets", "delete", "passing")
