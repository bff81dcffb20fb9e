"""What schemathesis cannot read in `openapi.json`, so that what it sends as right is right.

`openapi/schemathesis.toml` loads this file. It gives the service a dataset, checkpoints and
evaluations, and completes the requests that are meant to be right: page tokens are those of
answers, bytes are those of a file and have the digest in the path, captions are of the images of
the split, and a new body has a new Idempotency-Key. Requests that are meant to be wrong stay as
they are.
"""

import hashlib
import io
import itertools
import json
import os
import re
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import schemathesis
from schemathesis import BaseSchema, Case, HookContext, Response

from helpers import example_files
from helpers.fleet import TUS, tus_creation, tus_part
from service.contract.formats import bundles
from service.contract.metrics import catalogue, families

schemathesis.serializer.alias(["application/offset+octet-stream"], "application/octet-stream")

with tempfile.TemporaryDirectory() as folder:
    _FILES = example_files.make(Path(folder))
BUNDLE = _FILES["studied.tar"]
COLUMNS = _FILES["model.columns.safetensors"]
CHECKPOINTS = [
    content
    for name, content in _FILES.items()
    if name.endswith(".safetensors") and content != COLUMNS
]
SPLIT = "right/test"
OF_COLUMNS = "brought@v1/test"  # of which others may bring a second version
STUDIED = "studied/test"  # with the evaluations that a study needs, and no others
FEATURES = families.list_usual_features()


def _images() -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(BUNDLE)) as archive:
        lines = archive.extractfile(bundles.CAPTIONS).read().splitlines()
    return [json.loads(line)["image"] for line in lines]


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


IMAGES = _images()
CAPTIONS = json.dumps([{"image": image, "caption": "a dog"} for image in IMAGES]).encode()
DIGEST = _digest(CHECKPOINTS[0])
KEY = os.environ.get("RIGHT_REQUESTS_KEY")
ASKS = {} if KEY is None else {"Authorization": f"Bearer {KEY}"}
MOST_UNFINISHED = 50
LATEST = 2.0  # seconds, of answers that wait for nothing
STREAMS = ("/v1/events", "/v1/evaluations/{id}/events")
evaluations: list[str] = []  # of the checkpoints
unfinished: list[str] = []  # uploads
following: dict[str, str] = {}  # by list: the token of the next page


@schemathesis.hook
def after_load_schema(_: HookContext, schema: BaseSchema) -> None:
    with httpx.Client(base_url=schema.get_base_url(), headers=ASKS, timeout=90) as client:
        bundles_of = {SPLIT: BUNDLE, STUDIED: BUNDLE, OF_COLUMNS: _FILES["holiday.tar"]}
        for split, bundle in bundles_of.items():
            name = re.split("[@/]", split)[0]
            client.put(f"/v1/datasets/{name}", content=bundle).raise_for_status()
        client.put(f"/v1/columns/{_digest(COLUMNS)}", content=COLUMNS).raise_for_status()
        for data in CHECKPOINTS:
            client.put(f"/v1/checkpoints/{_digest(data)}", content=data).raise_for_status()
            body = {"checkpoint": _digest(data), "dataset": STUDIED, "postgen": ["cider_d"]}
            begun = client.post("/v1/evaluations", json=body).raise_for_status()
            ended = client.get(begun.headers["Location"], headers={"Prefer": "wait=60"})
            evaluations.append(ended.json()["id"])
            assert ended.json()["status"] == "succeeded", ended.text


def _checkpoint(case: Case) -> None:
    case.path_parameters["digest"] = DIGEST
    case.body = CHECKPOINTS[0]


def _columns(case: Case) -> None:
    case.path_parameters["digest"] = _digest(COLUMNS)
    case.body = COLUMNS


def _captions(case: Case) -> None:
    """In one form: all of them as a file, or those that are looked for."""
    query = case.query or {}
    if query.get("format") is not None:
        looked_for = ("sort", "search", "image", "at_least", "at_most")
    else:
        looked_for = () if query.get("sort") is not None else ("at_least", "at_most")
    for name in looked_for:
        query.pop(name, None)


def _listening(case: Case) -> None:
    case.query["seconds"] = 1


def _append(case: Case) -> None:
    case.media_type = "application/offset+octet-stream"
    case.headers = tus_part(0)


def _upload(case: Case) -> None:
    case.headers = tus_creation(len(CHECKPOINTS[0]), kind="checkpoint", digest=DIGEST)


def _dataset(case: Case) -> None:
    case.body = BUNDLE


def _inspection(case: Case) -> None:
    case.body = CAPTIONS
    case.query.update(dataset=SPLIT)


def _study(case: Case) -> None:
    case.body["dataset"] = STUDIED


def _comparison(case: Case) -> None:
    case.body.update(a=evaluations[0], b=evaluations[1])
    if case.body.get("metrics"):
        case.body["metrics"] = ["cider_d"]


def _probes(case: Case) -> None:
    body = case.body
    body["dataset"] = SPLIT
    _answer_the_images(body)
    if "metrics" in body:
        body["metrics"] = _of_shipped_models(body["metrics"]) or ["bleu_1"]
    if body.get("evaluation") is not None:
        body.update(dataset=STUDIED, evaluation=evaluations[0])


