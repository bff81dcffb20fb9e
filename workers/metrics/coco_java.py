"""The Java classes of the COCO caption code, called in process: PTB of CoreNLP 3.4.1, METEOR 1.5.

Runs in `jvm_child` alone, where Java has been started.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import jpype

from workers.metrics.jvm_child import ItemFailed, Operation, package_file

JARS = ("tokenizer/stanford-corenlp-3.4.1.jar", "meteor/meteor-1.5.jar")
_PARAPHRASES = "meteor/data/paraphrase-en.gz"

# The tokeniser looks one line ahead: "wii u." keeps its full stop or not by how the next caption
# begins. So every caption is followed by the same line, and its tokens depend on itself alone. A
# capital, as people's captions begin with: 0 of 121,494 raw captions of Flickr8k, Flickr30k and
# COCO differ from the command line's (a small letter: 2).
_BETWEEN = "A"


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
    """The loop of the tokeniser's own `main`, which is private: one crossing from Python to Java
    for a whole batch instead of one for every token (1.6 s against 10 s for 40,460 captions).
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
    answers = []
    for place, (caption, references) in enumerate(items):
        try:
            answers.append(_meteor(caption, references))
        except Exception as error:  # Java's exceptions and errors are Python's here
            raise ItemFailed(place, error) from error
    return answers


def _meteor(caption: str, references: Sequence[str]) -> tuple[float, list[float]]:
    texts = jpype.JClass("java.util.ArrayList")([jpype.JString(text) for text in references])
    found = _scorer().getMeteorStats(jpype.JString(caption), texts)
    # Added to nothing, as the jar adds them over a corpus: a perfect match then has no chunk.
    summand = jpype.JClass("edu.cmu.meteor.scorer.MeteorStats")()
    summand.addStats(found)
    statistics = [float(number) for number in str(summand.toString()).split()[:23]]
    return float(found.score), statistics


@cache
def _scorer() -> Any:
    """Reads the table of paraphrases: some five seconds and most of the heap. Once."""
    configuration = jpype.JClass("edu.cmu.meteor.scorer.MeteorConfiguration")()
    configuration.setLanguage("en")
    constants = jpype.JClass("edu.cmu.meteor.util.Constants")
    configuration.setNormalization(constants.NORMALIZE_KEEP_PUNCT)  # what -norm means
    paraphrases = jpype.JClass("java.io.File")(str(package_file(_PARAPHRASES)))
    configuration.setParaFileURL(paraphrases.toURI().toURL())
    return jpype.JClass("edu.cmu.meteor.scorer.MeteorScorer")(configuration)


OPERATIONS: Mapping[str, Operation] = {"ptb": ptb, "meteor": meteor}
