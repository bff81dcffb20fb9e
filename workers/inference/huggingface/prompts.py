"""What stands before a caption besides a picture, as the library's processors write it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.contract.errors import InvalidPackage
from service.contract.formats.huggingface import Captioner
from service.contract.formats.huggingface.families.llava import Llava
from service.contract.formats.huggingface.families.paligemma import PaliGemma
from service.contract.formats.huggingface.parts import MOST_PROMPT

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True)
class Prompt:
    """Ids of pieces before and after the `picture` places of one; the last is START."""

    before: tuple[int, ...]
    picture: int
    after: tuple[int, ...]

    @property
    def start(self) -> int:
        return self.after[-1]


def of(tokenizer: "Tokenizer", judged: Captioner) -> Prompt:
    family, text = judged.family, judged.prompt
    if text is None:
        return Prompt((), 0, (judged.start,))
    if isinstance(family, PaliGemma):
        ids = tokenizer.encode(f"{text}\n", add_special_tokens=False).ids
        _check(text, ids, marks=(ids.count(family.image_token_index), 0))
        return Prompt((), family.vision_config.places, (judged.start, *ids))
    assert isinstance(family, Llava)
    ids = tokenizer.encode(text).ids
    _check(text, ids, marks=(ids.count(family.image_token_index), 1))
    at = ids.index(family.image_token_index)
    if at == len(ids) - 1:
        raise InvalidPackage(f"the prompt {text!r:.60}: expected words after the mark of a picture")
    return Prompt(tuple(ids[:at]), family.picture, tuple(ids[at + 1 :]))


def _check(text: str, ids: list[int], marks: tuple[int, int]) -> None:
    if not 1 <= len(ids) < MOST_PROMPT:
        raise InvalidPackage(
            f"the prompt {text!r:.60} has {len(ids)} pieces: expected from 1 to {MOST_PROMPT - 1}"
        )
    found, expected = marks
    if found != expected:
        raise InvalidPackage(
            f"the prompt {text!r:.60} has {found} marks of a picture, the piece "
            f"image_token_index: expected {expected}"
        )
