"""A model's tensors as its own program saved them, with its words and a map, in one package.

Only the map, the words and the first bytes of the tensors are looked at here. The tensors may be a
pickle, which nothing but a child in the sandbox opens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from prescore import foreign
from service.contract.errors import ForeignFormat, InvalidPackage
from service.contract.formats.checkpoint_header import Encoder
from service.contract.formats.packages import Inside, Package
from service.contract.formats.state_dicts import maps, vocabularies
from service.contract.formats.state_dicts.maps import Map

MAP, WORDS = "map.toml", "vocabulary.json"
SUFFIXES = (".pt", ".pth", ".bin", ".ckpt", ".safetensors")
_SERVES = (foreign.STATE_DICT, foreign.CHECKPOINT)  # the latter: safetensors, of any names


@dataclass(frozen=True)
class StateDict:
    """`tensors`: the name of the file that has them; `by_id`: the words by the model's ids."""

    tensors: str
    map: Map
    by_id: Sequence[str]
    encoder: Encoder


def read(package: Package) -> StateDict:
    """Raises an InvalidCheckpoint that says what is wrong, in which file."""
    name = _tensors(package)
    _check_format(name, package.file(name))
    given = maps.parse(package.text(MAP, maps.MAX_BYTES))
    by_id = vocabularies.parse(package.text(WORDS, vocabularies.MAX_BYTES))
    vocabularies.ordered(by_id, given.words)
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


def _tensors(package: Package) -> str:
    found = [name for name in package.files if PurePosixPath(name).suffix in SUFFIXES]
    if len(found) != 1:
        raise InvalidPackage(
            f"expected one file with the model's tensors ({', '.join(SUFFIXES)}) beside {MAP}, "
            f"found {', '.join(sorted(found)[:5]) or 'none'}"
        )
    return found[0]


def _check_format(name: str, file: Inside) -> None:
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
