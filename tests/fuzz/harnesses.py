"""What is fuzzed, one row each: where its inputs come from, and what has to hold of each."""

import hashlib
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hypothesis import strategies as st

from fuzz import edits, gate_texts, header_fields, judged
from fuzz.bounds import bounded, traced

CORPUS = Path(__file__).parent / "corpus"
CRASH = "crash-"  # how the names of inputs begin that failed once


class Input(bytes):
    """Shown by its beginning: hypothesis warns of what is shown at length."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{len(self):,} bytes {self[:200]!s}"


Inputs = Callable[[str], st.SearchStrategy[bytes]]  # made of what lies in a folder of the corpus


def kept(folder: str) -> dict[str, bytes]:
    """The committed inputs, those that failed once among them."""
    return {each.name: each.read_bytes() for each in sorted((CORPUS / folder).iterdir())}


def seeds(folder: str) -> list[bytes]:
    """Right inputs."""
    return [data for name, data in kept(folder).items() if not name.startswith(CRASH)]


def changed(folder: str) -> st.SearchStrategy[bytes]:
    """A right input with changes anywhere."""
    return st.builds(edits.edited, st.sampled_from(seeds(folder)), edits.EDITS)


def of_tensors(folder: str) -> st.SearchStrategy[bytes]:
    """A safetensors file with changes anywhere, in its header, or in one entry of its metadata."""
    files = st.sampled_from(seeds(folder))
    return st.one_of(
        changed(folder),
        st.builds(edits.header_edited, files, edits.EDITS),
        st.builds(edits.entry_edited, files, st.integers(0, 20), edits.EDITS),
    )


def of_files(folder: str) -> st.SearchStrategy[bytes]:
    """A package with a changed file, and changes of packages themselves."""
    found = [edits.unpacked(each) for each in seeds(folder) if b"\0" in each]
    files = st.builds(
        edits.file_edited,
        st.sampled_from(found),
        st.integers(0, 300),
        edits.EDITS,
        st.sampled_from(edits.INNER),
    )
    packed = st.builds(edits.packed, files, st.sampled_from(edits.HOW))
    again = st.one_of(st.builds(edits.edited, packed, edits.EDITS), changed(folder))
    return st.one_of(packed, again, again.map(edits.summed))


def of_texts(texts: st.SearchStrategy[bytes], folder: str) -> st.SearchStrategy[bytes]:
    return st.one_of(texts, changed(folder))


def of_anything(_: str) -> st.SearchStrategy[bytes]:
    return st.one_of(*map(changed, ("checkpoints", "packages", "datasets")), st.binary())


@dataclass
class Harness:
    """`examples`: as many as take a second. `failed`: the last input that failed."""

    folder: str
    inputs: Inputs
    check: Callable[[bytes], None]
    examples: int
    known: set[str] = field(default_factory=set)
    failed: bytes = b""

    def made(self) -> st.SearchStrategy[bytes]:
        return self.inputs(self.folder).map(Input)

    def held(self, data: bytes) -> None:
        """Raises where something does not hold, unless it is known to fail at this place."""
        try:
            with bounded():
                self.check(data)
        except Exception as error:
            if place_of(error) in self.known:
                return
            self.failed = data
            raise

    def replayed(self, data: bytes) -> None:
        """A kept input, with its memory counted."""
        self.check(data)  # what is imported at the first time is not the input's
        with traced():
            self.check(data)
        with bounded():
            self.check(data)

    def keep(self, folder: Path) -> str:
        """Write the input that failed into a folder; returns how it is tried again."""
        name = hashlib.sha256(self.failed).hexdigest()[:12]
        path = folder / f"{CRASH}{name}"
        path.write_bytes(self.failed)
        corpus = (CORPUS / self.folder).relative_to(CORPUS.parents[2])
        return f"the input is {path}; to try it each time: cp {path} {corpus}/"


def place_of(error: BaseException) -> str:
    """By which failures are told apart: the kind, and the innermost line."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(at.filename).name}:{at.lineno}"


HARNESSES = {
    "checkpoints": Harness("checkpoints", of_tensors, judged.checkpoint, 150),
    "packages": Harness("packages", of_files, judged.checkpoint, 60),
    "columns": Harness("columns", of_tensors, judged.columns, 150),
    "datasets": Harness("datasets", of_files, judged.dataset, 60),
    "anything": Harness("anything", of_anything, judged.told, 300),
    "gates": Harness("gates", partial(of_texts, gate_texts.TEXTS), gate_texts.check, 150),
    "fields": Harness("fields", partial(of_texts, header_fields.TEXTS), header_fields.check, 200),
}
