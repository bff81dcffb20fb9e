"""Public training codes: their tensors alone give a map, by which they compute what they computed.
The oracle is each network itself, run by torch in tests/helpers/public_captioners.py.
"""

import numpy as np
import pytest
from torch import nn

from helpers import public_captioners as public
from helpers.builders import ENCODER
from helpers.conversions import ours, theirs
from helpers.torch_captioners import arrays
from service.contract.errors import RequestRefused
from service.contract.formats import map_files, state_dicts
from workers.conversion import canonical_checkpoints, proposal

CODES = {
    "yunjey": (public.ShowAndTell, {}, "pre"),
    "show_tell": (public.ShowTell, {}, "pre"),
    "show_tell of a GRU": (public.ShowTell, {"cell": nn.GRU}, "pre"),
    "sgrvinod": (public.ShowAttendAndTell, {}, "soft_attention"),
    "updown": (public.UpDown, {}, "bottom_up_top_down"),
    "updown, norms before": (public.UpDown, {"norms": 1}, "bottom_up_top_down"),
    "updown, norms before and after": (public.UpDown, {"norms": 2}, "bottom_up_top_down"),
    "yufengm": (public.Adaptive, {}, "adaptive_attention"),
    "yufengm, equal sizes": (public.Adaptive, {"word": public.STATE}, "adaptive_attention"),
}
STACKS = [
    {},
    {"scale": "none", "last": True},
    {"norms": "before", "activation": "gelu", "last": True},
]


def by_id(model):
    return state_dicts.parse_words(public.text(public.words(model)))


def agrees(tmp_path, model, text, found=None):
    """Assert that the checkpoint by this map computes what the network does."""
    found = arrays(model) if found is None else found
    out = tmp_path / "captioner.safetensors"
    canonical_checkpoints.write_canonical(
        out,
        *canonical_checkpoints.convert_tensors(
            found, by_id(model), map_files.parse_map(text), ENCODER
        ),
    )
    features = public.features(model)
    expected = np.array([*theirs(model, features)])
    assert expected.std() > 0.3  # else anything would agree
    np.testing.assert_allclose(ours(out, features), expected, atol=1e-5)


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("prefix", ["", "net.decoder.module."])
def test_a_proposal_is_a_whole_map_by_which_the_code_computes_what_it_computed(
    tmp_path, name, prefix
):
    """Whatever names begin with: as DataParallel's, and those of a module within another one."""
    kind, options, architecture = CODES[name]
    model = public.made(kind, **options)
    named = {f"{prefix}{each}": array for each, array in arrays(model).items()}
    text = proposal.propose_map(named, by_id(model))
    assert "Recognised by the names of its tensors" in text
    assert f'\narchitecture = "{architecture}"' in text
    assert '"?"' not in text
    agrees(tmp_path, model, text, named)


@pytest.mark.parametrize("options", STACKS, ids=len)
def test_a_stack_of_torch_is_proposed_but_for_what_no_tensor_shows(tmp_path, options):
    model = public.made(public.Stack, **options)
    text = proposal.propose_map(arrays(model), by_id(model))
    for question in ("normalize", "heads", "scale", "tokenizer"):
        assert f'\n{question} = "?"' in text
    text = public.answered(text, scale=options.get("scale", "root"))
    for name in {"norms", "activation"} & {*options}:
        usual = {"norms": "after", "activation": "relu"}[name]
        text = text.replace(f'{name} = "{usual}"', f'{name} = "{options[name]}"')
    agrees(tmp_path, model, text)


def test_the_encoder_of_pictures_is_ignored_and_other_tensors_are_named(tmp_path):
    model = public.made(public.ShowAttendAndTell)
    found = arrays(model) | {
        "encoder.resnet.0.weight": np.ones((4, 3, 2, 2), np.float32),
        "encoder.resnet.1.running_mean": np.ones(4, np.float32),
    }
    text = proposal.propose_map(found, by_id(model))
    assert 'ignore = ["encoder.*"]' in text
    agrees(tmp_path, model, text, found)
    found["extra.weight"] = np.ones((2, 2), np.float32)
    text = proposal.propose_map(found, by_id(model))
    assert "Read by no line, and not of that code: 'extra.weight'." in text
    with pytest.raises(RequestRefused, match=r"no layer of the map reads: extra\.weight\. If"):
        agrees(tmp_path, model, text, found)


