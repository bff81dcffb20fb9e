"""openapi/examples: each is performed against a service, and valid by openapi.json.

In process: an example is a request and an answer.
"""

import re

import pytest

from helpers import interface
from helpers.example_files import FOLDER, make
from helpers.examples import CANCELED, EXAMPLES, UNDER_WAY, Reading, Story

README = (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def story(service, tmp_path_factory):
    with service.client() as client:
        yield Story(client, make(tmp_path_factory.mktemp("files")))


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_service_answers_as_the_example_says(service, story, name):
    if name in (UNDER_WAY, CANCELED):
        with service.held():
            story.answer(CANCELED)
    story.answer(name)
    assert story.read(name).differences == []


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_answered_is_documented(name):
    request, response = EXAMPLES[name]["request"], EXAMPLES[name]["response"]
    path, operation = interface.find(request["method"], request["path"])
    documented = operation["responses"][str(response["status"])]
    answers = documented.get("content", {})
    assert set(response.get("headers", {})) <= {"Content-Type", *documented["headers"]}
    assert ("body" in response) == bool(answers and request["method"] != "HEAD")
    if "body" not in response:
        return
    if "$lines" not in response["body"]:
        kinds = [kind for kind in answers if kind.endswith(("/json", "+json"))]
        interface.check_value(path, answers[kinds[0]]["schema"], response["body"])
    elif "text/event-stream" in answers:
        for event in _events(response["body"]["$lines"]):
            interface.check_event(event)


def _events(lines):
    for block in "\n".join(lines).strip().split("\n\n"):
        if block.startswith(":"):  # a comment
            continue
        yield dict(line.split(": ", 1) for line in block.split("\n"))


def test_every_operation_has_an_example():
    shown = {
        interface.find(example["request"]["method"], example["request"]["path"])[1]["operationId"]
        for example in EXAMPLES.values()
    }
    assert shown == {operation["operationId"] for _, _, operation in interface.operations()}


def test_the_readme_leads_through_all_examples():
    assert sorted(re.findall(r"\]\(([a-z-]+)\.json\)", README)) == sorted(EXAMPLES)


WRONG = [
    ({"a": 1}, {"a": 2}),
    ({"a": 1}, {"a": True}),
    ({"a": 1}, {"a": 1, "b": 2}),
    ({"a": 1, "b": 2}, {"a": 1}),
    ({"a": 0.5}, {"a": 0.501}),
    ({"a": "x 0.5"}, {"a": "x 0.501"}),
    ({"a": "x 5"}, {"a": "x 6"}),
    ({"a": None}, {"a": 0}),
    ({"a": [1, 2]}, {"a": [1]}),
    ({"some": [1, 2]}, {"some": [2, 1]}),
    ({"some": [3]}, {"some": [1, 2]}),
    ({"other": {"a": 1}}, {"other": {"b": 1}}),
]


@pytest.mark.parametrize(("written", "found"), WRONG)
def test_an_answer_that_differs_is_noticed(written, found):
    reading = Reading({"varies": ["/v/*"], "shortened": ["/some", "/other"]}, {})
    assert reading.value(written, found, ()) == found or {"some", "other"} & written.keys()
    assert reading.differences
