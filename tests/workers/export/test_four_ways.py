"""T53: one trained network by four ways: a canonical checkpoint, a state dict with a map, an ONNX
bundle, columns that its own code gave. This prints the table of deploy/guide/bring-a-model.md
(`-s`).
"""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

import prescore
from helpers import exported_networks as networks
from service.contract.formats import bundles
from service.contract.formats.architectures import RecurrentConfig
from service.contract.formats.checkpoint_header import CheckpointDescription
from service.contract.metrics import catalogue
from workers.analysis.pregen_intervals import PregenColumns
from workers.cli.convert import convert
from workers.export import bundle_writer
from workers.inference import checkpoints, columns, decoding, scoring
from workers.inference.captioners import ARCHITECTURES
from workers.inference.onnx import captioner
from workers.lab import shapes, training_runs

pytestmark = [pytest.mark.processes, pytest.mark.slow]

SIZE = 24
MAP = """
architecture = "init"
normalize = "none"
tokenizer = "karpathy"
[words]
start = "<edge>"
end = "<edge>"
unknown = "<unk>"
[layers]
image = "look"
embedding = "embed"
cell = "rnn"
output = "out"
"""
SHOWN = {
    "perplexity": "geomean_join_pplx_none",
    "mean probability": "mean_join_prob_none",
    "share of first words": "mean_mean_count_filter0",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "shapes"
    shapes.make_shapes(folder, 320, 0)
    return folder


@pytest.fixture(scope="module")
def run(data):
    return training_runs.prepare_training(
        data,
        architecture="init",
        sizes={"cell": "lstm", "size": SIZE},
        at_least=2,
        splits=("train", "test"),
        device="cpu",
    )


@pytest.fixture(scope="module")
def network(run):
    """A module of torch with the words of the dataset, trained for some seconds."""
    given, captions = run.training, run.training.captions
    torch.manual_seed(0)
    words, size = len(run.description.vocabulary), run.description.config.feature_size
    whole = networks.Lstm(words, size, embedded=SIZE, size=SIZE)
    ends = captions.caption_offsets[1:] - 1
    said = [
        captions.tokens[start:end].tolist()
        for start, end in zip(captions.caption_offsets, ends, strict=False)
    ]
    rows = given.features[captions.caption_images]
    before, after = networks.train(whole, rows, said, 200, start=0, end=0)
    assert after < 0.5 * before
    return whole


def _canonical(run, network):
    """By hand: matrices are (in, out), and the two biases of torch's LSTM are one."""
    description = run.description
    own = {name: tensor.detach() for name, tensor in network.state_dict().items()}
    tensors = {
        "image.weight": own["look.weight"].T,
        "image.bias": own["look.bias"],
        "embedding.weight": own["embed.weight"],
        "output.weight": own["out.weight"].T,
        "output.bias": own["out.bias"],
        "gates.weight": torch.cat([own["rnn.weight_ih_l0"].T, own["rnn.weight_hh_l0"].T]),
        "gates.bias": own["rnn.bias_ih_l0"] + own["rnn.bias_hh_l0"],
    }
    config = RecurrentConfig.model_validate(
        {**description.config.model_dump(), "normalize": "none"}
    )
    described = CheckpointDescription(
        "init", config, description.vocabulary, description.tokenizer, description.encoder
    )
    return ARCHITECTURES["init"](described, {k: v.contiguous() for k, v in tensors.items()})


def _converted(run, network, data, folder):
    save_file(network.state_dict(), folder / "model.safetensors")
    (folder / "words.json").write_text(json.dumps(run.description.vocabulary))
    (folder / "names.toml").write_text(MAP)
    out = folder / "converted.safetensors"
    arguments = ["checkpoint", folder / "model.safetensors", "--vocabulary", folder / "words.json"]
    arguments += ["--map", folder / "names.toml", "--dataset", data, "--out", out]
    done = CliRunner().invoke(convert, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return checkpoints.read_checkpoint(out)


def _exported(run, network, folder):
    description = run.description
    given = networks.described(
        "lstm",
        network,
        words=description.vocabulary,
        start="<edge>",
        end="<edge>",
        tokenizer=description.tokenizer,
        encoder=description.encoder.model_dump(),
    )
    bundle_writer.write_bundle(folder / "bundle", given)
    return captioner.read_onnx_captioner(folder / "bundle")


def _recorded(run, network, data, folder):
    """Columns that its own code gives to each reference."""
    items, given = bundles.read_split(data, "test"), run.validation
    tokens, offsets = given.captions.tokens, given.captions.caption_offsets
    with prescore.Recorder(data, split="test", tokenizer="karpathy") as recorder:
        at = 0
        for row, item in zip(given.features, items, strict=True):
            for reference in range(len(item.references)):
                targets = tokens[offsets[at] : offsets[at + 1]]
                logits = networks.logits(network, row, targets[:-1].tolist(), start=0)
                recorder.add(item.image, reference, logits, targets)
                at += 1
        recorder.write(folder / "columns.safetensors")
    return columns.read_uploaded_columns(folder / "columns.safetensors")[0]


def test_a_network_has_the_same_scores_by_four_ways(needs_sandbox, run, network, data, tmp_path):
    models = {
        "canonical checkpoint": _canonical(run, network),
        "state dict with a map": _converted(run, network, data, tmp_path),
        "ONNX bundle": _exported(run, network, tmp_path),
    }
    given = run.validation
    found = {
        name: scoring.compute_columns(
            model, given.features, given.captions, scoring.ScoringOptions(top=99)
        )
        for name, model in models.items()
    }
    found["columns of its own code"] = _recorded(run, network, data, tmp_path)
    scores = {
        name: PregenColumns.of(each).scores([*catalogue.PREGEN]) for name, each in found.items()
    }
    first = found["canonical checkpoint"]
    assert len(np.unique(first.rank)) > 5
    for name, each in found.items():
        _check_ranks(first, each)
        np.testing.assert_allclose(each.logp, first.logp, atol=1e-4)
        for metric, score in scores["canonical checkpoint"].items():
            assert scores[name][metric] == pytest.approx(score, rel=1e-4, abs=1e-12), metric
        shown = " | ".join(f"{scores[name][metric]:.6f}" for metric in SHOWN.values())
        print(f"| {name} | {shown} | {np.abs(each.logp - first.logp).max():.1e} |")
    _check_captions(models, given.features)
    models["ONNX bundle"].close()


def _check_ranks(first, other):
    """Rank 0 is the same everywhere. Of others float32 cannot tell two words that nearly tie."""
    np.testing.assert_array_equal(other.rank == 0, first.rank == 0)
    different = np.flatnonzero(other.rank != first.rank)
    assert len(different) <= 2
    for at in different:
        both = [int(first.rank[at]), int(other.rank[at])]
        assert abs(np.subtract(*first.top_logp[at, both])) < 1e-5


def _check_captions(models, rows):
    for beam in (1, 3):
        options = decoding.DecodingOptions(beam=beam, max_words=20)
        texts = {
            name: [
                decoding.detokenize_caption(model, each)
                for each in decoding.decode_captions(model, rows, options)
            ]
            for name, model in models.items()
        }
        expected = texts.pop("canonical checkpoint")
        assert len(set(expected)) > 5
        for name, each in texts.items():
            assert each == expected, name
