"""The JUnit format that Jenkins, GitLab and GitHub's actions read, as far as they agree.

There is no standard: this is what Ant's XML schema and Jenkins' xUnit plugin have in common,
written down as a table. `validate` returns the suites.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from xml.etree import ElementTree as ET

TEXT, NUMBER, COUNT = "text", "number", "count"
TIME = "an ISO time without a zone"


@dataclass(frozen=True)
class Shape:
    required: dict[str, str]
    optional: dict[str, str]
    children: tuple[str, ...]  # in this order; `*` after one of which there may be many
    words: bool = False


TOTALS = {"tests": COUNT, "failures": COUNT, "errors": COUNT, "time": NUMBER}
PROBLEM = Shape({"type": TEXT}, {"message": TEXT}, (), words=True)
SHAPES = {
    "testsuites": Shape({}, {"name": TEXT, **TOTALS}, ("testsuite*",)),
    "testsuite": Shape(
        {"name": TEXT, **TOTALS},
        {"skipped": COUNT, "timestamp": TIME, "hostname": TEXT},
        ("properties", "testcase*", "system-out", "system-err"),
    ),
    "properties": Shape({}, {}, ("property*",)),
    "property": Shape({"name": TEXT, "value": TEXT}, {}, ()),
    "testcase": Shape(
        {"name": TEXT, "classname": TEXT, "time": NUMBER},
        {},
        ("skipped", "error", "failure", "system-out", "system-err"),
    ),
    "skipped": Shape({}, {"message": TEXT}, (), words=True),
    "error": PROBLEM,
    "failure": PROBLEM,
    "system-out": Shape({}, {}, (), words=True),
    "system-err": Shape({}, {}, (), words=True),
}


def validate(content):
    """The root, of which every element, attribute and order is as the table says."""
    root = ET.fromstring(content)  # noqa: S314  our own output
    assert root.tag == "testsuites"
    for element in root.iter():
        _valid(element)
    for suite in root:
        cases = suite.findall("testcase")
        assert int(suite.get("tests")) == len(cases)
        for plural, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(plural, 0)) == len(suite.findall(f"testcase/{tag}"))
        assert all(sum(len(case.findall(tag)) for tag in SHAPES) <= 2 for case in cases)
    return root


def _valid(element):
    shape = SHAPES[element.tag]
    kinds = {**shape.required, **shape.optional}
    assert set(shape.required) <= set(element.attrib) <= set(kinds), element.attrib
    for name, value in element.attrib.items():
        assert _fits(kinds[name], value), (element.tag, name, value)
    pattern = "".join(
        f"(<{child.rstrip('*')}>){'*' if child.endswith('*') else '?'}" for child in shape.children
    )
    assert re.fullmatch(pattern, "".join(f"<{child.tag}>" for child in element)), element.tag
    assert shape.words or not (element.text or "").strip()
    assert not (element.tail or "").strip()


def _fits(kind, value):
    if kind == COUNT:
        return value.isdecimal()
    if kind == NUMBER:
        return re.fullmatch(r"\d+(\.\d+)?", value)
    if kind == TIME:
        return datetime.fromisoformat(value).tzinfo is None
    return True
