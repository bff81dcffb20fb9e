"""The published interface: the app's own, valid, and as OpenAPI 3.1 and RFC 9457 want it. Its page,
/docs, says everything, and what many routes share once.
"""

import contextlib
import json
import re
from html import unescape
from itertools import pairwise

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.testclient import TestClient

from helpers.interface import DOCUMENT, PUBLISHED, operations
from service.contract import errors
from service.contract.api.analyses import ProbesRequest
from service.contract.api.evaluations import EvaluationRequest
from service.contract.api.training import CaptionerInput, TrainingRequest
from service.contract.metrics import catalogue, families
from service.http import api_reference, app, problems, web_page
from service.http.routers.request_parameters import read_idempotency_key
from service.runs import training

OPERATIONS = [pytest.param(*found, id=found[2]["operationId"]) for found in operations()]
PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
SCHEMAS = DOCUMENT["components"]["schemas"]


def test_the_published_interface_is_the_apps():
    """Out of date? python -m service openapi > openapi/openapi.json"""
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == app.describe_api()


@pytest.mark.long
def test_the_interface_is_openapi_3_1():
    assert DOCUMENT["openapi"].startswith("3.1")
    OpenAPIV31SpecValidator(DOCUMENT).validate()


def test_no_two_paths_are_the_same_but_for_their_parameters_names():
    """The standard: such paths are identical, and tools see one of them."""
    shapes = sorted(re.sub(r"\{\w+\}", "{}", path) for path in DOCUMENT["paths"])
    assert all(one != other for one, other in pairwise(shapes))


def test_operations_have_names_that_a_client_may_give_its_functions():
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z]+(_[a-z]+){0,2}", name) for name in names)


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
def test_every_operation_is_told_in_words(method, path, operation):
    assert operation["summary"][0].isupper()
    assert re.search(r"[.)]$", operation["description"].strip())
    assert set(operation["tags"]) <= {tag["name"] for tag in DOCUMENT["tags"]}
    assert all("X-Request-ID" in answer["headers"] for answer in operation["responses"].values())


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
def test_every_refusal_is_a_problem_with_codes_that_exist(method, path, operation):
    known = {(kind.code, problems.find_status(kind)) for kind in _all(errors.PrescoreError)}
    known.add((problems.INTERNAL, 500))
    refusals = {int(s): r for s, r in operation["responses"].items() if int(s) >= 400}
    assert 500 in refusals
    for status, response in refusals.items():
        assert response.get("content", {}) == ({} if method == "HEAD" else PROBLEM)
        codes = re.findall("`([a-z_]+)`", response["description"].split("Code: ")[1])
        assert codes
        assert {(code, status) for code in codes} <= known


def test_every_refusal_that_a_route_gives_is_documented_somewhere():
    told = {
        code
        for _, _, operation in operations()
        for response in operation["responses"].values()
        for code in re.findall("`([a-z_]+)`", response["description"])
    }
    of_no_route = {"refused", "invalid_setting", "invalid_backup", "overloaded", "asset_refused"}
    of_no_route.add("url_failed")  # of what the service asks for by itself
    assert {kind.code for kind in _all(errors.RequestRefused)} - told <= of_no_route


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
def test_every_body_that_is_sent_or_answered_has_a_schema(method, path, operation):
    bodies = [operation["requestBody"]] if "requestBody" in operation else []
    is_submitted = operation["operationId"].startswith(
        ("submit_", "make_", "fetch_dataset", "inspect_")
    )
    assert bool(bodies) == (method in ("PUT", "PATCH") or is_submitted)
    for body in (*bodies, *operation["responses"].values()):
        for content in body.get("content", {}).values():
            assert content["schema"]
            assert content["schema"].get("items") != {}


def test_schemas_speak_json_schema_and_not_the_language_of_their_maker():
    """A keyword that nobody knows constrains nothing, and no validator minds it."""
    words = set(json.dumps(DOCUMENT).split('"'))
    assert not words & {"ge", "le", "gt", "lt", "min_length", "max_length"}


def test_what_is_answered_is_there_and_what_is_asked_knows_no_more():
    asked = {
        *("EvaluationRequest", "CaptionInput", "DecodingInput", "BertScoreInput", "TokensInput"),
        *("ProbesRequest", "ProbeOptions", "ComparisonRequest", "StudyRequest", "WebhookRequest"),
        *("TrainingRequest", "CaptionerInput", "RatingInput", "JudgementsInput"),
        *("PreferenceInput", "RunChange", "EvaluationChange"),
    }
    for name, schema in SCHEMAS.items():
        if name in asked:
            assert schema["additionalProperties"] is False
        else:
            assert set(schema["required"]) == set(schema["properties"]), name


