"""A checkpoint read with numpy alone: what deploy/guide/checkpoints.md says.

python read_checkpoint.py model.safetensors expected.json    prints logp of each example's words
"""

import json
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
    """The log-probability of each word (an id), and of the end, which is word 0."""
    config, kind = json.loads(metadata["config"]), metadata["architecture"]
    x = np.asarray(features, np.float64)
    if config.get("normalize", "l2") == "l2":
        x = x / (np.sqrt((x**2).sum()) or 1)
    image = x @ t["image.weight"] + t["image.bias"]
    zeros = np.zeros(config["size"])
    h = {"init": image, "pre": zeros}.get(kind, t.get("initial"))
    state = (h, zeros)
    if kind == "pre":
        state = step(config["cell"], t, image, state)
    found = []
    for word, target in zip([0, *words], [*words, 0], strict=True):
        x = t["embedding.weight"][word]
        state = step(config["cell"], t, np.concatenate([image, x]) if kind == "par" else x, state)
        seen = np.concatenate([image, state[0]]) if kind == "merge" else state[0]
        logits = seen @ t["output.weight"] + t["output.bias"]
        found.append(logits[target] - logits.max() - np.log(np.exp(logits - logits.max()).sum()))
    return found


def step(cell, t, x, state):
    h, c = state
    gates = np.concatenate([x, h]) @ t["gates.weight"] + t["gates.bias"]
    if cell != "lstm":
        r, u = np.split(sigmoid(gates), 2)
        if cell == "torch_gru":
            given, kept = np.split(t["candidate.weight"], [len(x)])
            new = x @ given + t["candidate.bias"] + r * (h @ kept + t["candidate.state_bias"])
            return u * h + (1 - u) * np.tanh(new), c
        new = np.tanh(np.concatenate([x, r * h]) @ t["candidate.weight"] + t["candidate.bias"])
        return u * h + (1 - u) * new, c
    i, f, g, o = np.split(gates, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


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
