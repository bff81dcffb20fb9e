"""Small networks that compute what public training codes compute, with the names of their tensors.

Written from the equations alone, one caption at a time and in loops, with torch's own layers. Each
has `forward(features, words)`: log-probabilities (n, V) of what follows each of these n words, ids
of the model itself, START first. `features` are one vector, or the places (P, D).
"""

import json
import math

import torch
from torch import nn

WORDS = ["<pad>", "<start>", "a", "dog", "<unk>", "runs", "<end>", "fast", "red"]
NUMBERED = {str(at): word for at, word in enumerate(["UNK", "a", "dog", "runs", "fast", "red"], 1)}
FEATURES, PLACES, WORD, STATE, SCORES = 7, 4, 6, 5, 3


def _said(rows):
    return torch.stack(rows).log_softmax(1)


class ShowAndTellEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.resnet = nn.Sequential(nn.Conv2d(3, 4, 2), nn.BatchNorm2d(4))
        self.linear = nn.Linear(FEATURES, WORD)
        self.bn = nn.BatchNorm1d(WORD)


class ShowAndTellDecoder(nn.Module):
    def __init__(self, layers=1):
        super().__init__()
        self.embed = nn.Embedding(len(WORDS), WORD)
        self.lstm = nn.LSTM(WORD, STATE, layers)
        self.linear = nn.Linear(STATE, len(WORDS))


