"""Captioners of torch's own layers, as people write them, and the maps that name their layers."""

import io
import json

import torch
from torch import nn

from helpers import tars
from helpers.builders import ENCODER

WORDS = ["<pad>", "<start>", "a", "dog", "<unk>", "runs", "<end>", "fast", "red"]
FEATURES, IMAGE, WORD, STATE = 7, 5, 6, 4
packed = tars.packed
LAYERS = {"lstm": nn.LSTM, "torch_gru": nn.GRU}


class TorchCaptioner(nn.Module):
    """As people write them: START and END are two words, and padding has a place in the softmax."""

    def __init__(self, architecture, cell, between=False):
        super().__init__()
        self.architecture = architecture
        seen = {"init": STATE, "pre": WORD}.get(architecture, IMAGE)
        self.look = nn.ModuleList([nn.Linear(FEATURES, seen)])
        if between:
            self.look = nn.ModuleList(
                [nn.Linear(FEATURES, 3), nn.BatchNorm1d(3), nn.Linear(3, seen, bias=False)]
            )
        self.embed = nn.Embedding(len(WORDS), WORD, padding_idx=0)
        self.rnn = LAYERS[cell](WORD + (IMAGE if architecture == "par" else 0), STATE)
        self.out = nn.Linear(STATE + (IMAGE if architecture == "merge" else 0), len(WORDS))
        if architecture in ("par", "merge"):
            self.first = nn.Parameter(torch.randn(1, 1, STATE))

    def forward(self, features, words):
        """Log-probabilities of the words that follow START and each word."""
        image = features[None]
        for layer in self.look:
            image = layer(image)
        inputs = self.embed(torch.tensor(words))
        h = torch.zeros(1, STATE)
        if self.architecture == "init":
            h = image
        if self.architecture == "pre":
            inputs = torch.cat([image, inputs])
        if self.architecture == "par":  # the word first
            inputs = torch.cat([inputs, image.expand(len(inputs), -1)], 1)
        if self.architecture in ("par", "merge"):
            h = self.first[0]
        lstm = isinstance(self.rnn, nn.LSTM)
        rows, _ = self.rnn(inputs, (h, torch.zeros_like(h)) if lstm else h)
        if self.architecture == "pre":
            rows = rows[1:]
        if self.architecture == "merge":  # the state first
            rows = torch.cat([rows, image.expand(len(rows), -1)], 1)
        return self.out(rows).log_softmax(1)


def made(architecture, cell, between=False):
    torch.manual_seed(3)
    model = TorchCaptioner(architecture, cell, between)
    for name, buffer in model.named_buffers():
        if name.endswith(("mean", "var")):
            buffer.uniform_(0.5, 2)
    return model.eval()


def arrays(model):
    return {name: tensor.detach().float().numpy() for name, tensor in model.state_dict().items()}


def map_of(architecture, between=False, **more):
    lines = [
        f'architecture = "{architecture}"',
        'normalize = "none"',
        *(f"{name} = {json.dumps(value)}" for name, value in more.items()),
        '[words]\nstart = "<start>"\nend = "<end>"\nunknown = "<unk>"',
        f"[layers]\nimage = {json.dumps(['look.0', 'look.1', 'look.2'] if between else 'look.0')}",
        'embedding = "embed"\ncell = "rnn"\noutput = "out"',
    ]
    if architecture in ("par", "merge"):
        lines.append('initial = "first"')
    lines.append('[order]\ncell = ["word", "image"]\noutput = ["state", "image"]')
    return "\n".join(lines)


def with_encoder(given, encoder=ENCODER):
    return f'{given}\n[encoder]\nname = "{encoder.name}"\ndigest = "{encoder.digest}"\n'


def saved(model):
    """What torch.save writes of its state dict."""
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    return buffer.getvalue()
