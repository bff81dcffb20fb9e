import os
from pathlib import Path

import pytest
import torch

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """Real captions, features and published tables: PRESCORE_DATA, or ../shared/data."""
    path = Path(os.environ.get("PRESCORE_DATA", _BESIDE))
    if not path.is_dir():
        pytest.skip(f"no data: neither PRESCORE_DATA nor {_BESIDE} is a folder")
    return path


@pytest.fixture(scope="session", autouse=True)
def _two_threads() -> None:
    torch.set_num_threads(2)
