"""The codes whose equations an architecture of ours computes."""

from collections.abc import Callable, Mapping, Sequence

from service.contract.errors import RequestRefused
from workers.conversion.codes import stacks
from workers.conversion.codes.code import Code, Found, Line, Value

_NONE = Line("normalize", "none")
_KARPATHY = Line("tokenizer", "karpathy", "its captions are the tokens of Karpathy's files")
_GRID = Line("inputs", "grid")
_NLTK = (
    "the code makes words by nltk's word_tokenize of small letters, whose signs are words: "
    "Prescore's tokenizers make the same words of references that were written so before"
)
_DECODER_TENSORS = 7  # an embedding, an LSTM's four, a Linear's two
_TO_ONNX = "take the way of ONNX (deploy/guide/onnx.md), which has no such bounds"


def _tutorial(found: Found) -> Code | None:
    """Its encoder and its decoder are two files, whose tensors must stand in one."""
    decoder = found.root("embed.weight", "lstm.weight_ih_l0", "lstm.weight_hh_l0", "linear.weight")
    if decoder is None:
        return None
    image = _tutorial_image(found, found.shape(f"{decoder}embed.weight")[1])
    if image is None:
        return None  # another code's, which calls its decoder's layers the same
    if found.has(f"{decoder}lstm.weight_ih_l1"):
        raise RequestRefused(
            "yunjey/pytorch-tutorial, image_captioning, with more than one layer of its LSTM: "
            f"one is converted; {_TO_ONNX}"
        )
    layers: dict[str, Value] = {
        "image": image,
        "embedding": f"{decoder}embed",
        "cell": f"{decoder}lstm",
        "output": f"{decoder}linear",
    }
    return Code(
        name="yunjey/pytorch-tutorial, image_captioning",
        lines=[Line("architecture", "pre"), _NONE],
        words=(found.word("<start>"), found.word("<end>"), found.word("<unk>")),
        layers=layers,
        tokenizer=_signs(found),
        warnings=[
            _NLTK,
            "features are those that its ResNet gives before `linear`, after its pooling",
            *found.vocabulary(f"{decoder}embed"),
        ],
        ignore=found.of_pictures(layers),
    )


def _tutorial_image(found: Found, word: int) -> list[str] | None:
    """Raises RequestRefused where the file has the decoder alone."""
    for name in found.arrays:
        module = name.removesuffix(".running_mean")
        before = module.removesuffix("bn")
        for linear in (f"{before}linear", f"{before}resnet.fc"):
            weight = f"{linear}.weight"
            is_norm = f"{before}bn.running_mean" == name and found.has(weight)
            if is_norm and found.shape(weight)[0] == word:
                return [linear, module]
    if len(found.arrays) > _DECODER_TENSORS:
        return None
    raise RequestRefused(
        "this is a decoder as that of yunjey/pytorch-tutorial, image_captioning, alone; the "
        "image's layers (linear, bn) are in the encoder's file. Write both to one: torch.save({"
        '"encoder": torch.load("encoder.ckpt"), "decoder": torch.load("decoder.ckpt")}, "model.pt")'
    )


def _signs(found: Found) -> Line:
    if "." in found.by_id:
        return Line("tokenizer", "blanks", "since signs are words")
    return Line("tokenizer", "karpathy", "no sign is a word")


def _show_attend_and_tell(found: Found) -> Code | None:
    root = found.root(
        "attention.full_att.weight", "attention.encoder_att.weight", "attention.decoder_att.weight",
        "decode_step.weight_ih", "init_h.weight", "init_c.weight", "f_beta.weight", "fc.weight",
        "embedding.weight",
    )  # fmt: skip
    if root is None:
        return None
    layers = _under(root, {
        "embedding": "embedding", "state": "init_h", "memory": "init_c",
        "key": "attention.encoder_att", "query": "attention.decoder_att",
        "score": "attention.full_att", "gate": "f_beta", "cell": "decode_step", "output": "fc",
    })  # fmt: skip
    return Code(
        name="sgrvinod/a-PyTorch-Tutorial-to-Image-Captioning",
        lines=[
            Line("architecture", "soft_attention"),
            _GRID,
            _NONE,
            Line("scores", "relu", "the code has relu where the paper has tanh"),
            Line("start", "linear", "and no tanh of the first state"),
        ],
        words=(found.word("<start>"), found.word("<end>"), found.word("<unk>")),
        layers=layers,
        tokenizer=_KARPATHY,
        warnings=[
            (
                "places are the 14 x 14 that its encoder gives (fine-tuned or not): the dataset's "
                "features must be of this model's own encoder"
            ),
            *found.vocabulary(f"{root}embedding"),
        ],
        ignore=found.of_pictures(layers),
    )


