"""The pieces that stand between a picture and a caption, as the library's processors write them."""

from typing import TYPE_CHECKING

from service.contract.errors import InvalidPackage
from service.contract.formats.huggingface import Captioner
from service.contract.formats.huggingface.paligemma import MOST_PROMPT, PaliGemma

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def of(tokenizer: "Tokenizer", judged: Captioner) -> list[int]:
    """Ids, the last of which is START."""
    family, text = judged.family, judged.prompt
    if text is None or not isinstance(family, PaliGemma):
        return [judged.start]
    ids: list[int] = tokenizer.encode(f"{text}\n", add_special_tokens=False).ids
    if not 1 <= len(ids) < MOST_PROMPT:
        raise InvalidPackage(
            f"the prompt {text!r:.60} has {len(ids)} pieces: expected from 1 to {MOST_PROMPT - 1}"
        )
    if family.image_token_index in ids:
        raise InvalidPackage(
            f"the prompt {text!r:.60} has the mark of a picture: expected only what follows it"
        )
    return [judged.start, *ids]
