"""Maps of public training codes, which are known by the names of their tensors.

Each says facts that were read in its code: the equations, the special words, the treatment of
features. A choice that no tensor shows becomes a warning.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from service.contract.errors import RequestRefused
from workers.conversion.layers import Arrays
from workers.conversion.public_codes import REFUSED, CodeMatcher, LineValue, MapLine, PublicCode

_OTHERS = "use an ONNX bundle (deploy/guide/bring-a-model.md)"
_ATTENTION = "layers.0.self_attn.in_proj_weight"


def _transformer_decoder(found: CodeMatcher) -> PublicCode | None:
    root = found.root("layers.0.multihead_attn.in_proj_weight", _ATTENTION)
    if root is None:
        return None
    _check_no_encoder(found, root)
    size = found.shape(f"{root}{_ATTENTION}")[1]
    outside = {
        name.removesuffix(".weight"): found.shape(name)
        for name in found.arrays
        if name.endswith(".weight") and not name.startswith(root) and found.arrays[name].ndim == 2
    }
    words = [name for name, shape in outside.items() if shape == (len(found.by_id), size)]
    outputs = [name for name in words if found.has(f"{name}.bias")]
    embeddings = [name for name in words if name not in outputs]
    images = [
        name
        for name, shape in outside.items()
        if name not in words and shape[0] == size and found.has(f"{name}.bias")
    ]
    layers: dict[str, LineValue] = {
        "embedding": next(iter(embeddings or outputs[1:]), "?"),
        "decoder": root.removesuffix("."),
        "output": next(iter(outputs or embeddings), "?"),
    }
    if images:
        layers["image"] = images[0]
    positions = _positions(found, root, size, [*words, *images])
    if positions is not None:
        layers["positions"] = positions
    return PublicCode(
        name="torch.nn.TransformerDecoder",
        lines=[
            MapLine("architecture", "transformer"),
            MapLine("inputs", "grid", 'or "regions"'),
            MapLine("normalize", "?", '"l2" or "none": were features divided by their length?'),
            MapLine("heads", "?", "nhead, a number: no tensor shows it"),
            MapLine(
                "scale", "?", '"root" if words are multiplied by the root of their size, or "none"'
            ),
            MapLine("norms", "after", '"before" with norm_first=True'),
            MapLine("activation", "relu", '"gelu" with activation="gelu"'),
        ],
        words=(
            found.word("<start>", "<bos>", "<s>", "<sos>", "startseq"),
            found.word("<end>", "<eos>", "</s>", "endseq"),
            found.word("<unk>", "<UNK>", "UNK", "unk"),
        ),
        layers=layers,
        tokenizer=MapLine("tokenizer", "?", '"karpathy" (small letters, no signs) or "blanks"'),
        warnings=[
            (
                "words must be told apart by waves of sine and cosine in turn, START at 0, and "
                "places by nothing: compare by prescore verify"
            ),
            *([] if positions else ["no table of positions is in the file"]),
        ],
    )


def _positions(found: CodeMatcher, root: str, size: int, taken: list[str]) -> str | None:
    """A table of rows as long as words, and of no layer: waves, or learned."""
    for name, array in found.arrays.items():
        module = name.rpartition(".")[0]
        rows = [each for each in array.shape[:-1] if each > 1]
        if (
            not name.startswith(root)
            and module not in taken
            and array.ndim in (2, 3)
            and array.shape[-1] == size
            and len(rows) == 1
            and not found.has(f"{module}.bias")
        ):
            return name
    return None


def _check_no_encoder(found: CodeMatcher, root: str) -> None:
    for name in found.arrays:
        before = name.removesuffix(_ATTENTION)
        if name.endswith(_ATTENTION) and before != root:
            raise RequestRefused(
                f"a Transformer whose encoder ({before.removesuffix('.')!r:.100}) reads the places "
                "first, which no architecture of Prescore's does: " + _OTHERS
            )


def recognise_code(arrays: Arrays, by_id: Sequence[str]) -> PublicCode | None:
    """The first that fits. Raises RequestRefused, with what to do, for a code whose equations are
    none of ours.
    """
    found = CodeMatcher(arrays, by_id)
    for known in KNOWN:
        code = known(found)
        if code is not None:
            return replace(code, ignore=found.of_pictures(code.layers))
    for unlike in REFUSED:
        if found.root(*unlike.marks) is not None:
            raise RequestRefused(unlike.sentence)
    return None


_NONE = MapLine("normalize", "none")
_KARPATHY = MapLine("tokenizer", "karpathy", "its captions are the tokens of Karpathy's files")
_GRID = MapLine("inputs", "grid")
_NLTK = (
    "the code makes words by nltk's word_tokenize of small letters, whose signs are words: "
    "Prescore's tokenizers make the same words of references that were written so before"
)
_DECODER_TENSORS = 7  # an embedding, an LSTM's four, a Linear's two
_TO_ONNX = "use an ONNX bundle (deploy/guide/bring-a-model.md), which has no such bounds"


def _tutorial(found: CodeMatcher) -> PublicCode | None:
    """Map of yunjey's tutorial, whose two files (encoder, decoder) must be joined to one."""
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
    layers: dict[str, LineValue] = {
        "image": image,
        "embedding": f"{decoder}embed",
        "cell": f"{decoder}lstm",
        "output": f"{decoder}linear",
    }
    return PublicCode(
        name="yunjey/pytorch-tutorial, image_captioning",
        lines=[MapLine("architecture", "pre"), _NONE],
        words=found.marked(),
        layers=layers,
        tokenizer=_signs(found),
        warnings=[
            _NLTK,
            "features are those that its ResNet gives before `linear`, after its pooling",
            *found.vocabulary(f"{decoder}embed"),
        ],
    )