def _request(**fields):
    return {"dataset": "flickr8k@v1/test", **fields}


DIGEST = f"sha256:{'0' * 64}"
CAPTIONS = [{"image": "1.jpg", "caption": "a child"}]
REQUESTS = [
    (_request(checkpoint=DIGEST), True),
    (_request(captions=CAPTIONS), True),
    (_request(captions=[{"image_id": 7, "caption": "a child"}]), True),
    (_request(captions=[{"image_id": "7", "caption": "a child"}]), True),
    (_request(captions=[{"image_id": 7, **CAPTIONS[0]}]), False),
    (_request(captions=[{"caption": "a child"}]), False),
    (_request(checkpoint=DIGEST, captions=None, pregen="all"), True),
    (_request(), False),
    (_request(checkpoint=DIGEST, captions=CAPTIONS), False),
    (_request(captions=CAPTIONS, pregen="all"), False),
    (_request(checkpoint=DIGEST, surprise=1), False),
    (_request(checkpoint=DIGEST, dataset="flickr8k"), False),
    (_request(checkpoint=DIGEST, labels={"branch": "main", "a" * 100: ""}), True),
    (_request(checkpoint=DIGEST, labels={"a\0": "main"}), False),
    (_request(checkpoint=DIGEST, labels={"": "main"}), False),
    (_request(checkpoint=DIGEST, labels={"a": 1}), False),
    (_request(checkpoint=DIGEST, labels={str(number): "" for number in range(51)}), False),
    (_request(checkpoint=DIGEST, decoding={"beam": 2.0}), True),
    (_request(checkpoint=DIGEST, decoding={"beam": "2"}), False),
    (_request(checkpoint=DIGEST, deadline=0), False),
    (_request(checkpoint=DIGEST, decoding={"length_power": 5.5}), False),
    (_request(checkpoint=DIGEST, precision="bf16", tokens={"top": 20, "entropy": True}), True),
    (_request(checkpoint=DIGEST, precision="fp16"), False),
    (_request(checkpoint=DIGEST, base="llava-hf/llava-1.5-7b-hf"), True),
    (_request(checkpoint=DIGEST, base=""), False),
    (_request(captions=CAPTIONS, base="tiny"), False),
    (_request(columns=DIGEST, base="tiny"), False),
    (_request(checkpoint=DIGEST, prompt="USER: <image>\nWhat is it?"), True),
    (_request(checkpoint=DIGEST, prompt="\n" * 1000), True),
    (_request(checkpoint=DIGEST, prompt="a" * 1001), False),
    (_request(checkpoint=DIGEST, prompt=""), False),
    (_request(checkpoint=DIGEST, prompt="a\tb"), False),
    (_request(checkpoint=DIGEST, prompt="a\u202eb"), False),
    (_request(captions=CAPTIONS, prompt="fp32"), False),
    (_request(columns=DIGEST, prompt="caption en"), False),
    (_request(checkpoint=DIGEST, tokens={"top": 21}), False),
    (_request(captions=CAPTIONS, precision="bf16"), False),
    (_request(captions=CAPTIONS, tokens={}), False),
    (_request(checkpoint=DIGEST, until="verdict", gates=["cider_d > 1"]), True),
    (_request(checkpoint=DIGEST, until="verdict", gates=[]), False),
]
JUDGED_LATER = {"pregen", "until"}  # with all metrics' names, with the gates


@pytest.mark.parametrize(("request_", "is_right"), REQUESTS)
def test_the_schema_of_requests_and_the_service_agree(request_, is_right):
    if is_right or not JUDGED_LATER & request_.keys():
        _check_agreed(EvaluationRequest, request_, is_right=is_right)
    else:
        assert not _judge(EvaluationRequest).is_valid(request_)


def _judge(model):
    """The validator of the model's schema in the document."""
    name = {"$ref": f"#/components/schemas/{model.__name__}"}
    return Draft202012Validator({**name, "components": DOCUMENT["components"]})


def _check_agreed(model, request, *, is_right, rules=lambda parsed: None):
    assert _judge(model).is_valid(request) is is_right
    refusals = ValidationError, errors.InvalidRequest
    with contextlib.nullcontext() if is_right else pytest.raises(refusals):
        rules(model.model_validate(request))


