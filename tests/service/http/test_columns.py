"""Columns that somebody's own code computed: sent, described, scored. A checkpoint's own columns,
brought by `prescore.Recorder`, have the scores that the checkpoint has.
"""

import json
import math
from functools import partial

import numpy as np
import pytest
import torch

import prescore
from helpers import command_app
from helpers.columns_files import (
    IMAGES,
    LOGP,
    RANK,
    TENSORS,
    WITH_PIECES,
    WITH_WORDS,
    changed,
    columns,
)
from helpers.contract_files import line, tar, tar_entry
from helpers.fleet import bundle, checkpoint, digest, upload
from helpers.submissions import evaluate, finish, refuse, run_command
from prescore.files.captions import read_captions
from service.contract.formats import bundles
from service.stored import garbage
from workers.cli.record import record
from workers.inference import checkpoints, features, vocabulary
from workers.inference.packing import batch_captions, pack_captions

MODEL, DATA = checkpoint(seed=11), bundle(20, seed=3)


def store(client, content):
    """Send columns that an earlier test may have sent."""
    answer = client.put(f"/v1/columns/{digest(content)}", content=content)
    assert answer.is_success, answer.text


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    with serve_here(tmp_path_factory.mktemp("a home")) as service:
        with service.client() as client:
            assert client.put("/v1/datasets/tiny", content=DATA).status_code == 201
            upload(client, MODEL)
        yield service


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "bundle.tar"
    path.write_bytes(DATA)
    return path, bundles.read_split(path, "test")


def recorded(items, folder, **options):
    """The checkpoint's own logits in a file of columns, and its words."""
    path, split = items
    (folder / "model").write_bytes(MODEL)
    captioner = checkpoints.read_checkpoint(folder / "model")
    words = captioner.description.vocabulary
    names = [item.image for item in split]
    rows = features.read_features(path, names, captioner.description.encoder)
    given = vocabulary.encode_captions(
        [item.references for item in split], words, captioner.description.tokenizer
    )
    logits = np.zeros((len(given.tokens), len(words)), np.float32)
    with torch.inference_mode():
        images = captioner.look(torch.tensor(rows))
        for batch in batch_captions(given, 8192):
            packed = pack_captions(given, batch, images.device)
            logits[packed.places] = captioner.output(captioner.hidden(images, packed)).numpy()
    with prescore.Recorder(path, vocabulary=words, **options) as recorder:
        for at, item in enumerate(split):
            for number in range(len(item.references)):
                start, end = given.caption_offsets[given.image_offsets[at] + number :][:2]
                recorder.add(item.image, number, logits[start:end], given.tokens[start:end])
        recorder.write(folder / "columns")
    return (folder / "columns").read_bytes()


@pytest.fixture
def brought(items, tmp_path, client):
    content = recorded(items, tmp_path, model="mine", entropy=True)
    store(client, content)
    return digest(content)


@pytest.fixture
def captions(items):
    return [{"image": item.image, "caption": item.references[0]} for item in items[1]]


def test_wrong_columns_are_refused_and_not_stored(client):
    content = columns(changed("logp", 8, math.nan))
    answer = client.put(f"/v1/columns/{digest(content)}", content=content)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_columns")
    assert "logp, image 'b.jpg', references[0], tokens[3]" in answer.json()["detail"]
    assert client.head(f"/v1/columns/{digest(content)}").status_code == 404


@pytest.mark.long
def test_columns_of_a_checkpoint_have_its_scores(client, brought):
    own = evaluate(client, checkpoint=digest(MODEL), postgen=[])
    found = evaluate(client, columns=brought)
    assert (found["checkpoint"], found["columns"]) == (None, brought)
    assert own["columns"] is None
    assert list(found["scores"]) == list(own["scores"])
    theirs, ours = (
        client.get(f"/v1/evaluations/{each['id']}/pregen").json()["scores"] for each in (own, found)
    )
    assert len(ours) == 672
    assert set(ours) == set(theirs)
    for name, score in ours.items():
        assert score["signature"] == "pregen|brought|tok:own|v:1"
        if theirs[name]["value"] is not None:
            assert score["value"] == pytest.approx(theirs[name]["value"], rel=1e-5), name
        assert (score["interval"] is None) == (theirs[name]["interval"] is None), name


