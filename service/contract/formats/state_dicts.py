"""State dicts: a model's tensors as its own program saved them, its words and a map.

Only the map, the words and the first bytes of the tensors are looked at here. The tensors may be a
pickle, which nothing but a child in the sandbox opens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from prescore import foreign
from service.contract import wording
from service.contract.errors import ForeignFormat, InvalidPackage
from service.contract.formats import map_files, strict_json
from service.contract.formats.checkpoint_header import FeatureEncoder
from service.contract.formats.map_files import AnyMap, SpecialWords
from service.contract.formats.packages import ModelPackage, PackageFile

MAP, WORDS = "map.toml", "vocabulary.json"
SUFFIXES = (".pt", ".pth", ".bin", ".ckpt", ".safetensors")
_SERVES = (foreign.STATE_DICT, foreign.CHECKPOINT)  # the latter: safetensors, of any names


@dataclass(frozen=True)
class StateDict:
    """`tensors`: the name of the file that has them; `by_id`: the words by the model's ids."""

    tensors: str
    map: AnyMap
    by_id: Sequence[str]
    encoder: FeatureEncoder


def read_state_dict(package: ModelPackage) -> StateDict:
    """Read a state dict. Raises an InvalidCheckpoint that names the fault and its file."""
    name = _tensors(package)
    _check_format(name, package.file(name))
    given = map_files.parse_map(package.text(MAP, map_files.MAX_MAP_BYTES))
    by_id = parse_words(package.text(WORDS, MAX_VOCABULARY_BYTES))
    order_words(by_id, given.words)
    if given.encoder is None:
        raise InvalidPackage(
            f"{MAP}: expected [encoder] with `name` and `digest`, those of the dataset's features "
            "(`prescore check BUNDLE` shows them)",
            pointer=f"/{MAP}/encoder",
        )
    oddity = given.encoder.oddity()
    if oddity is not None:
        raise InvalidPackage(f"{MAP}: {oddity}", pointer=f"/{MAP}/encoder")
    return StateDict(name, given, by_id, given.encoder)


def _tensors(package: ModelPackage) -> str:
    found = [name for name in package.files if PurePosixPath(name).suffix in SUFFIXES]
    if len(found) != 1:
        raise InvalidPackage(
            f"expected one file with the model's tensors ({', '.join(SUFFIXES)}) beside {MAP}, "
            f"found {', '.join(sorted(found)[:5]) or 'none'}"
        )
    return found[0]


def _check_format(name: str, file: PackageFile) -> None:
    with file.open() as stream:
        if file.place is None:  # compressed: its end is not looked for
            found = foreign.of_bytes(stream.read(foreign.HEAD_BYTES))
        else:
            found = foreign.of_file(stream, file.size)
    if found is None or found.serves not in _SERVES:
        what = "an unknown format" if found is None else found.what
        raise ForeignFormat(
            f"{name}: expected {foreign.STATE_DICT} (`torch.save(model.state_dict(), path)`), "
            f"found {what}" + ("" if found is None else f": {found.do}"),
            pointer=f"/{name}",
        )


MAX_VOCABULARY_BYTES = 100_000_000
_WRAPPED = (
    *("idx2word", "ix_to_word", "itos", "id2word"),
    *("word2idx", "word_to_ix", "stoi", "word2id"),
)
_NO_WORD = "<unused{}>"  # an id that no word has: its logit counts in the softmax


@dataclass(frozen=True)
class WordOrder:
    """`rows` are the model's ids of a captioner's words: its embedding reads `read[i]` for word i,
    its softmax writes `written[i]`. The two part for the edge token, which is START when it is read
    and END when it is written.
    """

    words: tuple[str, ...]
    read: list[int]
    written: list[int]


def parse_words(text: str) -> list[str]:
    """Words by their ids: a list, or an object from words to ids or from ids to words; in an object
    of its own as `idx2word` and the like.
    """
    try:
        found = strict_json.parse_json(text)
    except strict_json.NotJson as error:
        raise InvalidPackage(f"vocabulary: {error}") from None
    if isinstance(found, Mapping):
        found = next((found[name] for name in _WRAPPED if _is_table(found, name)), found)
    words = _listed(found) if isinstance(found, Mapping) else found
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InvalidPackage(
            "vocabulary: expected a list of words, or an object from words to ids, found "
            f"{_kind(found)}"
        )
    return words


def order_words(by_id: Sequence[str], special: SpecialWords) -> WordOrder:
    """The edge token first, UNK second, the others in their order. START stays a word of its own
    where it is not END, since its logit counts in the softmax.
    """
    start, end = (_id(by_id, special, name) for name in ("start", "end"))
    unknown = _id(by_id, special, "unknown")
    if unknown in (start, end):
        raise InvalidPackage("map, words.unknown: is also the start or the end of captions")
    others = [at for at in range(len(by_id)) if at not in (end, unknown)]
    return WordOrder(
        words=tuple(by_id[at] for at in (end, unknown, *others)),
        read=[start, unknown, *others],
        written=[end, unknown, *others],
    )


def _id(by_id: Sequence[str], special: SpecialWords, name: str) -> int:
    word = getattr(special, name)
    if word not in by_id:
        hint = wording.suggest_names(word, by_id)
        raise InvalidPackage(f"map, words.{name}: the vocabulary has no word {word!r:.60}{hint}")
    return by_id.index(word)


def _is_table(found: Mapping[str, Any], name: str) -> bool:
    return isinstance(found.get(name), list | Mapping)


def _listed(found: Mapping[str, Any]) -> list[str]:
    ids = {_number(value): word for word, value in found.items()}
    if None in ids:  # from ids to words, then
        ids = {_number(key): word for key, word in found.items()}
    if None in ids or not ids:
        raise InvalidPackage(
            "vocabulary: expected an object from words to ids, or from ids to words"
        )
    if len(ids) < len(found):
        raise InvalidPackage("vocabulary: two words have one id")
    most = max(at for at in ids if at is not None)
    if most >= 2 * len(ids) + 100:
        raise InvalidPackage(f"vocabulary: the id {most} is too large for {len(ids)} words")
    return [ids.get(at, _NO_WORD.format(at)) for at in range(most + 1)]


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if type(value) is int and value >= 0 else None


def _kind(found: Any) -> str:
    return "a list with other things" if isinstance(found, list) else f"{found!r:.60}"
