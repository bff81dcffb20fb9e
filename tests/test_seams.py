"""The sources, read as trees: what is known in one place is spelled in one, and names are as
CONTRIBUTING says, as far as a test can see them.
"""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.contract import results
from service.contract.metrics.families import FAMILIES
from service.contract.results import SUMMARIES, ScoreSummary
from service.runs.kinds import KINDS

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "service/engine",
    "service/access",
    "service/stored",
    "service/runs",
    "service/retention",
    "service/webhooks",
    "service/http",
    "workers",
)
# Where summaries are written and read: elsewhere the same words are tensors' or answers' names.
AT_THE_RECORD = (
    "service/engine",
    "service/runs",
    "service/retention",
    "service/webhooks",
    "workers/jobs",
    "workers/offline",
    "workers/runtime",
)


@functools.cache
def _sources() -> dict[str, list[ast.AST]]:
    """All that each is made of."""
    return {
        str(path.relative_to(ROOT)): [*ast.walk(ast.parse(path.read_text("utf-8")))]
        for room in ("service", "workers")
        for path in sorted((ROOT / room).rglob("*.py"))
        if "build" not in path.relative_to(ROOT).parts  # the copy that `pip install` leaves
        if "migrations" not in path.parts
    }


def _nodes(*rooms) -> Iterator[tuple[str, list[ast.AST]]]:
    beginnings = tuple(f"{room}/" for room in rooms)
    return ((path, nodes) for path, nodes in _sources().items() if path.startswith(beginnings))


def _asked_by_name(nodes) -> Iterator[tuple[int, object]]:
    """`x["name"]`, `x.get("name")`, `x.pop("name")`."""
    for node in nodes:
        match node:
            case ast.Subscript(slice=ast.Constant(value=name)):
                yield node.lineno, name
            case ast.Call(
                func=ast.Attribute(attr="get" | "pop"), args=[ast.Constant(value=name), *_]
            ):
                yield node.lineno, name


def _read_by_name(keys, *rooms) -> list[tuple[str, int, object]]:
    return [
        (path, line, name)
        for path, nodes in _nodes(*rooms)
        for line, name in _asked_by_name(nodes)
        if name in keys
    ]


def test_a_summarys_key_is_read_as_a_field_and_nowhere_by_its_name():
    """service/contract/results.py alone spells them."""
    keys = {key for model in (ScoreSummary, *SUMMARIES.values()) for key in model.model_fields}
    assert {"scores", "intervals", "estimate", "comparison", "forecast", "rows", "health"} <= keys
    assert _read_by_name(keys - _OTHERS_TOO, *AT_THE_RECORD) == []


# Words of summaries that are parameters and inputs of tasks too, which are named in keys.
_OTHERS_TOO = {"tokenizer", "features", "training"}


def test_what_a_run_keeps_of_its_request_is_read_as_a_field_too():
    kept = (
        results.StoredEvaluation,
        results.StoredBaseline,
        results.StoredComparison,
        results.StoredStudy,
    )
    keys = {key for model in kept for key in model.model_fields}
    of_tasks = {"a", "b", "checkpoint", "pregen", "decoding", "precision"}
    of_tasks |= {"tokenizer", "idf", "bertscore", "units", "prompt"}
    of_tasks |= {"result", "metrics"}  # a column, and a role
    assert _read_by_name(keys - of_tasks, "service/engine", "service/runs") == []


def _calls(nodes, *methods) -> Iterator[tuple[int, str]]:
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr=attr, value=of), args=[first, *_]) if (
                attr in methods
            ):
                yield node.lineno, f"{ast.unparse(of)}.{attr}({ast.unparse(first)})"


def test_no_kind_of_run_is_told_by_how_its_id_begins():
    prefixes = {offered.kind.prefix for offered in KINDS.values()}
    assert "ev" in prefixes
    beginnings = {f"{prefix}_" for prefix in prefixes}
    found = []
    for path, nodes in _nodes(*ROOMS):
        found += [
            (path, line, text)
            for line, text in _calls(nodes, "startswith")
            if any(f"{quote}{each}" in text for each in beginnings for quote in "'\"")
            or text.split(".")[-2] in ("id", "identity")
        ]
        found += [
            (path, node.lineno, node.value)
            for node in nodes
            if isinstance(node, ast.Constant) and node.value in beginnings
        ]
    assert found == []


