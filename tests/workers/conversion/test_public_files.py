"""Files as public training codes write them: opened in the sandbox, by the command; how they wrap
their tensors; and whole modules, which nobody opens.
"""

import json
import sys
from types import ModuleType

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from typer.testing import CliRunner

from helpers import command_app
from helpers import public_captioners as public
from helpers.torch_captioners import with_encoder
from workers.cli.convert import convert as command
from workers.cli.verify import verify
from workers.conversion import pytorch
from workers.sandbox.child import InputRefused

CAPTIONS = [["a", "dog"], [], ["red", "zebra", "runs"]]


def _run(*arguments):
    return CliRunner().invoke(command, ["checkpoint", *map(str, arguments)])


def _converted(tmp_path, content, words):
    """By the command's own proposal; what it asks is answered as a person would."""
    source, out = tmp_path / "model.pt", tmp_path / "captioner.safetensors"
    torch.save(content, source)
    (tmp_path / "words.json").write_text(json.dumps(words))
    asked = [source, "--vocabulary", tmp_path / "words.json"]
    proposed = _run(*asked)
    assert proposed.exit_code == 0, proposed.output
    (tmp_path / "names.toml").write_text(with_encoder(public.answered(proposed.stdout)))
    done = _run(*asked, "--map", tmp_path / "names.toml", "--out", out)
    assert done.exit_code == 0, done.output
    return out


@pytest.mark.slow
@pytest.mark.processes
def test_a_training_checkpoint_is_converted_and_verified_against_the_code(needs_sandbox, tmp_path):
    """An encoder, a decoder of DataParallel, their optimizers, and numbers beside them."""
    model = public.made(public.ShowAttendAndTell)
    encoder = nn.Sequential(nn.Conv2d(3, 4, 2), nn.BatchNorm2d(4))
    content = {
        "epoch": 7,
        "bleu-4": 0.2,
        "encoder": encoder.state_dict(),
        "decoder": nn.DataParallel(model).state_dict(),
        "decoder_optimizer": torch.optim.Adam(model.parameters()).state_dict(),
    }
    out = _converted(tmp_path, content, public.words(model))
    ids, start, end, unknown = public.ids(public.WORDS)
    expected = []
    for image, caption in zip(public.features(model), CAPTIONS, strict=True):
        words = [ids.get(word, unknown) for word in caption]
        logp = model(image, [start, *words])[range(len(words) + 1), [*words, end]]
        example = {"features": image.tolist(), "words": caption, "logp": logp.tolist()}
        expected.append(example)
    told = tmp_path / "expected.json"
    told.write_text(json.dumps(expected))
    done = command_app.invoke(verify, out, "--logp", told)
    assert done.exit_code == 0, done.output
    expected[0]["logp"][1] -= 0.01
    told.write_text(json.dumps(expected))
    assert command_app.invoke(verify, out, "--logp", told).exit_code == 1


def _written(tmp_path, content, **options):
    """By the child's own function, in this process."""
    source, target = tmp_path / "model.pt", tmp_path / "model.safetensors"
    torch.save(content, source, **options)
    answer = pytorch.convert_state_dict([source], [target], {"most_bytes": 1_000_000})
    return load_file(target), answer["left_out"]


TENSORS = {"fc.weight": torch.ones(2, 3), "fc.bias": torch.ones(2)}
OPTIMIZER = {"state": {0: {"step": torch.tensor(1.0)}}, "param_groups": [{"lr": 0.1}]}


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize(
    ("content", "prefix", "left_out"),
    [
        (TENSORS, "", []),
        ({"state_dict": TENSORS, "optimizer": OPTIMIZER}, "", []),
        ({"model_state_dict": TENSORS, "epoch": 3}, "", []),
        ({"model": TENSORS, "optimizer": OPTIMIZER, "loss": 0.5}, "", []),
        ({"decoder": TENSORS, "epoch": 3}, "decoder.", ["epoch"]),
        ({"decoder": TENSORS, "opt": OPTIMIZER}, "decoder.", ["opt"]),
        ({"state_dict": {"net": TENSORS}}, "net.", []),
    ],
)
def test_tensors_are_found_where_training_programs_put_them(
    tmp_path, content, prefix, left_out, zipped
):
    """In PyTorch's zip, and in the form that it wrote before."""
    found, others = _written(tmp_path, content, _use_new_zipfile_serialization=zipped)
    assert {name: each.shape for name, each in found.items()} == {
        f"{prefix}{name}": each.shape for name, each in TENSORS.items()
    }
    assert others == left_out


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([1, 2], r"found a list; save the tensors alone"),
        (
            {"weight": torch.ones(1).expand(5000, 5000)},
            r"'weight' has 25,000,000 elements, and the file stores 1 of them.*\.contiguous\(\)",
        ),
        (
            {"weight": torch.ones(9).as_strided((7, 3), (1, 1))},
            r"'weight' has 21 elements, and the file stores 9 of them",
        ),
        (
            {f"{number}": tensor for tensor in [torch.ones(9000)] for number in range(100)},
            r"its tensors have 3,600,000 bytes.*clone\(\)",
        ),
    ],
)
def test_what_is_no_state_dict_or_more_than_its_file_stores_leaves_no_file(tmp_path, entries, said):
    with pytest.raises(InputRefused, match=said):
        _written(tmp_path, entries)
    assert not (tmp_path / "model.safetensors").exists()


@pytest.fixture
def models(monkeypatch):
    """A module of somebody's own, which a pickle names."""
    module = ModuleType("models")
    for name in ("Encoder", "DecoderWithAttention", "Captioner"):
        setattr(module, name, type(name, (nn.Linear,), {"__module__": "models"}))
    monkeypatch.setitem(sys.modules, "models", module)
    return module


@pytest.mark.filterwarnings("ignore:Couldn't retrieve source code")
def test_whole_modules_are_refused_with_what_to_run(tmp_path, models):
    whole = models.Captioner(2, 3)
    with pytest.raises(
        InputRefused, match=r"it names models\.Captioner, .*\(model\.state_dict\(\), path"
    ):
        _written(tmp_path, whole)
    public_one = {"epoch": 1, "encoder": models.Encoder(2, 3), "decoder": whole}
    for zipped in (True, False):
        with pytest.raises(
            InputRefused, match=r'save\(checkpoint\["decoder"\]\.state_dict'
        ) as refused:
            _written(tmp_path, public_one, _use_new_zipfile_serialization=zipped)
        assert "sgrvinod" in str(refused.value)
        assert "weights_only" not in str(refused.value)  # it may be an attack of that name