@pytest.mark.parametrize(
    ("kind", "tensor", "shape", "told"),
    [
        (public.ShowAttendAndTell, "f_beta.bias", (3,), r"gate\.bias would be \[3\]"),
        (public.ShowAttendAndTell, "init_c.weight", (5, 6), r"memory\.weight would be \[6, 5\]"),
        (public.ShowAttendAndTell, "decode_step.weight_ih", (20, 12), r"12 numbers, and 13 .* 7\)"),
        (public.ShowAttendAndTell, "attention.full_att.weight", (2, 3), r"to one number, .* to 2"),
        (public.ShowAttendAndTell, "fc.weight", (8, 5), r"layers\.output"),
        (public.UpDown, "core.lang_lstm.weight_ih", (20, 9), r"lang_lstm': reads 9 .* and 10"),
        (public.UpDown, "ctx2att.weight", (4, 5), r"h2att' gives 3 numbers, and 'ctx2att' 4"),
        (public.UpDown, "fc_embed.0.weight", (4, 7), r"att_lstm': reads 16 numbers, and 15"),
        (public.Adaptive, "encoder.affine_b.weight", (6, 7), r"layers\.image: gives 6 .* 5"),
        (public.Adaptive, "decoder.LSTM.weight_ih_l0", (20, 9), r"LSTM': reads 9 .* 8 are needed"),
        (public.Stack, "pos_encoder.pe", (20, 1, 8), r"encoder\.pe' of \[20, 1, 8\] has other"),
        (public.Stack, "transformer_decoder.layers.1.linear1.weight", (9, 8), r"layers\.1\.inner"),
        (public.Stack, "enc_to_dec.weight", (7, 7), r"image\.weight would be \[7, 7\]"),
    ],
)
def test_tensors_of_another_shape_are_named(tmp_path, kind, tensor, shape, told):
    model = public.made(kind)
    text = public.answered(proposal.propose_map(arrays(model), by_id(model)))
    assert tensor in arrays(model)
    wrong = arrays(model) | {tensor: np.ones(shape, np.float32)}
    if tensor.endswith("weight") and f"{tensor[:-6]}bias" in wrong and len(shape) == 2:
        wrong[f"{tensor[:-6]}bias"] = np.ones(shape[0], np.float32)
    with pytest.raises(RequestRefused, match=told):
        agrees(tmp_path, model, text, wrong)


@pytest.mark.parametrize("name", CODES)
def test_a_tensor_that_is_missing_is_named(tmp_path, name):
    kind, options, _ = CODES[name]
    model = public.made(kind, **options)
    text = proposal.propose_map(arrays(model), by_id(model))
    read = [
        each for each in arrays(model) if each.endswith(("weight", "weight_hh", "weight_hh_l0"))
    ]
    read = [each for each in read if "resnet" not in each and ".bn." not in each]
    for tensor in read:
        left = {each: array for each, array in arrays(model).items() if each != tensor}
        if tensor.removesuffix("weight") + "running_mean" in left:
            continue  # BatchNorm without weights is one
        with pytest.raises(RequestRefused, match="no tensor '") as refused:
            agrees(tmp_path, model, text, left)
        assert tensor.rpartition(".")[0] in str(refused.value)