def _up_down(found: Found) -> Code | None:
    root = found.root(
        "core.att_lstm.weight_ih", "core.lang_lstm.weight_ih", "core.attention.h2att.weight",
        "core.attention.alpha_net.weight", "ctx2att.weight", "embed.0.weight", "fc_embed.0.weight",
        "logit.weight",
    )  # fmt: skip
    if root is None:
        return None
    first, last = (found.has(f"{root}att_embed.{at}.running_mean") for at in (0, 4))
    named: dict[str, Value] = {
        "embedding": "embed.0",
        "places": ["att_embed.0", "att_embed.1"] if first else "att_embed.0",
        "image": "fc_embed.0", "key": "ctx2att", "query": "core.attention.h2att",
        "score": "core.attention.alpha_net", "look": "core.att_lstm", "speak": "core.lang_lstm",
        "output": "logit",
    }  # fmt: skip
    if last:
        named["places_norm"] = "att_embed.4"
    layers = _under(root, named)
    return Code(
        name="ruotianluo/ImageCaptioning.pytorch or self-critical.pytorch, updown (topdown)",
        lines=[
            Line("architecture", "bottom_up_top_down"),
            Line("inputs", "regions", '"grid" if its att_feats are those of a ResNet'),
            Line("normalize", "none", '"l2" if it was trained with --norm_att_feat 1'),
            Line("embedded", "relu", "the code has relu after the embedding"),
        ],
        words=(found.edge(), found.edge(), found.word("UNK", "<unk>")),
        layers=layers,
        tokenizer=_KARPATHY,
        warnings=[
            (
                "its fc_feats must be the mean of its att_feats, which Prescore reads for them: of "
                "bottom-up features they are, of a ResNet's not exactly; compare by prescore verify"
            ),
            "with --use_box 1 the dataset's features have the five numbers of the box, too",
            "the word 0, which no vocabulary has, is START and END",
            *found.vocabulary(f"{root}embed.0"),
        ],
        ignore=found.of_pictures(layers),
    )


def _show_tell(found: Found) -> Code | None:
    root = found.root("img_embed.weight", "core.weight_ih_l0", "embed.weight", "logit.weight")
    if root is None:
        return None
    if found.has(f"{root}core.weight_ih_l1"):
        raise RequestRefused(
            f"show_tell of ruotianluo/ImageCaptioning.pytorch with more than one layer: one is "
            f"converted; {_TO_ONNX}"
        )
    layers = _under(
        root, {"image": "img_embed", "embedding": "embed", "cell": "core", "output": "logit"}
    )
    return Code(
        name="ruotianluo/ImageCaptioning.pytorch or self-critical.pytorch, show_tell",
        lines=[Line("architecture", "pre"), _NONE],
        words=(found.edge(), found.edge(), found.word("UNK", "<unk>")),
        layers=layers,
        tokenizer=_KARPATHY,
        warnings=[
            "the word 0, which no vocabulary has, is START and END",
            *found.vocabulary(f"{root}embed"),
        ],
        ignore=found.of_pictures(layers),
    )


def _adaptive(found: Found) -> Code | None:
    root = found.root(
        "decoder.adaptive.atten.affine_v.weight", "decoder.adaptive.atten.affine_g.weight",
        "decoder.adaptive.atten.affine_s.weight", "decoder.adaptive.atten.affine_h.weight",
        "decoder.adaptive.sentinel.affine_x.weight", "decoder.adaptive.sentinel.affine_h.weight",
        "decoder.adaptive.mlp.weight", "decoder.LSTM.weight_ih_l0", "decoder.embed.weight",
        "encoder.affine_a.weight", "encoder.affine_b.weight",
    )  # fmt: skip
    if root is None:
        return None
    layers = _under(root, {
        "embedding": "decoder.embed", "places": "encoder.affine_a", "image": "encoder.affine_b",
        "key": "decoder.adaptive.atten.affine_v", "query": "decoder.adaptive.atten.affine_g",
        "score": "decoder.adaptive.atten.affine_h", "cell": "decoder.LSTM",
        "sentinel": "decoder.adaptive.sentinel.affine_x",
        "sentinel_state": "decoder.adaptive.sentinel.affine_h",
        "sentinel_key": "decoder.adaptive.atten.affine_s", "output": "decoder.adaptive.mlp",
    })  # fmt: skip
    return Code(
        name="yufengm/Adaptive",
        lines=[Line("architecture", "adaptive_attention"), _GRID, _NONE, Line("scores", "tanh")],
        words=(found.word("<start>"), found.word("<end>"), found.word("<unk>")),
        layers=layers,
        tokenizer=_signs(found),
        warnings=[
            _NLTK,
            (
                "its sampler gives each word's sentinel a state of zeros, and its training the "
                "state before: Prescore computes what was trained"
            ),
            *found.vocabulary(f"{root}decoder.embed"),
        ],
        ignore=found.of_pictures(layers),
    )


def _under(root: str, layers: Mapping[str, Value]) -> dict[str, Value]:
    return {
        name: [f"{root}{each}" for each in one] if isinstance(one, list) else f"{root}{one}"
        for name, one in layers.items()
    }


KNOWN: Sequence[Callable[[Found], Code | None]] = (
    _show_attend_and_tell,
    _up_down,
    _show_tell,
    _adaptive,
    _tutorial,
    stacks.decoder,
)
