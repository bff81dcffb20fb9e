"""ONNX bundles by onnx's own builder: a small network, and what it computes by its definition."""

import json

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

WORDS = ["<pad>", "<start>", "a", "dog", "<unk>", "runs", "<end>", "fast", "red"]
FEATURES, STATE = 7, 5
MANIFEST = {
    "prescore": "1",
    "format": "onnx",
    "feature_size": FEATURES,
    "look": {"file": "look.onnx", "features": "pixels"},
    "step": {"file": "step.onnx", "words": "ids", "logits": "scores"},
    "images": [{"look": "seen", "step": "picture"}],
    "state": [{"first": "h0", "before": "h", "after": "h1"}],
    "vocabulary": {"file": "vocabulary.json", "start": 1, "end": 6, "unknown": 4},
    "tokenizer": "blanks",
    "encoder": {"name": "random", "digest": "none"},
}


def arrays(seed=0, features=FEATURES, words=len(WORDS)):
    rng = np.random.default_rng(seed)
    shapes = {
        "look": (features, STATE),
        "first": (features, STATE),
        "embedding": (words, STATE),
        "recurrent": (STATE, STATE),
        "output": (STATE, words),
    }
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def tensor(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def values(**shapes):
    """Of float32; of int64 where the shape is in a list."""
    return [
        helper.make_tensor_value_info(
            name,
            TensorProto.INT64 if isinstance(shape, list) else TensorProto.FLOAT,
            tuple(shape),
        )
        for name, shape in shapes.items()
    ]


def model(nodes, inputs, outputs, initializers=(), checked=True, **more):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(initializers))
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10, **more
    )
    if checked:
        checker.check_model(made)
    return made


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def make_loop():
    """A loop that goes on as long as its tensors say, for a step whose logits have a `bomb`."""
    body = helper.make_graph(
        [node("Identity", "going", "still"), node("Add", "x x", "y")],
        "body",
        [
            helper.make_tensor_value_info("at", TensorProto.INT64, ()),
            helper.make_tensor_value_info("going", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ()),
        ],
        [
            helper.make_tensor_value_info("still", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ()),
        ],
    )
    return helper.make_node("Loop", ["", "yes", "zero"], ["bomb"], body=body)


def look(weights, more=()):
    return model(
        [node("MatMul", "pixels W", "seen"), node("MatMul", "pixels F", "h0"), *more],
        values(pixels=("n", FEATURES)),
        values(seen=("n", STATE), h0=("n", STATE)),
        [tensor("W", weights["look"]), tensor("F", weights["first"])],
    )


STEP = (
    ("Gather", "E ids", "word"),
    ("MatMul", "h R", "before"),
    ("Sum", "word before picture", "sum"),
    ("Tanh", "sum", "h1"),
    ("MatMul", "h1 O", "scores"),
)


def step(weights, nodes=None, initializers=()):
    return model(
        [node(*each) for each in STEP] if nodes is None else nodes,
        values(ids=["n"], picture=("n", STATE), h=("n", STATE)),
        values(scores=("n", len(weights["embedding"])), h1=("n", STATE)),
        [
            tensor("E", weights["embedding"]),
            tensor("R", weights["recurrent"]),
            tensor("O", weights["output"]),
            *initializers,
        ],
    )


def of_pixels(folder, tokenizer, preprocessing, shape, seed=0, **pieces):
    """Writes a bundle of pixels and pieces; returns its weights, of a picture's numbers in the
    order of channels, rows and columns. END is START.
    """
    size = tokenizer.get_vocab_size()
    weights = arrays(seed, int(np.prod(shape)), size)
    weights["look"] /= 10
    look = model(
        [
            node("Flatten", "pixels", "flat"),
            node("MatMul", "flat W", "seen"),
            node("MatMul", "flat F", "h0"),
        ],
        values(pixels=("n", *shape)),
        values(seen=("n", STATE), h0=("n", STATE)),
        [tensor("W", weights["look"]), tensor("F", weights["first"])],
    )
    manifest = {
        name: each
        for name, each in MANIFEST.items()
        if name not in ("feature_size", "encoder", "vocabulary", "tokenizer")
    }
    manifest |= {"look": {"file": "look.onnx", "pixels": "pixels"}, "preprocessing": preprocessing}
    end = tokenizer.token_to_id("[SEP]")
    said = {"file": "tokenizer.json", "size": size, "start": end, "end": end, **pieces}
    write(folder, manifest={**manifest, "pieces": said}, words=None, look=look, step=step(weights))
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), "utf-8")
    return weights


def definition(weights, row, words, start=1):
    """Log-probabilities (T + 1, V) after START and each word, in float64."""
    weights = {name: array.astype(np.float64) for name, array in weights.items()}
    h, picture, found = row @ weights["first"], row @ weights["look"], []
    for word in [start, *words]:
        h = np.tanh(weights["embedding"][word] + h @ weights["recurrent"] + picture)
        logits = h @ weights["output"]
        found.append(logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max())
    return np.array(found)


def write(folder, *, manifest=MANIFEST, words=WORDS, **graphs):
    """`graphs`: models or bytes, by their names; those of the small network where none is given."""
    weights = arrays()
    made = {"look": look(weights), "step": step(weights), **graphs}
    folder.mkdir()
    for name, graph in made.items():
        data = graph if isinstance(graph, bytes) else graph.SerializeToString()
        (folder / f"{name}.onnx").write_bytes(data)
    if words is not None:
        (folder / "vocabulary.json").write_text(json.dumps(words))
    (folder / "prescore.json").write_text(json.dumps(manifest))
    return folder
