"""An Opener for a child that builds a folder's processor again and again, each time with other
texts in the place of the folder's own.
"""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass

from PIL import Image

from service.contract.errors import PrescoreError
from service.contract.formats import packages
from service.contract.formats.packages import ModelPackage
from workers.inference.huggingface import folder_processor
from workers.inference.huggingface.folder_processor import FolderProcessor
from workers.sandbox.child import InputRefused
from workers.sandbox.exchange import ExchangeServer

_MOST_PIXELS = 1_000_000
_MOST_TEXT = 300
_MOST_BYTES = 1 << 24


@dataclass(frozen=True)
class _ChangedPackage(ModelPackage):
    texts: Mapping[str, str]

    def text(self, name, most):  # noqa: ARG002  as of any package
        return self.texts[name]


def serve(inputs, parameters, memory):
    with packages.open_package(inputs[0]) as package:
        own = {name: package.text(name, _MOST_BYTES) for name in package.files}
    stream = io.BytesIO()
    Image.new("RGB", (64, 48), "grey").save(stream, "PNG")

    def build(given):
        """As `folder_processor.serve_processor` does, then one picture."""
        changed = _ChangedPackage(package.files, own | json.loads(given))
        try:
            processor = FolderProcessor(changed, parameters["prompt"])
            end = processor.find_end(parameters["prompt"])
            told = {"prompt": processor.prompt, "end": end, "pieces": processor.count_pieces()}
            tensors, content = folder_processor._prepare_picture(
                processor, stream.getvalue(), _MOST_PIXELS
            )
        except (PrescoreError, InputRefused) as refused:
            return {"refused": str(refused)}, b""  # an InputRefused would end this process
        except Exception as error:  # noqa: BLE001  as serve_processor
            return {"refused": repr(error)[:_MOST_TEXT]}, b""
        return {**told, **tensors}, content

    build(b"{}")  # the library's modules are imported
    return {}, ExchangeServer(memory, {"build": build}).answer
