"""Writes into openapi/examples what the service answers now: run it by its path.

What still holds stays as it is written; look at the difference before you keep it.
"""

import tempfile
from pathlib import Path

from example_files import FOLDER, make
from examples import EXAMPLES, Story, text_of
from fleet import Fleet

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    fleet = Fleet(folder / "home").start()
    try:
        with fleet.client() as client:
            story = Story(client, make(folder))
            for example, written in EXAMPLES.items():
                story.answer(example)
                reading = story.read(example)
                for difference in reading.differences:
                    print(f"{example}{difference}")
                path = FOLDER / f"{example}.json"
                new = {**written, "response": reading.expected}
                path.write_text(text_of(new) + "\n", encoding="utf-8")
    finally:
        fleet.stop()
