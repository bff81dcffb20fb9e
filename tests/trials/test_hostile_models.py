"""Hostile folders of vision-language models, uploaded to a fleet: they are refused, and nobody else
waits for it.
"""

import json
import re
import shutil
import time

import pytest

from helpers import vision_language_folders
from helpers.fleet import checkpoint, digest, until, upload
from helpers.submissions import submit
from helpers.tars import packed_folder

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

_EXPAND = {"type": "Replace", "pattern": {"String": "r"}, "content": "q" * 1_000_000}
HOSTILE = {
    "a tokenizer that makes a million letters of one": (
        "tokenizer.json",
        {"normalizer": _EXPAND},
        "its normalizer may make more than 64 characters",
    ),
    "a template without an end": (
        "chat_template.jinja",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "took longer than",
    ),
    "pictures of 10^12 pixels": (
        "preprocessor_config.json",
        '{"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 1000000}}',
        "[Mm]emory",
    ),
    "a template that reaches attributes": (
        "chat_template.jinja",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "SecurityError",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_folder_is_refused_and_nobody_waits(kind, fleet, tmp_path):
    name, text, told = HOSTILE[kind]
    saved = vision_language_folders.save_model(tmp_path / "model", "llava")
    copy = shutil.copytree(saved.folder, tmp_path / "copy")
    if isinstance(text, dict):
        text = json.dumps({**json.loads((copy / name).read_text()), **text})
    (copy / name).write_text(text)
    content = packed_folder(copy)
    with fleet.client_at("127.0.0.1") as one, fleet.client_at("127.0.0.2") as other:
        assert one.put(f"/v1/checkpoints/{digest(content)}", content=content).status_code < 300
        seed = 950 + [*HOSTILE].index(kind)
        small = upload(other, checkpoint(seed=seed))
        began = time.monotonic()
        quick = submit(other, checkpoint=small, postgen=[])

        def is_scored():
            tasks = other.get(f"/v1/evaluations/{quick}").json()["tasks"]
            return next(task for task in tasks if task["name"] == "prefix")["status"] == "done"

        until(is_scored, 10, "first scores of another")
        print(f"first scores of another after {time.monotonic() - began:.1f} s")

        def described():
            found = one.get(f"/v1/checkpoints/{digest(content)}").json()
            return found if found["state"] == "invalid" else None

        problem = until(described, 150, "the refusal")["problem"]
        assert re.search(told, problem["detail"]), problem
        print(f"refused after {time.monotonic() - began:.1f} s: {problem['detail']}")
