"""The words of somebody's model, by their ids, and the order that a captioner has them in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.contract import near
from service.contract.errors import InvalidPackage
from service.contract.formats import strict_json
from service.contract.formats.state_dicts.tables import Words

MAX_BYTES = 100_000_000
_WRAPPED = (
    "idx2word",
    "ix_to_word",
    "itos",
    "id2word",
    "word2idx",
    "word_to_ix",
    "stoi",
    "word2id",
)
_NO_WORD = "<unused{}>"  # an id that no word has: its logit counts in the softmax


@dataclass(frozen=True)
class Ordered:
    """`rows` are the model's ids of a captioner's words: its embedding reads `read[i]` for word i,
    its softmax writes `written[i]`. The two part for the edge token, which is START when it is read
    and END when it is written.
    """

    words: tuple[str, ...]
    read: list[int]
    written: list[int]


def parse(text: str) -> list[str]:
    """Words by their ids: a list, or an object from words to ids or from ids to words; in an object
    of its own as `idx2word` and the like.
    """
    try:
        found = strict_json.parse(text)
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


def ordered(by_id: Sequence[str], special: Words) -> Ordered:
    """The edge token first, UNK second, the others in their order. START stays a word of its own
    where it is not END, since its logit counts in the softmax.
    """
    start, end = (_id(by_id, special, name) for name in ("start", "end"))
    unknown = _id(by_id, special, "unknown")
    if unknown in (start, end):
        raise InvalidPackage("map, words.unknown: is also the start or the end of captions")
    others = [at for at in range(len(by_id)) if at not in (end, unknown)]
    return Ordered(
        words=tuple(by_id[at] for at in (end, unknown, *others)),
        read=[start, unknown, *others],
        written=[end, unknown, *others],
    )


def _id(by_id: Sequence[str], special: Words, name: str) -> int:
    word = getattr(special, name)
    if word not in by_id:
        hint = near.question(word, by_id)
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
