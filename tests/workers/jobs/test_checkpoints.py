"""The task that verifies what is evaluated as it came."""

import pytest

from helpers import onnx_bundle_files as files
from helpers import tokenizer_files
from service.contract.assets import AssetFolders
from service.contract.errors import UnusableCheckpoint
from workers.inference import pieces
from workers.jobs import checkpoints
from workers.jobs.request import JobRequest
from workers.jobs.toolbox import Toolbox
from workers.progress import ignore_progress

pytestmark = pytest.mark.processes


@pytest.fixture
def toolbox(needs_sandbox, tmp_path):
    found = Toolbox("cpu", AssetFolders(tmp_path))
    yield found
    found.close()


def _request(package):
    return JobRequest({"package": package}, {"package": "sha256:x"}, (), {})


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
    monkeypatch.setattr(pieces, "read_bundle_pieces", lambda *given: opened.append(given))
    with pytest.raises(UnusableCheckpoint, match=r"tokenizer\.json describes no tokenizer"):
        checkpoints.prepare_checkpoint(_request(folder), toolbox, ignore_progress)
    assert opened == []
