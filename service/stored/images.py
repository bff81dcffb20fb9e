"""Single images of datasets: what people have written about them."""

from prescore.models.datasets import References
from service.engine.parts import Parts
from service.stored import datasets, thumbnails


def references(parts: Parts, reference: str, image: str) -> References:
    """Of an image by its name or id, in `name[@version]`."""
    pinned, place, is_shown = datasets.pin_image(parts.records, parts.blobs, reference, image)
    items = datasets.split_of(parts.blobs, pinned).items
    item = items[place]
    return References(
        dataset=pinned.out,
        image=item.image,
        id=item.id,
        split=pinned.split,
        references=list(item.references),
        before=items[place - 1].image if place > 0 else None,
        after=items[place + 1].image if place + 1 < len(items) else None,
        has_picture=is_shown and thumbnails.may_have(parts, pinned, place),
    )
