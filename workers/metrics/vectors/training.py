"""Word vectors learned from captions by gensim's Word2Vec: equal captions give an equal file.

Skip-gram, since captions are few: on Flickr8k's 30,000, `wmd_unit` by CBOW agrees less with people.
One thread trains, since several would add up in another order each time.
"""

import io
import logging
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from service.contract.errors import AssetRefused
from workers.progress import Progress, ignore_progress

_LEAST_COUNT = 5  # of a word in the captions; with all words, people agree no more
_LEAST_WORDS = 10


@dataclass(frozen=True)
class VectorTraining:
    """Options of a training; `size`: numbers in a vector."""

    size: int = 100
    epochs: int = 10
    seed: int = 0


def train(
    captions: Sequence[str],
    path: Path,
    options: VectorTraining,
    progress: Progress = ignore_progress,
) -> None:
    """Train vectors on captions, which are tokens joined by blanks, and write them in word2vec's
    binary format. `progress` counts epochs. Raises AssetRefused if too few words stand in the
    captions often enough.
    """
    from gensim.models.callbacks import CallbackAny2Vec
    from gensim.models.word2vec import LineSentence, Word2Vec

    logging.getLogger("gensim").setLevel(logging.ERROR)  # it advises to take more threads
    lines = LineSentence(io.BytesIO("\n".join(captions).encode()))
    model = Word2Vec(
        vector_size=options.size,
        min_count=_LEAST_COUNT,
        sg=1,
        workers=1,
        seed=options.seed,
        hashfxn=lambda word: zlib.crc32(word.encode()),  # `hash` differs from process to process
    )
    model.build_vocab(lines)
    words = len(model.wv)
    if words < _LEAST_WORDS:
        raise AssetRefused(
            f"expected at least {_LEAST_WORDS} words that stand {_LEAST_COUNT} times or more in "
            f"the captions, found {words} in {len(captions)} captions: train on more captions, or "
            "register word vectors from elsewhere with `prescore assets add word-vectors PATH`"
        )
    progress(0, options.epochs)
    numbers, each_epoch = count(1), CallbackAny2Vec()
    each_epoch.on_epoch_end = lambda _: progress(next(numbers), options.epochs)
    model.train(lines, total_examples=len(captions), epochs=options.epochs, callbacks=[each_epoch])
    model.wv.save_word2vec_format(str(path), binary=True)
