"""An image's name or id as the end of a path. A name may have slashes; it is never empty."""

from typing import Annotated

from fastapi import Path
from starlette.convertors import Convertor, register_url_convertor


class _Name(Convertor[str]):
    regex = ".+"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("name", _Name())

IMAGE = "{image:name}"
ImageName = Annotated[str, Path(description="The image's name or id.", examples=["1000268201.jpg"])]
