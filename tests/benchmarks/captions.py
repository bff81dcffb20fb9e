"""The post-gen metrics of a dataset's second checkpoint: the references are prepared, Java is warm.
Beside them pycocoevalcap's own, as it is called, gensim, and SPICE's parser.

Real captions where there are data (COCO's test references, a published captioner's outputs), else
made-up ones of the same size and lengths.
"""

import contextlib
import io
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from baselines import gensim_distances  # beside this file
from numpy.typing import NDArray
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.meteor.meteor import Meteor
from pycocoevalcap.rouge.rouge import Rouge
from rows import Row, processor_seconds, seconds  # beside this file

from helpers import encoders
from helpers.outside import Absent
from oracles import coco_scorers
from parity import systems
from service.contract import assets
from service.contract.assets import AssetFolders
from service.contract.errors import MetricUnavailable
from workers.metrics import postgen, references, spice_tuples
from workers.metrics.families import wmd
from workers.metrics.families.wmd import STOP_WORDS
from workers.metrics.family import FamilyMeasures, ScoringInput
from workers.metrics.java.jvm import Jvm
from workers.metrics.references import PreparedReferences
from workers.metrics.scene_graphs import Tuples
from workers.metrics.spice_tuples import TupleStore
from workers.metrics.tokens import tokenize
from workers.metrics.vectors import text_encoder, word_vectors

_SHARED = Path(__file__).resolve().parents[3] / "shared"
DATA = Path(os.environ.get("PRESCORE_DATA", _SHARED / "data"))
ASSETS = Path(os.environ.get("PRESCORE_ASSETS", _SHARED / "assets"))

_WARM = 3  # checkpoints before the one that is timed: Java compiles what it runs often
_PARSED = 100  # captions
_SIZE = 300  # of made-up word vectors: GoogleNews's
_NAMES = {
    "ptb": "PTB",
    "bleu": "BLEU-1..4",
    "rouge_l": "ROUGE-L",
    "cider_d": "CIDEr-D",
    "meteor": "METEOR",
}
_WMD = wmd.make_wmd_family("wmd", unit=False)
_SCORERS = {"bleu": lambda: Bleu(4), "rouge_l": Rouge, "cider_d": Cider, "meteor": Meteor}


@dataclass(frozen=True)
class Captions:
    name: str
    captions: list[str]
    references: list[list[str]]

    def describe(self) -> str:
        people = sum(map(len, self.references))
        return f"{self.name}, {len(self.captions)} captions, {people} references"


def given(images: int) -> Captions:
    if not DATA.is_dir():
        return made_up(images)
    people = systems.references(DATA, "mscoco")[:images]
    said = systems.system(DATA, "mscoco", "init_1").captions[:images]
    return Captions("COCO test", said, people)


def made_up(images: int) -> Captions:
    """Words by Zipf's law, ten or so to a caption."""
    rng = np.random.default_rng(0)
    words = ["a", "on", "the", "of", "in", "with", "man", "is", "dog", "sits", "street", "riding"]
    share = 1 / np.arange(1, len(words) + 1)

    def text() -> str:
        drawn = rng.choice(words, max(5, int(rng.normal(10.5, 2.4))), p=share / share.sum())
        return " ".join(drawn)

    people = [[text() for _ in range(5)] for _ in range(images)]
    return Captions("made up", [text() for _ in range(images)], people)


def measure(case: Captions) -> list[Row]:
    theirs, expected = package(case)
    with Jvm() as jvm:
        prepared = references.prepare_references(case.references, "ptb", jvm)
        ours, found = _ours(case, prepared, jvm)
        tokens = tokenize(case.captions, "ptb", jvm)
        task = ScoringInput(tokens, np.arange(prepared.images), prepared, jvm)
        others = [*_distances(task), *_by_encoder(case, task), *_tuples(task, jvm)]
    notes = {"ptb": "captions; the baseline needs the references' as well"}
    for family, (corpus, scores) in expected.items():
        values = list(found[family].captions.values())
        apart = np.abs(np.array(values).squeeze() - np.array(scores)).max()
        notes[family] = f"{np.ravel(corpus)[-1]:.4f}; every caption's within {apart:.1g}"
    notes["meteor"] += "; theirs with its start"
    rows = [
        Row(name, ours[key], "pycocoevalcap", theirs[key], notes[key])
        for key, name in _NAMES.items()
    ]
    whole = Row("all of them", sum(ours.values()), "pycocoevalcap", sum(theirs.values()))
    return [*rows, whole, *others]


def package(case: Captions) -> tuple[dict[str, float], dict[str, coco_scorers.Scores]]:
    """Seconds and scores of pycocoevalcap, by family."""
    texts: list[list[list[str]]] = []
    sides = (case.references, [[caption] for caption in case.captions])
    took = {"ptb": seconds(lambda: texts.extend(coco_scorers.tokenize(side) for side in sides))}
    gts, res = (dict(enumerate(side)) for side in texts)
    scores = {}
    with contextlib.redirect_stdout(io.StringIO()), coco_scorers.java():
        for family, scorer in _SCORERS.items():
            took[family] = seconds(
                lambda: scores.update({family: scorer().compute_score(gts, res)})  # noqa: B023
            )
    return took, scores


