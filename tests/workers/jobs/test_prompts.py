"""Prompts of tasks: read by the captioner that is warm, over the same weights."""

import numpy as np
import pytest

from helpers import huggingface_folders as folders
from helpers.fleet import checkpoint
from service.contract.assets import AssetFolders
from service.contract.errors import CheckpointMismatch
from workers.inference import generation, scoring
from workers.jobs import checkpoints
from workers.jobs.request import JobRequest
from workers.jobs.toolbox import Toolbox

IMAGES = 3


@pytest.fixture
def toolbox(tmp_path):
    found = Toolbox("cpu", AssetFolders(tmp_path))
    yield found
    found.close()


def _open(toolbox, path, **parameters):
    request = JobRequest({"checkpoint": path}, {"checkpoint": str(path)}, (), parameters)
    return checkpoints.open_captioner(request, toolbox)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "prompt"), [("paligemma", "a red one"), ("llava-llama", "one <image> is a")]
)
def test_a_tasks_prompt_is_as_good_as_that_of_a_folder(kind, prompt, toolbox, tmp_path):
    saved = folders.make(tmp_path / "model", kind, trained=False)
    _, inputs = folders.opened(saved, IMAGES)

    def read(captioner):
        references = captioner.tokens.encode([["a red circle", "it is"]] * IMAGES)
        columns = scoring.compute_columns(captioner, inputs, references)
        captions = generation.generate_captions(captioner, inputs, captioner.search)
        return columns.logp, [each.words for each in captions]

    own = read(_open(toolbox, saved.folder))
    found = read(_open(toolbox, saved.folder, prompt=prompt))
    assert not np.allclose(found[0], own[0], atol=1e-3)
    np.testing.assert_array_equal(read(_open(toolbox, saved.folder))[0], own[0])
    toolbox.forget_model()
    folders.change(saved.folder, "prompt.json", prompt=prompt)
    expected = read(_open(toolbox, saved.folder))
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1] == expected[1]


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("blip", "reads no prompt before a caption: leave prompt out"),
        ("merge", "reads no prompt before a caption: leave prompt out"),
        ("llava-llama", "the prompt 'it is' has 0 marks of a picture.*: expected 1"),
    ],
)
def test_a_prompt_that_a_captioner_cannot_read_fails_the_task(kind, told, toolbox, tmp_path):
    path = tmp_path / "model"
    if kind == "merge":
        path.write_bytes(checkpoint())
    else:
        folders.make(path, kind, trained=False)
    with pytest.raises(CheckpointMismatch, match=told):
        _open(toolbox, path, prompt="it is")
