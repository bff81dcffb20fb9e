"""What a converter performs, and nothing else: Prescore's own operations, by name. No code goes
through its socket.
"""

from collections.abc import Mapping
from typing import Literal

Kind = Literal["once", "stays"]  # an Operation, or an Opener (`workers.sandbox.child`)

TASKS: Mapping[str, Kind] = {
    "workers.conversion.huggingface:check": "once",
    "workers.conversion.pytorch:convert": "once",
    "workers.conversion.tokenizers:check": "once",
    "workers.inference.onnx.child:serve": "stays",
    "workers.inference.pictures.files:decode": "once",
    "workers.inference.pictures.files:shrink": "once",
    "workers.sandbox.probe:reach": "once",
}
