"""Captions to SPICE's tuples. Parsing takes nearly all of SPICE's time, so a caption's tuples are
found once and kept by its content (`tuple_store.py`).
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from service.contract.errors import MetricFailed
from service.contract.formats.outputs import LONGEST_PARSED
from service.contract.plan import assets
from service.contract.plan.assets import Places
from workers.files import atomic
from workers.metrics.java.jvm import Jvm
from workers.metrics.scenes.scene_graphs import Tuples
from workers.metrics.scenes.tuple_store import TupleStore
from workers.progress import Progress, ignore_progress

PARSER = "spice1.0+corenlp3.6.0"  # what tuples depend on besides their caption

_CORES = os.cpu_count() or 1
_BATCH = 10 * _CORES  # captions in one request: half a second, unless they are very long
_HEAP_MB, _HEAP_MB_PER_CORE = 768, 64
_START_SECONDS = 60.0  # Java reads its grammar in 1.5 s, on a busy machine in 20 s
_SECONDS_PER_CUBIC_WORD = 1.5e-4  # ten times what was measured
_FORMAT = 1


class Parser:
    """A parser in Java. `jars` are CoreNLP and its grammar; `store` keeps tuples."""

    def __init__(self, jars: Sequence[Path], store: TupleStore | None = None) -> None:
        heap = _HEAP_MB + _HEAP_MB_PER_CORE * _CORES
        self._jvm = Jvm("spice", heap=f"{heap}m", jars=jars)
        self._store = store

    def parse(
        self, captions: Sequence[str], *, progress: Progress = ignore_progress
    ) -> dict[str, Tuples]:
        """Tuples of each different caption (tokens joined by blanks). Java starts only for
        captions that nobody has parsed before. Raises MetricFailed and JavaFailed as `Jvm.call`.
        """
        texts = {caption: readable(caption) for caption in captions}
        distinct = list(dict.fromkeys(texts.values()))
        found = self._store.get(distinct) if self._store else {}
        unknown = sorted((text for text in distinct if text not in found), key=len)

        def as_before(_done: int, _total: int) -> None:
            progress(len(found), len(distinct))

        progress(len(found), len(distinct))
        for start in range(0, len(unknown), _BATCH):
            batch = unknown[start : start + _BATCH]
            answers = self._jvm.call("tuples", batch, deadline=_deadline(batch), progress=as_before)
            parsed = dict(zip(batch, answers, strict=True))
            if self._store:
                self._store.put(parsed)
            found |= parsed
            progress(len(found), len(distinct))
        return {caption: found[text] for caption, text in texts.items()}

    def close(self) -> None:
        self._jvm.close()


def from_assets(places: Places, *, remember: bool = True) -> Parser:
    """A parser from what `prescore assets` added. Raises MetricUnavailable if that is missing."""
    jars = [assets.locate(name, places).path for name in ("corenlp", "corenlp-grammar")]
    store = TupleStore(places.home / "cache" / "tuples.sqlite", PARSER) if remember else None
    return Parser(jars, store)


def readable(caption: str) -> str:
    """The part of a caption that is parsed: its first words, in characters that Java accepts."""
    return " ".join(caption.split()[:LONGEST_PARSED]).encode("utf-8", "replace").decode("utf-8")


def write(path: Path, tuples: Mapping[str, Tuples]) -> None:
    """Write the tuples by caption as one JSON file."""
    content = {"prescore_tuples": _FORMAT, "parser": PARSER, "tuples": tuples}
    text = json.dumps(content)
    atomic.write(path, lambda partial: partial.write_text(text, "utf-8"))


def read(path: Path) -> dict[str, Tuples]:
    """Read a file that `write` made. Raises MetricFailed if the file is something else."""
    try:
        content = json.loads(path.read_text("utf-8"))
        if content["prescore_tuples"] != _FORMAT or content["parser"] != PARSER:
            raise MetricFailed(f"expected tuples of {PARSER} in {path.name}")
        found: dict[str, Tuples] = content["tuples"]
    except (ValueError, KeyError, TypeError) as error:
        raise MetricFailed(f"{path.name} is not a file of tuples: {error}") from None
    return found


def _deadline(batch: Sequence[str]) -> float:
    words = (len(text.split()) for text in batch)
    return _START_SECONDS + _SECONDS_PER_CUBIC_WORD * sum(count**3 for count in words)
