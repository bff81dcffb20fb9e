"""Captioners of PyTorch as people write them, described for `prescore export`, and what they give
to words by teacher forcing.
"""

import math

import torch
from torch import nn

from workers.export.captioner import ExportedCaptioner

WORDS = ("<pad>", "<start>", "a", "dog", "<unk>", "runs", "<end>", "fast", "red", "and", "cat")
START, END, UNKNOWN = 1, 6, 4
ENCODER = {"name": "random", "digest": "none"}


class Lstm(nn.Module):
    """The image is the first state."""

    def __init__(self, words, features, embedded=6, size=5):
        super().__init__()
        self.look = nn.Linear(features, size)
        self.embed = nn.Embedding(words, embedded)
        self.rnn = nn.LSTM(embedded, size, batch_first=True)
        self.out = nn.Linear(size, words)

    def forward(self, features, words):
        """Logits (n, L, V)."""
        h = self.look(features)[None]
        return self.out(self.rnn(self.embed(words), (h, torch.zeros_like(h)))[0])


class LstmLook(nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.whole = whole

    def forward(self, features):
        h = self.whole.look(features)
        return (), (h, torch.zeros_like(h))


class LstmStep(nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.whole = whole

    def forward(self, words, images, state):  # noqa: ARG002  what `step` is given
        h, c = (each[None] for each in state)
        rows, (h, c) = self.whole.rnn(self.whole.embed(words)[:, None], (h, c))
        return self.whole.out(rows[:, 0]), (h[0], c[0])


class Attention(nn.Module):
    """One layer, which attends to parts of the image and to the words before; no dropout."""

    parts, size = 3, 8

    def __init__(self, words, features):
        super().__init__()
        self.look = nn.Linear(features, self.parts * self.size)
        self.embed = nn.Embedding(words, self.size)
        self.query, self.key, self.value = (nn.Linear(self.size, self.size) for _ in range(3))
        self.own = nn.ModuleList(nn.Linear(self.size, self.size) for _ in range(3))
        self.out = nn.Linear(self.size, words)

    def picture(self, features):
        return self.look(features).unflatten(1, (self.parts, self.size)).tanh()

    def attend(self, query, keys, values, mask=None):
        weights = query @ keys.transpose(1, 2) / math.sqrt(self.size)
        if mask is not None:
            weights = weights.masked_fill(~mask, -math.inf)
        return weights.softmax(2) @ values

    def rows(self, x, picture, keys, values, mask=None):
        x = x + self.attend(self.own[0](x), keys, values, mask)
        return self.out(x + self.attend(self.query(x), self.key(picture), self.value(picture)))

    def forward(self, features, words):
        return self.score(words, self.picture(features))

    def score(self, words, picture):
        x = self.embed(words)
        places = torch.arange(words.shape[1])
        mask = places[None, :] <= places[:, None]
        return self.rows(x, picture, self.own[1](x), self.own[2](x), mask)


class AttentionLook(nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.whole = whole

    def forward(self, features):
        nothing = features.new_zeros(len(features), 0, self.whole.size)
        return self.whole.picture(features), (nothing, nothing)  # one tensor for two states


class AttentionStep(nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.whole = whole

    def forward(self, words, picture, state):
        x = self.whole.embed(words)[:, None]
        keys = torch.cat([state[0], self.whole.own[1](x)], 1)
        values = torch.cat([state[1], self.whole.own[2](x)], 1)
        return self.whole.rows(x, picture, keys, values)[:, 0], (keys, values)


class AttentionScore(nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.whole = whole

    def forward(self, words, picture, state):  # noqa: ARG002  what `score` is given
        return self.whole.score(words, picture)


PARTS = {
    "lstm": (Lstm, LstmLook, LstmStep, None),
    "attention": (Attention, AttentionLook, AttentionStep, AttentionScore),
}


def made(kind, words=len(WORDS), features=7, seed=0):
    torch.manual_seed(seed)
    return PARTS[kind][0](words, features).eval()


def described(kind, whole, **more):
    _, look, step, score = PARTS[kind]
    given = {
        "look": look(whole).eval(),
        "step": step(whole).eval(),
        "score": score and score(whole).eval(),
        "feature_size": whole.look.in_features,
        "words": WORDS,
        "start": "<start>",
        "end": "<end>",
        "unknown": "<unk>",
        "tokenizer": "blanks",
        "encoder": ENCODER,
    }
    return ExportedCaptioner(**{**given, **more})


@torch.no_grad()
def logits(whole, row, words, start=START):
    """Logits (T + 1, V) after START and each word, of one caption, by the module as a whole."""
    return whole(torch.tensor(row)[None], torch.tensor([[start, *words]]))[0]


def train(whole, rows, captions, steps, start=START, end=END):
    """`captions`: a list of ids for each row. Returns the loss before and after."""
    torch.manual_seed(1)
    length = max(map(len, captions)) + 1
    read = torch.tensor([[start, *each, *[end] * (length - 1 - len(each))] for each in captions])
    said = torch.tensor([[*each, end, *[-100] * (length - 1 - len(each))] for each in captions])
    optimizer, losses = torch.optim.Adam(whole.parameters(), 0.02), []
    whole.train()
    for _ in range(steps):
        found = whole(torch.tensor(rows), read)
        loss = nn.functional.cross_entropy(found.flatten(0, 1), said.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    whole.eval()
    return losses[0], losses[-1]
