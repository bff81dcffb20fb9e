"""Recordings: what a service's jobs compute of the same model, in parts that are computed once."""

import json
import socket
from collections import Counter

import huggingface_hub
import numpy as np
import pytest
from safetensors.numpy import load_file

from helpers import fleet, synthetic_pictures, vision_language_folders
from helpers import huggingface_folders as folders
from helpers.torch_captioners import FEATURES, WORDS, made, map_of, saved, with_encoder
from service.contract.assets import AssetFolders
from service.contract.column_options import ColumnOptions
from service.contract.errors import CheckpointMismatch, RequestRefused
from service.contract.formats import columns_values
from workers.inference import columns
from workers.jobs import inference
from workers.jobs.request import JobRequest
from workers.jobs.toolbox import Toolbox
from workers.offline import recordings
from workers.offline.sources import find_local_source

IMAGES = 300  # three parts


@pytest.fixture
def toolbox(tmp_path):
    found = Toolbox("cpu", AssetFolders(tmp_path))
    yield found
    found.close()


@pytest.fixture
def record(tmp_path, toolbox):
    """Makes a recording of a model; a file is of words, on features."""
    (tmp_path / "words.tar").write_bytes(fleet.bundle(IMAGES, seed=3))
    (tmp_path / "words").write_bytes(fleet.checkpoint(seed=11))

    def make(model="words", dataset="words.tar", **options):
        return recordings.ModelRecording(
            model,
            tmp_path / model,
            find_local_source(str(tmp_path / dataset)),
            ColumnOptions(**options),
            tmp_path / "parts",
            toolbox,
        )

    return make


@pytest.fixture
def pictures(tmp_path):
    (tmp_path / "pictures").mkdir()
    synthetic_pictures.write_dataset(tmp_path / "pictures", 9)
    return "pictures"


@pytest.fixture
def computed(monkeypatch):
    """Counts the parts that are computed; `stop_at` interrupts the one of this number."""
    counts = Counter()

    def count(kind, job):
        def compute(*given):
            counts[kind] += 1
            if counts[kind] == counts["stop_at"]:
                raise KeyboardInterrupt
            return job(*given)

        return compute

    jobs = {kind: count(kind, job) for kind, job in recordings._JOBS.items()}
    monkeypatch.setattr(recordings, "_JOBS", jobs)
    return counts


def of_job(recording, job=inference.compute_columns, **parameters):
    """The file of a service's job for all images at once."""
    path = recording.parts.with_name("job")
    inputs = {"checkpoint": recording.model, "dataset": recording.source.path}
    asked = {"split": "test", **parameters}
    request = JobRequest(inputs, {"checkpoint": recording.model.name}, (), asked)
    job(request, recording.toolbox, lambda *_: None).write(path)
    return path


def check_same(recording, path, units="words", **parameters):
    found, told = columns.read_uploaded_columns(path, units)
    own, _ = columns.read_columns(of_job(recording, units=units, **parameters))
    for name in ("logp", "rank", "caption_offsets", "image_offsets"):
        np.testing.assert_array_equal(getattr(found, name), getattr(own, name), err_msg=name)
    return found, own, told


def test_columns_of_words_are_those_of_the_job(record, tmp_path):
    recording, path = record(), tmp_path / "columns"
    assert recording.record_columns(path) is None
    header = columns_values.validate_columns(path)
    items = recording.source.items
    assert columns_values.find_split_difference(path, items, len(items)) is None
    assert (header.tokenizer, header.pieces, header.model) == ("blanks", None, "words (fp32)")
    found, own, _ = check_same(recording, path)
    np.testing.assert_array_equal(found.top_ids, own.top_ids)
    np.testing.assert_array_equal(found.top_logp, own.top_logp)
    references = (text for item in items for text in item.references)
    expected = [word for text in references for word in (*text.split(), "<edge>")]
    assert [header.vocabulary[at] for at in load_file(path)["ids"]] == expected


@pytest.mark.parametrize("kind", ["vit-gpt2", pytest.param("deit-bert", marks=pytest.mark.slow)])
def test_columns_of_pieces_are_those_of_the_job_by_words_and_by_pieces(
    kind, record, tmp_path, pictures
):
    folders.make(tmp_path / kind, kind, trained=False)
    recording, path = record(kind, pictures), tmp_path / "columns"
    recording.record_columns(path)
    header = columns_values.validate_columns(path)
    assert columns_values.find_split_difference(path, recording.source.items, 9) is None
    *_, words = check_same(recording, path)
    *_, pieces = check_same(recording, path, "pieces")
    assert words == {"tokenizer": "blanks", "units": "words"}
    assert pieces == {"tokenizer": header.pieces, "units": "pieces"}


def test_words_without_pieces_are_left_out_as_the_job_does(record, tmp_path, pictures):
    folders.make(tmp_path / "bert", "deit-bert", trained=False)
    captions = tmp_path / pictures / "captions.jsonl"
    first, *others = captions.read_text().splitlines()
    first = json.dumps({**json.loads(first), "references": ["a \u200d red ball"]})
    captions.write_text("\n".join([first, *others]) + "\n")
    recording, path = record("bert", pictures), tmp_path / "columns"
    recording.record_columns(path)
    assert columns_values.validate_columns(path).tokenizer == "own"  # "blanks" would count them
    assert columns_values.find_split_difference(path, recording.source.items, 9) is None
    check_same(recording, path)