@pytest.mark.long
def test_what_is_recorded_has_the_scores_of_the_uploaded_checkpoint(client, items, tmp_path):
    (tmp_path / "model").write_bytes(MODEL)
    out = tmp_path / "m.columns.safetensors"
    options = ("--dataset", items[0], "--out", out, "--beam", 2)
    result = command_app.invoke(record, tmp_path / "model", *options)
    assert result.exit_code == 0, result.output
    store(client, out.read_bytes())
    captions = read_captions(tmp_path / "m.captions.json")
    asked = {"postgen": ["cider_d"], "pregen": "all"}
    own = evaluate(client, checkpoint=digest(MODEL), decoding={"beam": 2}, **asked)
    found = evaluate(client, columns=digest(out.read_bytes()), captions=captions, **asked)
    assert found["scores"]["cider_d"] == own["scores"]["cider_d"]
    theirs, ours = (
        client.get(f"/v1/evaluations/{each['id']}/pregen").json()["scores"] for each in (own, found)
    )
    assert len(ours) == 672
    for name, score in ours.items():
        assert (score["value"], score["interval"]) == (
            theirs[name]["value"],
            theirs[name]["interval"],
        ), name


@pytest.mark.long
def test_captions_beside_columns_are_scored_too(client, brought, captions):
    asked = {"columns": brought, "captions": captions, "postgen": ["bleu_4", "cider_d"]}
    found = evaluate(client, **asked, gates=["perplexity <= 1000000", "bleu_4 >= 0.5"])
    alone = evaluate(client, captions=captions, postgen=["bleu_4", "cider_d"])
    assert {"bleu_4", "cider_d", "perplexity"} <= set(found["scores"])
    assert found["scores"]["cider_d"] == alone["scores"]["cider_d"]
    assert found["verdict"] == "passed"
    assert "of other columns with the same settings" in found["forecast"]["none_because"]


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({"checkpoint": digest(MODEL)}, ""),
        ({"postgen": ["cider_d"]}, "/postgen"),
        ({"gates": ["cider_d >= 0.1"]}, "/gates/0"),
        ({"subset": True}, ""),
        ({"tokens": {"top": 2}}, "/tokens"),
        ({"precision": "bf16"}, "/precision"),
    ],
)
def test_what_columns_cannot_answer_is_refused(asked, pointer, client, brought):
    problem = refuse(client, **{"columns": brought, **asked})
    assert [one["pointer"] for one in problem["errors"]] == [pointer]


def test_columns_of_another_split_are_refused_with_the_first_image(client):
    content = columns()
    store(client, content)
    found = refuse(client, columns=digest(content))
    assert found["errors"][0]["pointer"] == "/columns"
    assert "images[0]: the split has" in found["detail"]
    assert "'a.jpg'" in found["detail"]


@pytest.fixture
def small(client):
    """A dataset of the two images of `columns_files`."""
    text = line("a.jpg", ["a cat", "sat"]) + line("b.jpg", ["a cat sat"])
    content = tar(tar_entry(b"captions.jsonl", text))
    assert client.put("/v1/datasets/small", content=content).status_code in (200, 201)
    return "small/test"


@pytest.mark.parametrize(
    ("content", "words", "tops"),
    [
        (columns(metadata={"model": "1"}), [None, None, "<end>"], [None] * 3),
        (columns(metadata={"tokenizer": "karpathy"}), ["a", "cat", "<end>"], [None] * 3),
        (columns(base=WITH_WORDS), ["a", "cat", "<end>"], ["a", "a", "a"]),
    ],
)
def test_words_are_shown_where_the_file_tells_them(content, words, tops, client, small):
    store(client, content)
    found = evaluate(client, columns=digest(content), dataset=small)
    answer = client.get(f"/v1/evaluations/{found['id']}/tokens/{IMAGES[0]}").json()
    tokens = answer["captions"][0]["tokens"]
    assert [token["word"] for token in tokens] == words
    assert [token["top"] for token in tokens] == tops
    assert [token["rank"] for token in tokens] == RANK[:3]
    assert tokens[1]["logp"] == pytest.approx(TENSORS["logp"][2][1])


