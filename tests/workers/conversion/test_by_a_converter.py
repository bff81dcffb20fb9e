"""What a converter opens becomes the same bytes as without one."""

import io
from contextlib import contextmanager

import numpy as np
import pytest
import torch

import converters
import huggingface_folders
import onnx_bundle_files
import plugin_packages
import tokenizer_files
from service.contract.errors import UnusableCheckpoint
from torch_captioners import packed
from waiting import until
from workers.conversion import foreign_files
from workers.conversion.foreign_files import ConversionLimits
from workers.inference import checkpoints, pictures
from workers.inference.pictures import PictureFit, thumbnails
from workers.sandbox import confinement, operations

Image = pytest.importorskip("PIL.Image", reason="pictures are decoded by Pillow")
pytestmark = [pytest.mark.processes]


@pytest.fixture(scope="module")
def converter(tmp_path_factory):
    if lacking := confinement.explain_missing_sandbox():
        pytest.skip(lacking)
    with converters.running(tmp_path_factory.mktemp("c")) as found:
        yield found


@pytest.fixture
def there(converter):
    """What is opened within is opened by the converter, as its log tells."""

    @contextmanager
    def within(task):
        before = _count(converter, task)
        operations.choose_converter(converter.socket)
        try:
            yield
        finally:
            operations.choose_converter(None)
        until(lambda: _count(converter, task) > before, 5, f"a line about {task}")

    return within


def _count(converter, task):
    return converter.log.read_text().count(f'"{task}"')


@pytest.mark.slow
def test_a_state_dict(there, tmp_path):
    source = tmp_path / "model.pt"
    torch.save({"weight": torch.randn(30, 40), "names": "x", "bias": torch.ones(3)}, source)
    left_out = foreign_files.extract_tensors(
        source, tmp_path / "here", ConversionLimits(memory=1_000_000_000)
    )
    with there("workers.conversion.pytorch:convert_state_dict"):
        found = foreign_files.extract_tensors(
            source, tmp_path / "there", ConversionLimits(memory=1_000_000_000)
        )
        torch.save([1, 2], source)
        with pytest.raises(UnusableCheckpoint, match="found a list; save the tensors alone"):
            foreign_files.extract_tensors(
                source, tmp_path / "none", ConversionLimits(memory=1_000_000_000)
            )
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    assert found == left_out == ["names"]


def _photo(seed):
    pixels = np.random.default_rng(seed).integers(0, 255, (40, 60, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


@pytest.fixture
def folder(tmp_path):
    """Of more pictures than a child may open files by itself; the third is cut off."""
    (tmp_path / "b" / "images").mkdir(parents=True)
    for place in range(70):
        content = _photo(place)
        path = tmp_path / "b" / "images" / f"{place}.jpg"
        path.write_bytes(content[:100] if place == 2 else content)
    return tmp_path / "b", [f"{place}.jpg" for place in range(70)]


def test_pictures(there, folder):
    fit = PictureFit("bilinear", stretched=(8, 8))
    here = list(pictures.read_pictures(*folder, fit=fit))
    with there("workers.inference.pictures.decoder:decode_pictures"):
        found = list(pictures.read_pictures(*folder, fit=fit))
    assert found[2] == here[2]
    for one, other in zip(found[:2] + found[3:], here[:2] + here[3:], strict=True):
        np.testing.assert_array_equal(one, other)


def test_small_forms_of_pictures(there, folder, tmp_path):
    bundle, images = folder
    thumbnails.write_thumbnails(
        tmp_path / "here", list(thumbnails.make_thumbnails(bundle, images[:4]))
    )
    with there("workers.inference.pictures.decoder:shrink_pictures"):
        thumbnails.write_thumbnails(
            tmp_path / "there", list(thumbnails.make_thumbnails(bundle, images[:4]))
        )
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


@pytest.mark.slow
def test_tokenizers(there, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(plugin_packages.of_pieces())
    preprocessing = {"size": {"height": 5, "width": 6}, "resample": 3}
    pieces = tokenizer_files.byte_pieces()
    onnx_bundle_files.of_pixels(tmp_path / "folder", pieces, preprocessing, (3, 5, 6), seed=1)
    files = {each.name: each.read_bytes() for each in (tmp_path / "folder").iterdir()}
    bundle = tmp_path / "bundle"
    bundle.write_bytes(packed(files))
    with there("workers.conversion.verification:verify_tokenizer"):
        foreign_files.check_tokenizer(path, ConversionLimits())
        foreign_files.check_tokenizer(bundle, ConversionLimits())
        path.write_bytes(plugin_packages.of_pieces(**{"tokenizer.json": '{"model": {}}'}))
        with pytest.raises(UnusableCheckpoint, match=r"tokenizer\.json describes no tokenizer: "):
            foreign_files.check_tokenizer(path, ConversionLimits())


@pytest.mark.slow
def test_what_transformers_has_saved(there, tmp_path):
    saved = huggingface_folders.make(tmp_path / "model", "vit-gpt2", trained=False)
    files = {each.name: each.read_bytes() for each in saved.folder.iterdir()}
    (tmp_path / "package").write_bytes(packed(files))
    files["model.safetensors"] = files["model.safetensors"][:-8]
    (tmp_path / "cut").write_bytes(packed(files))
    with there("workers.conversion.verification:verify_huggingface"):
        foreign_files.check_huggingface(tmp_path / "package", ConversionLimits())
        with pytest.raises(UnusableCheckpoint):
            foreign_files.check_huggingface(tmp_path / "cut", ConversionLimits())


def test_graphs_of_onnx(there, tmp_path):
    folder = onnx_bundle_files.write(tmp_path / "mine")

    def looked():
        model = checkpoints.open_captioner(folder)
        size = model.graphs._parameters["manifest"]["feature_size"]
        rows = torch.rand((2, size), generator=torch.Generator().manual_seed(0))
        state = model.begin(model.look(rows))
        hidden, _ = model.step(state, torch.tensor([model.tokens.start] * 2))
        model.graphs.close()
        return model.output(hidden)

    here = looked()
    with there("workers.inference.onnx.child:serve_graphs"):
        found = looked()
    assert torch.equal(found, here)
