"""Flickr8k-Expert: 5,822 captions, each rated from 1 to 4 by three people."""

from pathlib import Path

from parity.systems import lines
from workers.bench.judgements import RatedCaption


def expert(data: Path) -> tuple[list[RatedCaption], list[bool]]:
    """In the file's order, and whether a caption is one of the image's own."""
    texts = dict(line.split("\t") for line in lines(data / "flickr8k" / "Flickr8k.token.txt.gz"))
    of_image: dict[str, list[str]] = {}
    for name, text in texts.items():
        of_image.setdefault(name.split("#")[0], []).append(text)
    rated, own = [], []
    for line in (data / "flickr8k" / "ExpertAnnotations.txt").read_text("utf-8").splitlines():
        image, caption, *ratings = line.split("\t")
        rated.append(
            RatedCaption(texts[caption], tuple(of_image[image]), tuple(map(float, ratings)))
        )
        own.append(caption.split("#")[0] == image)
    return rated, own