def pieces(client, tokenizer="karpathy"):
    """Columns of pieces, and the split of which they are."""
    text = line("a.jpg", ["Acat…", "sat"]) + line("b.jpg", ["acat sat"])
    content = tar(tar_entry(b"captions.jsonl", text))
    assert client.put("/v1/datasets/pieces", content=content).status_code in (200, 201)
    content = columns(metadata={"tokenizer": tokenizer}, base=WITH_PIECES)
    store(client, content)
    return {"columns": digest(content), "dataset": "pieces/test"}


WORD_LOGP = [LOGP[0] + LOGP[1], *LOGP[2:5], LOGP[5] + LOGP[6], *LOGP[7:]]
WORD_RANK = [1, 2, 0, 1, 3, 4, 0]


def perplexity(*references):
    """The geometric mean of those of the references."""
    mean = sum(sum(logps) / len(logps) for logps in references) / len(references)
    return pytest.approx(math.exp(-mean), rel=1e-6)


def tokens_of(client, found):
    answers = [
        client.get(f"/v1/evaluations/{found['id']}/tokens/{image}").json() for image in IMAGES
    ]
    return [
        token for answer in answers for caption in answer["captions"] for token in caption["tokens"]
    ]


def test_pieces_are_scored_as_words(client):
    found = evaluate(client, **pieces(client))
    tokens = tokens_of(client, found)
    assert [token["rank"] for token in tokens] == WORD_RANK
    assert [token["logp"] for token in tokens] == pytest.approx(WORD_LOGP)
    words = ["acat", "<end>", "sat", "<end>", "acat", "sat", "<end>"]
    assert [token["word"] for token in tokens] == words
    assert {token["top"] for token in tokens} == {token["entropy"] for token in tokens} == {None}
    scores = client.get(f"/v1/evaluations/{found['id']}/pregen").json()["scores"]
    assert {one["signature"] for one in scores.values()} == {
        "pregen|brought|tok:karpathy|units:words|v:1"
    }
    counted = scores["sum_join_count_filter0"]["value"]
    assert counted == WORD_RANK.count(0)
    assert found["scores"]["perplexity"]["value"] == perplexity(
        WORD_LOGP[:2], WORD_LOGP[2:4], WORD_LOGP[4:]
    )


CORPUS = "corpus_perplexity"


def corpus_perplexity(logps):
    return pytest.approx(math.exp(-sum(logps) / len(logps)), rel=1e-6)


@pytest.mark.parametrize(("units", "logps"), [("words", WORD_LOGP), ("pieces", LOGP)])
def test_corpus_perplexity_is_computed_where_it_is_asked_for(units, logps, client):
    """What is stored of an earlier evaluation is without it."""
    sent = {**pieces(client), "units": units}
    before = evaluate(client, **sent)
    assert CORPUS not in before["scores"]
    place = f"/v1/evaluations/{before['id']}/pregen"
    assert CORPUS not in client.get(place).json()["scores"]
    found = evaluate(client, **sent, pregen=["perplexity", CORPUS])
    assert list(found["scores"]) == ["perplexity", CORPUS]
    score = found["scores"][CORPUS]
    assert score["value"] == corpus_perplexity(logps)
    assert score["signature"] == found["scores"]["perplexity"]["signature"]
    assert score["higher_is_better"] is False
    low, high = score["interval"]
    assert low <= score["value"] <= high
    tasks = {task["name"]: task["cached"] for task in found["tasks"]}
    assert tasks == {"columns": True, "pregen": True, CORPUS: False}
    all_of_them = client.get(f"/v1/evaluations/{found['id']}/pregen").json()["scores"]
    assert all_of_them[CORPUS] == score
    assert len(all_of_them) == 673
    assert CORPUS not in client.get(place).json()["scores"]


