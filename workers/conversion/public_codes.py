"""Types for public training codes: how tensors tell a code, what its map says; and the codes that
are refused. The maps stand in `public_code_maps`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from workers.conversion.layers import Arrays

LineValue = str | int | list[str]
_WEIGHTS_OF_PICTURES = 4  # dimensions: of a convolution


@dataclass(frozen=True)
class MapLine:
    """A line of a map: `why` is its comment."""

    name: str
    value: LineValue
    why: str = ""


@dataclass(frozen=True)
class PublicCode:
    """`warnings`: what no tensor shows; `words`: START, END and UNK."""

    name: str
    lines: Sequence[MapLine]
    words: tuple[str, str, str]
    layers: Mapping[str, LineValue]
    tokenizer: MapLine
    warnings: Sequence[str] = ()
    ignore: Sequence[str] = ()


@dataclass(frozen=True)
class CodeMatcher:
    arrays: Arrays
    by_id: Sequence[str]

    def root(self, *marks: str) -> str | None:
        """Find the prefix of these names, where all of them stand beside each other."""
        first, *others = marks
        for name in self.arrays:
            if name == first or name.endswith(f".{first}"):
                root = name.removesuffix(first)
                if all(f"{root}{other}" in self.arrays for other in others):
                    return root
        return None

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.arrays[name].shape)

    def has(self, name: str) -> bool:
        return name in self.arrays

    def word(self, *usual: str) -> str:
        return next((word for word in usual if word in self.by_id), "?")

    def marked(self) -> tuple[str, str, str]:
        """START, END and UNK in angle brackets."""
        return self.word("<start>"), self.word("<end>"), self.word("<unk>")

    def numbered(self) -> tuple[str, str, str]:
        """START, END and UNK where the word of id 0 is both START and END."""
        edge = next(iter(self.by_id), "?")
        return edge, edge, self.word("UNK", "<unk>")

    def vocabulary(self, embedding: str) -> Iterator[str]:
        """A warning where the words are not those of the embedding."""
        rows = self.shape(f"{embedding}.weight")[0]
        if rows != len(self.by_id):
            yield (
                f"the embedding has {rows} rows, and the vocabulary {len(self.by_id)} words: this "
                "map will be refused with these words"
            )

    def of_pictures(self, layers: Mapping[str, LineValue]) -> list[str]:
        """Patterns of the modules with convolutions, of which no layer is a part."""
        listed = (one if isinstance(one, list) else [str(one)] for one in layers.values())
        names = [each for some in listed for each in some]
        patterns: dict[str, None] = {}
        for name, array in self.arrays.items():
            if array.ndim == _WEIGHTS_OF_PICTURES:
                parts = name.split(".")
                above = (".".join(parts[:end]) for end in range(1, len(parts)))
                free = (
                    each
                    for each in above
                    if not any(f"{one}.".startswith(f"{each}.") for one in names)
                )
                module = next(free, None)
                if module is not None:
                    patterns[f"{module}.*"] = None
        return list(patterns)


_RUOTIANLUO = "ruotianluo/ImageCaptioning.pytorch or self-critical.pytorch"
_MAXOUT = "an LSTM whose candidate is the greater of two (maxout)"


@dataclass(frozen=True)
class RefusedCode:
    """`marks`: names of tensors that stand beside each other."""

    name: str
    what: str
    marks: Sequence[str]

    @property
    def sentence(self) -> str:
        return (
            f"this is {self.name}: {self.what}, which no architecture of Prescore's computes. "
            "Where its code runs, write an ONNX bundle by prescore export, or record columns "
            "(deploy/guide/bring-a-model.md)"
        )


REFUSED: Sequence[RefusedCode] = (
    RefusedCode(f"{_RUOTIANLUO}, fc", _MAXOUT, ("core.i2h.weight", "img_embed.weight")),
    RefusedCode(f"{_RUOTIANLUO}, newfc", _MAXOUT, ("_core.i2h.weight", "fc_embed.weight")),
    RefusedCode(f"{_RUOTIANLUO}, language_model", "it looks at no image", ("_core.i2h.weight",)),
    RefusedCode(
        f"{_RUOTIANLUO}, att2in or att2in2",
        f"attention that enters the candidate alone, of {_MAXOUT}",
        ("core.a2c.weight", "core.attention.h2att.weight"),
    ),
    RefusedCode(
        f"{_RUOTIANLUO}, att2all2",
        f"attention before {_MAXOUT}",
        ("core.a2h.weight", "core.attention.h2att.weight"),
    ),
    RefusedCode(
        f"{_RUOTIANLUO}, adaatt or adaattmo",
        "adaptive attention with layers of its own between the state, the sentinel and the words",
        ("core.lstm.w2h.weight", "core.attention.fr_linear.0.weight"),
    ),
    RefusedCode(
        f"{_RUOTIANLUO}, stackatt or denseatt",
        "three LSTMs with two attentions",
        ("core.lstm0.i2h.weight", "core.att1.h2att.weight"),
    ),
    RefusedCode(
        f"{_RUOTIANLUO}, updown with several layers before the words (--logit_layers)",
        "a layer with relu between the second LSTM and the words",
        ("core.lang_lstm.weight_ih", "core.attention.h2att.weight", "logit.0.weight"),
    ),
    RefusedCode(
        "attention on attention (AoANet)",
        "attention of several heads, whose result is gated by attention",
        ("core.att_lstm.weight_ih", "core.attention.linears.0.weight"),
    ),
    RefusedCode(
        f"{_RUOTIANLUO}, transformer",
        "a Transformer with an encoder of places, whose norms divide by the deviation plus 1e-6",
        ("decoder.layers.0.sublayer.0.norm.a_2", "generator.proj.weight"),
    ),
    RefusedCode(
        "the Meshed-Memory Transformer (aimagelab)",
        "a Transformer whose encoder has memories, and whose decoder reads all its layers",
        ("decoder.layers.0.enc_att.attention.fc_q.weight", "decoder.word_emb.weight"),
    ),
)
