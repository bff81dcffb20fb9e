"""Names of the sources, as far as a test can see them: CONTRIBUTING, "Names"."""

import ast
import functools
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(
    path
    for room in ("service", "workers")
    for path in (ROOT / room).rglob("*.py")
    if "migrations" not in path.parts
)
# Words that end as participles do, and are nouns of the field.
NOUNS = {
    *("accord_training", "children", "decoding", "judging", "lightning", "nneval_fitting"),
    *(
        "nneval_training",
        "packing",
        "planning",
        "polling",
        "postgen",
        "pregen",
        "preprocessing",
        "probing",
        "ranking",
    ),
    *("recording", "scoring", "signing", "tracing", "training", "wording"),
}
# Rooms that CONTRIBUTING's map explains.
ROOMS = {"learned", "outbound", "stored"}
PARTICIPLE = re.compile(r"\w+(ed|ing|en|old|aid|ound)")
NO_BEGINNING = re.compile(
    r"(What|Who|Whom|Whose|Whether|How|Where|When|Which|That|It|They|Such"
    r"|As|By|For|From|In|Of|To)\b"
)


@functools.cache
def _trees():
    return [(path.relative_to(ROOT), ast.parse(path.read_text("utf-8"))) for path in SOURCES]


def test_class_names_are_unique():
    files = defaultdict(list)
    for path, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                files[node.name].append(str(path))
    assert len(files) > 500
    assert {name: places for name, places in files.items() if len(places) > 1} == {}


def test_modules_are_named_by_nouns():
    names = {path.parent.name if path.stem == "__init__" else path.stem for path in SOURCES}
    participles = {name for name in names if PARTICIPLE.fullmatch(name)}
    assert participles == NOUNS | ROOMS


@pytest.mark.parametrize("of", [ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef])
def test_docstrings_begin_with_a_noun_or_a_verb(of):
    wrong = [
        f"{path}: {text.splitlines()[0]}"
        for path, tree in _trees()
        for node in ast.walk(tree)
        if isinstance(node, of) and (text := ast.get_docstring(node)) and NO_BEGINNING.match(text)
    ]
    assert wrong == []
