"""A captioner that transformers has saved: uploaded as it is, scored and searched on a dataset's
pictures as the engine and the library themselves do.
"""

import hashlib
from functools import cache

import numpy as np
import pytest
from PIL import Image

from helpers import huggingface_folders as folders
from helpers import synthetic_pictures, vision_language_folders
from helpers.fleet import digest, upload
from helpers.submissions import refuse, store_checkpoint, submit
from helpers.tars import packed_folder
from workers.inference import checkpoints, columns, scoring
from workers.metrics import pregen

pytestmark = [pytest.mark.processes, pytest.mark.long, pytest.mark.usefixtures("sandbox")]

IMAGES = 9
_KINDS = [
    kind if kind == "llava" else pytest.param(kind, marks=pytest.mark.slow)
    for kind in vision_language_folders.MAKERS
]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return folders.make(tmp_path_factory.mktemp("m") / "model", "vit-gpt2", trained=True)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle")
    synthetic_pictures.write_dataset(folder, IMAGES)
    return folder


@pytest.fixture(scope="module", autouse=True)
def dataset(service, bundle):
    with service.client() as client:
        answer = client.put("/v1/datasets/seen", content=packed_folder(bundle))
        assert answer.status_code == 201, answer.text


def _evaluated(client, checkpoint, **asked):
    request = {"dataset": "seen/test", "checkpoint": checkpoint, "postgen": ["bleu_1"], **asked}
    return client.get(f"/v1/evaluations/{submit(client, **request)}").json()


@pytest.mark.slow  # packages are verified and scored in test_packages.py
def test_it_is_verified_and_scored_by_words_and_by_pieces(client, saved, bundle):
    content = packed_folder(saved.folder)
    found = store_checkpoint(client, content)
    assert (found["format"], found["state"], found["problem"]) == ("huggingface", "ready", None)
    assert (found["inputs"], found["units"]) == ("pixels", "pieces")
    assert (found["encoder"], found["config"]) == (None, None)
    model = checkpoints.open_captioner(saved.folder)
    names = [f"{place:04}.png" for place in range(IMAGES)]
    encoded = model.tokens.encode(synthetic_pictures.sentences(IMAGES))
    pieces = scoring.compute_columns(model, model.inputs(bundle, names), encoded)
    expected = {"pieces": pieces, "words": columns.merge_word_pieces(pieces, encoded.word_offsets)}
    for units, own in expected.items():
        run = _evaluated(client, digest(content), units=units, pregen="all")
        assert run["status"] == "succeeded", run["tasks"]
        scores = client.get(f"/v1/evaluations/{run['id']}/pregen").json()["scores"]
        wanted = pregen.scores(own.logp, own.rank, own.caption_offsets, own.image_offsets)
        for name in ("sum_sum_prob_none", "sum_sum_pplx_filter0"):
            assert scores[name]["value"] == pytest.approx(wanted[name], rel=1e-5), (units, name)
        assert units in scores["sum_sum_prob_none"]["signature"]
        shown = client.get(f"/v1/evaluations/{run['id']}/tokens/{names[0]}").json()["captions"][0]
        words = [token["word"] for token in shown["tokens"]]
        if units == "words":
            assert words == [*synthetic_pictures.sentences(IMAGES)[0][0].split(), "<end>"]