@pytest.mark.parametrize("decoding", [{}, {"beam": 1, "max_words": 6}])
def test_captions_are_those_of_the_job(decoding, record, tmp_path):
    recording, path = record(), tmp_path / "captions"
    recording.record_captions(path, decoding)
    job = of_job(recording, inference.decode_captions, decoding=decoding)
    items = recording.source.items
    assert json.loads(path.read_text()) == [
        {"image": items[at].image, "caption": text} for at, text in json.loads(job.read_text())
    ]


def test_what_was_done_before_an_interruption_is_not_computed_again(record, tmp_path, computed):
    computed["stop_at"] = 3
    with pytest.raises(KeyboardInterrupt):
        record().record_columns(tmp_path / "columns")
    assert not (tmp_path / "columns").exists()
    assert len(record().list_parts()) == 2
    computed.clear()
    again, reports = record(), []
    again.record_columns(tmp_path / "columns", lambda done, total: reports.append((done, total)))
    assert computed["columns"] == 1
    assert reports == sorted(reports)
    assert reports[-1] == (IMAGES, IMAGES)
    check_same(again, tmp_path / "columns")


def test_another_model_dataset_or_option_starts_anew(record, tmp_path, computed):
    def count(recording, job="columns", **decoding):
        computed.clear()
        if job == "columns":
            recording.record_columns(tmp_path / "out")
        else:
            recording.record_captions(tmp_path / "out", decoding)
        return computed[job]

    assert [count(record()), count(record())] == [3, 0]
    assert count(record(precision="bf16")) == 3
    assert [count(record(), "captions", beam=1) for _ in "12"] == [3, 0]
    assert count(record(), "captions", beam=1, max_words=4) == 3
    assert count(record()) == 0
    (tmp_path / "words").write_bytes(fleet.checkpoint(seed=12))
    assert count(record()) == 3
    (tmp_path / "words.tar").write_bytes(fleet.bundle(IMAGES, seed=4))
    assert count(record()) == 3


@pytest.mark.long
@pytest.mark.usefixtures("processors_here")
def test_a_prompt_changes_columns_as_it_does_those_of_the_job(record, tmp_path, pictures):
    vision_language_folders.save_model(tmp_path / "llava", "llava")
    own, asked = record("llava", pictures), record("llava", pictures, prompt="there is a red one")
    logp = []
    for recording in (own, asked):
        recording.record_columns(tmp_path / "columns")
        prompt = recording.options.for_captions()
        found, *_ = check_same(recording, tmp_path / "columns", **prompt)
        logp.append(found.logp)
    assert np.abs(logp[0] - logp[1]).max() > 0.001
    assert columns_values.validate_columns(tmp_path / "columns").model.startswith("llava (fp32, p")
    assert len(own.list_parts()) == 2


def test_a_prompt_is_refused_by_a_model_that_reads_none(record, tmp_path):
    with pytest.raises(CheckpointMismatch, match="reads no prompt"):
        record(prompt="a red one").record_columns(tmp_path / "columns")
    assert not (tmp_path / "parts").exists()


@pytest.mark.parametrize(("odd", "is_told"), [(2, True), (1, False)])
@pytest.mark.parametrize("tokens", ["words", "pieces"])
def test_mostly_unknown_words_are_warned_of(tokens, odd, is_told, record, tmp_path):
    known, unknown = {"words": ("w3 w4", "w3 dog"), "pieces": ("a red", "a \u6f22")}[tokens]
    references = [unknown] * odd + [known] * (3 - odd)
    if tokens == "words":
        rows = np.zeros((1, 5), np.float32)
        (tmp_path / "words.tar").write_bytes(fleet.bundle_of({"0.jpg": references}, rows))
        warning = record().record_columns(tmp_path / "columns")
    else:
        folders.make(tmp_path / "bert", "deit-bert", trained=False)
        (tmp_path / "one").mkdir()
        synthetic_pictures.write_dataset(tmp_path / "one", 1)
        line = {"image": "0000.png", "split": "test", "references": references}
        (tmp_path / "one" / "captions.jsonl").write_text(json.dumps(line) + "\n")
        warning = record("bert", "one").record_columns(tmp_path / "columns")
    assert (warning is not None) == is_told
    if is_told:
        assert "2 of 3 references hold UNK" in warning


def test_a_state_dict_with_its_map_is_converted_once(needs_sandbox, record, tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "model.pt").write_bytes(saved(made("init", "lstm")))
    (package / "map.toml").write_text(with_encoder(map_of("init")))
    (package / "vocabulary.json").write_text(json.dumps(WORDS))
    rows = np.random.default_rng(0).normal(size=(2, FEATURES)).astype(np.float32)
    people = {"0.jpg": [" ".join(WORDS[5:9])], "1.jpg": [WORDS[6]]}
    (tmp_path / "two.tar").write_bytes(fleet.bundle_of(people, rows))
    recording = record("package", "two.tar")
    recording.record_columns(tmp_path / "columns")
    found, _ = columns.read_uploaded_columns(tmp_path / "columns")
    own, _ = columns.read_columns(of_job(record(recording.checkpoint, "two.tar")))
    np.testing.assert_array_equal(found.logp, own.logp)


def test_a_name_is_found_in_the_cache_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("it asked for a host"))
    there = tmp_path / "models--acme--captioner"
    (there / "snapshots" / "0f").mkdir(parents=True)
    (there / "snapshots" / "0f" / "config.json").write_text("{}")
    (there / "refs").mkdir()
    (there / "refs" / "main").write_text("0f")
    for name in ("acme/other", "../no/such name", "absent.safetensors"):
        with pytest.raises(RequestRefused, match="download it first, by `hf download NAME`"):
            recordings.find_model(name)
    found = recordings.find_model("acme/captioner")
    assert (found / "config.json").read_text() == "{}"
