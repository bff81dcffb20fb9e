"""An image's name or id as the end of a path. A name may have slashes; it is never empty."""

from typing import Annotated

from fastapi import Path
from starlette.convertors import PathConvertor, register_url_convertor


class _Name(PathConvertor):
    regex = ".+"


register_url_convertor("name", _Name())

IMAGE = "{image:name}"
ImageName = Annotated[str, Path(description="The image's name or id.", examples=["1000268201.jpg"])]
