"""A checkpoint read with numpy alone: what deploy/guide/file-formats.md says.

python read_checkpoint.py model.safetensors expected.json    prints logp of each example's words
"""

import json
import math
import sys

import numpy as np


def read(path):
    """The metadata and the tensors of a safetensors file, in float64."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        raw = data[slice(*entry["data_offsets"])]
        if entry["dtype"] == "BF16":  # the upper half of a float32
            values = (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
        else:
            values = np.frombuffer(raw, {"F16": "<f2", "F32": "<f4"}[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"]).astype(np.float64)
    return metadata, tensors


def logp(metadata, t, features, words):
    """The log-probability of each word (an id), and of the end, which is word 0. `features`: of the
    image, or a list of those of its places.
    """
    kind = metadata["architecture"]
    config = {"architecture": kind, **json.loads(metadata["config"])}
    x = np.asarray(features, np.float64)
    if "inputs" in config:  # places, of which there may be none
        x = x.reshape(-1, config["feature_size"])
    if config.get("normalize", "l2") == "l2":
        length = np.sqrt((x**2).sum(-1, keepdims=True))
        x = x / np.where(length > 0, length, 1)
    read_words = OF_PLACES.get(kind, recurrent)
    seen = read_words(config, t, x, t["embedding.weight"][[0, *words]])
    logits = seen @ t["output.weight"] + t["output.bias"]
    logits -= logits.max(1, keepdims=True)
    total = np.log(np.exp(logits).sum(1))
    return [row[target] - of for row, target, of in zip(logits, [*words, 0], total, strict=True)]


def recurrent(config, t, x, embedded):
    kind = config["architecture"]
    image, zeros = affine(t, "image", x), np.zeros(config["size"])
    h = {"init": image, "pre": zeros}.get(kind, t.get("initial"))
    state, found = (h, zeros), []
    if kind == "pre":
        state = step(config["cell"], t, image, state)
    for word in embedded:
        given = np.concatenate([image, word]) if kind == "par" else word
        state = step(config["cell"], t, given, state)
        found.append(np.concatenate([image, state[0]]) if kind == "merge" else state[0])
    return np.stack(found)


def step(cell, t, x, state):
    h, c = state
    if cell == "lstm":
        return lstm(t, "gates", x, state)
    r, u = np.split(sigmoid(affine(t, "gates", np.concatenate([x, h]))), 2)
    if cell == "torch_gru":
        given, kept = np.split(t["candidate.weight"], [len(x)])
        new = x @ given + t["candidate.bias"] + r * (h @ kept + t["candidate.state_bias"])
        return u * h + (1 - u) * np.tanh(new), c
    return u * h + (1 - u) * np.tanh(affine(t, "candidate", np.concatenate([x, r * h]))), c


def lstm(t, name, x, state):
    h, c = state
    i, f, g, o = np.split(affine(t, name, np.concatenate([x, h])), 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def soft_attention(config, t, x, embedded):
    h, c = (affine(t, name, mean_of(x)) for name in ("state", "memory"))
    if config.get("start", "tanh") == "tanh":
        h, c = np.tanh(h), np.tanh(c)
    found = []
    for word in embedded:
        z = sigmoid(affine(t, "gate", h)) * (softmax(scores(config, t, x, h)) @ x)
        h, c = lstm(t, "gates", np.concatenate([word, z]), (h, c))
        deep = config.get("output", "deep") == "deep"
        found.append(word + affine(t, "deep", np.concatenate([h, z])) if deep else h)
    return np.stack(found)


def adaptive_attention(config, t, x, embedded):
    places, image = np.maximum(affine(t, "places", x), 0), affine(t, "image", mean_of(x))
    h, c = np.zeros((2, config["size"]))
    found = []
    for word in embedded:
        given = np.concatenate([word, np.maximum(image, 0)])
        gate = sigmoid(affine(t, "sentinel", np.concatenate([given, h])))
        h, c = lstm(t, "gates", given, (h, c))
        sentinel = gate * np.tanh(c)
        own = bent(config, affine(t, "sentinel_key", sentinel) + h @ t["query.weight"])
        weights = softmax(np.append(scores(config, t, places, h), own @ t["score.weight"]))
        found.append(h + weights @ np.vstack([places, sentinel]))
    return np.stack(found)


def bottom_up_top_down(config, t, x, embedded):
    looking, speaking = np.zeros((2, 2, config["size"]))
    mean, found = mean_of(x), []
    if "places_size" in config:
        x, mean = (np.maximum(affine(t, *e), 0) for e in (("places", x), ("image", mean)))
    for word in embedded:
        given = np.concatenate([speaking[0], mean, word])
        looking = lstm(t, "attention_gates", given, looking)
        seen = softmax(scores(config, t, x, looking[0])) @ x
        speaking = lstm(t, "language_gates", np.concatenate([seen, looking[0]]), speaking)
        found.append(speaking[0])
    return np.stack(found)


def transformer(config, t, x, embedded):
    size, heads, times = config["size"], config["heads"], np.arange(len(embedded))
    angles = times[:, None] / 10_000 ** (np.arange(size) // 2 * 2 / size)
    y = embedded * np.sqrt(size) + np.where(np.arange(size) % 2, np.cos(angles), np.sin(angles))
    image, earlier = affine(t, "image", x), times[:, None] >= times
    bend = gelu if config.get("activation") == "gelu" else lambda x: np.maximum(x, 0)
    first = config.get("norms") == "before"
    for layer in range(config["layers"]):
        at = f"layers.{layer}."

        def read_words(y, at=at):
            q, k, v = np.split(affine(t, at + "words", y), 3, axis=1)
            return affine(t, at + "words_out", attention(q, k, v, heads, earlier))

        def read_places(y, at=at):
            k, v = np.split(affine(t, at + "places", image), 2, axis=1)
            q = affine(t, at + "query", y)
            return affine(t, at + "places_out", attention(q, k, v, heads))

        def think(y, at=at):
            return affine(t, at + "outer", bend(affine(t, at + "inner", y)))

        for name, part in (("words", read_words), ("places", read_places), ("inner", think)):
            norm = f"{at}{name}_norm"
            y = y + part(normal(t, norm, y)) if first else normal(t, norm, y + part(y))
    return normal(t, "norm", y) if config.get("last_norm") else y


OF_PLACES = {
    "soft_attention": soft_attention,
    "adaptive_attention": adaptive_attention,
    "bottom_up_top_down": bottom_up_top_down,
    "transformer": transformer,
}


def attention(q, k, v, heads, allowed=True):
    parts = [np.split(each, heads, axis=1) for each in (q, k, v)]
    root = np.sqrt(q.shape[1] / heads)
    return np.concatenate(
        [
            softmax(np.where(allowed, query @ key.T / root, -np.inf)) @ value
            for query, key, value in zip(*parts, strict=True)
        ],
        axis=1,
    )


def gelu(x):
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def normal(t, name, x):
    x = x - x.mean(1, keepdims=True)
    x = x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-5)
    return x * t[f"{name}.weight"] + t[f"{name}.bias"]


def scores(config, t, places, h):
    return bent(config, affine(t, "key", places) + h @ t["query.weight"]) @ t["score.weight"]


def bent(config, x):
    return np.tanh(x) if config.get("scores", "tanh") == "tanh" else np.maximum(x, 0)


def mean_of(x):
    return x.sum(0) / max(len(x), 1)


def affine(t, name, x):
    return x @ t[f"{name}.weight"] + t[f"{name}.bias"]


def softmax(x):
    """Along the last axis; of nothing, nothing."""
    if not x.size:
        return x
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


if __name__ == "__main__":
    metadata, tensors = read(sys.argv[1])
    ids = {
        word: index for index, word in enumerate(json.loads(metadata["vocabulary"])) if index > 1
    }
    for example in json.load(open(sys.argv[2])):
        words = [ids.get(word, 1) for word in example["words"]]
        print(logp(metadata, tensors, example["features"], words))
