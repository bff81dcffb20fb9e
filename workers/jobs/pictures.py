"""Jobs of pictures: features and thumbnails of a dataset's pictures."""

from service.contract.formats import bundles
from service.contract.results import PicturesSummary, UndecodedPicture
from workers.jobs.request import JobRequest, JobResult
from workers.jobs.toolbox import Toolbox
from workers.progress import Progress

_MOST_NAMED = 10


def encode_pictures(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:
    """Features of a split's images, or of a part of them, in the split's order. A picture that
    cannot be decoded has none, and is told.
    """
    from workers.inference import features, mobilenet_v2

    if request.parts:
        found = features.concatenate_features(
            [features.read_features_file(path) for path in request.parts]
        )
    else:
        sha256, bundle = request.parameters["encoder"], request.inputs["dataset"]
        items = bundles.read_split(bundle, request.parameters["split"])
        start, stop = request.parameters.get("images", (0, len(items)))
        images = [item.image for item in items[start:stop]]
        encoder = toolbox.image_encoder(sha256)
        found = mobilenet_v2.encode_pictures(
            encoder, sha256, bundle, images, toolbox.sandbox, progress
        )
    unseen = [UndecodedPicture(image=image, reason=why) for image, why in found.undecoded.items()]
    seen = PicturesSummary(
        tried=len(found.images), undecoded=len(unseen), unseen=unseen[:_MOST_NAMED]
    )
    return JobResult(lambda path: features.write_features_file(path, found), seen)


def digest_pictures(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:  # noqa: ARG001
    """The SHA-256 of the pictures of a split's images, in the split's order."""
    from workers.inference.pictures import thumbnails

    bundle = request.inputs["dataset"]
    items = bundles.read_split(bundle, request.parameters["split"])
    found = b"".join(thumbnails.hash_pictures(bundle, [item.image for item in items]))
    return JobResult(lambda path: path.write_bytes(found))


def shrink_pictures(request: JobRequest, toolbox: Toolbox, progress: Progress) -> JobResult:
    """Small forms of the pictures of some of a split's images."""
    from workers.inference.pictures import PictureDecodingFailure, thumbnails

    bundle = request.inputs["dataset"]
    items = bundles.read_split(bundle, request.parameters["split"])
    images = [items[place].image for place in request.parameters["places"]]
    made, unseen = [], []
    for each in thumbnails.make_thumbnails(bundle, images, sandbox=toolbox.sandbox):
        made.append(each)
        if isinstance(each.forms, PictureDecodingFailure):
            unseen.append(UndecodedPicture(image=each.image, reason=each.forms.reason))
        progress(len(made), len(images))
    seen = PicturesSummary(tried=len(made), undecoded=len(unseen), unseen=unseen[:_MOST_NAMED])
    return JobResult(lambda path: thumbnails.write_thumbnails(path, made), seen)
