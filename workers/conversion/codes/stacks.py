"""torch.nn.TransformerDecoder over places: no one code, and so more is left to a person."""

from service.contract.errors import RequestRefused
from workers.conversion.codes.code import Code, Found, Line, Value

_OTHERS = "take the way of ONNX (deploy/guide/onnx.md)"
_ATTENTION = "layers.0.self_attn.in_proj_weight"


def decoder(found: Found) -> Code | None:
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
    layers: dict[str, Value] = {
        "embedding": next(iter(embeddings or outputs[1:]), "?"),
        "decoder": root.removesuffix("."),
        "output": next(iter(outputs or embeddings), "?"),
    }
    if images:
        layers["image"] = images[0]
    positions = _positions(found, root, size, [*words, *images])
    if positions is not None:
        layers["positions"] = positions
    return Code(
        name="torch.nn.TransformerDecoder",
        lines=[
            Line("architecture", "transformer"),
            Line("inputs", "grid", 'or "regions"'),
            Line("normalize", "?", '"l2" or "none": were features divided by their length?'),
            Line("heads", "?", "nhead, a number: no tensor shows it"),
            Line(
                "scale", "?", '"root" if words are multiplied by the root of their size, or "none"'
            ),
            Line("norms", "after", '"before" with norm_first=True'),
            Line("activation", "relu", '"gelu" with activation="gelu"'),
        ],
        words=(
            found.word("<start>", "<bos>", "<s>", "<sos>", "startseq"),
            found.word("<end>", "<eos>", "</s>", "endseq"),
            found.word("<unk>", "<UNK>", "UNK", "unk"),
        ),
        layers=layers,
        tokenizer=Line("tokenizer", "?", '"karpathy" (small letters, no signs) or "blanks"'),
        warnings=[
            (
                "words must be told apart by waves of sine and cosine in turn, START at 0, and "
                "places by nothing: compare by prescore verify"
            ),
            *([] if positions else ["no table of positions is in the file"]),
        ],
        ignore=found.of_pictures(layers),
    )


def _positions(found: Found, root: str, size: int, taken: list[str]) -> str | None:
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


def _check_no_encoder(found: Found, root: str) -> None:
    for name in found.arrays:
        before = name.removesuffix(_ATTENTION)
        if name.endswith(_ATTENTION) and before != root:
            raise RequestRefused(
                f"a Transformer whose encoder ({before.removesuffix('.')!r:.100}) reads the places "
                "first, which no architecture of Prescore's does: " + _OTHERS
            )