@pytest.mark.slow
def test_its_captions_are_those_of_its_own_search_unless_asked(client, saved):
    content = packed_folder(saved.folder)
    rows = list(synthetic_pictures.pictures(IMAGES))
    pixels = folders.processor(saved.kind)(rows, return_tensors="pt")["pixel_values"]
    model = checkpoints.open_captioner(saved.folder)
    for asked, how in (({}, {}), ({"beam": 3}, {"num_beams": 3})):
        store_checkpoint(client, content)
        run = _evaluated(client, digest(content), decoding=asked, pregen=[])
        assert run["status"] == "succeeded", run["tasks"]
        items = client.get(f"/v1/evaluations/{run['id']}/captions").json()["items"]
        expected = [
            model.tokens.text(ids) for ids in saved.generated(pixels, max_new_tokens=20, **how)
        ]
        assert [item["caption"] for item in items] == expected


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Makes a vision-language model of a kind, trained so that some words are hits."""
    rows = [Image.fromarray(row) for row in synthetic_pictures.pictures(IMAGES)]
    first = [texts[0] for texts in synthetic_pictures.sentences(IMAGES)]

    @cache
    def make(kind):
        own = vision_language_folders.save_model(tmp_path_factory.mktemp("m") / kind, kind)
        vision_language_folders.train(own, rows, first, steps=10)
        return own, rows

    return make


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", _KINDS)
def test_a_vision_language_model_is_scored_and_searched_as_by_the_library(client, kind, trained):
    own, rows = trained(kind)
    content = packed_folder(own.folder)
    found = store_checkpoint(client, content)
    assert (found["format"], found["state"], found["problem"]) == ("huggingface", "ready", None)
    assert (found["inputs"], found["units"], found["encoder"]) == ("pixels", "pieces", None)
    for beam in (1, 3):
        decoding = {"beam": beam, "max_words": 8}
        run = _evaluated(client, digest(content), units="pieces", pregen="all", decoding=decoding)
        assert run["status"] == "succeeded", run["tasks"]
        items = client.get(f"/v1/evaluations/{run['id']}/captions").json()["items"]
        assert [item["caption"] for item in items] == [
            own.processor.tokenizer.decode(
                vision_language_folders.generate(own, row, num_beams=beam, max_new_tokens=8),
                skip_special_tokens=True,
            ).strip()
            for row in rows
        ]
    answer = client.get(f"/v1/evaluations/{run['id']}/pregen").json()["scores"]
    scores = {name: _read_score(score["value"]) for name, score in answer.items()}
    wanted = _score_by_the_library(own, rows)
    assert scores == pytest.approx(wanted, rel=1e-4, abs=0)
    assert wanted["sum_sum_count_filter0"]
    mistaken = _score_by_the_library(own, [*rows[1:], rows[0]])
    assert mistaken != pytest.approx(wanted, rel=1e-3, abs=0), "pictures are told apart"


def _read_score(value):
    return float("inf") if value is None else value


def _score_by_the_library(own, rows):
    """Pre-gen scores by name of the sentences about these pictures."""
    encode, end = own.processor.tokenizer.encode, vision_language_folders.END
    references = synthetic_pictures.sentences(IMAGES)
    captions = [
        (row, [*encode(text, add_special_tokens=False), end])
        for row, texts in zip(rows, references, strict=True)
        for text in texts
    ]
    columns = [vision_language_folders.rank_words(own, *caption) for caption in captions]
    logp, rank = (np.concatenate(each) for each in zip(*columns, strict=True))
    tokens = np.cumsum([0, *(len(words) for _, words in captions)])
    images = np.cumsum([0, *map(len, references)])
    return pregen.scores(logp, rank, tokens, images)


@pytest.mark.filterwarnings("ignore")
def test_a_request_may_choose_the_prompt_of_a_checkpoint_that_reads_one(client, trained):
    asked, own = "there is a red one", "one is"
    content = packed_folder(trained("llava")[0].folder)
    store_checkpoint(client, content)
    prompts = ({}, {"prompt": asked}, {"prompt": own})
    runs = [_evaluated(client, digest(content), **prompt, postgen=[]) for prompt in prompts]
    assert [(run["status"], run["prompt"]) for run in runs] == [
        ("succeeded", own),
        ("succeeded", asked),
        ("succeeded", own),
    ]
    computed = [{task["name"] for task in run["tasks"] if not task["cached"]} for run in runs]
    assert computed[1:] == [{"prefix", "columns", "pregen"}, set()]
    mark = f"prompt:{hashlib.sha256(asked.encode()).hexdigest()[:16]}"
    signed = [{one["signature"] for one in run["scores"].values()} for run in runs]
    usual = {"pregen|prefix|units:words|v:1", "pregen|columns|fp32|units:words|v:1"}
    told = {each.replace("|units", f"|{mark}|units") for each in usual}
    assert signed == [usual, told, usual]


def test_a_prompt_is_refused_for_a_checkpoint_that_reads_none(client, data):
    problem = refuse(client, checkpoint=upload(client, data), prompt="caption en")
    assert "reads no prompt before a caption: leave `prompt` out" in problem["detail"]
    assert [each["pointer"] for each in problem["errors"]] == ["/prompt"]


def test_a_folder_whose_weights_are_not_numbers_is_invalid(client, saved, tmp_path):
    import shutil

    from safetensors.torch import load_file, save_file

    broken = tmp_path / "broken"
    shutil.copytree(saved.folder, broken)
    tensors = load_file(broken / "model.safetensors")
    name = next(iter(tensors))
    tensors[name].view(-1)[0] = np.nan
    save_file(tensors, broken / "model.safetensors", {"format": "pt"})
    found = store_checkpoint(client, packed_folder(broken))
    assert (found["state"], found["problem"]["code"]) == ("invalid", "invalid_checkpoint")
