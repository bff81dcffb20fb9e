"""Prompts of tasks: read by the captioner that is warm, over the same weights."""

import numpy as np
import pytest

from helpers import synthetic_pictures
from helpers import vision_language_folders as folders
from helpers.fleet import checkpoint
from service.contract.assets import AssetFolders
from service.contract.errors import CheckpointMismatch
from workers.inference import generation, scoring
from workers.jobs import checkpoints
from workers.jobs.request import JobRequest
from workers.jobs.toolbox import Toolbox

IMAGES = 3
pytestmark = pytest.mark.usefixtures("processors_here")


@pytest.fixture
def toolbox(tmp_path):
    found = Toolbox("cpu", AssetFolders(tmp_path))
    yield found
    found.close()


def _open(toolbox, path, **parameters):
    request = JobRequest({"checkpoint": path}, {"checkpoint": str(path)}, (), parameters)
    return checkpoints.open_captioner(request, toolbox)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["llava", pytest.param("qwen2_5_vl", marks=pytest.mark.slow)])
def test_a_tasks_prompt_is_as_good_as_that_of_a_folder(kind, toolbox, tmp_path):
    saved = folders.save_model(tmp_path / "model", kind)
    names = synthetic_pictures.write_pictures(tmp_path, synthetic_pictures.pictures(IMAGES))

    def read(captioner):
        references = captioner.tokens.encode([["a red circle", "it is"]] * IMAGES)
        inputs = captioner.inputs(tmp_path, names)
        columns = scoring.compute_columns(captioner, inputs, references)
        captions = generation.generate_captions(captioner, inputs, captioner.search)
        return columns.logp, [each.words for each in captions]

    own = read(_open(toolbox, saved.folder))
    asked = _open(toolbox, saved.folder, prompt="there is a red one")
    assert _open(toolbox, saved.folder, prompt="there is a red one") is asked
    found = read(asked)
    assert not np.allclose(found[0], own[0], atol=1e-3)
    np.testing.assert_array_equal(read(_open(toolbox, saved.folder))[0], own[0])
    toolbox.forget_model()
    (saved.folder / "prompt.json").write_text('{"prompt": "there is a red one"}')
    expected = read(_open(toolbox, saved.folder))
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1] == expected[1]


def test_a_captioner_that_reads_no_prompt_refuses_one(toolbox, tmp_path):
    (tmp_path / "checkpoint").write_bytes(checkpoint())
    with pytest.raises(CheckpointMismatch, match="reads no prompt before a caption: leave prompt"):
        _open(toolbox, tmp_path / "checkpoint", prompt="a red one")
