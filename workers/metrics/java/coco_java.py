"""The Java classes of the COCO caption code, called in process: PTB of CoreNLP 3.4.1, METEOR 1.5.

Runs only in `jvm_child`, where Java has been started.
"""

import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, lru_cache
from threading import Lock, local
from typing import Any

import jpype

from workers.metrics.java.jvm_child import JavaItemFailed, Operation, find_package_file

JARS = ("tokenizer/stanford-corenlp-3.4.1.jar", "meteor/meteor-1.5.jar")
OPTIONS = ()
_PARAPHRASES = "meteor/data/paraphrase-en.gz"

_THREADS = 4  # at most, one scorer in each
_MUCH = 5000  # characters: from here on METEOR needs much memory, so captions go one at a time
_ENGLISH = (0, True)  # the jar's number of the language; keep punctuation
_REMEMBERED = 8192  # images' references, a kilobyte each
_PLAIN = re.compile("(?:[a-z0-9]+(?: [a-z0-9]+)*)?")
_kept, _one_at_a_time = local(), Lock()

# The tokeniser looks one line ahead: how the next caption begins decides whether "wii u." keeps its
# full stop. So the same line follows every caption, and a caption's tokens depend on it alone. The
# line is a capital, as people's captions begin with one: 0 of 121,494 raw captions of Flickr8k,
# Flickr30k and COCO differ from the command line's (with a small letter: 2).
_BETWEEN = "A"


def class_path() -> list[str]:
    return [str(find_package_file(jar)) for jar in JARS]


def ptb(texts: Sequence[str]) -> list[str]:
    """Texts without line breaks -> their tokens, in small letters, joined by blanks."""
    lines = _tokenized("".join(f"{text}\n{_BETWEEN}\n" for text in texts)).split("\n")
    marks = {_BETWEEN.lower()}
    if len(lines) == 2 * len(texts) + 1 and set(lines[1::2]) <= marks:
        return lines[:-1:2]
    return [_alone(text) for text in texts]  # some text has a line break that we do not know of


def _alone(text: str) -> str:
    lines = _tokenized(f"{text}\n{_BETWEEN}\n").split("\n")
    return " ".join(line for line in lines[:-2] if line)


def _tokenized(text: str) -> str:
    """The tokens of a text, by the loop of the tokeniser's own `main`, which is private: one call
    from Python to Java for a whole batch instead of one for every token (1.6 s instead of 10 s for
    40,460 captions).
    """
    result = jpype.JClass("java.io.StringWriter")()
    writer = jpype.JClass("java.io.BufferedWriter")(result)
    reader = jpype.JClass("java.io.StringReader")(text)
    options = jpype.JString("tokenizeNLs")  # what -preserveLines means
    boolean = jpype.JClass("java.lang.Boolean")
    preserve_lines, dump, lower_case = boolean.TRUE, boolean.FALSE, boolean.TRUE
    _token_reader().invoke(None, [reader, writer, None, options, preserve_lines, dump, lower_case])
    writer.flush()
    return str(result.toString())


@cache
def _token_reader() -> Any:
    methods = jpype.JClass("edu.stanford.nlp.process.PTBTokenizer").class_.getDeclaredMethods()
    (found,) = [method for method in methods if str(method.getName()) == "tokReader"]
    found.setAccessible(True)
    return found


def meteor(items: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[float, list[float]]]:
    """(caption, its references) -> (score, 23 statistics that can be added over captions)."""
    _scorer()  # called here, before there are threads
    many = min(_THREADS, os.cpu_count() or 1)
    answers: list[Any] = [None] * len(items)
    for first, found in enumerate(
        _threads(many).map(_every, [items] * many, range(many), [many] * many)
    ):
        answers[first::many] = found
    return answers


def _every(
    items: Sequence[tuple[str, Sequence[str]]], first: int, step: int
) -> list[tuple[float, list[float]]]:
    answers = []
    for place in range(first, len(items), step):
        try:
            answers.append(_bounded(*items[place]))
        except Exception as error:  # Java's exceptions and errors are Python's here
            raise JavaItemFailed(place, error) from error
    return answers


def _bounded(caption: str, references: Sequence[str]) -> tuple[float, list[float]]:
    if len(caption) + sum(map(len, references)) < _MUCH:
        return _meteor(caption, _remembered(tuple(references)))
    with _one_at_a_time:
        return _meteor(caption, _listed(references))


def _meteor(caption: str, references: Any) -> tuple[float, list[float]]:
    found = _own_scorer().getMeteorStats(_normalized(caption), references)
    # Added to empty statistics, as the jar adds over a corpus: a perfect match then has no chunk.
    summand = jpype.JClass("edu.cmu.meteor.scorer.MeteorStats")()
    summand.addStats(found)
    statistics = [float(number) for number in str(summand.toString()).split()[:23]]
    return float(found.score), statistics


@lru_cache(maxsize=_REMEMBERED)
def _remembered(references: tuple[str, ...]) -> Any:
    """Java's references of an image, kept for the next checkpoint of the dataset."""
    return _listed(references)


def _listed(references: Sequence[str]) -> Any:
    return jpype.JClass("java.util.ArrayList")([_normalized(text) for text in references])


def _normalized(text: str) -> Any:
    """The text as -norm makes it. Plain captions need none of it: a fifth of a score's time."""
    if _PLAIN.fullmatch(text):
        return jpype.JString(text)
    normalizer = jpype.JClass("edu.cmu.meteor.util.Normalizer")
    return normalizer.normalizeLine(jpype.JString(text), *_ENGLISH).toLowerCase()


@cache
def _threads(many: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(many)


def _own_scorer() -> Any:
    """The thread's own scorer. All share the tables, as the jar's copies are meant to."""
    if not hasattr(_kept, "scorer"):
        _kept.scorer = jpype.JClass("edu.cmu.meteor.scorer.MeteorScorer")(_scorer())
    return _kept.scorer


def meteor_table(items: Sequence[None]) -> list[None]:
    """Begin to read the table; the next requests are answered meanwhile."""
    _reading()
    return list(items)


def _scorer() -> Any:
    return _reading().result()


@cache
def _reading() -> "Future[Any]":
    return ThreadPoolExecutor(1).submit(_read_table)


def _read_table() -> Any:
    """Read the table of paraphrases once: it takes five to ten seconds and most of the heap."""
    configuration = jpype.JClass("edu.cmu.meteor.scorer.MeteorConfiguration")()
    configuration.setLanguage("en")
    constants = jpype.JClass("edu.cmu.meteor.util.Constants")
    configuration.setNormalization(constants.NO_NORMALIZE)  # `_normalized` does so where needed
    paraphrases = jpype.JClass("java.io.File")(str(find_package_file(_PARAPHRASES)))
    configuration.setParaFileURL(paraphrases.toURI().toURL())
    normalizer = jpype.JClass("edu.cmu.meteor.util.Normalizer")
    normalizer.normalizeLine("a. b", *_ENGLISH)  # reads a list: never in two threads at once
    return jpype.JClass("edu.cmu.meteor.scorer.MeteorScorer")(configuration)


OPERATIONS: Mapping[str, Operation] = {
    "ptb": ptb,
    "meteor": meteor,
    "meteor_table": meteor_table,
}
