"""The codes that compute something else than our architectures: refused, with what to do."""

from collections.abc import Sequence
from dataclasses import dataclass

_RUOTIANLUO = "ruotianluo/ImageCaptioning.pytorch or self-critical.pytorch"
_MAXOUT = "an LSTM whose candidate is the greater of two (maxout)"


@dataclass(frozen=True)
class Unlike:
    """`marks`: names of tensors that stand beside each other."""

    name: str
    what: str
    marks: Sequence[str]

    @property
    def sentence(self) -> str:
        return (
            f"this is {self.name}: {self.what}, which no architecture of Prescore's computes. "
            "Where its code runs, write an ONNX bundle by prescore export (deploy/guide/onnx.md), "
            "or record columns (deploy/guide/columns.md)"
        )


UNLIKE: Sequence[Unlike] = (
    Unlike(f"{_RUOTIANLUO}, fc", _MAXOUT, ("core.i2h.weight", "img_embed.weight")),
    Unlike(f"{_RUOTIANLUO}, newfc", _MAXOUT, ("_core.i2h.weight", "fc_embed.weight")),
    Unlike(f"{_RUOTIANLUO}, language_model", "it looks at no image", ("_core.i2h.weight",)),
    Unlike(
        f"{_RUOTIANLUO}, att2in or att2in2",
        f"attention that enters the candidate alone, of {_MAXOUT}",
        ("core.a2c.weight", "core.attention.h2att.weight"),
    ),
    Unlike(
        f"{_RUOTIANLUO}, att2all2",
        f"attention before {_MAXOUT}",
        ("core.a2h.weight", "core.attention.h2att.weight"),
    ),
    Unlike(
        f"{_RUOTIANLUO}, adaatt or adaattmo",
        "adaptive attention with layers of its own between the state, the sentinel and the words",
        ("core.lstm.w2h.weight", "core.attention.fr_linear.0.weight"),
    ),
    Unlike(
        f"{_RUOTIANLUO}, stackatt or denseatt",
        "three LSTMs with two attentions",
        ("core.lstm0.i2h.weight", "core.att1.h2att.weight"),
    ),
    Unlike(
        f"{_RUOTIANLUO}, updown with several layers before the words (--logit_layers)",
        "a layer with relu between the second LSTM and the words",
        ("core.lang_lstm.weight_ih", "core.attention.h2att.weight", "logit.0.weight"),
    ),
    Unlike(
        "attention on attention (AoANet)",
        "attention of several heads, whose result is gated by attention",
        ("core.att_lstm.weight_ih", "core.attention.linears.0.weight"),
    ),
    Unlike(
        f"{_RUOTIANLUO}, transformer",
        "a Transformer with an encoder of places, whose norms divide by the deviation plus 1e-6",
        ("decoder.layers.0.sublayer.0.norm.a_2", "generator.proj.weight"),
    ),
    Unlike(
        "the Meshed-Memory Transformer (aimagelab)",
        "a Transformer whose encoder has memories, and whose decoder reads all its layers",
        ("decoder.layers.0.enc_att.attention.fc_q.weight", "decoder.word_emb.weight"),
    ),
)