UNLIKE = {
    "fc": ["core.i2h.weight", "core.h2h.weight", "img_embed.weight", "embed.weight"],
    "newfc": ["_core.i2h.weight", "fc_embed.weight", "embed.weight", "logit.weight"],
    "language_model": ["_core.i2h.weight", "embed.weight", "logit.weight"],
    "att2in": ["core.a2c.weight", "core.i2h.weight", "core.attention.h2att.weight"],
    "att2all2": ["core.a2h.weight", "core.i2h.weight", "core.attention.h2att.weight"],
    "adaatt": ["core.lstm.w2h.weight", "core.attention.fr_linear.0.weight"],
    "stackatt": ["core.lstm0.i2h.weight", "core.att1.h2att.weight"],
    "logit_layers": [
        *("core.att_lstm.weight_ih", "core.lang_lstm.weight_ih", "core.attention.h2att.weight"),
        *("logit.0.weight", "logit.3.weight"),
    ],
    "AoANet": ["core.att_lstm.weight_ih", "core.attention.linears.0.weight"],
    "transformer": [
        "model.decoder.layers.0.sublayer.0.norm.a_2", "model.generator.proj.weight",
        "model.decoder.layers.0.self_attn.linears.0.weight",
    ],
    "Meshed-Memory": [
        "decoder.layers.0.enc_att.attention.fc_q.weight", "decoder.word_emb.weight",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", UNLIKE)
@pytest.mark.parametrize("prefix", ["", "module."])
def test_a_code_that_computes_something_else_is_named_with_what_to_do(name, prefix):
    found = {f"{prefix}{each}": np.ones((2, 2), np.float32) for each in UNLIKE[name]}
    with pytest.raises(RequestRefused, match="no architecture of Prescore's computes") as refused:
        proposal.propose_map(found, public.WORDS)
    said = str(refused.value)
    assert name.replace("logit_layers", "--logit_layers") in said
    assert "prescore export, or record columns (deploy/guide/bring-a-model.md)" in said
    assert "columns" in said


def test_a_decoder_alone_is_told_to_bring_its_encoder_with_it():
    model = public.made(public.ShowAndTell)
    alone = arrays(model.decoder)
    with pytest.raises(RequestRefused, match=r"torch.save\(\{\"encoder\": .*model\.pt"):
        proposal.propose_map(alone, public.WORDS)
    others = alone | {"look.weight": np.ones((6, 7), np.float32), "look.bias": np.ones(6)}
    text = proposal.propose_map(others, public.WORDS)  # another code's, whose names are the same
    assert "Recognised" not in text
    assert 'image = "look"' in text


def test_more_layers_are_refused_with_what_to_do():
    model = public.made(public.ShowAndTell)
    model.decoder = public.ShowAndTellDecoder(layers=2)
    with pytest.raises(RequestRefused, match=r"more than one layer .*bring-a-model\.md"):
        proposal.propose_map(arrays(model), public.WORDS)


def test_an_encoder_of_places_before_a_stack_is_refused():
    model = public.made(public.Stack)
    layer = nn.TransformerEncoderLayer(8, 2, 10)
    model.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    with pytest.raises(RequestRefused, match=r"whose encoder \('encoder'\) reads the places first"):
        proposal.propose_map(arrays(model), public.WORDS)


@pytest.mark.parametrize(("heads", "told"), [(3, "size that 3 heads divide"), (0, "at least 1")])
def test_heads_that_cannot_be_are_refused(tmp_path, heads, told):
    model = public.made(public.Stack)
    text = public.answered(proposal.propose_map(arrays(model), by_id(model)), heads=heads)
    with pytest.raises(RequestRefused, match=told):
        agrees(tmp_path, model, text)


def test_words_that_are_fewer_than_the_embeddings_are_told():
    """As where the words of `ix_to_word` are given as a list, which begins with 0."""
    model = public.made(public.UpDown)
    words = [*public.NUMBERED.values()]
    text = proposal.propose_map(arrays(model), words)
    assert "the embedding has 7 rows, and the vocabulary 6 words" in text
    given = text.replace('start = "UNK"\nend = "UNK"', 'start = "a"\nend = "a"')
    with pytest.raises(RequestRefused, match=r"7 words, .* has 6: do its ids begin with 1"):
        canonical_checkpoints.convert_tensors(
            arrays(model), words, map_files.parse_map(given), ENCODER
        )
