"""Files that a converter opens become the same bytes as without one."""

import numpy as np
import pytest
import torch

from helpers import converters, huggingface_folders, image_encoders, onnx_bundle_files
from helpers.tars import packed
from helpers.waits import until
from service.contract.errors import UnusableCheckpoint
from workers.conversion import foreign_files
from workers.conversion.foreign_files import ConversionLimits
from workers.inference import checkpoints, pictures
from workers.inference.pictures import PictureFit, thumbnails
from workers.sandbox import operations

pytest.importorskip("PIL.Image", reason="pictures are decoded by Pillow")
pytestmark = [pytest.mark.processes]


@pytest.fixture(scope="module")
def converter(needs_sandbox, tmp_path_factory):
    with converters.running(tmp_path_factory.mktemp("c")) as found:
        yield found


def _photos(folder):
    """More pictures than a child may open files by itself; the third is cut off."""
    (folder / "images").mkdir()
    names = [f"{place}.jpg" for place in range(70)]
    for place, name in enumerate(names):
        content = image_encoders.photo(place)
        (folder / "images" / name).write_bytes(content[:100] if place == 2 else content)
    return names


def _decode(folder):
    fit = PictureFit("bilinear", stretched=(8, 8))
    found = pictures.read_pictures(folder, _photos(folder), fit=fit)
    return [each.tobytes() if isinstance(each, np.ndarray) else each for each in found]


def _shrink(folder):
    made = thumbnails.make_thumbnails(folder, _photos(folder)[:4])
    thumbnails.write_thumbnails(folder / "made", list(made))
    return (folder / "made").read_bytes()


def _check_huggingface(folder):
    saved = huggingface_folders.make(folder / "model", "vit-gpt2", trained=False)
    files = {each.name: each.read_bytes() for each in saved.folder.iterdir()}
    (folder / "package").write_bytes(packed(files))
    foreign_files.check_huggingface(folder / "package", ConversionLimits())
    files["model.safetensors"] = files["model.safetensors"][:-8]
    (folder / "package").write_bytes(packed(files))
    with pytest.raises(UnusableCheckpoint) as refused:
        foreign_files.check_huggingface(folder / "package", ConversionLimits())
    return str(refused.value)


def _run_graphs(folder):
    model = checkpoints.open_captioner(onnx_bundle_files.write(folder / "mine"))
    rows = torch.rand((2, onnx_bundle_files.FEATURES), generator=torch.Generator().manual_seed(0))
    state = model.begin(model.look(rows))
    hidden, _ = model.step(state, torch.tensor([model.tokens.start] * 2))
    model.close()
    return model.output(hidden).tolist()


@pytest.mark.parametrize(
    ("perform", "operation"),
    [
        (_decode, "workers.inference.pictures.decoder:decode_pictures"),
        (_shrink, "workers.inference.pictures.decoder:shrink_pictures"),
        pytest.param(
            _check_huggingface,
            "workers.conversion.verification:verify_huggingface",
            marks=pytest.mark.slow,
        ),
        (_run_graphs, "workers.inference.onnx.child:serve_graphs"),
    ],
)
def test_an_operation_gives_there_what_it_gives_here(converter, tmp_path, perform, operation):
    """Its own log tells that the converter has performed it."""
    results = []
    for name, address in (("here", None), ("there", converter.address)):
        (tmp_path / name).mkdir()
        operations.choose_converter(address)
        try:
            results.append(perform(tmp_path / name))
        finally:
            operations.choose_converter(None)
    assert results[0] == results[1]
    until(lambda: f'"{operation}"' in converter.log.read_text(), 5, f"a line about {operation}")