class ShowAndTell(nn.Module):
    """yunjey/pytorch-tutorial: a linear layer and BatchNorm make the first word of the image."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = ShowAndTellEncoder(), ShowAndTellDecoder()

    def forward(self, features, words):
        encoder, decoder = self.encoder, self.decoder
        image = encoder.linear(features)
        norm = encoder.bn
        image = (image - norm.running_mean) / torch.sqrt(norm.running_var + 1e-5)
        image = image * norm.weight + norm.bias
        _, state = decoder.lstm(image[None])
        rows = []
        for word in words:
            read, state = decoder.lstm(decoder.embed.weight[word][None], state)
            rows.append(decoder.linear(read[0]))
        return _said(rows)


class ShowTell(nn.Module):
    """ruotianluo, show_tell: an LSTM or a GRU without biases."""

    def __init__(self, cell=nn.LSTM):
        super().__init__()
        count = len(NUMBERED) + 1
        self.img_embed = nn.Linear(FEATURES, WORD)
        self.core = cell(WORD, STATE, 1, bias=False)
        self.embed = nn.Embedding(count, WORD)
        self.logit = nn.Linear(STATE, count)

    def forward(self, features, words):
        _, state = self.core(self.img_embed(features)[None])
        rows = []
        for word in words:
            read, state = self.core(self.embed.weight[word][None], state)
            rows.append(self.logit(read[0]))
        return _said(rows)


class SoftScores(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder_att = nn.Linear(FEATURES, SCORES)
        self.decoder_att = nn.Linear(STATE, SCORES)
        self.full_att = nn.Linear(SCORES, 1)


class ShowAttendAndTell(nn.Module):
    """sgrvinod: relu in the scores, a gate of each feature, a first state without tanh, and the
    words of the state alone.
    """

    def __init__(self):
        super().__init__()
        self.attention = SoftScores()
        self.embedding = nn.Embedding(len(WORDS), WORD)
        self.decode_step = nn.LSTMCell(WORD + FEATURES, STATE)
        self.init_h, self.init_c = nn.Linear(FEATURES, STATE), nn.Linear(FEATURES, STATE)
        self.f_beta = nn.Linear(STATE, FEATURES)
        self.fc = nn.Linear(STATE, len(WORDS))

    def forward(self, places, words):
        mean, scores = places.mean(0), self.attention
        h, c = self.init_h(mean), self.init_c(mean)
        rows = []
        for word in words:
            each = [
                scores.full_att(torch.relu(scores.encoder_att(place) + scores.decoder_att(h)))[0]
                for place in places
            ]
            seen = sum(
                w * place for w, place in zip(torch.stack(each).softmax(0), places, strict=True)
            )
            seen = torch.sigmoid(self.f_beta(h)) * seen
            h, c = self.decode_step(torch.cat([self.embedding.weight[word], seen]), (h, c))
            rows.append(self.fc(h))
        return _said(rows)


class UpDownScores(nn.Module):
    def __init__(self):
        super().__init__()
        self.h2att, self.alpha_net = nn.Linear(STATE, SCORES), nn.Linear(SCORES, 1)


class UpDownCore(nn.Module):
    def __init__(self):
        super().__init__()
        self.att_lstm = nn.LSTMCell(WORD + 2 * STATE, STATE)
        self.lang_lstm = nn.LSTMCell(2 * STATE, STATE)
        self.attention = UpDownScores()


class UpDown(nn.Module):
    """ruotianluo, updown: relu after every embedding; BatchNorm of places before that (1), or
    before and after it (2); the word 0 is START and END.
    """

    def __init__(self, norms=0):
        super().__init__()
        count = len(NUMBERED) + 1
        self.embed = nn.Sequential(nn.Embedding(count, WORD), nn.ReLU(), nn.Dropout())
        self.fc_embed = nn.Sequential(nn.Linear(FEATURES, STATE), nn.ReLU(), nn.Dropout())
        self.att_embed = nn.Sequential(
            *[nn.BatchNorm1d(FEATURES)] * (norms > 0),
            nn.Linear(FEATURES, STATE),
            nn.ReLU(),
            nn.Dropout(),
            *[nn.BatchNorm1d(STATE)] * (norms > 1),
        )
        self.logit = nn.Linear(STATE, count)
        self.ctx2att = nn.Linear(STATE, SCORES)
        self.core = UpDownCore()

    def forward(self, places, words):
        core, scores = self.core, self.core.attention
        whole, values = self.fc_embed(places.mean(0)), self.att_embed(places)
        h1, c1, h2, c2 = torch.zeros(4, STATE)
        rows = []
        for word in words:
            read = torch.relu(self.embed[0].weight[word])
            h1, c1 = core.att_lstm(torch.cat([h2, whole, read]), (h1, c1))
            each = [
                scores.alpha_net(torch.tanh(self.ctx2att(value) + scores.h2att(h1)))[0]
                for value in values
            ]
            seen = sum(
                w * value for w, value in zip(torch.stack(each).softmax(0), values, strict=True)
            )
            h2, c2 = core.lang_lstm(torch.cat([seen, h1]), (h2, c2))
            rows.append(self.logit(h2))
        return _said(rows)


class AdaptiveEncoder(nn.Module):
    def __init__(self, word):
        super().__init__()
        self.resnet_conv = nn.Sequential(nn.Conv2d(3, 4, 2))
        self.affine_a, self.affine_b = nn.Linear(FEATURES, STATE), nn.Linear(FEATURES, word)


class AdaptiveScores(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine_v = nn.Linear(STATE, SCORES, bias=False)
        self.affine_g = nn.Linear(STATE, SCORES, bias=False)
        self.affine_s = nn.Linear(STATE, SCORES, bias=False)
        self.affine_h = nn.Linear(SCORES, 1, bias=False)


class AdaptiveSentinel(nn.Module):
    def __init__(self, word):
        super().__init__()
        self.affine_x = nn.Linear(2 * word, STATE, bias=False)
        self.affine_h = nn.Linear(STATE, STATE, bias=False)


class AdaptiveBlock(nn.Module):
    def __init__(self, word):
        super().__init__()
        self.sentinel, self.atten = AdaptiveSentinel(word), AdaptiveScores()
        self.mlp = nn.Linear(STATE, len(WORDS))


class AdaptiveDecoder(nn.Module):
    def __init__(self, word):
        super().__init__()
        self.embed = nn.Embedding(len(WORDS), word)
        self.LSTM = nn.LSTM(2 * word, STATE)
        self.adaptive = AdaptiveBlock(word)


class Adaptive(nn.Module):
    """yufengm/Adaptive: the image as a whole is as long as a word, and not as the state."""

    def __init__(self, word=4):
        super().__init__()
        self.encoder, self.decoder = AdaptiveEncoder(word), AdaptiveDecoder(word)

    def forward(self, places, words):
        sentinel, scores = self.decoder.adaptive.sentinel, self.decoder.adaptive.atten
        values = torch.relu(self.encoder.affine_a(places))
        whole = torch.relu(self.encoder.affine_b(places.mean(0)))
        h, state, rows = torch.zeros(STATE), None, []
        for word in words:
            x = torch.cat([self.decoder.embed.weight[word], whole])
            gate = torch.sigmoid(sentinel.affine_x(x) + sentinel.affine_h(h))
            read, state = self.decoder.LSTM(x[None], state)
            h = read[0]
            s = gate * torch.tanh(state[1][0])
            z = torch.stack(
                [
                    scores.affine_h(torch.tanh(scores.affine_v(value) + scores.affine_g(h)))[0]
                    for value in values
                ]
            )
            own = scores.affine_h(torch.tanh(scores.affine_s(s) + scores.affine_g(h)))
            beta = torch.cat([z, own]).softmax(0)[-1]
            seen = sum(w * value for w, value in zip(z.softmax(0), values, strict=True))
            rows.append(self.decoder.adaptive.mlp(beta * s + (1 - beta) * seen + h))
        return _said(rows)


class Waves(nn.Module):
    def __init__(self, size, most=20):
        super().__init__()
        table = torch.zeros(most, 1, size)
        for at in range(most):
            for i in range(0, size, 2):
                table[at, 0, i] = math.sin(at / 10_000 ** (i / size))
                table[at, 0, i + 1] = math.cos(at / 10_000 ** (i / size))
        self.register_buffer("pe", table)


class Stack(nn.Module):
    """torch.nn.TransformerDecoder over places, as many write it."""

    SIZE, HEADS = 8, 2

    def __init__(self, norms="after", activation="relu", last=False, scale="root"):
        super().__init__()
        size = self.SIZE
        self.scale = math.sqrt(size) if scale == "root" else 1.0
        self.embedding = nn.Embedding(len(WORDS), size)
        self.pos_encoder = Waves(size)
        self.enc_to_dec = nn.Linear(FEATURES, size)
        layer = nn.TransformerDecoderLayer(
            size, self.HEADS, 10, activation=activation, norm_first=norms == "before"
        )
        self.transformer_decoder = nn.TransformerDecoder(
            layer, 2, norm=nn.LayerNorm(size) if last else None
        )
        self.fc_out = nn.Linear(size, len(WORDS))

    def forward(self, places, words):
        memory = self.enc_to_dec(places)[:, None]
        x = self.embedding.weight[words][:, None] * self.scale + self.pos_encoder.pe[: len(words)]
        mask = nn.Transformer.generate_square_subsequent_mask(len(words))
        rows = self.transformer_decoder(x, memory, tgt_mask=mask)
        return self.fc_out(rows[:, 0]).log_softmax(1)


def made(kind, **options):
    """With tensors that are all far from zero and from one."""
    torch.manual_seed(5)
    model = kind(**options).eval()
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if name.endswith(("running_var", "norm1.weight", "norm2.weight", "norm3.weight")):
            tensor.data.uniform_(0.5, 2)
        elif tensor.is_floating_point() and not name.endswith(".pe"):
            tensor.data.normal_(0, 0.6)
    return model


def words(model):
    """As its code writes them: by their ids from 0, or an object whose ids begin with 1."""
    return NUMBERED if isinstance(model, (ShowTell, UpDown)) else WORDS


def text(found):
    return json.dumps(found)


def ids(found):
    """Of each word, and those of START, END and unknown words."""
    if isinstance(found, dict):
        return {word: int(at) for at, word in found.items()}, 0, 0, 1
    by_word = {word: at for at, word in enumerate(found)}
    return by_word, by_word["<start>"], by_word["<end>"], by_word["<unk>"]


def features(model, images=3):
    of_one = isinstance(model, (ShowTell, ShowAndTell))
    shape = (images, FEATURES) if of_one else (images, PLACES, FEATURES)
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def answered(proposed, **answers):
    """A proposal with answers to what it asks."""
    usual = {"normalize": "none", "heads": Stack.HEADS, "scale": "root", "tokenizer": "blanks"}
    for name, value in {**usual, **answers}.items():
        proposed = proposed.replace(f'{name} = "?"', f"{name} = {json.dumps(value)}")
    return proposed
