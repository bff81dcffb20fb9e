"""Captioners on a pretended CUDA device: their results are those of the CPU, and the host waits for
the device so many times for a batch or a step, however many rows it has.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from helpers import (
    adapter_folders,
    attending_models,
    builders,
    synthetic_pictures,
    vision_language_folders,
)
from helpers import huggingface_folders as folders
from helpers import pretended_device as pretended
from helpers.pretended_device import CPU, CUDA, pretended_device
from workers.inference import checkpoints, decoding, generation, packing, prefix, scoring
from workers.inference.captioners import CanonicalCaptioner, Captioner, GenerationOptions, attention
from workers.inference.decoding import DecodingOptions
from workers.inference.devices import FrozenLinear
from workers.inference.huggingface import loader
from workers.inference.huggingface.adapters import AdaptedBase
from workers.inference.scoring import ScoringOptions

RECURRENT = dict(builders.REPRESENTATIVES)
CANONICAL = (*RECURRENT, *attending_models.NAMES)
VISION_LANGUAGE = ("llava", "gemma3")
FOLDERS = [pytest.param(name, marks=pytest.mark.long) for name in ("vit-gpt2", "blip")]
FOLDERS += [pytest.param(name, marks=pytest.mark.slow) for name in VISION_LANGUAGE]
IMAGES, LENGTH = 5, 8
pytestmark = pytest.mark.usefixtures("processors_here")


class DeviceCase(NamedTuple):
    here: Captioner
    there: Captioner
    inputs: np.ndarray
    references: list[list[str]]


def _canonical(name: str, *, tied: bool = False) -> CanonicalCaptioner:
    if name in RECURRENT:
        arrays = builders.tensors(name, RECURRENT[name], words=30)
    else:
        of = attending_models.description(name)
        arrays = attending_models.arrays(of)
    arrays["output.bias"][0] += 1  # some captions end early
    if tied:
        arrays["output.weight"][:, 5] = arrays["output.weight"][:, 4]
        arrays["output.bias"][4:6] = 30.0
    if name in RECURRENT:
        return builders.model(name, RECURRENT[name], arrays)
    return attending_models.model(of, arrays)


def _features(name: str) -> np.ndarray:
    if name not in RECURRENT:
        return attending_models.regions(attending_models.REGIONS[:IMAGES])
    return np.random.default_rng(2).normal(size=(IMAGES, 5)).astype(np.float32)


def _sentences() -> list[list[str]]:
    rng = np.random.default_rng(3)
    return [
        [" ".join(f"w{word}" for word in rng.integers(2, 30, LENGTH - at)) for at in range(3)]
        for _ in range(IMAGES)
    ]


@pytest.fixture(scope="module", params=[*CANONICAL, *FOLDERS])
def case(request, tmp_path_factory) -> DeviceCase:
    name, path = request.param, tmp_path_factory.mktemp("saved") / request.param
    here: Captioner
    if name in CANONICAL:
        here, inputs, references = _canonical(name), _features(name), _sentences()
        checkpoints.write_checkpoint(path, here)
    elif name in VISION_LANGUAGE:
        vision_language_folders.save_model(path, name)
        here = checkpoints.open_captioner(path)
        names = synthetic_pictures.write_pictures(path, synthetic_pictures.pictures(IMAGES))
        inputs, references = here.inputs(path, names), synthetic_pictures.sentences(IMAGES)
    else:
        here, inputs = folders.opened(folders.make(path, name, trained=False), IMAGES)
        references = synthetic_pictures.sentences(IMAGES)
    with pretended_device():
        there = checkpoints.open_captioner(path, device=CUDA)
    return DeviceCase(here, there, inputs, references)


def _columns(model: Captioner, inputs: np.ndarray, references: list[list[str]], **options: Any):
    encoded = model.tokens.encode(references)
    return scoring.compute_columns(model, inputs, encoded, ScoringOptions(**options))


def _prefixes(model: Captioner, inputs: np.ndarray, references: list[list[str]]) -> np.ndarray:
    return prefix.walk_prefixes(model, inputs, model.tokens.encode(references))


def _captions(model: Captioner, inputs: np.ndarray, beam: int) -> list[decoding.DecodedCaption]:
    if model.search is None:
        return decoding.decode_captions(model, inputs, DecodingOptions(beam, max_words=LENGTH))
    search = GenerationOptions(beams=beam, most=LENGTH, no_repeat_ngram=2)
    return generation.generate_captions(model, inputs, search)


CALLS = {
    "columns": _columns,
    "prefixes": _prefixes,
    "greedy": lambda model, inputs, _: _captions(model, inputs, 1),
    "beam": lambda model, inputs, _: _captions(model, inputs, 3),
}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_columns_are_those_of_the_cpu(case, precision):
    options = {"precision": precision, "top": 2, "entropy": True}
    expected = _columns(case.here, case.inputs, case.references, **options)
    with pretended_device() as device:
        found = _columns(case.there, case.inputs, case.references, **options)
    assert device.launches.total() > 50
    close = 1e-5 if precision == "fp32" else 1e-2
    for name in ("logp", "top_logp", "entropy"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=close)
    np.testing.assert_array_equal(found.rank == 0, expected.rank == 0)
    np.testing.assert_array_equal(found.top_ids[:, 0], expected.top_ids[:, 0])


@pytest.mark.parametrize("call", ["prefixes", "greedy", "beam"])
def test_prefixes_and_captions_are_those_of_the_cpu(case, call):
    expected = CALLS[call](case.here, case.inputs, case.references)
    with pretended_device() as device:
        found = CALLS[call](case.there, case.inputs, case.references)
    assert device.launches.total() > 50
    if call == "prefixes":
        assert found.tolist() == expected.tolist()
        return
    assert [each.words for each in found] == [each.words for each in expected]
    np.testing.assert_allclose([x.logp for x in found], [x.logp for x in expected], atol=1e-4)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_short", [False, True])
def test_a_model_stays_in_16_bits_where_memory_is_short_and_takes_adapters(
    is_short, tmp_path, monkeypatch
):
    saved = vision_language_folders.save_model(tmp_path / "base", "llava")
    saved.model.bfloat16().save_pretrained(saved.folder)
    layers = {
        "model.language_model.layers.0.self_attn.q_proj": (32, 32),
        "model.vision_tower.encoder.layers.0.self_attn.q_proj": (16, 16),
        "lm_head": (348, 32),
    }
    adapter = adapter_folders.write(tmp_path / "a", adapter_folders.make_pairs(layers))
    names = synthetic_pictures.write_pictures(tmp_path, synthetic_pictures.pictures(IMAGES))
    references = synthetic_pictures.sentences(IMAGES)
    model = checkpoints.open_captioner(saved.folder)
    expected = [_columns(model, model.inputs(tmp_path, names), references).logp]
    model = AdaptedBase(model).adapt("a", adapter)
    expected.append(_columns(model, model.inputs(tmp_path, names), references).logp)
    if is_short:
        monkeypatch.setattr(loader, "_PROGRAM", 0)
        monkeypatch.setattr(pretended._PROPERTIES, "total_memory", 300_000)
    with pretended_device():
        there = checkpoints.open_captioner(saved.folder, device=CUDA)
        kept = {each._stored.dtype for each in _list_frozen(there.network)}
        assert kept == {torch.bfloat16 if is_short else torch.float32}
        found = [_columns(there, there.inputs(tmp_path, names), references).logp]
        there = AdaptedBase(there).adapt("a", adapter)
        found.append(_columns(there, there.inputs(tmp_path, names), references).logp)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(found[1] - found[0]).max() > 0.1


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["llava", pytest.param("gemma3", marks=pytest.mark.slow)])
def test_a_network_is_on_several_devices_layer_by_layer(kind, tmp_path):
    """The CPU is the second device: what the first one has may not meet it unmoved."""
    saved = vision_language_folders.save_model(tmp_path / "base", kind)
    names = synthetic_pictures.write_pictures(tmp_path, synthetic_pictures.pictures(IMAGES))
    references = synthetic_pictures.sentences(IMAGES)
    layers = {f"model.language_model.layers.{at}.self_attn.q_proj": (32, 32) for at in range(2)}
    adapter = adapter_folders.write(tmp_path / "a", adapter_folders.make_pairs(layers))

    def compute(model):
        inputs = model.inputs(tmp_path, names)
        captions = [each.words for each in _captions(model, inputs, 3)]
        yield _columns(model, inputs, references).logp, captions
        adapted = AdaptedBase(model).adapt("a", adapter)
        yield _columns(adapted, inputs, references).logp, captions

    expected = [*compute(checkpoints.open_captioner(saved.folder))]
    with pretended_device():
        model = checkpoints.open_captioner(saved.folder, device=[CUDA, CPU])
        layers = model.network.model.language_model.layers
        assert [layer.input_layernorm.weight.device for layer in layers] == [CUDA, CPU]
        assert [layer.self_attn.q_proj.weight.device for layer in layers] == [CUDA, CPU]
        found = [*compute(model)]
    for (logp, captions), (own, as_before) in zip(found, expected, strict=True):
        np.testing.assert_allclose(logp, own, atol=1e-5)
        assert captions == as_before
    assert np.abs(found[0][0] - found[1][0]).max() > 0.01


def _list_frozen(network: torch.nn.Module) -> list[FrozenLinear]:
    return [each for each in network.modules() if isinstance(each, FrozenLinear)]


@pytest.mark.parametrize("name", CANONICAL)
def test_near_ties_are_settled_on_the_device(name):
    model, inputs, references = _canonical(name, tied=True), _features(name), [["w4 w5 w4"]] * 5
    with pretended_device():
        moved = model.on(CUDA)
        ranks = _columns(moved, inputs, references).rank.reshape(IMAGES, 4)
        assert (ranks[:, :3] == 0).all()
        assert (ranks[:, 3] > 0).all()
        assert _prefixes(moved, inputs, references).tolist() == [3] * IMAGES


@pytest.mark.parametrize("call", CALLS)
def test_the_host_waits_no_more_often_for_more_rows(case, call, monkeypatch):
    monkeypatch.setitem(packing.GROUP_TOKENS, "cuda", 64)
    monkeypatch.setitem(attention._CHUNK_BYTES, "cuda", 700)
    if call == "columns":  # in a search, a chunk of logits is waited for
        monkeypatch.setitem(scoring.LOGITS_BYTES, "cuda", 4 * case.there.tokens.size * 40)
    found = []
    for times in (1, 3):
        inputs, references = case.inputs, case.references
        if isinstance(inputs, np.ndarray):
            inputs, references = np.concatenate([inputs] * times), references * times
        else:  # pictures are read one group after the other
            references = [captions * times for captions in references]
        with pretended_device() as device:
            CALLS[call](case.there, inputs, references)
        found.append(+device.synchronisations)
    assert found[0] == found[1]


def test_tensors_of_host_and_device_do_not_meet():
    with pretended_device():
        there, host = torch.arange(3.0, device=CUDA), torch.arange(3.0)
        assert there.device == CUDA
        for refused in (
            lambda: there + host,
            lambda: torch.cat([there, host]),
            lambda: host[there.long()],
            lambda: there @ host,
            lambda: there.gather(0, torch.tensor(0)),
        ):
            with pytest.raises(RuntimeError, match="to be on the same device"):
                refused()
        with pytest.raises(RuntimeError, match="numpy"):
            there.numpy()
        assert (there + host[1])[torch.tensor([2])].tolist() == [3.0]


WAITS = [
    (lambda x: x.cpu(), 1),
    (lambda x: x.to("cpu", non_blocking=True), 1),
    (lambda x: x[0].item(), 1),
    (lambda x: x.tolist(), 1),
    (lambda x: bool(x.any()), 1),
    (lambda x: x.nonzero(), 1),
    (lambda x: x[x > 1], 1),
    (lambda x: torch.equal(x, x), 1),
    (torch.unique, 1),
    (lambda x: x[torch.tensor([1])], 1),
    (lambda x: torch.tensor([1.0], device=x.device), 1),
    (lambda _: torch.ones(2).to(CUDA), 1),
    (lambda _: torch.ones(2).to(CUDA, non_blocking=True), 0),
    (lambda x: x.to(CUDA).double() * 2, 0),
    (lambda x: x.new_zeros(3).add_(torch.zeros_like(x)), 0),
]


@pytest.mark.parametrize(("task", "count"), WAITS)
def test_waits_of_the_host_are_counted(task, count):
    with pretended_device() as device:
        x = torch.arange(3.0, device=CUDA)
        device.reset()
        task(x)
    assert device.synchronisations.total() == count


def test_launches_are_operations_without_views_and_allocations():
    with pretended_device() as device:
        x = torch.empty(4, 3, device=CUDA)
        x.fill_(1.0).t().view(-1, 2, 2)[0].chunk(2)
        assert +device.launches == {"aten::fill_": 1}
        assert (x * x).sum(0).flatten().tolist() == [4.0] * 3
    assert +device.launches == {
        "aten::fill_": 1,
        "aten::mul": 1,
        "aten::sum": 1,
        "aten::_to_copy": 1,
    }
