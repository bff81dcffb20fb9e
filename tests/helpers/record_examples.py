"""Writes the service's present answers to openapi/examples. Run it by
`PYTHONPATH=tests python -m helpers.record_examples`.

Values that still agree stay as written; look at the differences before you commit them.
"""

import contextlib
import tempfile
from pathlib import Path

from helpers.example_files import FOLDER, make
from helpers.examples import CANCELED, EXAMPLES, UNDER_WAY, Story, text_of
from helpers.service_here import service_here

with contextlib.ExitStack() as stack:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    service = stack.enter_context(service_here(folder / "home"))
    story = Story(stack.enter_context(service.client()), make(folder))
    for example, written in EXAMPLES.items():
        if example in (UNDER_WAY, CANCELED):
            with service.held():
                story.answer(CANCELED)
        story.answer(example)
        reading = story.read(example)
        for difference in reading.differences:
            print(f"{example}{difference}")
        path = FOLDER / f"{example}.json"
        new = {**written, "response": reading.expected}
        path.write_text(text_of(new) + "\n", encoding="utf-8")