BITS = "bits_per_byte"


def test_bits_per_byte_are_those_of_words_and_of_pieces(client):
    """The references have 7, 3 and 8 bytes. Models of two tokenizers have one signature, and are
    compared.
    """
    sent = pieces(client)
    of_words, of_pieces = (
        evaluate(client, **sent, units=units, pregen=["perplexity", BITS])
        for units in ("words", "pieces")
    )
    for found in (of_words, of_pieces):
        score = found["scores"][BITS]
        assert score["value"] == pytest.approx(-sum(LOGP) / math.log(2) / 18, rel=1e-6)
        assert (score["signature"], score["higher_is_better"]) == ("pregen|brought|v:1", False)
        low, high = score["interval"]
        assert low < score["value"] < high
    asked = {"a": of_words["id"], "b": of_pieces["id"]}
    answer = client.post("/v1/comparisons", json={**asked, "metrics": ["perplexity"]})
    assert answer.status_code == 422
    begun = client.post("/v1/comparisons", json={**asked, "metrics": [BITS]}).json()
    compared = finish(client, f"/v1/comparisons/{begun['id']}")["scores"][BITS]
    assert compared["a"] == of_words["scores"][BITS]["value"]
    assert compared["b"] == of_pieces["scores"][BITS]["value"]


@pytest.mark.long
def test_bits_per_byte_of_a_checkpoint_are_those_of_its_recorded_columns(client, brought, items):
    texts = [text for item in items[1] for text in item.references]
    own = evaluate(client, checkpoint=digest(MODEL), pregen=[BITS, CORPUS], postgen=[])
    score = own["scores"][BITS]
    tokens = sum(len(text.split()) + 1 for text in texts)
    bits = tokens * math.log2(own["scores"][CORPUS]["value"])
    size = sum(len(text.encode("utf-8")) for text in texts)
    assert score["value"] == pytest.approx(bits / size, rel=1e-9)
    assert score["signature"] == "pregen|columns|fp32|v:1"
    theirs = evaluate(client, columns=brought, pregen=[BITS])["scores"][BITS]
    assert theirs["value"] == pytest.approx(score["value"], rel=1e-5)
    assert theirs["interval"] == pytest.approx(score["interval"], rel=1e-5)


@pytest.mark.parametrize("name", [CORPUS, BITS])
def test_scores_of_all_tokens_gate(name, client, brought):
    past = evaluate(client, columns=brought, pregen=[name])
    gates = [f"{name} <= baseline", f"no_significant_drop({name})"]
    found = evaluate(client, columns=brought, gates=gates, baseline=past["id"])
    assert [gate["verdict"] for gate in found["gates"]] == ["passed", "passed"]


def test_pieces_are_scored_as_they_are_where_that_is_asked_for(client):
    found = evaluate(client, **pieces(client), units="pieces")
    tokens = tokens_of(client, found)
    assert [token["rank"] for token in tokens] == RANK
    assert [token["word"] for token in tokens][:3] == ["a", "cat", "<end>"]
    assert tokens[0]["top"] == "a"
    score = found["scores"]["perplexity"]
    assert score["signature"] == "pregen|brought|tok:bpe|units:pieces|v:1"
    assert score["value"] == perplexity(LOGP[:3], LOGP[3:5], LOGP[5:])
    described = client.get(f"/v1/columns/{found['columns']}").json()
    assert (described["tokens"], described["words"], described["pieces"]) == (9, 7, "bpe")


def test_words_of_a_tokenizer_that_prescore_does_not_know_have_no_names(client):
    tokens = tokens_of(client, evaluate(client, **pieces(client, "jieba")))
    assert [token["word"] for token in tokens][:2] == [None, "<end>"]


def test_pieces_of_columns_without_them_are_refused(client, brought):
    found = refuse(client, columns=brought, units="pieces")
    assert [one["pointer"] for one in found["errors"]] == ["/units"]
    found = refuse(client, checkpoint=digest(MODEL), units="pieces")
    assert [one["pointer"] for one in found["errors"]] == ["/units"]


