"""The task that verifies what is evaluated as it came."""

import pytest

from helpers import adapter_folders, tokenizer_files, vision_language_folders
from helpers import onnx_bundle_files as files
from service.contract.assets import AssetFolders
from service.contract.errors import MetricUnavailable, UnusableCheckpoint
from workers.inference import pieces
from workers.inference.huggingface import loader
from workers.jobs import checkpoints
from workers.jobs.request import JobRequest
from workers.jobs.toolbox import Toolbox
from workers.offline import assets
from workers.progress import ignore_progress

pytestmark = pytest.mark.processes


@pytest.fixture
def toolbox(needs_sandbox, tmp_path):
    found = Toolbox("cpu", AssetFolders(tmp_path))
    yield found
    found.close()


def _request(package, digest="sha256:x", **parameters):
    return JobRequest({"package": package}, {"package": digest}, (), parameters)


def test_a_bundle_that_was_run_stays_open_for_the_tasks_after_it(toolbox, tmp_path):
    folder = files.write(tmp_path / "mine")
    summary = checkpoints.prepare_checkpoint(_request(folder), toolbox, ignore_progress).summary
    told = summary.converted
    assert (told["format"], told["inputs"], told["units"]) == ("onnx", "features", "words")
    one = toolbox.model("sha256:x", tmp_path / "nowhere")
    assert one.graphs.pid is not None


def test_a_tokenizer_that_is_none_is_never_opened_outside_of_the_sandbox(
    toolbox, tmp_path, monkeypatch
):
    preprocessing = {"size": {"height": 5, "width": 6}, "resample": 3}
    folder = tmp_path / "mine"
    files.of_pixels(folder, tokenizer_files.byte_pieces(), preprocessing, (3, 5, 6))
    (folder / "tokenizer.json").write_text("{}")
    opened = []
    monkeypatch.setattr(pieces, "parse_tokenizer", lambda *given: opened.append(given))
    with pytest.raises(UnusableCheckpoint, match=r"tokenizer\.json describes no tokenizer"):
        checkpoints.prepare_checkpoint(_request(folder), toolbox, ignore_progress)
    assert opened == []


def test_a_base_is_read_once_for_all_its_adapters(toolbox, tmp_path, monkeypatch):
    folder = vision_language_folders.save_model(tmp_path / "base", "llava").folder
    base = f"sha256:{assets.add_base('tiny', folder, toolbox.places)['base tiny'].sha256}"
    read, read_captioner = [], loader.read_captioner
    monkeypatch.setattr(
        loader, "read_captioner", lambda *given: read.append(given) or read_captioner(*given)
    )
    for seed in (1, 2):
        pairs = adapter_folders.make_pairs({"lm_head": (348, 32)}, seed)
        package = adapter_folders.write(tmp_path / f"adapter {seed}", pairs)
        request = _request(package, f"sha256:{seed}", base=base)
        found = checkpoints.prepare_checkpoint(request, toolbox, ignore_progress).summary.converted
        assert (found["format"], found["base_digest"]) == ("adapter", base)
        assert (found["vocabulary_size"], found["architecture"]) == (348, "llava")
    assert len(read) == 1
    unfit = adapter_folders.write(
        tmp_path / "unfit", adapter_folders.make_pairs({"lm_head": (348, 33)})
    )
    with pytest.raises(UnusableCheckpoint, match=r"lm_head\.weight: expected shape"):
        checkpoints.prepare_checkpoint(_request(unfit, base=base), toolbox, ignore_progress)
    with pytest.raises(MetricUnavailable, match="expected a base model with SHA-256 other…"):
        checkpoints.prepare_checkpoint(
            _request(package, base="sha256:other"), toolbox, ignore_progress
        )
