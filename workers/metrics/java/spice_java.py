"""SPICE 1.0's parser, called in process: captions to tuples, by CoreNLP 3.6.0's grammar.

Runs only in `jvm_child`. The pipeline is our own, without the annotator `ner`, whose results SPICE
does not read: it needs one grammar instead of 378 MB of models, and finds the same tuples.
"""

import gzip
import os
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import jpype

from workers.metrics.java.jvm_child import JavaItemFailed, Operation, find_package_file

JARS = (
    "spice/spice-1.0.jar",
    "spice/lib/SceneGraphParser-1.0.jar",
    "spice/lib/Meteor-1.5.jar",
    "spice/lib/ejml-0.23.jar",
    "spice/lib/guava-19.0.jar",
    "spice/lib/json-simple-1.1.1.jar",
    "spice/lib/slf4j-api-1.7.12.jar",
    "spice/lib/slf4j-simple-1.7.21.jar",
)
OPTIONS = (
    # Without memory, the parser would take a sentence for one without structure and go on, and the
    # score would be wrong. So Java ends, and says why.
    "-XX:+ExitOnOutOfMemoryError",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)

# A chart takes 26 kB times the square of the number of words: captions with more words than this
# are parsed one at a time.
_LONG = 40
_MOST = 100  # tokens; a sentence with more (words without blanks between them) has no tuples

# The pronoun resolver reads CoreNLP's coreference lists, but uses only the pronouns, which are in
# its code. So empty lists are enough.
_LISTS = "edu/stanford/nlp/models/dcoref/"
_EMPTY_LISTS = (
    *("demonyms.txt", "animate.unigrams.txt", "inanimate.unigrams.txt", "countries"),
    *("state-abbreviations.txt", "statesandprovinces", "ne.signatures.txt"),
    *("coref.dict1.tsv", "coref.dict2.tsv", "coref.dict3.tsv", "coref.dict4.tsv"),
)
_EMPTY_MAP = bytes.fromhex(  # a java.util.HashMap, as Java's serialization writes it
    "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f"
    "724900097468726573686f6c6478703f400000000000007708000000100000000078"
)


def class_path() -> list[str]:
    return [*(str(find_package_file(jar)) for jar in JARS), _empty_lists()]


def tuples(captions: Sequence[str]) -> list[list[list[str]]]:
    """The tuples of captions. Short captions are parsed together, on all cores."""
    notes = [jpype.JClass("edu.stanford.nlp.pipeline.Annotation")(text) for text in captions]
    short = [note for note, text in zip(notes, captions, strict=True) if _is_short(text)]
    _pipeline().annotate(jpype.JClass("java.util.ArrayList")(short))
    for note, text in zip(notes, captions, strict=True):
        if not _is_short(text):
            _pipeline().annotate(note)
    return [_tuples(place, note) for place, note in enumerate(notes)]


def _is_short(text: str) -> bool:
    return len(text.split()) <= _LONG


def _tuples(place: int, note: Any) -> list[list[str]]:
    parser, parse, found = _parser()
    try:
        proposed = found.get(parse.invoke(parser, [note]))
    except Exception as error:  # one of Java's exceptions, which wraps another
        raise JavaItemFailed(place, error.__cause__ or error) from error
    return [[str(word) for word in words] for words in proposed]


@cache
def _pipeline() -> Any:
    properties = jpype.JClass("java.util.Properties")()
    for name, value in {
        "annotators": "tokenize,ssplit,parse,lemma",
        "depparse.extradependencies": "MAXIMAL",
        "parse.maxlen": str(_MOST),
    }.items():
        properties.setProperty(name, value)
    return jpype.JClass("edu.stanford.nlp.pipeline.StanfordCoreNLP")(properties)


@cache
def _parser() -> tuple[Any, Any, Any]:
    """SPICE's parser, its protected method, and the field of the answer that holds the tuples."""
    parser = jpype.JClass("edu.anu.spice.SpiceParser")(None, 1, True)  # noqa: FBT003  Java's order
    methods = jpype.JClass("edu.anu.spice.SpiceParser").class_.getDeclaredMethods()
    (parse,) = [method for method in methods if str(method.getName()) == "parseAnnotation"]
    proposed = jpype.JClass("edu.anu.spice.SpiceParser$ProposedTuples")
    field = proposed.class_.getDeclaredField("tuples")
    for member in (parse, field):
        member.setAccessible(True)
    return parser, parse, field


def _empty_lists() -> str:
    """The path of a jar with the empty lists. It is in memory, so there is no file to remove."""
    jar = os.memfd_create("empty-lists.jar")
    with zipfile.ZipFile(os.fdopen(os.dup(jar), "wb"), "w") as archive:
        for name in _EMPTY_LISTS:
            archive.writestr(_LISTS + name, b"")
        archive.writestr(f"{_LISTS}gender.map.ser.gz", gzip.compress(_EMPTY_MAP))
    return f"/proc/self/fd/{jar}"


OPERATIONS: Mapping[str, Operation] = {"tuples": tuples}
