"""A short list of objects, as users bring one."""

from pathlib import Path

OBJECTS = """\
person, man, woman, child, people, baby, passenger, rider
dog, puppy
bird, goose, duck
bear, panda
train, locomotive
airplane, jet, air plane
bus, trolley
tie, bow
chair, seat, stool
toilet, potty
knife
mouse
hot dog
wine glass
sandwich
dining table, table
cell phone, phone
"""
FIRST = [line.split(",")[0] for line in OBJECTS.splitlines()]  # the first name of each object


def write(path: Path, text: str = OBJECTS) -> Path:
    path.write_text(text, "utf-8")
    return path
