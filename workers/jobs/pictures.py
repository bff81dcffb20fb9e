"""Features of a dataset's pictures."""

from service.contract.formats import bundles
from service.contract.results import Seen, Unseen
from workers.jobs.request import Request, Result
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress

_MOST_NAMED = 10


def encode(request: Request, toolbox: Toolbox, progress: Progress) -> Result:
    """Features of a split's images, or of a part of them, in the split's order. A picture that
    cannot be decoded has none, and is told.
    """
    from workers.inference import features
    from workers.inference.encoders import encoding

    if request.parts:
        found = features.concatenate([features.read_whole(path) for path in request.parts])
    else:
        sha256, bundle = request.parameters["encoder"], request.inputs["dataset"]
        items = bundles.read_split(bundle, request.parameters["split"])
        start, stop = request.parameters.get("images", (0, len(items)))
        images = [item.image for item in items[start:stop]]
        encoder = toolbox.image_encoder(sha256)
        found = encoding.encode(encoder, sha256, bundle, images, toolbox.sandbox, progress)
    unseen = [Unseen(image=image, reason=why) for image, why in found.undecoded.items()]
    seen = Seen(tried=len(found.images), undecoded=len(unseen), unseen=unseen[:_MOST_NAMED])
    return Result(lambda path: features.write_whole(path, found), seen)