def _training(case: Case) -> None:
    body = case.body
    for number, captioner in enumerate(body.get("captioners") or ()):
        captioner["name"] = str(number)
        captioner.pop("trained_on", None)
        _answer_the_images(captioner)
    body["dataset"] = SPLIT
    body.pop("stopping", None)
    body.pop("further", None)
    if body.get("captioners"):
        body["features"] = FEATURES


def _evaluation(case: Case) -> None:
    body = case.body
    body["dataset"] = SPLIT
    _answer_the_images(body)
    if body.get("checkpoint") is not None:
        body["checkpoint"] = DIGEST
    body.pop("units", None)  # the columns tell no pieces
    body.pop("base", None)  # the checkpoint is no adapter
    body.pop("prompt", None)  # the checkpoint reads none
    if body.get("columns") is not None:
        body.update(columns=_digest(COLUMNS), dataset=OF_COLUMNS)
        body.pop("captions", None)
        body.pop("postgen", None)
    if body.get("gates"):
        of_captions = body.get("columns") is None
        body["gates"] = ["cider_d >= 0.1" if of_captions else "perplexity <= 100"]
    if "postgen" in body:
        body["postgen"] = _of_shipped_models(body["postgen"])
    decoding = body.get("decoding", {})
    if "min_words" in decoding:
        decoding["max_words"] = max(decoding["min_words"], decoding.get("max_words", 50))


def _of_shipped_models(metrics: list[str]) -> list[str]:
    """Without those that name a model, which the service has not got."""
    return [name for name in metrics if catalogue.read_model_digits(name) is None]


def _answer_the_images(body: dict[str, Any]) -> None:
    """Let the captions of `body`, if it has any, be one for each image of the split."""
    if texts := [caption["caption"] for caption in body.get("captions") or ()]:
        pairs = zip(IMAGES, itertools.cycle(texts), strict=False)
        body["captions"] = [{"image": image, "caption": text} for image, text in pairs]


COMPLETED: Mapping[str, Callable[[Case], None]] = {
    "append_upload": _append,
    "create_upload": _upload,
    "inspect_captions": _inspection,
    "list_captions": _captions,
    "upload_checkpoint": _checkpoint,
    "upload_columns": _columns,
    "upload_dataset": _dataset,
    "stream_team_events": _listening,
    "submit_comparison": _comparison,
    "submit_evaluation": _evaluation,
    "submit_probes": _probes,
    "submit_study": _study,
    "submit_training": _training,
}


@schemathesis.hook
def before_call(_: HookContext, case: Case, __: dict[str, Any]) -> None:
    if case.path_parameters.get("id") in evaluations and case.method == "DELETE":
        case.path_parameters["id"] = "ev_of_nothing"  # studies and comparisons are of these
    if case.operation.path == "/v1/events" and "seconds" not in (case.query or {}):
        case.query = {**(case.query or {}), "seconds": 1}  # else it has no end
    if case.operation.path.startswith("/v1/uploads"):  # another version, or none, is 412
        case.headers = {**(case.headers or {}), **TUS}
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    complete = COMPLETED.get(case.operation.definition.raw["operationId"])
    if complete is not None:
        complete(case)
    if case.query and case.query.get("cursor") is not None:
        case.query["cursor"] = following.get(_list_of(case))
    if case.headers and "Idempotency-Key" in case.headers:
        text = json.dumps([case.path, case.body], sort_keys=True, default=str)
        case.headers["Idempotency-Key"] = hashlib.sha256(text.encode()).hexdigest()
    for name in ("If-Match", "if-match"):  # whose right value is that of an answer
        case.headers.pop(name, None)
    if case.headers and "wait" in case.headers.get("Prefer", ""):
        case.headers["Prefer"] = "wait=1"


@schemathesis.hook
def after_call(_: HookContext, case: Case, response: Response) -> None:
    if case.operation.path not in STREAMS and "Prefer" not in (case.headers or {}):
        assert response.elapsed < LATEST, f"{case.operation.label}: {response.elapsed:.1f} s"
    if response.status_code == 202:  # what a run makes is there when it has ended
        place = case.operation.base_url + response.headers["location"][0]
        httpx.get(place, headers={"Prefer": "wait=60", **ASKS}, timeout=90)
    if response.status_code == 201 and case.operation.path == "/v1/uploads":
        _give_up_the_first(case, response.headers["location"][0])
    if response.status_code == 200 and response.headers.get("content-type") == ["application/json"]:
        answer = response.json()
        if isinstance(answer, dict) and answer.get("next"):
            following[_list_of(case)] = answer["next"]


def _give_up_the_first(case: Case, place: str) -> None:
    """Of a hundred unfinished uploads, which are as many as a service takes."""
    unfinished.append(place)
    if len(unfinished) > MOST_UNFINISHED:
        url = case.operation.base_url + unfinished.pop(0)
        httpx.delete(url, headers=ASKS, timeout=90)


def _list_of(case: Case) -> str:
    """What is listed: the address without the page."""
    query = {k: v for k, v in (case.query or {}).items() if k not in ("cursor", "limit")}
    return f"{case.formatted_path}?{json.dumps(query, sort_keys=True, default=str)}"