def test_stored_columns_are_no_garbage(service, client):
    content = columns(metadata={"model": "kept"})
    store(client, content)
    running = service._running
    garbage.collect_garbage(running.records, running.blobs, grace=-10)
    assert client.head(f"/v1/columns/{digest(content)}").status_code == 200


@pytest.fixture
def command(service):
    return partial(run_command, service)


def test_the_library_sends_columns_once_says_what_they_are_and_submits_them(
    service, items, tmp_path
):
    stored = digest(recorded(items, tmp_path, model="the library's"))
    with prescore.Client(service.url) as client:
        assert not client.has_columns(stored)
        with pytest.raises(prescore.Refused, match="no columns"):
            client.columns(stored)
        assert client.upload_columns(tmp_path / "columns") == stored
        assert client.upload_columns(tmp_path / "columns") == stored
        assert client.has_columns(stored)
        found = client.columns(stored)
        run = client.submit("tiny/test", columns=stored)
        with pytest.raises(prescore.InvalidArgument, match="upload_columns"):
            client.submit("tiny/test", columns=tmp_path / "columns")
        with pytest.raises(prescore.InvalidArgument, match="one of the two"):
            client.submit("tiny/test", columns=stored, checkpoint=digest(MODEL))
    assert (run.columns, run.checkpoint) == (stored, None)
    assert repr(found) == f"<Columns {stored[:60]} the library's own>"
    assert found.url == f"{service.url}/v1/columns/{stored}"


def test_the_command_sends_columns_and_captions(command, items, tmp_path, captions):
    recorded(items, tmp_path, model="the command's")
    (tmp_path / "said.json").write_text(json.dumps(captions))
    asked = ("submit", "--columns", tmp_path / "columns", "--dataset", "tiny/test")
    told = command(*asked, "--wait")
    assert "uploading columns" in told.stderr
    assert "perplexity" in told.stdout
    assert "--units: expected" in command(*asked, "--units", "pieces", code=2).stderr
    alone = ("submit", "--captions", tmp_path / "said.json", "--dataset", "tiny/test")
    assert "--units is for pre-gen scores" in command(*alone, "--units", "pieces", code=2).stderr
    given = ("--captions", tmp_path / "said.json", "--postgen", "bleu_4", "--wait", "--json")
    found = json.loads(command(*asked, *given).stdout)
    assert {"bleu_4", "perplexity"} <= set(found["scores"])
    stored = found["columns"]
    again = command("submit", "--columns", stored, "--dataset", "tiny/test", "--json")
    assert json.loads(again.stdout)["columns"] == stored
    command("gate", *asked[1:], "--gate", "perplexity > 0")
    command("gate", *asked[1:], "--gate", "perplexity < 0", code=1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "or without --captions FILE; found neither"),
        (("a.safetensors", "--columns", "b"), "or without --captions FILE; found both"),
        (("a.json", "--captions", "b"), "or without --captions FILE; found both"),
    ],
)
@pytest.mark.parametrize("name", ["submit", "gate"])
def test_the_commands_take_files_or_columns(name, arguments, words, command):
    gates = ("--gate", "perplexity > 0") if name == "gate" else ()
    told = command(name, *arguments, *gates, "--dataset", "tiny/test", code=2)
    assert words in " ".join(told.stderr.replace("│", " ").split())


@pytest.mark.parametrize(("ids", "is_told"), [([2, 1, 0, 4, 0, 2, 3, 1, 0], True), (None, False)])
def test_references_that_mostly_hold_unknown_words_are_warned_of(ids, is_told, client, small):
    changes = {} if ids is None else {"ids": ("U16", (9,), ids)}
    content = columns(changes, {"model": f"unknown {is_told}"}, base=WITH_WORDS)
    store(client, content)
    found = evaluate(client, columns=digest(content), dataset=small)
    told = [one["detail"] for one in found["warnings"] if one["code"] == "many_unknown_words"]
    assert len(told) == is_told
    assert all(each.startswith("2 of 3 references hold UNK") for each in told)
