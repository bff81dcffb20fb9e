"""Types of models that an operator lets in (PRESCORE_MODEL_TYPES): whoever judges or opens a folder
reads the setting, and signatures tell of it.
"""

import json
import os
from contextlib import closing
from importlib.metadata import version

import pytest

from helpers import vision_language_folders as folders
from helpers.tars import packed_folder
from prescore import model_types
from prescore.errors import InvalidArgument
from prescore.files import models
from service.contract import settings
from service.contract.errors import ConfigInvalid, InvalidCheckpoint, UnusableCheckpoint
from service.stored.judges import Judges
from workers.conversion import foreign_files
from workers.conversion.foreign_files import ConversionLimits
from workers.inference import checkpoints
from workers.jobs.checkpoints import sign_plugin
from workers.runtime import worker


@pytest.fixture
def admit(monkeypatch):
    """Lets types in, as the settings of a process do."""
    monkeypatch.setenv(model_types.ADMITTING, "")

    def set_types(types):
        monkeypatch.setenv(model_types.ADMITTING, types)
        settings.load_settings()

    return set_types


@pytest.fixture
def unread(tmp_path):
    """A package of a type that is not read, whose weights cannot be read either."""
    (tmp_path / "model").mkdir()
    for name, text in {
        "config.json": {"model_type": "fuyu"},
        "prompt.json": {"prompt": "a"},
    }.items():
        (tmp_path / "model" / name).write_text(json.dumps(text))
    (tmp_path / "model" / "tokenizer.json").write_text("{}")
    (tmp_path / "model" / "model.safetensors").write_bytes(b"none")
    (tmp_path / "package").write_bytes(packed_folder(tmp_path / "model"))
    return tmp_path / "package"


def _judge(path):
    with closing(Judges(count=1)) as judges:
        judges.ask("checkpoint", lambda: False, path=str(path), bytes=path.stat().st_size).result(
            30
        )


PLACES = {
    "the client": models.build_body,
    "the API's judge": _judge,
    "the sandbox": lambda path: foreign_files.check_huggingface(path, ConversionLimits()),
    "the engine": checkpoints.open_captioner,
}
_REFUSED = (InvalidArgument, InvalidCheckpoint, UnusableCheckpoint)


@pytest.mark.processes
@pytest.mark.parametrize("place", PLACES)
def test_a_type_is_opened_where_the_operator_lets_it_in(place, admit, unread, needs_sandbox):
    with pytest.raises(_REFUSED, match="a model_type that is read"):
        PLACES[place](unread)
    admit("llama4,fuyu")
    if place == "the client":
        PLACES[place](unread)
        return
    with pytest.raises(_REFUSED, match="safetensors"):  # the next fault
        PLACES[place](unread)


def test_the_setting_goes_to_warm_children_and_is_checked(admit):
    admit("fuyu,molmo2")
    chosen = settings.load_settings()
    assert worker._child_settings(chosen)["PRESCORE_MODEL_TYPES"] == "fuyu,molmo2"
    os.environ[model_types.ADMITTING] = "fuyu, molmo2"
    with pytest.raises(Exception, match=r"PRESCORE_MODEL_TYPES.*types with commas"):
        settings.load_settings()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("processors_here")
def test_signatures_tell_of_a_type_that_no_test_has_read(admit, tmp_path, monkeypatch):
    saved = folders.save_model(tmp_path / "model", "llava")
    assert sign_plugin(checkpoints.open_captioner(saved.folder)) is None
    monkeypatch.setattr(model_types, "READ", ("git",))
    with pytest.raises(ConfigInvalid, match="found 'llava'"):
        checkpoints.open_captioner(saved.folder)
    admit("llava")
    found = sign_plugin(checkpoints.open_captioner(saved.folder))
    assert found == f"llava@transformers-{version('transformers')}"
