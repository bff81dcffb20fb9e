"""What `prescore learned train` reads: datasets, captioners' captions, ratings and judgements."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prescore.files import captions
from service.contract.errors import RequestRefused
from service.contract.formats.digests import digest_of
from service.contract.metrics.objectives import OBJECTIVES, takers
from workers.cli.console import say

if TYPE_CHECKING:
    from workers.metrics.learned.training import Material
    from workers.metrics.learned.training_sets import Captioner
    from workers.offline.sources import Source


def check_options(objective: str, given: Mapping[str, tuple[str, object]]) -> None:
    """Refuse options that the objective does not take, and those that it lacks. `given`: by option
    the field of a request that it stands for, and its value; None, an empty one and False are not
    given.
    """
    for option, (field, value) in given.items():
        others = takers(objective, field) if value else []
        if others:
            raise RequestRefused(
                f"{option} belongs to --objective {' or '.join(others)}, found --objective "
                f"{objective}"
            )
    for option, (field, value) in given.items():
        if field in OBJECTIVES[objective].needs and not value:
            raise RequestRefused(f"--objective {objective}: expected {option}, found none")


def people(datasets: "Sequence[Source]") -> dict[str, Sequence[str]]:
    """The captions of each image; RequestRefused where one is in two datasets."""
    found: dict[str, Sequence[str]] = {}
    for source in datasets:
        for item in source.items:
            if item.image in found:
                raise RequestRefused(f"{item.image!r:.100} is in two of the datasets")
            found[item.image] = item.references
    return found


def inputs(
    datasets: "Sequence[Source]", frequencies: "Sequence[Source]" = (), **files: Path | None
) -> dict[str, str]:
    """The digests of what is learned from, without this machine's folders."""
    named = {_called("dataset", source): source.digest for source in datasets}
    named |= {_called("frequencies", source): source.digest for source in frequencies}
    return named | {what: digest_of(path) for what, path in files.items() if path is not None}


@dataclass(frozen=True)
class Reading:
    """The sources of what people and captioners wrote: datasets, (name, file) of outputs,
    captioners' training sets.
    """

    datasets: "Sequence[Source]"
    outputs: Sequence[tuple[str, str]]
    trained_on: "Mapping[str, Source]"
    frequencies: "Sequence[Source]"

    def material(self, ratings: Path | None, *, leave_out_rated: bool) -> "Material":
        from workers.metrics.learned import ratings as rated_lines
        from workers.metrics.learned import training_sets
        from workers.metrics.learned.training import Material

        rated = None if ratings is None else rated_lines.read(ratings)
        ours: Mapping[str, Sequence[str]] = people(self.datasets)
        if leave_out_rated and rated is not None:
            ours = training_sets.without(ours, rated.images)
        further = [item.references for source in self.frequencies for item in source.items]
        known = inputs(self.datasets, self.frequencies, ratings=ratings)
        for name, source in self.trained_on.items():
            known[_called(f"{name} was trained on", source)] = source.digest
        known |= {f"outputs {name}": digest_of(Path(path)) for name, path in self.outputs}
        return Material(ours, list(self._captioners()), rated, further, known)

    def _captioners(self) -> "Iterator[Captioner]":
        from workers.metrics.learned.training_sets import Captioner

        images = {
            text: source.items[place].image
            for source in self.datasets
            for text, place in source.places.items()
        }
        unknown_names = self.trained_on.keys() - {name for name, _ in self.outputs}
        if unknown_names:
            raise RequestRefused(f"--trained-on {min(unknown_names)}: no --outputs of that name")
        for name, path in self.outputs:
            written = {each["image"]: each["caption"] for each in captions.read(Path(path))}
            unknown = [image for image in written if image not in images]
            if unknown:
                raise RequestRefused(
                    f"{path}: expected images of the datasets, found {unknown[0]!r:.100}"
                )
            known = self.trained_on.get(name)
            if known is None:
                say(f"warning: it is not known what {name} was trained on")
            seen = None if known is None else frozenset(item.image for item in known.items)
            yield Captioner(name, {images[image]: said for image, said in written.items()}, seen)


def named(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise RequestRefused(f"{option}: expected NAME=…, found {text!r:.100}")
    return name, value


def _called(what: str, source: "Source") -> str:
    """The name of an input in the model's card, without this machine's folders."""
    return f"{what} {Path(source.name).name}/{source.split}"
