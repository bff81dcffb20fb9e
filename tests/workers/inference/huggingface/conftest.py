from collections.abc import Callable

import pytest
import torch

from helpers import huggingface_folders as folders
from helpers import synthetic_pictures
from helpers.huggingface_folders import Saved


@pytest.fixture(scope="session")
def saved(tmp_path_factory) -> Callable[..., Saved]:
    """A folder of a kind of captioner; each is made once."""
    made: dict[tuple[str, bool], Saved] = {}

    def of(kind: str, *, trained: bool) -> Saved:
        if (kind, trained) not in made:
            folder = tmp_path_factory.mktemp("saved") / f"{kind}-{trained}"
            made[kind, trained] = folders.make(folder, kind, trained=trained)
        return made[kind, trained]

    return of


@pytest.fixture(scope="session")
def pixels() -> Callable[..., torch.Tensor]:
    """The made-up pictures as the library's own image processor prepares them."""

    def of(kind: str, images: int) -> torch.Tensor:
        rows = list(synthetic_pictures.pictures(images, seed=3))
        return folders.processor(kind)(rows, return_tensors="pt")["pixel_values"]

    return of
