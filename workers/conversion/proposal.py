"""Proposes a map for a model whose layers are torch's own, from the shapes of its tensors.

What shapes cannot tell is said in comments, for a person to decide.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from service.contract.formats.map_files import IGNORED
from workers.conversion import public_code_maps
from workers.conversion.layers import Arrays
from workers.conversion.public_codes import MapLine, PublicCode

_START = ("<start>", "<bos>", "<s>", "<sos>", "startseq", "[CLS]")
_END = ("<end>", "<eos>", "</s>", "endseq", "[SEP]")
_UNKNOWN = ("<unk>", "<UNK>", "UNK", "unk", "[UNK]", "<oov>")
_UNDECIDED = "?"
_MOST_NAMED = 5


@dataclass(frozen=True)
class _LayerCandidates:
    """Names of layers by what they may be; of a cell the sizes of its input and of its state."""

    cells: Mapping[str, tuple[int, int]]
    embeddings: Sequence[str]
    outputs: Sequence[str]
    images: Sequence[str]
    others: Sequence[str]


def propose_map(arrays: Arrays, by_id: Sequence[str]) -> str:
    """A map in TOML. `?` stands where nothing fits. Raises RequestRefused where the tensors are
    those of public code that computes something else than our architectures.
    """
    code = public_code_maps.recognise_code(arrays, by_id)
    if code is not None:
        return _of_code(code, arrays)
    found = _found(arrays, len(by_id))
    cell = _first(found.cells)
    embedding, output, image = (
        _first(each) for each in (found.embeddings, found.outputs, found.images)
    )
    architecture, why = _architecture(arrays, found, cell, embedding, image)
    lines = [
        "# Proposed from the tensors' shapes: look at each line, then give the file as --map.",
        f"architecture = {_quoted(architecture)}  # {why}",
        'normalize = "?"  # "l2" or "none": were the image features divided by their length?',
        _tokenizer(by_id),
        "",
        "[words]  # as the vocabulary writes them",
        f"start = {_quoted(_word(by_id, _START))}",
        f"end = {_quoted(_word(by_id, _END))}",
        f"unknown = {_quoted(_word(by_id, _UNKNOWN))}  # for words that it does not have",
        "",
        "[layers]  # names of modules",
        f"image = {_quoted(image)}{_or(found.images)}",
        f"embedding = {_quoted(embedding)}{_or(found.embeddings)}",
        f"cell = {_quoted(cell)}{_or([*found.cells])}",
        f"output = {_quoted(output)}{_or(found.outputs)}",
    ]
    if found.others:
        patterns = ", ".join(_quoted(f"{name}.*") for name in found.others)
        lines.insert(4, f"# ignore = [{patterns}]  # layers for which no place was found")
    return "\n".join(lines) + "\n"


def _of_code(code: PublicCode, arrays: Arrays) -> str:
    ignored = []
    if code.ignore:
        ignored = [MapLine("ignore", list(code.ignore), "its encoder of pictures")]
    lines = [
        f"# Recognised by the names of its tensors: {code.name}.",
        "# A fork of it may compute something else: compare by prescore verify.",
        "# What no tensor shows; look at it, then give the file as --map:",
        *(f"# - {each}" for each in code.warnings),
        *map(_line, [*code.lines, code.tokenizer]),
        *map(_line, ignored),
        *_unread(code, arrays),
        "",
        "[words]",
        *(
            _line(MapLine(name, word))
            for name, word in zip(("start", "end", "unknown"), code.words, strict=True)
        ),
        "",
        "[layers]",
        *(_line(MapLine(name, value)) for name, value in code.layers.items()),
    ]
    return "\n".join(lines) + "\n"


def _line(line: MapLine) -> str:
    why = f"  # {line.why}" if line.why else ""
    return f"{line.name} = {json.dumps(line.value, ensure_ascii=False)}{why}"


def _unread(code: PublicCode, arrays: Arrays) -> Iterator[str]:
    """A comment with the tensors that no line of the map reads."""
    values = (one if isinstance(one, list) else [str(one)] for one in code.layers.values())
    names = [each for some in values for each in some]
    left = [
        name
        for name in arrays
        if not any(name == each or name.startswith(f"{each}.") for each in names)
        and not any(fnmatchcase(name, pattern) for pattern in (*IGNORED, *code.ignore))
    ]
    if left:
        more = " …" if len(left) > _MOST_NAMED else ""
        yield (
            f"# Read by no line, and not of that code: {', '.join(map(repr, left[:_MOST_NAMED]))}"
            f"{more}. Under `ignore`, if captions are computed without them"
        )


def _found(arrays: Arrays, words: int) -> _LayerCandidates:
    shapes = {name: tuple(array.shape) for name, array in arrays.items()}
    cells = dict(_cells(shapes))
    rest = {
        name.removesuffix(".weight"): shape
        for name, shape in shapes.items()
        if name.endswith(".weight")
    }
    of_words = [name for name, shape in rest.items() if len(shape) == 2 and shape[0] == words]
    outputs = [name for name in of_words if f"{name}.bias" in shapes]
    embeddings = [name for name in of_words if name not in outputs]
    images = [
        name
        for name, shape in rest.items()
        if len(shape) == 2 and name not in of_words and f"{name}.bias" in shapes
    ]
    placed = {*cells, *of_words, *images[:1]}
    parents = {name.rpartition(".")[0] for name in shapes} - placed - {""}
    return _LayerCandidates(
        cells, embeddings or outputs[1:], outputs or embeddings[1:], images, [*parents]
    )


def _cells(shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, tuple[int, int]]]:
    for name, shape in shapes.items():
        module, _, tensor = name.rpartition(".")
        if tensor in ("weight_ih_l0", "weight_ih") and len(shape) == 2:
            state = shapes.get(f"{module}.{tensor.replace('_ih', '_hh')}", ())
            if len(state) == 2:
                yield module, (shape[1], state[1])


def _architecture(
    arrays: Arrays, found: _LayerCandidates, cell: str, embedding: str, image: str
) -> tuple[str, str]:
    """Guess the architecture, by widths: where the image enters, and why."""
    if _UNDECIDED in (cell, embedding, image):
        return _UNDECIDED, "init, pre, par or merge: where does the image enter?"
    given, state = found.cells[cell]
    word = arrays[f"{embedding}.weight"].shape[1]
    seen = len(arrays[f"{image}.weight"])
    if given == word + seen:
        return "par", f"the cell reads {given} numbers: a word's {word} and the image's {seen}"
    if found.outputs and arrays[f"{found.outputs[0]}.weight"].shape[1] == state + seen:
        return "merge", f"the last layer reads the state's {state} numbers and the image's {seen}"
    if seen == word != state:
        return "pre", f"the image's vector is as long as a word's: {seen}"
    if seen == state != word:
        return "init", f"the image's vector is as long as the state: {seen}"
    return "pre", f'or "init": image, word and state have {seen}, {word} and {state} numbers'


def _tokenizer(by_id: Sequence[str]) -> str:
    """`karpathy` makes neither capitals nor signs."""
    made = next((word for word in by_id if len(word) < 2 and not word.isalnum() and word), None)
    made = made or next((word for word in by_id if word.lower() != word and word.isalpha()), None)
    if made is not None:
        return f'tokenizer = "blanks"  # words between blanks, since {_quoted(made)} is one of them'
    why = '"karpathy" (small letters, no signs) or "blanks": how captions became words'
    return f'tokenizer = "?"  # {why}'


def _first(names: Sequence[str] | Mapping[str, object]) -> str:
    return next(iter(names), _UNDECIDED)


def _word(by_id: Sequence[str], usual: Sequence[str]) -> str:
    return next((word for word in usual if word in by_id), _UNDECIDED)


def _or(names: Sequence[str]) -> str:
    others = " or ".join(_quoted(name) for name in names[1:6])
    return f"  # or {others}" if others else ""


def _quoted(text: str) -> str:
    """JSON's strings are TOML's."""
    return json.dumps(text, ensure_ascii=False)
