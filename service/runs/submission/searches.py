"""The search for captions that a request asks for, and what follows from the model."""

from typing import Any

from service.contract import limits
from service.contract.api.evaluations import DecodingInput
from service.contract.errors import InvalidRequest
from service.contract.plan import prices, tasks
from service.contract.plan.planning import Plan
from service.contract.plan.prices import TaskSizes
from service.contract.wording import count_noun
from service.stored.checkpoints import UsableCheckpoint

OWN = "beams"  # said of a model that searches in its own way


def check(decoding: DecodingInput) -> None:
    if decoding.min_words > decoding.max_words:
        raise InvalidRequest(
            f"min_words {decoding.min_words} is more than max_words {decoding.max_words}",
            [("/decoding/min_words", "expected at most max_words")],
        )


def of_model(asked: DecodingInput, model: UsableCheckpoint) -> dict[str, Any]:
    """The search for captions; a model that has one of its own keeps what is not asked for, and
    captions are not longer than what the model reads.
    """
    own = model.description
    if OWN in own:
        changed = asked.model_dump(include=asked.model_fields_set)
        return {"beam": own[OWN], "max_words": own["longest"], **changed}
    found = asked.model_dump()
    longest = own.get("longest")
    for name in ("min_words", "max_words"):
        if longest is not None and found[name] > longest:
            if name in asked.model_fields_set:
                raise InvalidRequest(
                    f"{name} {found[name]} is more than the model reads: {longest} pieces",
                    [(f"/decoding/{name}", f"expected at most {longest}")],
                )
            found[name] = longest
    return found


def check_time(plan: Plan, sizes: TaskSizes) -> None:
    """Raise if a part of a search would hold others up. Usual captions end after 12 of 50 words."""
    captions = plan.named.get("captions")
    if captions is None:
        return
    seconds = prices.price_task((captions.parts or (captions,))[0], sizes)
    asked = captions.parameters["decoding"]
    beam, words = asked["beam"], asked["max_words"]
    if beam * words <= tasks.LONG_SEARCH:
        seconds /= 4
    if seconds > limits.PART_SECONDS:
        raise InvalidRequest(
            f"of {sizes.images:,} images with a beam of {beam} and {words:,} "
            f"words, a vocabulary of {sizes.vocabulary:,} and size {sizes.size:,}, each of "
            f"{count_noun(max(1, len(captions.parts)), 'part')} would take about "
            f"{seconds:,.0f} s; expected at most {limits.PART_SECONDS:g}: lower `beam` "
            "or `max_words`",
            [("/decoding", "expected a shorter search")],
        )