def _tutorial_image(found: CodeMatcher, word: int) -> list[str] | None:
    """Find the image layers. Raises RequestRefused where the file has the decoder alone."""
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


def _signs(found: CodeMatcher) -> MapLine:
    if "." in found.by_id:
        return MapLine("tokenizer", "blanks", "since signs are words")
    return MapLine("tokenizer", "karpathy", "no sign is a word")


def _show_attend_and_tell(found: CodeMatcher) -> PublicCode | None:
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
    return PublicCode(
        name="sgrvinod/a-PyTorch-Tutorial-to-Image-Captioning",
        lines=[
            MapLine("architecture", "soft_attention"),
            _GRID,
            _NONE,
            MapLine("scores", "relu", "the code has relu where the paper has tanh"),
            MapLine("start", "linear", "and no tanh of the first state"),
        ],
        words=found.marked(),
        layers=layers,
        tokenizer=_KARPATHY,
        warnings=[
            (
                "places are the 14 x 14 that its encoder gives (fine-tuned or not): the dataset's "
                "features must be of this model's own encoder"
            ),
            *found.vocabulary(f"{root}embedding"),
        ],
    )


def _up_down(found: CodeMatcher) -> PublicCode | None:
    root = found.root(
        "core.att_lstm.weight_ih", "core.lang_lstm.weight_ih", "core.attention.h2att.weight",
        "core.attention.alpha_net.weight", "ctx2att.weight", "embed.0.weight", "fc_embed.0.weight",
        "logit.weight",
    )  # fmt: skip
    if root is None:
        return None
    first, last = (found.has(f"{root}att_embed.{at}.running_mean") for at in (0, 4))
    named: dict[str, LineValue] = {
        "embedding": "embed.0",
        "places": ["att_embed.0", "att_embed.1"] if first else "att_embed.0",
        "image": "fc_embed.0", "key": "ctx2att", "query": "core.attention.h2att",
        "score": "core.attention.alpha_net", "look": "core.att_lstm", "speak": "core.lang_lstm",
        "output": "logit",
    }  # fmt: skip
    if last:
        named["places_norm"] = "att_embed.4"
    layers = _under(root, named)
    return PublicCode(
        name="ruotianluo/ImageCaptioning.pytorch or self-critical.pytorch, updown (topdown)",
        lines=[
            MapLine("architecture", "bottom_up_top_down"),
            MapLine("inputs", "regions", '"grid" if its att_feats are those of a ResNet'),
            MapLine("normalize", "none", '"l2" if it was trained with --norm_att_feat 1'),
            MapLine("embedded", "relu", "the code has relu after the embedding"),
        ],
        words=found.numbered(),
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
    )


def _show_tell(found: CodeMatcher) -> PublicCode | None:
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
    return PublicCode(
        name="ruotianluo/ImageCaptioning.pytorch or self-critical.pytorch, show_tell",
        lines=[MapLine("architecture", "pre"), _NONE],
        words=found.numbered(),
        layers=layers,
        tokenizer=_KARPATHY,
        warnings=[
            "the word 0, which no vocabulary has, is START and END",
            *found.vocabulary(f"{root}embed"),
        ],
    )


def _adaptive(found: CodeMatcher) -> PublicCode | None:
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
    return PublicCode(
        name="yufengm/Adaptive",
        lines=[
            MapLine("architecture", "adaptive_attention"),
            _GRID,
            _NONE,
            MapLine("scores", "tanh"),
        ],
        words=found.marked(),
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
    )


def _under(root: str, layers: Mapping[str, LineValue]) -> dict[str, LineValue]:
    return {
        name: [f"{root}{each}" for each in one] if isinstance(one, list) else f"{root}{one}"
        for name, one in layers.items()
    }


KNOWN: Sequence[Callable[[CodeMatcher], PublicCode | None]] = (
    _show_attend_and_tell,
    _up_down,
    _show_tell,
    _adaptive,
    _tutorial,
    _transformer_decoder,
)