def _ours(
    case: Captions, prepared: PreparedReferences, jvm: Jvm
) -> tuple[dict[str, float], dict[str, postgen.FamilyScores]]:
    took, scores = {}, {}
    rows = np.arange(prepared.images)
    for _ in range(_WARM + 1):
        tokens: list[str] = []
        took["ptb"] = seconds(lambda: tokens.extend(tokenize(case.captions, "ptb", jvm)))  # noqa: B023
        for family in _SCORERS:
            took[family] = seconds(
                lambda: scores.update(
                    {family: postgen.score_tokens(family, tokens, prepared, rows, jvm)}  # noqa: B023
                )
            )
    return took, scores


def _distances(task: ScoringInput) -> Iterator[Row]:
    words, vectors = _vectors(task.references)
    keys = b"".join(word_vectors.hash_word(word.encode()) for word in words)
    collected = word_vectors.collect_vectors("benchmark", vectors, keys)
    with_vectors = replace(task, tools={"vectors": collected})
    found: list[FamilyMeasures] = []
    took = seconds(lambda: found.append(_WMD.measure(with_vectors)), 3)
    plain, expected = gensim_distances(task, words, vectors)
    apart = np.abs(found[0].captions["wmd_distance"][: len(expected)] - expected).max()
    note = f"{vectors.shape[1]} numbers a word; distances within {apart:.1g}"
    yield Row("WMD", took, "gensim, pair by pair (a part, scaled)", plain, note)


def _vectors(prepared: PreparedReferences) -> tuple[list[str], NDArray[np.float32]]:
    if DATA.is_dir():
        stored = np.load(DATA / "wordvec" / "captions_w2v100_f16.npz")
        return list(map(str, stored["words"])), stored["vectors"].astype(np.float32)
    words = [word for word in prepared.words if word]
    rng = np.random.default_rng(1)
    return words, rng.normal(size=(len(words), _SIZE)).astype(np.float32) / 10


def _by_encoder(case: Captions, task: ScoringInput) -> Iterator[Row]:
    """Each embeds captions and references; where an evaluation has both, references are embedded
    once.
    """
    cache = Path(__file__).resolve().parents[2] / "build" / "benchmarks"
    cache.mkdir(parents=True, exist_ok=True)
    try:
        model = text_encoder.read_encoder(encoders.minilm(cache))
    except Absent as error:
        print(f"no row for accord_large: {error}")
        return
    tools = {"encoder": model, "texts": case.captions, "people": case.references}
    written = replace(task, captions=case.captions, tokenizer=None, tools=tools)
    both = replace(task, tokenizer="ptb", tools=tools)
    accord = replace(both, tools={})
    alone = processor_seconds(lambda: postgen.score_family("bertscore", written))
    small = processor_seconds(lambda: postgen.score_family("accord", accord))
    took = processor_seconds(lambda: postgen.score_family("accord_large", both))
    note = f"seconds of the processor, as is `accord` alone: {small:.3g}"
    yield Row("accord_large by MiniLM", took, "BERTScore (ours)", alone, note)


def _tuples(task: ScoringInput, jvm: Jvm) -> Iterator[Row]:
    """SPICE where every caption has been parsed before; not here, it takes half an hour: their
    tuples are made up. Beside it, what the captions alone cost where nobody has seen them.
    """
    try:
        places = AssetFolders(Path("/nowhere"), ASSETS)
        jars = [assets.locate_asset(name, places).path for name in ("corenlp", "corenlp-grammar")]
    except MetricUnavailable as error:
        print(f"no row for SPICE: {error.detail}")
        return
    texts = list(dict.fromkeys(task.captions))
    people = {text for image in task.references.captions for text in image}
    known = {spice_tuples.clip_caption(text): _made_up_tuples(text) for text in {*texts, *people}}
    with tempfile.TemporaryDirectory() as folder:
        store = TupleStore(Path(folder) / "tuples.sqlite", spice_tuples.PARSER)
        store.put(known)
        parse = spice_tuples.TupleParser(spice_tuples.make_jvm([]), store).parse
        score = partial(postgen.score_tokens, "spice", task.captions, task.references, task.rows)
        took = seconds(lambda: score(jvm, parse=parse), 3)
    parser = spice_tuples.TupleParser(spice_tuples.make_jvm(jars))
    parser.parse(texts[:1])
    parsing = seconds(lambda: parser.parse(texts[:_PARSED])) * len(texts) / _PARSED
    parser.close()
    many = sum(map(len, known.values())) / len(known)
    note = f"{len(known)} texts, {many:.1f} tuples each (real ones: 7)"
    yield Row("SPICE, all known", took, f"parsing {len(texts)} captions (scaled)", parsing, note)


def _made_up_tuples(text: str) -> Tuples:
    """Of words that are not stop words every other is an object, and the one before it its
    attribute; neighbours are related.
    """
    words = [word for word in text.split() if word not in STOP_WORDS]
    objects = words[1::2]
    attributes = zip(objects, words[::2], strict=False)
    relations = ([one, other, "on"] for one, other in pairwise(objects))
    return [*([word] for word in objects), *map(list, attributes), *relations]