SOURCES = [
    ({}, False),
    ({"evaluation": "ev_1"}, True),
    ({"captions": CAPTIONS}, True),
    ({"evaluation": "ev_1", "captions": None}, True),
    ({"evaluation": None, "captions": None}, False),
    ({"evaluation": "ev_1", "captions": CAPTIONS}, False),
]


@pytest.mark.parametrize(("source", "is_right"), SOURCES)
def test_the_schema_and_the_service_agree_on_where_captions_come_from(source, is_right):
    """Of a captioner from one place, of probes from one at most."""
    _check_agreed(CaptionerInput, {"name": "a", **source}, is_right=is_right)
    _check_agreed(ProbesRequest, _request(**source), is_right=is_right or not any(source.values()))


CAPTIONER = {"name": "a", "evaluation": "ev_1"}
OF_PEOPLE = {"captioners": [{**CAPTIONER, "name": name} for name in "abc"]}
PAIR = {"references": ["a"], "a": "b", "b": "c", "preferred": "a"}
JUDGED = {"objective": "judged", "judgements": {"pairs": [PAIR]}}
TRAININGS = [
    (OF_PEOPLE, True),
    ({**OF_PEOPLE, "objective": "people", "judgements": None, "epochs": 3}, True),
    ({}, False),
    ({"objective": "contrast"}, True),
    ({"objective": "contrast", **OF_PEOPLE}, False),
    ({"objective": "contrast", "epochs": 3}, False),
    (JUDGED, True),
    ({"objective": "judged"}, False),
    ({"objective": "judged", "judgements": {"rated": []}}, False),
    ({**OF_PEOPLE, "judgements": {"pairs": [PAIR]}}, False),
    ({"objective": "taste"}, False),
]


@pytest.mark.parametrize(("given", "is_right"), TRAININGS)
def test_the_schema_of_a_training_takes_what_the_rules_take(given, is_right):
    """What the model lets pass, the rules refuse with its place."""
    rules = training._check_objective
    _check_agreed(TrainingRequest, _request(**given), is_right=is_right, rules=rules)


def test_the_names_of_metrics_in_the_schema_are_the_catalogues():
    properties = SCHEMAS["EvaluationRequest"]["properties"]
    of_lists = next(kind for kind in properties["pregen"]["anyOf"] if kind.get("type") == "array")
    pattern = of_lists["items"]["pattern"]
    assert all(re.search(pattern, name) for name in (*catalogue.PREGEN, *catalogue.ALIASES))
    assert not any(re.search(pattern, name) for name in (*catalogue.POSTGEN, "mean_max", "x_y_z"))
    plain, of_models = properties["postgen"]["items"]["anyOf"]
    assert set(catalogue.expand_groups(plain["enum"])) == set(catalogue.POSTGEN)
    for digits, is_right in (("0" * 12, True), (f"sha256:{'f' * 64}", True), ("0" * 11, False)):
        assert bool(re.search(of_models["pattern"], f"nneval@{digits}")) is is_right


def test_the_metrics_that_can_be_probed_are_in_the_schema():
    plain, of_models = SCHEMAS["ProbesRequest"]["properties"]["metrics"]["items"]["anyOf"]
    names = plain["enum"]
    assert all(re.search(of_models["pattern"], f"{n}@{'0' * 12}") for n in catalogue.LEARNED)
    found = catalogue.list_metric_tasks(catalogue.expand_groups(names))
    probed = {name for name, row in families.FAMILIES.items() if row.is_probed}
    assert (set(found), len(found)) == (probed, len(probed))
    assert "bleu" in names


def _query(path, name):
    parameters = DOCUMENT["paths"][path]["get"]["parameters"]
    return next(one["schema"] for one in parameters if one["name"] == name)


def _is_directed(name):
    return catalogue.find_metric(name).higher_is_better is not None


TAKEN = {
    "compared": (
        SCHEMAS["ComparisonRequest"]["properties"]["metrics"]["anyOf"][0]["items"],
        catalogue.is_summed,
    ),
    "ranked": (_query("/v1/datasets/{name}/leaderboard", "metric"), _is_directed),
    "listed": (_query("/v1/datasets/{name}/history", "metric"), bool),
    "sorted": (_query("/v1/evaluations/{id}/captions", "sort"), bool),
}