def test_no_dataset_is_found_by_the_text_of_an_answer():
    """Rows are found by columns; the JSON of an answer is for who asked."""
    found = []
    for path, nodes in _nodes("service/engine", "service/stored", "service/runs"):
        found += [(path, *call) for call in _calls(nodes, "like", "contains", "__eq__")]
        found += [
            (path, node.lineno, ast.unparse(node))
            for node in nodes
            if isinstance(node, ast.Compare) and "model_dump_json" in ast.unparse(node)
        ]
    assert found == []


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_of_run_is_named_as_its_row_is(name):
    kind = KINDS[name].kind
    assert kind.name == name
    assert kind.new_id().partition("_")[0] == kind.prefix


# Where a family of metrics may be named: its row, and how it is computed.
_OF_FAMILIES = ("service/contract/metrics/", "workers/metrics/")
_NAMED_ELSEWHERE = {
    ("service/contract/plan/planning.py", "cider_d"): "strata are cut by it (SORTED_BY)",
    ("service/contract/results.py", "bertscore"): "the field of a request with its options",
    ("service/http/routers/leaderboard.py", "cider_d"): "the metric of a board where none is asked",
    ("service/runs/sweep_scores.py", "cider_d"): "a score that may foretell a final one",
    ("service/runs/sweep_scores.py", "meteor"): "a score that may foretell a final one",
    ("service/runs/sweep_scores.py", "rouge_l"): "a score that may foretell a final one",
    ("service/operate/demo.py", "cider_d"): "what the demo shows",
    ("workers/bench/probing/constant_search.py", "cider_d"): "the bound of this one formula",
    ("workers/bench/probing/constant_search.py", "rouge_l"): "the bound of this one formula",
    ("workers/bench/probing/constant_objectives.py", "cider_d"): "the bound of this one formula",
    ("workers/bench/learned/accord_judgements.py", "cider_d"): "beside the metric that was learned",
    ("workers/bench/study/tables.py", "meteor"): "a column of the published table",
    ("workers/bench/study/tables.py", "cider_d"): "a column of the published table",
    ("workers/bench/study/tables.py", "spice"): "a column of the published table",
    ("workers/bench/study/tables.py", "wmd"): "a column of the published table",
}


def test_no_family_of_metrics_is_named_but_in_its_row_and_where_it_is_computed():
    """What holds for one family is a fact of its row: service/contract/metrics/families.py."""
    found = {
        (path, node.value)
        for path, nodes in _sources().items()
        for node in nodes
        if isinstance(node, ast.Constant) and node.value in FAMILIES
        if not path.startswith((*_OF_FAMILIES, "service/client/"))
    }
    assert found == set(_NAMED_ELSEWHERE)


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
ROOMS_OF_THE_MAP = {"learned", "outbound", "stored"}
PARTICIPLE = re.compile(r"\w+(ed|ing|en|old|aid|ound)")
NO_BEGINNING = re.compile(
    r"(What|Who|Whom|Whose|Whether|How|Where|When|Which|That|It|They|Such"
    r"|As|By|For|From|In|Of|To)\b"
)


def test_class_names_are_unique():
    files = defaultdict(list)
    for path, nodes in _sources().items():
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                files[node.name].append(path)
    assert len(files) > 500
    assert {name: places for name, places in files.items() if len(places) > 1} == {}


def test_modules_are_named_by_nouns():
    names = {path.removesuffix("/__init__.py").removesuffix(".py") for path in _sources()}
    named = {name.rpartition("/")[2] for name in names}
    assert {name for name in named if PARTICIPLE.fullmatch(name)} == NOUNS | ROOMS_OF_THE_MAP


def test_docstrings_begin_with_a_noun_or_a_verb():
    described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    wrong = [
        f"{path}: {text.splitlines()[0]}"
        for path, nodes in _sources().items()
        for node in nodes
        if isinstance(node, described)
        and (text := ast.get_docstring(node))
        and NO_BEGINNING.match(text)
    ]
    assert wrong == []