@pytest.mark.parametrize(("schema", "is_taken"), TAKEN.values(), ids=TAKEN)
def test_the_metrics_that_are_taken_are_in_the_schema(schema, is_taken):
    has = Draft202012Validator(schema).is_valid
    for name in (*catalogue.METRICS, *catalogue.ALIASES):
        assert has(name) is is_taken(name), name
    assert has(f"nneval@{'0' * 12}"), "a model of a learned metric"
    assert not any(map(has, ("cider_e", "nneval@0", "mean_max_normcount", "")))


def test_captions_are_sorted_downwards_by_a_name_with_one_sign():
    has = Draft202012Validator(TAKEN["sorted"][0]).is_valid
    assert all(has(f"-{name}") for name in (*catalogue.METRICS, *catalogue.ALIASES))
    assert not any(map(has, ("-", "--cider_d", "+cider_d")))


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
def test_links_lead_to_operations_with_such_parameters(method, path, operation):
    known = {
        operation["operationId"]: {parameter["name"] for parameter in operation["parameters"]}
        for _, _, operation in operations()
        if "parameters" in operation
    }
    is_made = operation["operationId"].startswith(("submit_", "upload_"))
    for status, response in operation["responses"].items():
        links = response.get("links", {})
        assert bool(links) or not (is_made and status in ("200", "201", "202"))
        for link in links.values():
            assert link["parameters"].keys() <= known[link["operationId"]]


KEYS = [
    ("a", "a"),
    ('"a b"', "a b"),
    ("a" * 255, "a" * 255),
    ('"' + '\\"' * 255 + '"', '"' * 255),
    ("a b", None),
    ("", None),
    ('""', None),
    ("a" * 256, None),
    (f'"{"a" * 256}"', None),
    ('"a', None),
    ('"\\x"', None),
    ("ü", None),
]


@pytest.mark.parametrize(("header", "key"), KEYS)
def test_the_pattern_of_idempotency_keys_is_what_is_accepted(header, key):
    parameters = DOCUMENT["paths"]["/v1/evaluations"]["post"]["parameters"]
    schema = next(one["schema"] for one in parameters if one["name"] == "Idempotency-Key")
    assert Draft202012Validator(schema).is_valid(header) is (key is not None)
    if key is not None:
        assert read_idempotency_key(header) == key
    else:
        with pytest.raises(errors.InvalidRequest):
            read_idempotency_key(header)


def _all(kind):
    for child in kind.__subclasses__():
        yield child
        yield from _all(child)


def test_every_refusal_has_an_http_status():
    for kind in _all(errors.RequestRefused):
        assert any(parent in problems.STATUS for parent in kind.__mro__[:-4]), kind
        assert 400 <= problems.find_status(kind) < 600


def test_the_tree_in_the_errors_module_names_every_error():
    for kind in _all(errors.PrescoreError):
        assert f" {kind.__name__} " in errors.__doc__ or f"{kind.__name__}\n" in errors.__doc__, (
            kind
        )


PAGE = unescape("".join(api_reference.render_page(DOCUMENT, "/ui/files/0")))


def _section(method, path):
    """What the page says of an operation."""
    found = PAGE.partition(f"<summary><code>{method} {path}</code>")[2].partition("</details>")[0]
    assert found, (method, path)
    return found


def test_what_every_request_may_be_answered_is_told_once():
    usual = PAGE.partition('id="refusals"')[2].partition("</table>")[0]
    for status in ("403", "408", "421", "431", "500"):
        assert f"<td>{status}</td>" in usual
        assert PAGE.count(f"<td>{status}</td>") == 1


def test_each_operation_names_every_status_that_it_may_answer():
    for method, path, operation in operations():
        told, _, usual = _section(method, path).partition('<a href="#refusals">')
        own = re.findall("<td>([0-9]{3})</td>", told)
        linked = re.findall("[0-9]{3}", usual)
        assert sorted([*own, *linked]) == sorted(operation["responses"]), path


def test_the_root_says_where_it_is():
    """The routes that are named are there, and need no record."""
    bare = Starlette()
    bare.openapi = lambda: DOCUMENT
    bare.title, bare.version = "Prescore", "1"
    api_reference.ApiReference(bare, web_page.WebPage(bare))
    client = TestClient(bare)
    found = client.get("/").json()
    assert (found["name"], found["ready"]) == ("Prescore", "/readyz")
    assert client.get(found["docs"]).status_code == 200
    assert client.get(found["openapi"]).json() == DOCUMENT
